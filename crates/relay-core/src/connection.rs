//! What the hub knows of one connection.
//!
//! ```text
//!   Joining --JOIN--> Member --QUIT, end of input--> Leaving --committed--> Draining --flushed--> Closed --announced--> gone
//!      |                 |                              |                      ^                    ^
//!      +-----------------+---- end of input, too late, ..----------------------+                    |
//!      +-----------------+---- slow, lost, ping timeout, .. ---+------------------------------------+
//! ```
//!
//! An idle one owns no buffers: `kept`, the outbox and the waiting answers are empty and without memory. Knows nothing of other
//! connections. Next: `hub/mod.rs`, which has all of them.

use alloc::{collections::VecDeque, rc::Rc};
use core::net::SocketAddr;

use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::closing::CloseReason;
use crate::kept::Kept;
use crate::limits::{BEHIND_MAX_BYTES, IDLE_QUEUE_CAPACITY_MAX, OUTBOX_MAX_BYTES, OUTBOX_PAUSE_BYTES, RELEASE_BYTES, WAITING_ANSWERS_MAX};
use crate::nanos::Nanos;
use crate::outbox::{Outbox, Share};
use crate::reply;
use crate::slots::Key;
use crate::uncommitted::Position;

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) peer: SocketAddr,
    pub(crate) phase: Phase,
    pub(crate) kept: Kept,
    /// The rest of a line that was too long is on its way.
    pub(crate) discarding: bool,
    /// Lines other than a `JOIN` that succeeds.
    pub(crate) before_join_bytes: usize,
    /// Why nothing is parsed at the moment.
    pub(crate) pause: Option<Pause>,
    /// The pause is over, and the shell has not been told yet.
    pub(crate) announce_read: bool,
    pub(crate) clock: Clock,
    pub(crate) bucket: Option<Bucket>,
    pub(crate) outbox: Outbox,
    /// The kernel took no more at the last attempt. Only then is anything known to be beyond it.
    pub(crate) send_blocked: bool,
    pub(crate) member: Option<Member>,
    /// Name and room, from `JOIN` on: `member` ends with the membership, the log line at the end needs them still.
    pub(crate) identity: Option<Identity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Joining,
    Member,
    /// It has said its last, and is a member until all of that is committed and answered.
    Leaving,
    /// Out of its room; what is queued is still flushed.
    Draining(CloseReason),
    /// Waits to be announced to the shell.
    Closed {
        reason: CloseReason,
        /// Something that was queued is dropped.
        reset: bool,
    },
}

/// Why a connection is not parsed further. The first that applies is the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Too much of everybody waits for its commit.
    Commits,
    /// Too many answers of this connection wait for a commit.
    Answers,
    /// It sends too fast.
    Rate,
    /// It does not take its answers. That is the client's doing: its clock goes on.
    Outbox,
    /// The history that it has asked for is not loaded. Unlike the others this pause stands behind the request, which is to be answered.
    History,
    /// Nothing any more. What it has sent meanwhile is parsed when the shell comes to it: there may be thousands like it.
    Turn,
}

#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: Rc<str>,
    pub(crate) room: Rc<str>,
}

/// What only a member has.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) room: Key,
    /// Behind its last message.
    pub(crate) last_message: Position,
    /// Its messages in the batch of the last one.
    pub(crate) sent_in_batch: u32,
    /// Answers that wait for the commit of what it sent before.
    waiting: VecDeque<Waiting>,
    /// What `waiting` will count toward the client's limit at most.
    promised_bytes: usize,
}

/// An answer with its place among the connection's messages.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) answer: Answer,
    pub(crate) behind: Position,
    /// The connection's messages in that batch that come before the answer.
    pub(crate) sent_before: u32,
}

/// An answer other than a `MESSAGE`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Line(&'static str),
    History,
    /// `OK QUIT`, then nothing more.
    Quit,
    /// Nothing more.
    End,
}

impl Connection {
    pub(crate) fn new(peer: SocketAddr, bucket: Option<Bucket>) -> Connection {
        Connection {
            peer,
            phase: Phase::Joining,
            kept: Kept::default(),
            discarding: false,
            before_join_bytes: 0,
            pause: None,
            announce_read: false,
            clock: Clock::default(),
            bucket,
            outbox: Outbox::default(),
            send_blocked: false,
            member: None,
            identity: None,
        }
    }

    /// Whether input still means anything.
    #[inline]
    pub(crate) fn takes_input(&self) -> bool {
        matches!(self.phase, Phase::Joining | Phase::Member)
    }

