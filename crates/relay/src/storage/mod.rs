//! Storage: makes committed messages durable, and reads them back.
//!
//! The server sees [`Storage`], a trait of one method, so that a test can pass one that waits or fails. The real one is the [`Log`]: plain
//! files that hold one record for each commit, checked by a chain of checksums. The files stand in reading order: a file uses only those
//! above it. `docs/decisions/0001-log-format.md` says why it is built so.
//!
//! ```text
//! Batch -> record (bytes) -> one pwrite + one fdatasync -> log/00000001.log, ..
//!                                                              |
//!              Log::open (at start), print_history  <- scan <--+
//! ```
//!
//! # Example
//!
//! ```
//! use relay::storage::{Log, Storage, print_history};
//! use relay_core::{Batch, Section};
//!
//! let parent = tempfile::tempdir()?;
//! let data_dir = parent.path().join("relay-data");
//! let (mut log, recovered) = Log::open(&data_dir, &mut |_record| {})?;
//! assert_eq!(recovered.message_count, 0);
//!
//! let lines = b"MESSAGE ada hello\n".to_vec();
//! log.commit(&Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] })?;
//! // The message survives a power cut from here on.
//!
//! let mut printed = Vec::new();
//! print_history(&data_dir, "lounge", &mut printed)?;
//! assert_eq!(printed, b"MESSAGE ada hello\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod limits;
mod wall_clock;
mod position;
mod contract;
mod error;
mod disk;
mod folder;
mod log;
mod history;
mod open;
mod tools;

#[cfg(test)]
mod memory_disk;

pub use contract::{Archive, ArchiveError, Committed, Failure, Loaded, Next, Storage, StorageError, Worked};
pub use error::{HistoryError, OpenError};
pub use history::{HistoryArchive, Retention};
pub use open::{Opened, open};
pub use tools::{
    Finding, Losses, Progress, Repair, Report, Watch, back_up, export_room, print_history, repair_folder, verify_folder,
};
pub use log::{Log, PrepareError, Preparer, Record, Recovered, StoredSection};
pub use position::MessageId;

pub(crate) use limits::FOLD_WINDOW_BYTES;
