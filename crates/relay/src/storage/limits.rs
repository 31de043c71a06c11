//! Every bound of the storage, with its reason. Nothing else in `storage` names a number of bytes of its own choice.
//!
//! What counts bytes of one record stands here too, because the format, the reader and the start-up check must agree on it.
//! Next: `wall_clock.rs`.

use std::time::Duration;

/// A log file has this length from its birth to its end: written full once, so that a commit allocates nothing.
pub(crate) const FILE_BYTES: u64 = 64 << 20;

/// A page of memory, and of the kernel's cache. Disks take whole ones from memory that begins on one, whatever their sectors.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Records start on multiples of this, so that a commit is whole pages.
pub(crate) const RECORD_ALIGNMENT_BYTES: u64 = PAGE_BYTES as u64;

/// What a disk writes whole or not at all. Disks with larger sectors keep this promise as well.
pub(crate) const SECTOR_BYTES: usize = 512;

/// The longest record, header and padding included: what a batch may hold and the names of its rooms (`record.rs` asserts it). It is also
/// the most memory that reading a log takes.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 20;

/// How much one read takes from a log file when records are small.
pub(crate) const READ_BYTES: usize = 1 << 20;

/// How much the first read takes at a place that somebody writes to: the smallest record.
pub(crate) const READ_BYTES_MIN: usize = RECORD_ALIGNMENT_BYTES as usize;

/// How much of a file is zeroed between two syncs: a commit that goes on beside it waits for one of these, not for all of it.
pub(crate) const PREPARE_STEP_BYTES: usize = 1 << 20;

/// Log files whose records are in the history and that wait to be used again. One is needed for each file that is filled; a second one
/// bridges the time until the next fold. More come only after the archive was behind, and their space is worth more elsewhere.
pub(crate) const LOG_FILES_SPARE_MAX: usize = 2;

/// Below this much free space nothing is committed: what else uses the disk, the history and a repair among it, needs room to work.
pub(crate) const FREE_BYTES_MIN: u64 = 64 << 20;

/// Free space is asked for once per this many committed bytes: 256 of the smallest commits, one system call in 512.
pub(crate) const SPACE_CHECK_BYTES: u64 = 1 << 20;

/// The lines of one segment: what is read for the history of a room, and what a flipped byte can take with it. A longer message is alone.
pub(crate) const SEGMENT_BYTES: usize = 32 << 10;

/// A last segment of at most this much is always rewritten with what follows it: the row is mostly on one page then.
pub(crate) const SEGMENT_SMALL_BYTES: usize = 4096;

/// The messages that are gathered, by room, before they are folded, with what they cost in memory beside their lines. The more there are,
/// the more a room has at once; one record may come on top.
pub(crate) const FOLD_WINDOW_BYTES: usize = 32 << 20;

/// What one transaction of folding writes: so much that its syncs are worth it, and so little that a room to be loaded waits a few tens of
/// milliseconds at most.
pub(crate) const FOLD_TRANSACTION_BYTES: usize = 1 << 20;

/// What a room or a segment adds to a transaction beside its lines: a page of an index, or the rest of its last page.
pub(crate) const FOLD_PAGE_BYTES: usize = 4096;

/// The prepared statements that are kept. There are fewer different ones.
pub(crate) const STATEMENTS_MAX: usize = 32;

/// What SQLite keeps of history.db in memory for one connection. A transaction may take more until it ends.
pub(crate) const HISTORY_CACHE_BYTES: usize = 16 << 20;

/// What the rollback journal of history.db keeps on the disk from one transaction to the next: more than an ordinary one needs.
pub(crate) const HISTORY_JOURNAL_BYTES: u64 = 64 << 20;

/// How long a connection to history.db waits for another's lock. Transactions of relay take a few hundredths of this.
pub(crate) const HISTORY_BUSY_MS: u64 = 5000;

/// Steps of SQLite, of less than a microsecond each unless it waits for the disk, between two looks whether its answer is still wanted.
pub(crate) const STEPS_PER_LOOK: i32 = 100;

/// Rows of a new folder that one transaction deletes: each is at most 32 KiB.
pub(crate) const DELETED_ROWS_MAX: u32 = 64;

/// Findings and losses that are printed. More of them say nothing more; they are counted.
pub(crate) const FINDINGS_LEN_MAX: usize = 100;

/// Pages of history.db that are checked between two moments at which a server may write: a few milliseconds.
pub(crate) const PAGES_PER_LOOK: u64 = 256;

/// How often the end of the log is looked at again before it is called damaged: a record that a server is just writing looks so for at most
/// a few milliseconds, and each look takes one at least.
pub(crate) const LOOKS_AT_END_MAX: u32 = 50;

/// Runs of an unfinished fold that are compared with the log: more than one window of a fold has unless its runs are a few bytes each.
pub(crate) const UNFOLDED_RUNS_MAX: usize = 1 << 20;

/// A row of history.db that is looked for on its pages: lines as long as a record holds, and their runs. More is damage.
pub(crate) const ROW_BYTES_MAX: usize = 2 * RECORD_BYTES_MAX as usize;

/// Rows that cannot be read and are named all the same, from the index. Beyond it they are counted.
pub(crate) const LOST_ROWS_MAX: usize = 100_000;

/// Rows in succession that cannot be read, after which there are taken to be no more, where it cannot be known: far more than one page of
/// any tree leads to.
pub(crate) const UNREADABLE_ROWS_MAX: u32 = 100_000;

/// Names that are tried for a folder beside another.
pub(crate) const FOLDER_NAMES_MAX: u32 = 1000;

/// How much of the log is gathered in one step of folding: some milliseconds.
pub(crate) const GATHER_STEP_BYTES: u64 = 4 << 20;

/// How many segments a step of retention deletes or rewrites: some milliseconds, as one transaction of folding.
pub(crate) const RETENTION_STEP_SEGMENTS: u32 = 32;

/// How many rooms a step of retention looks at: some milliseconds.
pub(crate) const RETENTION_STEP_ROOMS: usize = 512;

/// How many steps of retention are done between two windows at most: as many as delete all segments that a window may bring. More of them
/// wait until the next window is folded, because commits may wait for that, and a rule that is new may have millions to delete.
pub(crate) const RETENTION_STEPS_MAX: u32 = (FOLD_WINDOW_BYTES / FOLD_PAGE_BYTES) as u32 / RETENTION_STEP_SEGMENTS;

/// The rooms whose first segments wait to be deleted: a few MiB of names, more than a window may hold. Beyond it all rooms are looked at
/// again instead.
pub(crate) const CROWDED_ROOMS_MAX: usize = 100_000;

/// How long the archive worker waits for another program that has history.db locked: rooms to be loaded wait with it.
pub(crate) const ARCHIVE_BUSY: Duration = Duration::from_millis(20);

/// When folding is tried again after that. What waits is in the log, so there is time.
pub(crate) const BUSY_RETRY: Duration = Duration::from_millis(250);

/// How often in a row, before people are told: ten seconds in all.
pub(crate) const BUSY_TRIES_MAX: u32 = 40;

/// When a log file is tried to be made again after the system refused a call that writes nothing.
pub(crate) const REFUSED_RETRY: Duration = Duration::from_secs(1);