    /// Why its next line must wait, if it must.
    #[inline]
    pub(crate) fn pause_cause(&self, commits_are_full: bool, now: Nanos) -> Option<Pause> {
        let unread_bytes = self.unread_bytes();
        if commits_are_full {
            return Some(Pause::Commits);
        }
        if let Some(Member { waiting, promised_bytes, .. }) = &self.member
            && !waiting.is_empty()
            && (waiting.len() >= WAITING_ANSWERS_MAX || unread_bytes + promised_bytes > OUTBOX_PAUSE_BYTES)
        {
            return Some(Pause::Answers);
        }
        if self.bucket.is_some_and(|bucket| bucket.ready_at() > now) {
            return Some(Pause::Rate);
        }
        (unread_bytes > OUTBOX_PAUSE_BYTES).then_some(Pause::Outbox)
    }

    /// Queues bytes, unless there is nobody to send them to any more.
    #[inline]
    pub(crate) fn queue(&mut self, share: Share) {
        if !matches!(self.phase, Phase::Closed { .. }) {
            self.outbox.push(share);
        }
    }

    /// What is queued as far as it makes the client's requests wait.
    #[inline]
    pub(crate) fn unread_bytes(&self) -> usize {
        self.outbox.counted_bytes() + self.outbox.repeated_bytes()
    }

    /// Whether the client does not read: known only once the kernel has refused some of its queue. Refusals of its messages say nothing of
    /// that, however many: they keep no memory, and all of them come at once when the disk is full.
    #[inline]
    pub(crate) fn is_slow(&self) -> bool {
        let behind_bytes = self.outbox.len_bytes() - self.outbox.repeated_bytes();
        behind_bytes > BEHIND_MAX_BYTES || (self.send_blocked && self.outbox.counted_bytes() > OUTBOX_MAX_BYTES)
    }

    /// Whether the deadline may be judged: not while the client cannot help missing it.
    pub(crate) fn is_judged(&self) -> bool {
        !self.clock.is_stopped() || self.pause == Some(Pause::Outbox)
    }

    /// When the hub must look at it again.
    pub(crate) fn wake_at(&self) -> Option<Nanos> {
        match (self.pause, &self.bucket) {
            (Some(Pause::Rate), Some(bucket)) => Some(bucket.ready_at()),
            _ if self.is_judged() => self.clock.due().map(|(at, _)| at),
            _ => None,
        }
    }
}

impl Member {
    pub(crate) fn new(room: Key) -> Member {
        Member { room, last_message: Position::default(), sent_in_batch: 0, waiting: VecDeque::new(), promised_bytes: 0 }
    }

    /// Notes a message, which ends at `position`.
    #[inline]
    pub(crate) fn note_message(&mut self, position: Position) {
        let is_first = position.batch != self.last_message.batch;
        self.sent_in_batch = if is_first { 1 } else { self.sent_in_batch + 1 };
        self.last_message = position;
    }

    /// Notes messages that follow the last one in its batch, and end at `position`.
    pub(crate) fn note_more_messages(&mut self, len_messages: u32, position: Position) {
        self.sent_in_batch += len_messages;
        self.last_message = position;
    }

    /// Puts an answer behind the last message.
    pub(crate) fn push_waiting(&mut self, answer: Answer) {
        self.promised_bytes += answer.counted_max();
        self.waiting.push_back(Waiting { answer, behind: self.last_message, sent_before: self.sent_in_batch });
    }

    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next answer, if it waits for no later batch than this one.
    pub(crate) fn pop_waiting(&mut self, batch: u64) -> Option<Waiting> {
        self.waiting.front().filter(|waiting| waiting.behind.batch <= batch)?;
        let waiting = self.waiting.pop_front()?;
        self.promised_bytes -= waiting.answer.counted_max();
        if self.waiting.is_empty() && self.waiting.capacity() > IDLE_QUEUE_CAPACITY_MAX {
            self.waiting = VecDeque::new();
        }
        Some(waiting)
    }
}

impl Answer {
    /// How much it may count toward the client's limit, once it is queued.
    fn counted_max(self) -> usize {
        match self {
            Answer::Line(line) => line.len(),
            Answer::Quit => reply::OK_QUIT.len(),
            Answer::History => RELEASE_BYTES,
            Answer::End => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::Slots;

    #[test]
    fn a_queue_of_waiting_answers_that_was_large_gives_its_memory_back() {
        let mut member = Member::new(Slots::new().insert(()));
        for _ in 0..WAITING_ANSWERS_MAX {
            member.push_waiting(Answer::History);
        }
        while member.pop_waiting(0).is_some() {}
        assert_eq!((member.waiting.capacity(), member.promised_bytes), (0, 0));
    }
}
