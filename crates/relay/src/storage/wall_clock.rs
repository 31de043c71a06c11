//! The wall clock. The only file that reads it: a record carries the time of its commit for people to read, and nothing is decided by it.
//!
//! Deadlines and order never use this clock, because it jumps: deadlines use miniloop's, order is the record's sequence. Next:
//! `position.rs`.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970, in UTC; 0 on a machine whose clock stands before that.
#[allow(clippy::disallowed_methods, reason = "this is the one place that may read the wall clock")]
pub(crate) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
