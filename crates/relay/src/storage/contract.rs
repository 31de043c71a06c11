//! The contract between the server and the disk: one call, and what its failure means.
//!
//! The server knows this file; the log keeps it, and so does a test's storage that waits or fails. Next: `error.rs`.

use relay_core::Batch;
use std::{error::Error, fmt, io, path::PathBuf, sync::Arc, time::Duration};

/// What stands between the server and the disk.
///
/// It lives on the commit worker's thread, which makes one call at a time; what waits meanwhile is the next batch, not the loop.
pub trait Storage: Send + 'static {
    /// Makes the whole batch durable, and returns when it is: from then on its messages may be shown.
    ///
    /// # Errors
    ///
    /// [`StorageError::Full`] and [`StorageError::Refused`]: nothing of the batch is stored, another commit may be tried later.
    /// [`StorageError::Failed`]: final, every later call returns it again without touching the disk. Nothing of a batch that failed may be
    /// shown; after the next start it is there as a whole or not at all.
    fn commit(&mut self, batch: &Batch) -> Result<Committed, StorageError>;
}

/// A commit that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// Its place in the log: one more than that of the commit before.
    pub sequence: u64,
    /// What it takes there.
    pub log_bytes: u64,
    /// It was the first one in a new file of the log: the next file is to be made ready now, see [`Archive::work`].
    pub file_taken: bool,
}

/// What moves committed messages out of the log into the history, and reads histories back.
///
/// It lives on the archive worker's thread, which makes one call at a time. No call takes longer than a few tens of milliseconds, so that
/// a room that somebody waits for is loaded between two of them.
pub trait Archive: Send + 'static {
    /// Does the next piece of work with the log as it stands after the commit `committed`.
    ///
    /// # Errors
    ///
    /// [`ArchiveError::Full`], [`ArchiveError::Locked`]: to be tried again. [`ArchiveError::Failed`]: final.
    fn work(&mut self, committed: u64) -> Result<Worked, ArchiveError>;

    /// The last messages of a room among the commits up to `up_to`, at most as many as `HISTORY` answers with. All of those commits must be
    /// in the history as far as they concern the room.
    ///
    /// # Errors
    ///
    /// The history is damaged or cannot be read.
    fn load(&mut self, room: &str, up_to: u64) -> Result<Loaded, ArchiveError>;
}

/// What a piece of work has done, and when the next one is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Worked {
    /// Everything up to this commit is in the history, durably.
    pub folded: u64,
    /// The log bytes that were folded by this piece. Between two moves of `folded` they say how far it has come.
    pub log_bytes: u64,
    /// When to call again, if nothing is committed meanwhile.
    pub next: Next,
}

/// When the archive wants to be called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once: somebody may come to wait for it.
    Now,
    /// A piece of work is left, and nobody waits for it.
    Soon,
    /// After this time.
    In(Duration),
    /// When there is something to fold.
    WhenCommitted,
}

impl Next {
    /// Whether a piece of work is left.
    #[must_use]
    pub fn goes_on(self) -> bool {
        matches!(self, Next::Now | Next::Soon)
    }
}

/// The last messages of a room.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// `MESSAGE <name> <text>\n` lines, oldest first.
    pub lines: Vec<u8>,
    /// How many they are.
    pub message_count: u32,
}

/// Why the history could not be written or read.
#[derive(Debug, Clone)]
pub enum ArchiveError {
    /// Too little disk is free. Nothing is lost: the log has the messages, and folding goes on when there is room.
    Full {
        /// The folder whose file system is full.
        folder: PathBuf,
    },
    /// Another program has kept it locked for seconds. Nothing is lost, as above; to be tried again.
    Locked {
        /// history.db.
        path: PathBuf,
    },
    /// It is damaged, or the disk fails. What is committed is safe in the log; the text names the place and the way out.
    Failed(String),
}

/// Why a commit was not made durable.
#[derive(Debug, Clone)]
pub enum StorageError {
    /// Too little disk is free. Nothing of the batch is stored; the same or another batch may be committed when there is room.
    Full {
        /// The folder whose file system is full.
        folder: PathBuf,
    },
    /// A call that writes nothing was refused, as for want of a descriptor. Nothing of the batch is stored; the same or another batch may
    /// be committed later.
    Refused(Failure),
    /// A write or a sync failed, and what the disk holds is unknown until the next start. Final: every later commit fails with the same
    /// error.
    Failed(Failure),
}

/// The call to the disk that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// What was being done, as "writing to" or "syncing".
    pub action: &'static str,
    /// The file or folder it was done to.
    pub path: PathBuf,
    /// Where in the file.
    pub offset: u64,
    /// What the operating system said.
    pub source: Arc<io::Error>,
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StorageError::Full { folder } => write!(
                f,
                "too little disk is free for {}: messages are refused until there is room, what is stored is safe; \
                 free some space, nothing needs to be restarted",
                folder.display()
            ),
            StorageError::Refused(Failure { action, path, source, .. }) => write!(
                f,
                "{action} {} failed: {source}; messages are refused until it works, what is stored is safe; nothing needs to be restarted",
                path.display()
            ),
            StorageError::Failed(Failure { action, path, offset, source }) => write!(
                f,
                "{action} {} at offset {offset} failed: {source}; nothing more is stored until the next start, which checks what the disk \
                 holds: look for the cause (`dmesg`), then start relay again",
                path.display()
            ),
        }
    }
}

impl Error for StorageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StorageError::Full { .. } => None,
            StorageError::Refused(failure) | StorageError::Failed(failure) => Some(failure.source.as_ref()),
        }
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveError::Full { folder } => write!(
                f,
                "too little disk is free for {}: messages stay in the log for now; free some space, nothing needs to be restarted",
                folder.display()
            ),
            ArchiveError::Locked { path } => write!(
                f,
                "another program keeps {0} locked: messages stay in the log for now, and are refused when that is at its bound; \
                 `fuser {0}` says which program",
                path.display()
            ),
            ArchiveError::Failed(text) => f.write_str(text),
        }
    }
}

impl Error for ArchiveError {}

impl Failure {
    pub(crate) fn new(action: &'static str, path: PathBuf, offset: u64, source: io::Error) -> Failure {
        Failure { action, path, offset, source: Arc::new(source) }
    }
}

impl From<Failure> for StorageError {
    fn from(failure: Failure) -> StorageError {
        StorageError::Failed(failure)
    }
}

/// Whether a call failed only because there is no room, which may be different later.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
