//! Batches out to the disk, and what happens when they come back: fan-out, or refusal.
//!
//! This is the only place that shows a message to anybody. The lines of a room's section become one shared buffer; each member's outbox and
//! the room's history take a reference to it, so a commit costs a member one entry however many messages it holds. Only a member with
//! answers that wait between its own messages gets the buffer in pieces, with the answers in between. Next: `output.rs`.

use alloc::{collections::BTreeMap, rc::Rc, vec::Vec};

use super::Hub;
use crate::batch::{Batch, CommitError, Section};
use crate::closing::CloseReason;
use crate::connection::{Answer, Pause, Waiting};
use crate::nanos::Nanos;
use crate::outbox::Share;
use crate::reply;
use crate::slots::Key;
use crate::uncommitted::Flight;

impl Hub {
    /// The oldest messages that wait for their commit, at most [`BATCH_MAX_BYTES`](crate::limits::BATCH_MAX_BYTES) of them, when no other
    /// batch is on its way. It comes back with [`Hub::committed`] or [`Hub::commit_refused`].
    pub fn take_batch(&mut self) -> Option<Batch> {
        self.uncommitted.take()
    }

    /// The batch is on disk: its messages are shown, and the answers that waited for it are given.
    pub fn committed(&mut self, now: Nanos, batch: Batch) {
        let Some(flight) = self.uncommitted.land() else { return };
        self.counters.commits += 1;
        let mut answered = Vec::new();
        for (section, &room) in batch.sections.into_iter().zip(&flight.rooms) {
            self.fan_out(now, flight.number, room, section, &mut answered);
        }
        self.end_batch(now, &flight, answered);
    }

    /// The batch is not on disk and will not be: each message is answered with an error, nothing is shown.
    pub fn commit_refused(&mut self, now: Nanos, batch: Batch, error: CommitError) {
        let Some(flight) = self.uncommitted.land() else { return };
        drop(batch);
        let refusal: &[u8] = match error {
            CommitError::Full => &reply::STORAGE_FULL,
            CommitError::Unavailable => &reply::STORAGE_UNAVAILABLE,
        };
        let mut sent_by: BTreeMap<Key, u32> = BTreeMap::new();
        for run in &flight.runs {
            *sent_by.entry(run.sender).or_default() += run.len_messages;
            self.counters.messages_refused += u64::from(run.len_messages);
        }
        let answered: Vec<Key> = sent_by.keys().copied().collect();
        for (key, sent) in sent_by {
            self.refuse(now, flight.number, key, sent, refusal);
        }
        self.end_batch(now, &flight, answered);
    }

    fn fan_out(&mut self, now: Nanos, batch: u64, room_key: Key, section: Section, answered: &mut Vec<Key>) {
        let Some(room) = self.rooms.get_mut(room_key) else { return };
        let Section { message_count, lines, .. } = section;
        let lines = Rc::new(lines);
        let first_answered = answered.len();
        let mut slow = Vec::new();
        for &key in room.members.values() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            if connection.member.as_ref().is_some_and(|member| member.has_waiting()) {
                answered.push(key);
                continue;
            }
            connection.queue(Share::whole(&lines));
            self.touched.push(key.index);
            if connection.is_slow() {
                slow.push(key);
            }
        }
        self.counters.messages_committed += u64::from(message_count);
        self.counters.deliveries += u64::from(message_count) * room.members.len() as u64;
        for &key in &answered[first_answered..] {
            self.deliver_with_answers(now, batch, key, &lines);
        }
        for key in slow {
            self.cut(key, CloseReason::Slow);
        }
        if let Some(room) = self.rooms.get_mut(room_key) {
            room.tail.push(&lines, message_count as usize);
            room.last_commit = self.counters.commits;
        }
    }

    /// Queues a section in pieces, each waiting answer at its place.
    fn deliver_with_answers(&mut self, now: Nanos, batch: u64, key: Key, lines: &Rc<Vec<u8>>) {
        let mut from_bytes = 0;
        while let Some(waiting) = self.pop_waiting(key, batch) {
            self.queue(key, Share::new(lines, from_bytes..waiting.behind.end_bytes));
            from_bytes = waiting.behind.end_bytes;
            match waiting.answer {
                Answer::History => {
                    let committed = &lines[..from_bytes as usize];
                    self.give_history_after(key, committed, waiting.behind.end_messages as usize);
                }
                answer => self.give(now, key, answer),
            }
        }
        // After its last answer it is no member any more.
        if self.connections.get(key).is_some_and(|connection| connection.member.is_some()) {
            self.queue(key, Share::new(lines, from_bytes..u32::MAX));
        }
    }

    fn give_history_after(&mut self, key: Key, committed: &[u8], len_messages: usize) {
        let member = self.connections.get(key).and_then(|connection| connection.member.as_ref());
        let Some(room) = member.and_then(|member| self.rooms.get_mut(member.room)) else { return };
        let answer = room.tail.answer_after(committed, len_messages);
        self.queue(key, Share::whole(&Rc::new(answer)));
    }

    /// Answers `sent` messages with an error each, and what waited between and behind them.
    fn refuse(&mut self, now: Nanos, batch: u64, key: Key, sent: u32, refusal: &'static [u8]) {
        let errors = |count: u32| Share::repeated(refusal, count as usize * (refusal.len() / reply::LINES_PER_REFUSAL));
        let mut refused = 0;
        while let Some(waiting) = self.pop_waiting(key, batch) {
            self.queue(key, errors(waiting.sent_before - refused));
            refused = waiting.sent_before;
            self.give(now, key, waiting.answer);
        }
        self.queue(key, errors(sent - refused));
    }

    fn pop_waiting(&mut self, key: Key, batch: u64) -> Option<Waiting> {
        self.connections.get_mut(key)?.member.as_mut()?.pop_waiting(batch)
    }

    /// Lets those go on who waited for this batch, and those who waited for less to wait.
    fn end_batch(&mut self, now: Nanos, flight: &Flight, answered: Vec<Key>) {
        for &key in &flight.rooms {
            if let Some(room) = self.rooms.get_mut(key) {
                room.uncommitted_sections -= 1;
                self.forget_room_if_unused(key);
            }
        }
        for key in answered {
            self.resume_from(now, key, Pause::Answers);
        }
        while !self.uncommitted.is_full()
            && let Some(index) = self.paused_for_commits.pop()
        {
            if let Some(key) = self.connections.key_at(index) {
                self.resume_from(now, key, Pause::Commits);
            }
        }
        self.drain_all_if_shut_down(now);
    }
}
