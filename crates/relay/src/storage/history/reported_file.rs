//! A file under SQLite whose failures are kept as sentences: SQLite takes a number from us, and people need file, place and cause.
//!
//! Knows nothing of pages. Next: `journal_file.rs`.

use crate::storage::{
    contract::is_full,
    disk::{DiskFile, write_all_at},
};
use sqlite_vfs::Error;
use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

/// What last went wrong with the files of one connection. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastFailure {
    text: Arc<Mutex<Option<String>>>,
}

impl LastFailure {
    /// The sentence, once.
    pub(crate) fn take(&self) -> Option<String> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn set(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    /// Keeps what the system said of a call, and says it to SQLite.
    pub(super) fn io(&self, action: &str, path: &std::path::Path, error: &io::Error) -> Error {
        self.set(format!("{action} {} failed: {error}", path.display()));
        match error.kind() {
            io::ErrorKind::NotFound => Error::NotFound,
            _ if is_full(error) => Error::Full,
            _ => Error::Io,
        }
    }
}

/// An open file.
pub(super) struct ReportedFile {
    pub(super) file: Box<dyn DiskFile>,
    pub(super) path: PathBuf,
    pub(super) failure: LastFailure,
}

impl ReportedFile {
    /// Fills `out`, as far as the file goes.
    pub(super) fn read_at(&self, out: &mut [u8], offset: u64) -> Result<usize, Error> {
        let mut count = 0;
        while count < out.len() {
            match self.file.read_at(&mut out[count..], offset + count as u64) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.io("reading", &error)),
            }
        }
        Ok(count)
    }

    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        write_all_at(self.file.as_ref(), bytes, offset).map_err(|partly| self.io("writing to", &partly.error))
    }

    pub(super) fn truncate(&self, byte_count: u64) -> Result<(), Error> {
        self.file.truncate(byte_count).map_err(|error| self.io("shortening", &error))
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|error| self.io("syncing", &error))
    }

    pub(super) fn byte_count(&self) -> Result<u64, Error> {
        self.file.byte_count().map_err(|error| self.io("asking for the length of", &error))
    }

    pub(super) fn io(&self, action: &str, error: &io::Error) -> Error {
        self.failure.io(action, &self.path, error)
    }

    /// What was read is wrong: `what` says where and why.
    pub(super) fn damaged(&self, what: &str) -> Error {
        self.failure.set(format!("{} is damaged: {what}", self.path.display()));
        Error::Damaged
    }

    /// SQLite makes a call that it is not known to make, so what would become of it is not known either.
    pub(super) fn unexpected(&self, what: &str) -> Error {
        self.failure.set(format!("{}: SQLite {what}, which relay does not expect: please report it", self.path.display()));
        Error::Io
    }
}
