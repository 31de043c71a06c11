//! Why a server stops.
//!
//! Next: `state.rs`.

use crate::storage::StorageError;

/// The reason that [`Running::serve`](super::Running::serve) returns. The first one counts.
#[derive(Debug)]
pub enum Stop {
    /// Somebody asked for it.
    Requested,
    /// The storage failed for good.
    Storage(StorageError),
    /// A part of the server ended that never should: a defect.
    Defect(&'static str),
}
