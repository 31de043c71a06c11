//! Rooms that come into memory, and those that go: what the archive is asked for, what it answers, how far it has come.
//!
//! ```text
//!   JOIN of a room that is not in memory --> pop_load --> history_loaded       --> whoever asked is answered
//!                                               ^   +---> history_unavailable  --> whoever asked is told so
//!                                               +-- the next HISTORY ---------------+
//! ```
//!
//! Talking does not wait for the archive, only `HISTORY` does: a connection that has asked is not parsed on, so its answers stay in order,
//! and what it is given at last is the history of that moment. Costs one pass over the members of a room when its history comes. Knows
//! nothing of how the archive stores. Next: `commits.rs`.

use alloc::{string::String, vec::Vec};

use super::Hub;
use crate::connection::{Answer, Pause};
use crate::nanos::Nanos;
use crate::reply;
use crate::room::{Past, Room};
use crate::slots::Key;

/// The history of a room that is wanted: its last [`HISTORY_LEN_MAX_MESSAGES`](crate::limits::HISTORY_LEN_MAX_MESSAGES) messages.
#[derive(Debug)]
pub struct Load {
    /// Who asks.
    pub room: RoomId,
    /// The room's name.
    pub name: String,
    /// Up to this commit of the hub, the first being 1, and not beyond: of later ones the room has its messages.
    pub commits: u64,
}

/// Names a room until it is forgotten, and nothing afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoomId(Key);

impl Hub {
    /// The next history to load, those that somebody waits for first. Each is answered once, with [`Hub::history_loaded`] or
    /// [`Hub::history_unavailable`]. Rooms that were forgotten before their turn came are not asked for.
    pub fn pop_load(&mut self) -> Option<Load> {
        let (key, room) = self.rooms.pop_to_load()?;
        Some(Load { room: RoomId(key), name: String::from(&*room.name), commits: room.past_commits })
    }

    /// The histories that are still to be asked for. Those of rooms that were forgotten or went first count until their turn comes.
    pub fn loads_len(&self) -> usize {
        self.rooms.to_load_len()
    }

    /// A room's history is there: so many `MESSAGE <name> <text>\n` lines, oldest first. The answer to a room that was forgotten meanwhile
    /// is ignored.
    pub fn history_loaded(&mut self, now: Nanos, room: RoomId, lines: Vec<u8>, message_count: u32) {
        let RoomId(key) = room;
        let Some(room) = self.asked_room(key) else { return };
        room.past = Past::Loaded;
        room.tail.push_before(lines, message_count as usize);
        self.counters.rooms_loaded += 1;
        self.answer_who_waits(now, key, Answer::History);
    }

    /// A room's history cannot be loaded now. Whoever waits for it is told so; who asks later makes it be tried again.
    pub fn history_unavailable(&mut self, now: Nanos, room: RoomId) {
        let RoomId(key) = room;
        let Some(room) = self.asked_room(key) else { return };
        room.past = Past::Unavailable;
        self.counters.loads_failed += 1;
        self.answer_who_waits(now, key, Answer::Line(reply::HISTORY_UNAVAILABLE));
    }

    /// The first `commits` commits of this hub can be loaded from now on: rooms that nobody uses need not stay for their messages. If they
    /// are many, [`Hub::next_deadline`] says when to go on.
    pub fn archived(&mut self, commits: u64) {
        self.rooms.note_archived(commits);
        self.forget_archived_rooms();
    }

    pub(super) fn forget_archived_rooms(&mut self) {
        self.counters.rooms_forgotten += self.rooms.forget_archived() as u64;
    }

    /// Answers a `HISTORY`, or lets its connection wait until there is an answer.
    pub(super) fn request_history(&mut self, now: Nanos, key: Key) {
        let member = self.connections.get(key).and_then(|connection| connection.member.as_ref());
        let Some(room_key) = member.map(|member| member.room) else { return };
        let Some(room) = self.rooms.get_mut(room_key) else { return };
        if room.past == Past::Loaded || room.tail.is_full() {
            return self.answer(now, key, Answer::History);
        }
        self.rooms.wait_for_past(room_key);
        self.pause(now, key, Pause::History);
    }

    /// Tells a connection that its history does not come any more.
    pub(super) fn answer_without_history(&mut self, now: Nanos, key: Key) {
        if self.waits_for_history(key) {
            self.answer(now, key, Answer::Line(reply::HISTORY_UNAVAILABLE));
        }
    }

    pub(super) fn forget_room_if_unused(&mut self, key: Key) {
        if self.rooms.forget_if_unused(key) {
            self.counters.rooms_forgotten += 1;
        }
    }

    /// The room, if it has asked and was not answered.
    fn asked_room(&mut self, key: Key) -> Option<&mut Room> {
        self.rooms.get_mut(key).filter(|room| room.past == Past::Asked)
    }

    /// Answers everybody who waits for a room's history. What they have sent since is parsed when the shell comes to each of them.
    fn answer_who_waits(&mut self, now: Nanos, room: Key, answer: Answer) {
        let Some(room) = self.rooms.get_mut(room) else { return };
        let members: Vec<Key> = room.members.values().copied().collect();
        for key in members {
            if !self.waits_for_history(key) {
                continue;
            }
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.pause = Some(Pause::Turn);
            connection.announce_read = true;
            self.touched.push(key.index);
            self.answer(now, key, answer);
        }
    }

    fn waits_for_history(&self, key: Key) -> bool {
        self.connections.get(key).is_some_and(|connection| connection.pause == Some(Pause::History))
    }
}
