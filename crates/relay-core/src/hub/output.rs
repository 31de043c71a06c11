//! What the shell sends, and what the kernel makes of it.
//!
//! The hub never knows what a client has received, only what the kernel has refused. So a full outbox says nothing until the shell has
//! tried to write it: the limit is judged when the kernel took less than it was offered, and from then on with everything that is queued.
//! Next: `ending.rs`.

use super::{ConnectionId, Hub};
use crate::closing::{CloseReason, Closed};
use crate::connection::{Identity, Pause, Phase};
use crate::limits::OUTBOX_PAUSE_BYTES;
use crate::nanos::Nanos;
use crate::outbox::Share;
use crate::slots::Key;

/// A connection that the shell should look at.
#[derive(Clone, Debug)]
pub struct Touched {
    /// Which one. With `closed` it names nothing any more.
    pub id: ConnectionId,
    /// Its outbox is not empty, and the kernel has not refused it.
    pub send: bool,
    /// It was paused and may be read from again: there may be no new edge for what the kernel holds.
    pub read: bool,
    /// It has ended; nothing will be said about it again.
    pub closed: Option<Closed>,
}

impl Hub {
    /// The next connection with something to do, each once.
    pub fn pop_touched(&mut self) -> Option<Touched> {
        while let Some(index) = self.touched.pop() {
            let Some(key) = self.connections.key_at(index) else { continue };
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let id = ConnectionId(key);
            if let Phase::Closed { reason, reset } = connection.phase {
                return Some(Touched { id, send: false, read: false, closed: self.forget(key, reason, reset) });
            }
            let send = !connection.send_blocked && !connection.outbox.is_empty();
            let read = core::mem::take(&mut connection.announce_read);
            if send || read {
                return Some(Touched { id, send, read, closed: None });
            }
        }
        None
    }

    /// How many calls of [`Hub::pop_touched`] name every connection that has something to do now. Those that come up meanwhile, again or
    /// for the first time, are behind them: a shell that stops here and comes back leaves nobody waiting for one with a long queue.
    pub fn touched_len(&self) -> usize {
        self.touched.len()
    }

    /// What to write next to a connection, for one vectored write: at most [`RELEASE_BYTES`](crate::limits::RELEASE_BYTES).
    pub fn outbox(&self, id: ConnectionId) -> impl Iterator<Item = &[u8]> {
        self.connections.get(id.0).into_iter().flat_map(|connection| connection.outbox.slices())
    }

    /// The kernel took the first `len_bytes` of the outbox. What is left comes up in [`Hub::pop_touched`] again, behind the others.
    pub fn sent(&mut self, now: Nanos, id: ConnectionId, len_bytes: usize) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if len_bytes == 0 {
            return;
        }
        connection.outbox.consume(len_bytes);
        connection.send_blocked = false;
        if let Phase::Draining(reason) = connection.phase
            && connection.outbox.is_empty()
        {
            return self.cut(id.0, reason);
        }
        if !connection.outbox.is_empty() {
            self.touched.push(id.0.index);
        }
        if connection.pause == Some(Pause::Outbox) {
            // It reads, if slowly: the time until now was not its silence.
            connection.clock.give_back(now);
            if connection.unread_bytes() <= OUTBOX_PAUSE_BYTES {
                self.resume_from(now, id.0, Pause::Outbox);
            }
        }
    }

    /// The kernel takes nothing more until the socket is writable again: what is still queued is beyond it, and is judged by the limit.
    pub fn send_blocked(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.send_blocked = true;
        self.cut_if_slow(id.0);
    }

    /// The socket is writable again.
    pub fn writable(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        connection.send_blocked = false;
        self.touched.push(id.0.index);
    }

    pub(super) fn queue(&mut self, key: Key, share: Share) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.queue(share);
        self.touched.push(key.index);
        self.cut_if_slow(key);
    }

    fn cut_if_slow(&mut self, key: Key) {
        if self.connections.get(key).is_some_and(|connection| connection.is_slow()) {
            self.cut(key, CloseReason::Slow);
        }
    }

    /// Frees the place of an ended connection.
    fn forget(&mut self, key: Key, reason: CloseReason, reset: bool) -> Option<Closed> {
        let connection = self.connections.remove(key)?;
        self.forget_address(connection.peer);
        let (name, room) = match connection.identity {
            Some(Identity { name, room }) => (Some(name), Some(room)),
            None => (None, None),
        };
        Some(Closed { reason, reset, peer: connection.peer, name, room })
    }
}
