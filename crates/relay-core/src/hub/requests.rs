//! What each line means for who sent it, and the order of the answers.
//!
//! A connection's answers come in the order of its requests. `MESSAGE` is the answer to `MSG` and comes with the commit; so every other
//! answer waits behind the messages that its connection sent before and that are not committed yet (`commits` releases it). Next:
//! `history.rs`.

use alloc::{format, rc::Rc};

use super::Hub;
use crate::clock::Due;
use crate::closing::CloseReason;
use crate::command::Command;
use crate::connection::{Answer, Identity, Member, Phase};
use crate::limits::LINES_BEFORE_JOIN_MAX_BYTES;
use crate::name;
use crate::nanos::Nanos;
use crate::outbox::Share;
use crate::reply;
use crate::slots::Key;
use crate::uncommitted::More;

impl Hub {
    /// Handles one line of valid text; `len_bytes` is its length with its end.
    #[inline]
    pub(super) fn request(&mut self, now: Nanos, key: Key, text: &[u8], len_bytes: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let command = Command::parse(text);
        if connection.phase == Phase::Joining {
            return self.request_before_join(now, key, command, len_bytes);
        }
        match command {
            Command::Message { text } => self.message(now, key, text),
            Command::History => self.request_history(now, key),
            Command::Pong => self.expect_heartbeat(now, key),
            Command::Quit => self.leave(now, key, Answer::Quit),
            Command::Join { .. } | Command::Http | Command::Unknown => self.answer(now, key, Answer::Line(reply::EXPECTED_COMMAND)),
        }
    }

    fn request_before_join(&mut self, now: Nanos, key: Key, command: Command<'_>, len_bytes: usize) {
        let error = match command {
            // What was answered before is still sent, so that it does not depend on how the bytes were split.
            Command::Http => return self.drain(now, key, CloseReason::Http),
            Command::Join { name, room } => match self.join(now, key, name, room) {
                Ok(()) => return,
                Err(error) => error,
            },
            _ => reply::EXPECTED_JOIN,
        };
        self.answer(now, key, Answer::Line(error));
        self.count_before_join(now, key, len_bytes);
    }

    /// Counts a line that was not a successful `JOIN`, if one was expected.
    pub(super) fn count_before_join(&mut self, now: Nanos, key: Key, len_bytes: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.phase == Phase::Joining {
            connection.before_join_bytes += len_bytes;
            if connection.before_join_bytes > LINES_BEFORE_JOIN_MAX_BYTES {
                self.queue(key, reply::TOO_MUCH_BEFORE_JOIN.into());
                self.drain(now, key, CloseReason::TooMuchBeforeJoin);
            }
        }
    }

    fn join(&mut self, now: Nanos, key: Key, name: &str, room_name: &str) -> Result<(), &'static str> {
        if !name::is_member_name(name) {
            return Err(reply::INVALID_NAME);
        }
        if !name::is_room_name(room_name) {
            return Err(reply::INVALID_ROOM);
        }
        if self.rooms.has_member(room_name, name) {
            return Err(reply::NAME_IN_USE);
        }
        let Some(connection) = self.connections.get_mut(key) else { return Ok(()) };
        let (room_key, room) = self.rooms.open(room_name, self.counters.commits);
        let name: Rc<str> = name.into();
        room.members.insert(Rc::clone(&name), key);
        connection.phase = Phase::Member;
        connection.member = Some(Member::new(room_key));
        let joined = format!("OK JOIN {name} {room_name}\n");
        connection.identity = Some(Identity { name, room: Rc::clone(&room.name) });
        self.counters.joins += 1;
        self.queue(key, Share::whole(&Rc::new(joined.into_bytes())));
        self.expect_heartbeat(now, key);
        Ok(())
    }

    #[inline]
    fn message(&mut self, now: Nanos, key: Key, text: &[u8]) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (Some(member), Some(Identity { name, .. })) = (&mut connection.member, &connection.identity) else { return };
        let Some(room) = self.rooms.get_mut(member.room) else { return };
        if let Some(bucket) = &mut connection.bucket {
            bucket.take(now);
        }
        member.note_message(self.uncommitted.push(key, member.room, room, name, text));
        self.counters.messages_accepted += 1;
    }

    /// Takes the messages at the beginning of `lines` that follow one of the same member, and returns their length.
    #[inline]
    pub(super) fn more_messages(&mut self, key: Key, lines: &[u8]) -> Option<usize> {
        let connection = self.connections.get_mut(key).filter(|connection| connection.phase == Phase::Member && !connection.discarding)?;
        let (Some(member), Some(Identity { name, .. })) = (&mut connection.member, &connection.identity) else { return None };
        let room = self.rooms.get_mut(member.room)?;
        let More { parsed_len, len_messages, end } = self.uncommitted.push_more(key, room, name, lines)?;
        member.note_more_messages(len_messages, end);
        self.counters.messages_accepted += u64::from(len_messages);
        Some(parsed_len)
    }

    /// The next `PING` is due an interval from now.
    pub(super) fn expect_heartbeat(&mut self, now: Nanos, key: Key) {
        let due = self.settings.heartbeat_interval.map(|interval| (now + interval, Due::Ping));
        self.arm(now, key, due);
    }

    /// Takes no more requests, and ends the connection with this answer in its place. No heartbeats meanwhile: nobody reads a `PONG`.
    pub(super) fn leave(&mut self, now: Nanos, key: Key, last: Answer) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.phase = Phase::Leaving;
        self.arm(now, key, None);
        self.answer(now, key, last);
    }

    /// Answers at once, or behind the connection's uncommitted messages.
    pub(super) fn answer(&mut self, now: Nanos, key: Key, answer: Answer) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match &mut connection.member {
            Some(member) if self.uncommitted.is_pending(member.last_message) => member.push_waiting(answer),
            _ => self.give(now, key, answer),
        }
    }

    /// Queues an answer whose turn has come.
    pub(super) fn give(&mut self, now: Nanos, key: Key, answer: Answer) {
        match answer {
            Answer::Line(line) => self.queue(key, line.into()),
            Answer::History => {
                let member = self.connections.get(key).and_then(|connection| connection.member.as_ref());
                let Some(room) = member.and_then(|member| self.rooms.get_mut(member.room)) else { return };
                let answer = room.tail.answer();
                self.queue(key, Share::whole(&answer));
            }
            Answer::Quit => {
                self.queue(key, reply::OK_QUIT.into());
                self.drain(now, key, CloseReason::Quit);
            }
            Answer::End => self.drain(now, key, CloseReason::EndOfInput),
        }
    }
}
