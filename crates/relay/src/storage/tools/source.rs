//! A data folder that is only read: its two stores, and how their errors are told to people.
//!
//! Takes no lock but those that SQLite takes for the length of a statement; waits for a server that writes. A change of history.db that was
//! cut off is left as it is: who wants to see beyond it reads it rolled back in memory. Next: `room_reader.rs`.

use super::overlay::Overlay;
use crate::storage::{
    disk::{Access, Disk, OsDisk},
    error::{OpenError, open_error},
    folder::{HISTORY, JOURNAL, log_dir},
    history::{ConnectError, Database, DatabaseError, HistoryConnection, LastFailure, open_connection},
    limits::FILE_BYTES,
    position::LogPosition,
};
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Where a data folder's stores are.
#[derive(Clone)]
pub(crate) struct Source {
    pub(crate) data_dir: PathBuf,
    /// The folder of history.db.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) log: Arc<dyn Disk>,
    pub(crate) file_bytes: u64,
}

/// A history that is only read.
pub(crate) struct History {
    pub(crate) database: Database,
    failure: LastFailure,
    path: PathBuf,
    data_dir: PathBuf,
}

impl Source {
    /// The stores of a data folder; `None` when there is no folder for a log in it.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub(crate) fn open(data_dir: &Path) -> Result<Option<Source>, OpenError> {
        let log_dir = log_dir(data_dir);
        let log = match OsDisk::open(&log_dir) {
            Ok(disk) => Arc::new(disk),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_error("opening", log_dir)(error)),
        };
        let disk = OsDisk::open(data_dir).map_err(open_error("opening", data_dir))?;
        Ok(Some(Source { data_dir: data_dir.to_owned(), disk: Arc::new(disk), log, file_bytes: FILE_BYTES }))
    }

    /// The history; `None` when there is none yet.
    ///
    /// # Errors
    ///
    /// It is damaged, or something else; or a change of it was cut off.
    pub(crate) fn history(&self) -> Result<Option<History>, OpenError> {
        self.connected(Access::Read)
    }

    /// The history as it is when the next start has taken back what was cut off; on the disk nothing is changed.
    pub(crate) fn history_rolled_back(&self) -> Result<Option<History>, OpenError> {
        self.in_memory(Overlay::new(self.disk.clone()))
    }

    /// The history as it is when that cannot be taken back, because the journal is damaged.
    pub(crate) fn history_without_journal(&self) -> Result<Option<History>, OpenError> {
        self.in_memory(Overlay::without(self.disk.clone(), JOURNAL))
    }

    pub(crate) fn history_path(&self) -> PathBuf {
        self.disk.path().join(HISTORY)
    }

    fn in_memory(&self, overlay: Overlay) -> Result<Option<History>, OpenError> {
        if !self.has_history()? {
            return Ok(None);
        }
        Source { disk: Arc::new(overlay), ..self.clone() }.connected(Access::ReadWrite)
    }

    fn has_history(&self) -> Result<bool, OpenError> {
        match self.disk.open(HISTORY, Access::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(open_error("opening", self.history_path())(error)),
        }
    }

    /// Waits for others.
    fn connected(&self, access: Access) -> Result<Option<History>, OpenError> {
        loop {
            match open_connection(self.disk.clone(), HISTORY, access) {
                Ok(connection) => {
                    if let Ok(history) = self.checked(connection)? {
                        return Ok(Some(history));
                    }
                }
                Err(ConnectError::Missing { .. }) => return Ok(None),
                Err(ConnectError::Busy { .. }) => {}
                Err(error) => return Err(self.connect_error(error)),
            }
        }
    }

    fn checked(&self, connection: HistoryConnection) -> Result<Result<History, Busy>, OpenError> {
        let HistoryConnection { connection, failure } = connection;
        let (path, data_dir) = (self.history_path(), self.data_dir.clone());
        match Database::check(connection) {
            Ok(database) => Ok(Ok(History { database, failure, path, data_dir })),
            Err(DatabaseError::Busy) => Ok(Err(Busy)),
            Err(error) => Err(explained(error, &failure, path, data_dir)),
        }
    }

    fn connect_error(&self, error: ConnectError) -> OpenError {
        let (path, data_dir) = (self.history_path(), self.data_dir.clone());
        match error {
            ConnectError::Damaged(reason) => OpenError::DamagedHistory { path, reason, data_dir },
            ConnectError::Unfinished { .. } => OpenError::Unfinished { path, data_dir },
            error => OpenError::Io { action: "opening", path, source: io::Error::other(error.to_string()) },
        }
    }
}

/// Somebody keeps the history locked.
struct Busy;

impl History {
    /// Asks the history, again as long as somebody who writes keeps it locked.
    pub(crate) fn ask<T>(&self, question: impl Fn(&Database) -> Result<T, DatabaseError>) -> Result<T, OpenError> {
        loop {
            match question(&self.database) {
                // SQLite has waited for some seconds already.
                Err(DatabaseError::Busy) => {}
                Ok(answer) => return Ok(answer),
                Err(error) => return Err(self.explained(error)),
            }
        }
    }

    pub(crate) fn explained(&self, error: DatabaseError) -> OpenError {
        explained(error, &self.failure, self.path.clone(), self.data_dir.clone())
    }

    /// Looks at the file while nobody changes it.
    pub(crate) fn while_unchanged(&self, mut look: impl FnMut()) -> Result<(), OpenError> {
        // The first read of a transaction takes the lock.
        self.ask(|database| {
            let connection = database.connection();
            if !connection.is_autocommit() {
                connection.execute_batch("ROLLBACK")?;
            }
            Ok(connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?)
        })?;
        look();
        self.ask(|database| Ok(database.connection().execute_batch("COMMIT")?))
    }
}

/// Up to where the log is in the history, which may not be there yet.
pub(crate) fn folded(history: Option<&History>) -> Result<LogPosition, OpenError> {
    history.map_or(Ok(LogPosition::START), |history| history.ask(Database::folded))
}

fn explained(error: DatabaseError, failure: &LastFailure, path: PathBuf, data_dir: PathBuf) -> OpenError {
    let text = failure.take();
    match error {
        DatabaseError::Damaged { what } => OpenError::DamagedHistory { path, reason: text.unwrap_or(what), data_dir },
        DatabaseError::Refused(what) => OpenError::DamagedHistory { path, reason: what, data_dir },
        error => OpenError::Io { action: "reading", path, source: io::Error::other(text.unwrap_or_else(|| error.to_string())) },
    }
}
