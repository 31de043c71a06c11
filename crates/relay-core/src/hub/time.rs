//! Deadlines: `PING` and its `PONG`, the wait for a `JOIN` and for a flush, and the refill of token buckets. Also the rooms
//! that are forgotten some at a time.
//!
//! The shell calls [`Hub::tick`] after it has read all sockets of a turn, so that an answer that came in time is never judged as missing.
//! This is the last file; `tests/hub` shows all of it at work.

use super::Hub;
use crate::clock::Due;
use crate::closing::CloseReason;
use crate::connection::Pause;
use crate::nanos::Nanos;
use crate::reply;
use crate::slots::Key;

impl Hub {
    /// When to call [`Hub::tick`] at the latest. `None`: nothing will happen before somebody sends something.
    pub fn next_deadline(&self) -> Option<Nanos> {
        // Rooms to be forgotten are due since the beginning of time.
        if self.rooms.has_archived() { Some(Nanos(0)) } else { self.deadlines.next() }
    }

    /// Does what is due by now. Costs nothing for connections whose deadline has not come.
    pub fn tick(&mut self, now: Nanos) {
        self.forget_archived_rooms();
        while let Some(index) = self.deadlines.pop_due(now) {
            let Some(key) = self.connections.key_at(index) else { continue };
            let Some(connection) = self.connections.get(key) else { continue };
            match (connection.wake_at(), connection.pause, connection.clock.due()) {
                (Some(at), ..) if at > now => self.rearm(key),
                (Some(_), Some(Pause::Rate), _) => self.resume_from(now, key, Pause::Rate),
                (Some(_), _, Some((_, due))) => self.expire(now, key, due),
                _ => {}
            }
        }
    }

    fn expire(&mut self, now: Nanos, key: Key, due: Due) {
        if self.is_shutting_down && due != Due::Flush {
            // Nobody is read from any more, so nobody can be late.
            return;
        }
        match due {
            Due::Join => {
                self.queue(key, reply::JOIN_TIMEOUT.into());
                self.drain(now, key, CloseReason::JoinTimeout);
            }
            Due::Ping => {
                let next = match self.settings.heartbeat_timeout {
                    Some(timeout) => Some((now + timeout, Due::Pong)),
                    None => self.settings.heartbeat_interval.map(|interval| (now + interval, Due::Ping)),
                };
                self.counters.pings += 1;
                self.arm(now, key, next);
                self.queue(key, reply::PING.into());
            }
            Due::Pong => self.cut(key, CloseReason::PingTimeout),
            Due::Flush => self.cut(key, CloseReason::FlushTimeout),
        }
    }

    /// Gives a connection its next deadline in place of the one before.
    pub(super) fn arm(&mut self, now: Nanos, key: Key, due: Option<(Nanos, Due)>) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.clock.set(now, due);
        self.rearm(key);
    }

    /// Makes sure that the connection comes up in time.
    pub(super) fn rearm(&mut self, key: Key) {
        if let Some(connection) = self.connections.get(key) {
            self.deadlines.set(key.index, connection.wake_at());
        }
    }
}
