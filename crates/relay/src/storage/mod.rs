//! Storage: makes committed messages durable, and reads them back.
//!
//! The server sees two traits, so that a test can pass what waits or fails: [`Storage`], which makes a batch durable, and [`Archive`],
//! which moves what is durable into the history and reads rooms back. The real ones are the [`Log`], plain files that hold one record for
//! each commit, and the [`HistoryArchive`], a SQLite file that holds everything by room. [`open`] puts both together. The files stand in
//! reading order: a file uses only those above it. `docs/decisions/` says why it is built so, `docs/DURABILITY.md` what it promises.
//!
//! ```text
//! Batch -> record -> one pwrite + one fdatasync -> log/00000001.log, ..      the commit worker
//!                                                     |
//!             window, by room  <----- scan <----------+                      the archive worker, behind it
//!                    |
//!                    v
//!               history.db  ---> a room's last messages, print_history, ..
//! ```
//!
//! # Example
//!
//! ```
//! use relay::storage::{Opened, Retention, Storage, open, print_history};
//! use relay_core::{Batch, Section};
//!
//! let parent = tempfile::tempdir()?;
//! let data_dir = parent.path().join("relay-data");
//! let Opened { mut log, .. } = open(&data_dir, Retention::default(), &mut |_folded_bytes, _log_bytes| {})?;
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
mod direct_file;
mod disk;
mod folder;
mod log;
mod history;
mod open;
mod tools;

#[cfg(test)]
mod memory_disk;

#[cfg(test)]
mod power_cut_tests;

pub use contract::{Archive, ArchiveError, Committed, Failure, Loaded, Next, Storage, StorageError, Worked};
pub use error::{HistoryError, OpenError};
pub use history::{HistoryArchive, Retention};
pub use log::{Log, Preparer, Record, Recovered, StoredSection};
pub use open::{Opened, open};
pub use position::MessageId;
pub use tools::{Finding, Losses, Progress, Repair, Report, Watch, back_up, export_room, print_history, repair_folder, verify_folder};

pub(crate) use limits::FOLD_WINDOW_BYTES;
