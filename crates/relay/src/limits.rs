//! Every bound of the server process, each with its reason. Those of the protocol are in `relay_core::limits`, those of the log in
//! `storage/limits.rs`. Next: `error.rs`.

use std::time::Duration;

/// What one read takes at most. All connections share one buffer of this size; an idle connection owns none.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// How often a connection is read before the others get their turn, so that one that floods delays them by a millisecond at most.
pub(crate) const READS_PER_TURN: usize = 4;

/// Slices that one system call writes. More of them in one call do not make it cheaper per slice.
pub(crate) const SLICES_PER_WRITE: usize = 64;

/// Descriptors kept back from connections: listeners, the log, the loop's own, and connections that are being refused.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 64;

/// A client whose rate an operator has set may send this many times its messages a second at once after a silence. The default is the same.
pub(crate) const BURST_SECONDS: u32 = 5;

/// Closed connections at a time whose last input is still read away, so that the kernel does not destroy our last words with a reset.
pub(crate) const LINGERING_LEN_MAX: usize = 32;

/// How long that may take.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
