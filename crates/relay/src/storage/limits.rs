//! Every bound of the storage, with its reason. Nothing else in `storage` names a number of bytes of its own choice.
//!
//! What counts bytes of one record stands here too, because the format, the reader and the start-up check must agree on it.
//! Next: `contract.rs`.

/// A log file has this length from its birth to its end: written full once, so that a commit allocates nothing.
pub(crate) const FILE_BYTES: u64 = 64 << 20;

/// Records start on multiples of this: the page of the kernel's cache, so that a commit never reads a page before it writes it.
pub(crate) const RECORD_ALIGNMENT_BYTES: u64 = 4096;

/// What a disk writes whole or not at all. Disks with larger sectors keep this promise as well.
pub(crate) const SECTOR_BYTES: usize = 512;

/// The longest record, header and padding included: what a batch may hold and the names of its rooms (`record.rs` asserts it). It is also
/// the most memory that reading a log takes.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// How much one read takes from a log file when records are small.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// How much of a new file is written between two syncs: a commit that goes on beside it waits for one of these, not for all of it.
pub(crate) const PREPARE_STEP_BYTES: usize = 1 << 20;

/// Below this much free space nothing is committed: what else uses the disk, the history and a repair among it, needs room to work.
pub(crate) const FREE_BYTES_MIN: u64 = 64 << 20;

/// Free space is asked for once per this many committed bytes: 256 of the smallest commits, one system call in 512.
pub(crate) const SPACE_CHECK_BYTES: u64 = 1 << 20;
