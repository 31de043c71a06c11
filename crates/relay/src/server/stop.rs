//! Why a server stops.
//!
//! Next: `backlog.rs`.

use crate::storage::{ArchiveError, StorageError};

/// The reason that [`Running::serve`](super::Running::serve) returns. The first one counts, but for a failure of the disk: it is told
/// whatever else the server stopped for.
#[derive(Debug)]
pub enum Stop {
    /// Somebody asked for it.
    Requested,
    /// The storage failed for good.
    Storage(StorageError),
    /// The archive failed for good. What was shown is stored.
    Archive(ArchiveError),
    /// A part of the server ended that never should: a defect.
    Defect(&'static str),
}

impl Stop {
    pub(super) fn is_failure_of_disk(&self) -> bool {
        matches!(self, Stop::Storage(_) | Stop::Archive(_))
    }
}
