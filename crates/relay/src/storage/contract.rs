//! The contract between the server and the disk: one call, and what its failure means.
//!
//! The server knows this file; the log keeps it, and so does a test's storage that waits or fails. Next: `error.rs`.

use relay_core::Batch;
use std::{error::Error, fmt, io, path::PathBuf, sync::Arc};

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
    fn commit(&mut self, batch: &Batch) -> Result<(), StorageError>;
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

impl Failure {
    pub(super) fn new(action: &'static str, path: PathBuf, offset: u64, source: io::Error) -> Failure {
        Failure { action, path, offset, source: Arc::new(source) }
    }
}

impl From<Failure> for StorageError {
    fn from(failure: Failure) -> StorageError {
        StorageError::Failed(failure)
    }
}

/// Whether a call failed only because there is no room, which may be different later.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
