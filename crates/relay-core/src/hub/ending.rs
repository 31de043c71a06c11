//! How connections end: drained, when the server says goodbye and flushes what is queued, or cut, when there is nothing left to say.
//!
//! Either way a connection leaves its room at once, and its end is announced to the shell exactly once; its accepted messages are committed
//! and shown like all others. One that ends in order, with `QUIT` or by closing its side, is drained behind its last answer. Next:
//! `time.rs`.

use super::{ConnectionId, Hub};
use crate::clock::Due;
use crate::closing::CloseReason;
use crate::connection::{Answer, Identity, Phase};
use crate::limits::FLUSH_TIMEOUT;
use crate::nanos::Nanos;
use crate::slots::Key;

impl Hub {
    /// The client has closed its side, and may still read: it is answered all that it asked for and shown its own messages before the
    /// connection ends. A line without its end was no request; after `QUIT` this says nothing new.
    ///
    /// While the connection is paused this does nothing, because there may be requests that were not parsed yet: the shell may not read
    /// then, and meets the end again when it reads on.
    pub fn end_of_input(&mut self, now: Nanos, id: ConnectionId) {
        if self.connections.get(id.0).is_some_and(|connection| connection.takes_input() && connection.pause.is_none()) {
            self.leave(now, id.0, Answer::End);
        }
    }

    /// The connection is broken: reset by the client, or any other error of its socket.
    pub fn disconnect(&mut self, id: ConnectionId) {
        let phase = self.connections.get(id.0).map(|connection| connection.phase);
        let reason = match phase {
            Some(Phase::Draining(reason)) => reason,
            _ => CloseReason::ConnectionLost,
        };
        self.cut(id.0, reason);
    }

    /// Takes no more connections and input. What was accepted is still committed and shown, then every connection is drained.
    pub fn shutdown(&mut self, now: Nanos) {
        self.is_shutting_down = true;
        self.drain_all_if_shut_down(now);
    }

    /// Whether nothing is left to commit, to send or to close.
    pub fn is_finished(&self) -> bool {
        self.uncommitted.is_empty() && self.connections.len() == 0
    }

    pub(super) fn drain_all_if_shut_down(&mut self, now: Nanos) {
        if self.is_shutting_down && self.uncommitted.is_empty() {
            for key in self.connections.keys() {
                self.answer_without_history(now, key);
                self.drain(now, key, CloseReason::Shutdown);
            }
        }
    }

    /// Ends a connection once its queue is flushed, or after [`FLUSH_TIMEOUT`].
    pub(super) fn drain(&mut self, now: Nanos, key: Key, reason: CloseReason) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if matches!(connection.phase, Phase::Draining(_) | Phase::Closed { .. }) {
            return;
        }
        if connection.outbox.is_empty() {
            return self.cut(key, reason);
        }
        connection.phase = Phase::Draining(reason);
        connection.pause = None;
        connection.clock.start(now);
        connection.kept = Default::default();
        self.leave_room(key);
        self.arm(now, key, Some((now + FLUSH_TIMEOUT, Due::Flush)));
    }

    /// Ends a connection now and drops what is queued for it.
    pub(super) fn cut(&mut self, key: Key, reason: CloseReason) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if matches!(connection.phase, Phase::Closed { .. }) {
            return;
        }
        connection.phase = Phase::Closed { reason, reset: !connection.outbox.is_empty() };
        connection.outbox.clear();
        connection.kept = Default::default();
        self.counters.closed[reason as usize] += 1;
        self.deadlines.set(key.index, None);
        self.touched.push(key.index);
        self.leave_room(key);
    }

    fn leave_room(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let (Some(member), Some(Identity { name, .. })) = (connection.member.take(), &connection.identity) else { return };
        if let Some(room) = self.rooms.get_mut(member.room) {
            room.members.remove(name);
            self.forget_room_if_unused(member.room);
        }
    }
}
