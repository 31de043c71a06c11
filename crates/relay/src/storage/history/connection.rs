//! Opens history.db as SQLite is to use it: on our disk, with sealed pages, a rollback journal that stays, and everything synced.
//!
//! A file that is not there is born as a page of ours, because SQLite decides about the bytes it leaves free when a file is made. Knows
//! nothing of tables. Next: `segment.rs`.

use super::{
    page_seal::{self, PAGE_BYTES, Page, SEAL_BYTES},
    reported_file::LastFailure,
    sqlite_files::{Opened, VFS},
};
use crate::storage::{
    contract::is_full,
    disk::{Access, Disk, write_all_at},
    limits::{HISTORY_BUSY_MS, HISTORY_CACHE_BYTES, HISTORY_JOURNAL_BYTES},
};
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};
use std::{error::Error, fmt, io, path::PathBuf, sync::Arc, time::Duration};

/// An open history.db.
#[derive(Debug)]
pub(crate) struct HistoryConnection {
    pub(crate) connection: Connection,
    /// Where and why a call of the connection failed, when SQLite says no more than "disk I/O error".
    pub(crate) failure: LastFailure,
}

/// Why history.db could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectError {
    /// There is none.
    Missing {
        /// Where it would be.
        path: PathBuf,
    },
    /// A transaction is under way that nobody will finish, and this connection may only read.
    Unfinished { path: PathBuf },
    /// Somebody else writes for too long.
    Busy { path: PathBuf },
    /// Too little disk is free.
    Full { path: PathBuf },
    /// It is not what was once written: file, place and reason.
    Damaged(String),
    /// The disk or SQLite failed: what was said.
    Failed(String),
}

/// Opens the file; to be written to, it is made where it is missing, and a transaction that nobody finished is taken back.
///
/// # Errors
///
/// As the names say. A file that may only be read is left alone whatever is found in it.
pub(crate) fn open(disk: Arc<dyn Disk>, name: &str, access: Access) -> Result<HistoryConnection, ConnectError> {
    let path = disk.path().join(name);
    if is_missing(disk.as_ref(), name)? {
        match access {
            Access::Read => return Err(ConnectError::Missing { path }),
            Access::ReadWrite => give_birth(disk.as_ref(), name)?,
        }
    }

    let opened = Opened::new(disk.clone()).map_err(ConnectError::Failed)?;
    let failure = opened.failure.clone();
    let explained = |error: rusqlite::Error| explain(&error, &failure, &path);
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::ReadWrite => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
    let connection = Connection::open_with_flags_and_vfs(opened.sqlite_name(name), flags, VFS).map_err(explained)?;
    configure(&connection, access).map_err(explained)?;
    let page_bytes: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(explained)?;
    if page_bytes != PAGE_BYTES as i64 {
        return Err(ConnectError::Damaged(format!("{}: its pages have {page_bytes} bytes, not {PAGE_BYTES}", path.display())));
    }
    let page_count: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).map_err(explained)?;
    let byte_count = disk.open(name, Access::Read).and_then(|file| file.byte_count());
    let byte_count = byte_count.map_err(|error| ConnectError::Failed(format!("opening {} failed: {error}", path.display())))?;
    if byte_count < page_count as u64 * PAGE_BYTES as u64 {
        let reason = format!("{} is cut off: it has {byte_count} bytes, and {page_count} pages of {PAGE_BYTES}", path.display());
        return Err(ConnectError::Damaged(reason));
    }
    // What was taken back, or looked for, is nobody's failure any more.
    failure.take();
    Ok(HistoryConnection { connection, failure })
}

/// The settings that hold for the connection, not for the file. The first that reads the file takes back what nobody finished.
fn configure(connection: &Connection, access: Access) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_millis(HISTORY_BUSY_MS))?;
    // Temporary files would be outside of our disk.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cache_size", -(HISTORY_CACHE_BYTES as i64 / 1024))?;
    // A transaction's pages stay in memory until it ends: the journal has one header then, which `journal_file.rs` counts on.
    connection.pragma_update(None, "cache_spill", false)?;
    if access == Access::ReadWrite {
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "journal_size_limit", HISTORY_JOURNAL_BYTES as i64)?;
        let mode: String = connection.pragma_update_and_check(None, "journal_mode", "PERSIST", |row| row.get(0))?;
        if mode != "persist" {
            return Err(rusqlite::Error::InvalidQuery);
        }
    }
    // A read of the file: what is wrong with it is said here.
    connection.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)).map(|_| ())
}

