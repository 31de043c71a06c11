//! The whole server as one value. Each file of this folder is one side of it:
//!
//! `input` bytes into lines, pausing; `requests` what a line means; `history` rooms that come into memory and go; `commits` batches and
//! fan-out; `output` what the shell sends; `ending` how connections end; `time` deadlines.
//!
//! Nothing here iterates all connections, except a shutdown. Calls with the id of a connection that is gone do nothing. Next: `input.rs`,
//! where bytes come in.

mod input;
mod requests;
mod history;
mod commits;
mod output;
mod ending;
mod time;

use alloc::collections::BTreeMap;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::bucket::Bucket;
use crate::clock::Due;
use crate::closing::Refused;
use crate::connection::Connection;
use crate::counters::Counters;
use crate::deadlines::Deadlines;
use crate::limits::JOIN_TIMEOUT;
use crate::nanos::Nanos;
use crate::once_queue::OnceQueue;
use crate::room::Rooms;
use crate::settings::{PeerLimits, Settings};
use crate::slots::{Key, Slots};
use crate::uncommitted::Uncommitted;

pub use history::{Load, RoomId};
pub use output::Touched;

/// All rooms and connections of a server.
#[derive(Debug)]
pub struct Hub {
    settings: Settings,
    connections: Slots<Connection>,
    /// How many connections come from each address that has a limit.
    per_address: BTreeMap<IpAddr, u32>,
    rooms: Rooms,
    uncommitted: Uncommitted,
    deadlines: Deadlines,
    /// Connections that the shell should look at.
    touched: OnceQueue,
    /// Connections that are paused until commits make room, the first to be resumed first.
    paused_for_commits: OnceQueue,
    is_shutting_down: bool,
    counters: Counters,
}

/// Names a connection until its end was announced, and nothing afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(Key);

impl ConnectionId {
    /// A small number that no other living connection has: for the shell's own table.
    pub fn index(self) -> usize {
        self.0.index as usize
    }
}

impl Hub {
    /// A server without rooms and connections. Heartbeats of zero length are none.
    pub fn new(mut settings: Settings) -> Hub {
        settings.heartbeat_interval = settings.heartbeat_interval.filter(|interval| !interval.is_zero());
        settings.heartbeat_timeout = settings.heartbeat_timeout.filter(|timeout| !timeout.is_zero());
        Hub {
            settings,
            connections: Slots::new(),
            per_address: BTreeMap::new(),
            rooms: Rooms::new(),
            uncommitted: Uncommitted::new(),
            deadlines: Deadlines::default(),
            touched: OnceQueue::default(),
            paused_for_commits: OnceQueue::default(),
            is_shutting_down: false,
            counters: Counters::default(),
        }
    }

    /// Lets a connection in.
    ///
    /// # Errors
    /// When a limit is reached or the server stops; the shell says [`SERVER_FULL`](crate::SERVER_FULL) and closes.
    pub fn connect(&mut self, now: Nanos, peer: SocketAddr) -> Result<ConnectionId, Refused> {
        if self.is_shutting_down {
            return Err(Refused::Shutdown);
        }
        if self.connections.len() >= self.settings.connections_max {
            self.counters.refused_server_full += 1;
            return Err(Refused::ServerFull);
        }
        let limits = self.peer_limits(peer);
        if let Some(max) = limits.connections_per_address_max {
            let count = self.per_address.entry(address_group(peer)).or_default();
            if *count >= max {
                self.counters.refused_address_full += 1;
                return Err(Refused::AddressFull);
            }
            *count += 1;
        }
        self.counters.connections += 1;
        let key = self.connections.insert(Connection::new(peer, limits.rate.map(Bucket::new)));
        self.arm(now, key, Some((now + JOIN_TIMEOUT, Due::Join)));
        Ok(ConnectionId(key))
    }

    /// How many connections are let in.
    pub fn connections_max(&self) -> usize {
        self.settings.connections_max
    }

    /// The connections whose end was not announced yet.
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// The rooms in memory: those with members, or with messages that are not archived.
    pub fn room_count(&self) -> usize {
        self.rooms.len()
    }

    /// The messages that wait for their commit, in bytes as [`BATCH_MAX_BYTES`](crate::limits::BATCH_MAX_BYTES) counts them.
    pub fn uncommitted_len_bytes(&self) -> usize {
        self.uncommitted.len_bytes()
    }

    /// What has happened so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The input of a connection that is kept because it cannot be parsed yet, in bytes.
    pub fn kept_len_bytes(&self, id: ConnectionId) -> usize {
        self.connections.get(id.0).map_or(0, |connection| connection.kept.len())
    }

    /// All that is queued for a connection, in bytes, released or not.
    pub fn outbox_len_bytes(&self, id: ConnectionId) -> usize {
        self.connections.get(id.0).map_or(0, |connection| connection.outbox.len_bytes())
    }

    fn peer_limits(&self, peer: SocketAddr) -> PeerLimits {
        if peer.ip().to_canonical().is_loopback() { self.settings.loopback } else { self.settings.remote }
    }

    /// Gives back what [`Hub::connect`] took for this peer.
    fn forget_address(&mut self, peer: SocketAddr) {
        let group = address_group(peer);
        if let Some(count) = self.per_address.get_mut(&group) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&group);
            }
        }
    }
}

/// The addresses that count as one: a /64 is what a single subscriber of IPv6 has at least.
fn address_group(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn an_idle_connection_owns_no_input_buffer_and_is_small() {
        let now = Nanos(0);
        let mut hub = Hub::new(Settings::default());
        let id = hub.connect(now, SocketAddr::from(([127, 0, 0, 1], 1))).unwrap();
        for piece in [&b"JOIN alice blue\nMSG he"[..], b"llo\nHISTORY", b"\nhello\n"] {
            hub.receive(now, id, piece);
        }
        let load = hub.pop_load().unwrap();
        hub.history_loaded(now, load.room, Vec::new(), 0);
        assert!(hub.may_read(now, id));
        let batch = hub.take_batch().unwrap();
        hub.committed(now, batch);
        hub.sent(now, id, usize::MAX);
        let connection = hub.connections.get(id.0).unwrap();
        assert_eq!((connection.kept.capacity(), connection.outbox.is_empty()), (0, true));
        assert!(size_of::<Connection>() <= 320, "{} bytes", size_of::<Connection>());
    }
}
