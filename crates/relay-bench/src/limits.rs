//! Every bound of a run, each with its reason. Next: `error.rs`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How many members a room has, and how many rooms there are: a member's name has five digits.
pub const MEMBERS_MAX: usize = 100_000;

/// How many connections a run has, wherever they lead: each is a descriptor of both processes.
pub const CONNECTIONS_MAX: usize = 1_000_000;

/// How many messages one sender can tell apart: an hour at 2.7 million a second. A number has ten digits.
pub const MESSAGES_MAX: u64 = 10_000_000_000;

/// A window is memory, 8 bytes a message. The server stops reading long before this.
pub const WINDOW_MAX: usize = 1 << 20;

/// More publishes a second than one core can write.
pub const RATE_MAX: u64 = 100_000_000;

/// How long one run sends: an hour.
pub const MILLISECONDS_MAX: u64 = 3_600_000;

/// How long a text may be: sender and number have 17 bytes.
pub const TEXT_BYTES: RangeInclusive<usize> = 17..=64 * 1024;

/// What one system call reads. All members share one buffer of this size.
pub(crate) const READ_BYTES: usize = 256 * 1024;

/// What a server says at a time may be so long. It fits into the buffer together with the read that brings its end.
pub(crate) const EVENT_LEN_MAX_BYTES: usize = 128 * 1024;

/// A sender formats so much at a time. The rest is formatted when the kernel has taken that.
pub(crate) const WRITE_BYTES: usize = 256 * 1024;

/// How often a member is read before the others get their turn.
pub(crate) const READS_PER_POLL: usize = 4;

/// A server that says nothing for so long, while somebody waits for it, has lost something.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(30);

/// A latency above this counts as this: an hour.
pub(crate) const LATENCY_MAX_NS: u64 = 3_600_000_000_000;

/// How many idle members share a room: as many as people who know each other.
pub(crate) const IDLE_ROOM_MEMBERS: usize = 10;

/// Descriptors that are not connections: the standard streams, the loop's own.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 64;
