//! The history: everything that was ever committed and not deleted since, by room, in one SQLite file.
//!
//! ```text
//! log records -> Window (by room) -> segments -> Database -> history.db
//!                                                   |
//!        HISTORY of a cold room, relay history <----+
//! ```
//!
//! The files stand in reading order. `docs/decisions/` says why the log is folded into it, and how.

mod page_seal;
mod file_lock;
mod reported_file;
mod journal_file;
mod sqlite_files;
mod connection;
mod segment;
mod database;
mod fold;
mod retention;
mod archive;

pub use archive::HistoryArchive;
pub(crate) use connection::{ConnectError, HistoryConnection, open as open_connection};
pub(crate) use file_lock::is_reserved_by_another;
pub(crate) use page_seal::{PAGE_BYTES, check_unasked as check_page};
pub(crate) use reported_file::LastFailure;
pub use retention::Retention;

pub(crate) use database::{Database, DatabaseError, Entry, Stored, columns as segment_columns, position_checksum};
pub(crate) use fold::Window;
pub(crate) use retention::Disks;
pub(crate) use segment::{Run, Segment};
