//! What SQLite needs of files, as traits.
//!
//! They know nothing of C. What an error becomes for SQLite depends on the call as well: `glue.rs`, which is next.

use std::{error, fmt};

/// Where files are opened by their names: those that the connection was opened with, and the same with `-journal` behind.
pub trait Files: Send + Sync + 'static {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// Each becomes `SQLITE_CANTOPEN`.
    fn open(&self, name: &str, kind: Kind, access: Access) -> Result<Box<dyn File>, Error>;

    /// Removes a file, durably if `sync_folder` says so.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] if there is none, which SQLite often does not mind.
    fn remove(&self, name: &str, sync_folder: bool) -> Result<(), Error>;

    /// Whether there is a file of that name.
    ///
    /// # Errors
    ///
    /// It cannot be told.
    fn exists(&self, name: &str) -> Result<bool, Error>;
}

/// An open file; dropping it closes it and gives its locks back. One thread at a time calls it.
///
/// # Errors
///
/// Each method may fail with any [`Error`]; SQLite then fails the statement, and rolls back what it was changing.
#[allow(clippy::missing_errors_doc, reason = "said once, above, for all methods")]
pub trait File: Send {
    /// Fills `out`; fewer bytes mean the end of the file, and are right up to there.
    fn read_at(&mut self, out: &mut [u8], offset: u64) -> Result<usize, Error>;
    /// Writes all of it. What lies between the old end and `offset` becomes zeros.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error>;
    /// Gives the file this length.
    fn truncate(&mut self, byte_count: u64) -> Result<(), Error>;
    /// Makes content and length durable, and the name if the file is new.
    fn sync(&mut self) -> Result<(), Error>;
    /// The length.
    fn byte_count(&mut self) -> Result<u64, Error>;
    /// Raises the lock on the file to this one, or fails at once with [`Error::Busy`].
    fn lock(&mut self, lock: Lock) -> Result<(), Error>;
    /// Lowers it to this one, [`Lock::Shared`] or [`Lock::None`].
    fn unlock(&mut self, lock: Lock) -> Result<(), Error>;
    /// Whether somebody holds [`Lock::Reserved`] or more.
    fn is_reserved(&mut self) -> Result<bool, Error>;
}

/// What a file is to SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The database.
    Database,
    /// Its rollback journal.
    Journal,
}

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is only read.
    Read,
    /// It must be there.
    ReadWrite,
    /// It is made if it is not there.
    Create,
}

/// SQLite's locks, each stronger than those above it. Anybody may hold `Shared` beside `Reserved`; nobody anything beside `Exclusive`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// No lock.
    None,
    /// Reads.
    Shared,
    /// Reads, and is the one that will write.
    Reserved,
    /// Waits for the readers to go, and lets no new ones come. SQLite does not ask for it; it is what a failed `Exclusive` may leave.
    Pending,
    /// Writes.
    Exclusive,
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Error {
    /// Somebody else's lock is in the way.
    Busy,
    /// No room is left.
    Full,
    /// There is no such file.
    NotFound,
    /// What was read is not what was once written.
    Damaged,
    /// Everything else.
    Io,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Busy => "the file is locked",
            Error::Full => "no room is left",
            Error::NotFound => "there is no such file",
            Error::Damaged => "the file is damaged",
            Error::Io => "the call failed",
        })
    }
}

impl error::Error for Error {}
