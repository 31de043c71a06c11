//! What an operator may change, with the defaults.
//!
//! Knows nothing of command lines and files: the shell reads them. Next: `closing.rs`.

use core::time::Duration;

/// The settings of a [`Hub`](crate::Hub); they hold for its whole life.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `PING` is sent this long after the join or the last `PONG`. `None`: no heartbeats.
    pub heartbeat_interval: Option<Duration>,
    /// A client without `PONG` is closed this long after its `PING`. `None`: never, and `PING` is repeated at the interval.
    pub heartbeat_timeout: Option<Duration>,
    /// All connections together. The shell lowers it to what its descriptors allow.
    pub connections_max: usize,
    /// What holds for peers on this machine.
    pub loopback: PeerLimits,
    /// What holds for all others.
    pub remote: PeerLimits,
}

/// Limits that depend on where a client comes from.
#[derive(Clone, Copy, Debug, Default)]
pub struct PeerLimits {
    /// Connections from one address, from one /64 of IPv6. `None`: no limit of its own.
    pub connections_per_address_max: Option<u32>,
    /// How fast a client may send messages. `None`: as fast as they are committed.
    pub rate: Option<Rate>,
}

/// So many messages a second on average. A client beyond it is not refused, only read later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Messages a second; 0 is taken as 1.
    pub per_second: u32,
    /// Messages that may come at once after a silence; 0 is taken as 1.
    pub burst: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            heartbeat_interval: Some(Duration::from_secs(10)),
            heartbeat_timeout: Some(Duration::from_secs(5)),
            connections_max: 15_000,
            loopback: PeerLimits::default(),
            remote: PeerLimits { connections_per_address_max: Some(64), rate: Some(Rate { per_second: 20, burst: 100 }) },
        }
    }
}