/// Whether there is no history yet. A journal is a sign that there was one.
fn is_missing(disk: &dyn Disk, name: &str) -> Result<bool, ConnectError> {
    let failed = |action: &str, name: &str, error: &io::Error| match is_full(error) {
        true => ConnectError::Full { path: disk.path().join(name) },
        false => ConnectError::Failed(format!("{action} {} failed: {error}", disk.path().join(name).display())),
    };
    match disk.open(name, Access::Read).and_then(|file| file.byte_count()) {
        Ok(0) => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("opening", name, &error)),
    }
    // The journal is made by the first change of a database that is there, and stays.
    let journal = format!("{name}-journal");
    match disk.open(&journal, Access::Read) {
        Ok(_) => Err(ConnectError::Damaged(format!(
            "{} is gone or empty, though its journal {journal} is there: messages were stored in it",
            disk.path().join(name).display()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(failed("reading", &journal, &error)),
    }
}

/// Makes the file with its first page. It comes under another name first, so that it is there whole or not at all.
fn give_birth(disk: &dyn Disk, name: &str) -> Result<(), ConnectError> {
    let unborn = format!("{name}{UNBORN_SUFFIX}");
    let born = (|| {
        let file = disk.create(&unborn)?;
        write_all_at(file.as_ref(), &first_page(), 0).map_err(|partly| partly.error)?;
        file.sync_data()?;
        disk.rename(&unborn, name)?;
        disk.sync_folder()
    })();
    born.map_err(|error: io::Error| match is_full(&error) {
        true => ConnectError::Full { path: disk.path().join(name) },
        false => ConnectError::Failed(format!("making {} failed: {error}", disk.path().join(name).display())),
    })
}

/// The first page of a database without tables (<https://sqlite.org/fileformat2.html>): the file's header, and an empty table of tables.
fn first_page() -> Page {
    let mut page = [0; PAGE_BYTES];
    let mut put = |offset: usize, bytes: &[u8]| page[offset..][..bytes.len()].copy_from_slice(bytes);
    put(0, b"SQLite format 3\0");
    put(16, &(PAGE_BYTES as u16).to_be_bytes());
    // A rollback journal for writing and for reading, the bytes left free, and three numbers that never change.
    put(18, &[1, 1, SEAL_BYTES as u8, 64, 32, 32]);
    // The first change, after which the file has one page.
    put(24, &1_u32.to_be_bytes());
    put(28, &1_u32.to_be_bytes());
    // Schema format 4, UTF-8.
    put(44, &4_u32.to_be_bytes());
    put(56, &1_u32.to_be_bytes());
    // The page count above is right as of the first change, by this version.
    put(92, &1_u32.to_be_bytes());
    put(96, &(rusqlite::version_number() as u32).to_be_bytes());
    // A leaf of a table without cells; their space would begin behind its last byte.
    put(100, &[0x0d, 0, 0, 0, 0]);
    put(105, &((PAGE_BYTES - SEAL_BYTES) as u16).to_be_bytes());
    page_seal::seal(&mut page, 1);
    page
}

/// What a database is called until it has its first page.
pub(crate) const UNBORN_SUFFIX: &str = ".new";

/// An error of SQLite with what our files know of it.
fn explain(error: &rusqlite::Error, failure: &LastFailure, path: &std::path::Path) -> ConnectError {
    let extended_code = error.sqlite_error().map(|error| error.extended_code);
    let text = failure.take().unwrap_or_else(|| format!("{}: {error}", path.display()));
    match (error.sqlite_error_code(), extended_code) {
        (_, Some(ffi::SQLITE_READONLY_ROLLBACK | ffi::SQLITE_READONLY_RECOVERY)) => ConnectError::Unfinished { path: path.to_owned() },
        (_, Some(ffi::SQLITE_IOERR_DATA)) => ConnectError::Damaged(text),
        (Some(ErrorCode::DatabaseBusy), _) => ConnectError::Busy { path: path.to_owned() },
        (Some(ErrorCode::DiskFull), _) => ConnectError::Full { path: path.to_owned() },
        (Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase), _) => {
            ConnectError::Damaged(format!("{} is damaged: {error}", path.display()))
        }
        _ => ConnectError::Failed(text),
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Missing { path } => write!(f, "there is no history in {}", path.display()),
            ConnectError::Unfinished { path } => write!(
                f,
                "a change of {} was under way when its relay was stopped: start relay once, which takes it back, then try again",
                path.display()
            ),
            ConnectError::Busy { path } => write!(f, "another process keeps {} locked: stop it, or try again later", path.display()),
            ConnectError::Full { path } => write!(f, "too little disk is free for {}", path.display()),
            ConnectError::Damaged(text) | ConnectError::Failed(text) => f.write_str(text),
        }
    }
}

impl Error for ConnectError {}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "connection_fault_tests.rs"]
mod fault_tests;
