//! Every bound of the server process, each with its reason. Those of the protocol are in `relay_core::limits`, those of the log in
//! `storage/limits.rs`. Next: `histogram.rs`.

use std::time::Duration;

/// What one read takes at most, after which all others get their turn: a millisecond's work, and for lines that are not empty far less.
/// All connections share one buffer of this size; an idle connection owns none.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// Slices that one system call writes. More of them in one call do not make it cheaper per slice.
pub(crate) const SLICES_PER_WRITE: usize = 64;

/// Descriptors kept back from connections: listeners, the log, the loop's own, and connections that are being refused.
pub(crate) const DESCRIPTORS_RESERVED: u64 = 64;

/// A client whose rate an operator has set may send this many times its messages a second at once after a silence. The default is the same.
pub(crate) const BURST_SECONDS: u32 = 5;

/// Closed connections at a time that still wait for their client to take our last words. Beyond it they are closed at once. It fits into
/// [`DESCRIPTORS_RESERVED`] together with everything else that is kept back.
pub(crate) const LINGERING_LEN_MAX: usize = 32;

/// How often it is looked whether a client has taken them.
pub(crate) const LINGER_STEP: Duration = Duration::from_millis(20);

/// What takes less time shows no progress: nobody has begun to wonder.
pub(crate) const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// How often a bar for what goes on beside it is looked at.
pub(crate) const PROGRESS_EVERY: Duration = Duration::from_millis(100);

/// The smallest disk budget: three fifths of it may be log (four files in use and one that is ready, or fewer and two spare ones), the rest
/// is history and its journal.
pub(crate) const DISK_BUDGET_MIN_BYTES: u64 = 512 << 20;

/// How much of the log may wait to be folded, unless the disk budget allows less. It rides out a burst of ten million messages, and a start
/// folds it in some ten seconds.
pub(crate) const UNFOLDED_BYTES_MAX: u64 = 1 << 30;

/// When so much was folded, what was measured before of the archive's pace counts half. Two cycles of folding: their parts differ in pace.
pub(crate) const PACE_WINDOW_BYTES: u64 = 64 << 20;

/// How long a committed message may wait to be folded where little is said: then a room that nobody is in leaves memory. Often enough for
/// that, and so seldom that a quiet server's disk sleeps most of the time.
pub(crate) const FOLD_AGE: Duration = Duration::from_secs(60);

/// While commits come, folding rests so many times as long as its last piece took, when next to nothing is unfolded: then it takes a fifth
/// of the time, and the rest is the commits'.
pub(crate) const FOLD_REST_MAX: f64 = 4.0;

/// How far the archive's thread stands back where the processors do not suffice: a step weighs about a fifth.
pub(crate) const ARCHIVE_NICENESS: i32 = 5;

/// After this time an archive that found the disk full tries again. Whoever frees space sees the effect while looking.
pub(crate) const ARCHIVE_RETRY: Duration = Duration::from_secs(5);

/// Histories that the archive worker is asked for at a time; the others wait in the hub, where those that nobody wants any more fall out.
/// One answer is 200 KiB at most. Between two pieces of the archive's work so many are loaded, in some ten milliseconds.
pub(crate) const LOADS_LEN_MAX: usize = 64;

/// That histories cannot be loaded is said at most once in this time, however many ask for them.
pub(crate) const LOAD_FAILURE_SAID_EVERY: Duration = Duration::from_secs(1);

/// The longest line of the log: what every pipe takes at once when it takes anything (`PIPE_BUF`).
pub(crate) const LINE_OF_LOG_MAX_BYTES: usize = 4096;

/// A start that folds more of the log than this says how far it has come: it takes seconds.
pub(crate) const TOLD_LOG_MIN_BYTES: u64 = 128 << 20;
