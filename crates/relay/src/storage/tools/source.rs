//! A data folder that is only read: its two stores, and how their errors are told to people.
//!
//! Takes no lock but those that SQLite takes for the length of a statement; waits for a server that writes. A change of history.db that was
//! cut off is left as it is: who wants to see beyond it reads it rolled back in memory. Next: `room_reader.rs`.

use super::{
    overlay::Overlay,
    report::{Finding, Report},
};
use crate::storage::{
    disk::{Access, Disk, OsDisk},
    error::{OpenError, open_error, quoted},
    folder::{HISTORY, JOURNAL, log_dir},
    history::{ConnectError, Database, DatabaseError, HistoryConnection, LastFailure, Stored, is_reserved_by_another, open_connection},
    limits::{FILE_BYTES, UNREADABLE_ROWS_MAX},
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
    /// Where its file is, with what was taken back in memory.
    pub(crate) disk: Arc<dyn Disk>,
    failure: LastFailure,
    path: PathBuf,
    data_dir: PathBuf,
}

/// A walk over all rows by their ids. It goes on behind what cannot be read, where that is possible at all.
pub(crate) struct Rows<'a> {
    history: &'a History,
    row: i64,
    /// No row has a higher id; `None` when that cannot be read.
    last_row: Option<i64>,
    unreadable_len: u32,
}

impl Source {
    /// The stores of a data folder.
    ///
    /// # Errors
    ///
    /// There is none, or the operating system refuses.
    pub(crate) fn open(data_dir: &Path) -> Result<Source, OpenError> {
        let log_dir = log_dir(data_dir);
        let log = match OsDisk::open(&log_dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && !data_dir.join(HISTORY).exists() => {
                return Err(OpenError::NoData { path: data_dir.to_owned() });
            }
            log => log.map_err(open_error("opening", log_dir))?,
        };
        let disk = OsDisk::open(data_dir).map_err(open_error("opening", data_dir))?;
        Ok(Source { data_dir: data_dir.to_owned(), disk: Arc::new(disk), log: Arc::new(log), file_bytes: FILE_BYTES })
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

    /// Up to where the log is in the history, which may come to be there only now.
    pub(crate) fn folded(&self, history: &mut Option<History>) -> Result<LogPosition, OpenError> {
        if history.is_none() {
            *history = self.history()?;
        }
        history.as_ref().map_or(Ok(LogPosition::START), |history| history.ask(Database::folded))
    }

    pub(crate) fn history_path(&self) -> PathBuf {
        self.disk.path().join(HISTORY)
    }

    /// Something that a repair may help against.
    pub(crate) fn finding(&self, path: PathBuf, offset: Option<u64>, row: Option<i64>, meaning: String) -> Finding {
        let command = format!("relay repair --data {}", quoted(&self.data_dir));
        Finding { path: path.display().to_string(), offset, row, meaning, command }
    }

    /// Adds damage to the report. What is no damage stays an error: the system refuses, or a newer relay has written here.
    pub(crate) fn find(&self, report: &mut Report, error: OpenError) -> Result<(), OpenError> {
        let finding = match error {
            OpenError::Damaged { path, offset, reason, .. } => self.finding(path, Some(offset), None, reason),
            OpenError::DamagedHistory { path, reason, .. } => self.finding(path, None, None, reason),
            error => return Err(error),
        };
        report.find(finding);
        Ok(())
    }

    fn in_memory(&self, overlay: Overlay) -> Result<Option<History>, OpenError> {
        match self.disk.open(HISTORY, Access::Read) {
            Ok(_) => Source { disk: Arc::new(overlay), ..self.clone() }.connected(Access::ReadWrite),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(open_error("opening", self.history_path())(error)),
        }
    }

    /// Waits for others.
    fn connected(&self, access: Access) -> Result<Option<History>, OpenError> {
        let (path, data_dir) = (self.history_path(), self.data_dir.clone());
        loop {
            let HistoryConnection { connection, failure } = match open_connection(self.disk.clone(), HISTORY, access) {
                Ok(connection) => connection,
                Err(ConnectError::Missing { .. }) => return Ok(None),
                Err(ConnectError::Busy { .. }) => continue,
                Err(ConnectError::Damaged(reason)) => return Err(OpenError::DamagedHistory { path, reason, data_dir }),
                Err(ConnectError::Unfinished { .. }) => return Err(OpenError::Unfinished { path, data_dir }),
                Err(error) => return Err(OpenError::Io { action: "opening", path, source: io::Error::other(error.to_string()) }),
            };
            return match Database::check(connection) {
                Ok(database) => Ok(Some(History { database, disk: self.disk.clone(), failure, path, data_dir })),
                Err(DatabaseError::Empty) => Ok(None),
                Err(DatabaseError::Busy) => continue,
                Err(error) => Err(explained(error, &failure, path, data_dir)),
            };
        }
    }
}

impl History {
    /// Asks the history, again as long as somebody who writes keeps it locked.
    pub(crate) fn ask<T>(&self, question: impl Fn(&Database) -> Result<T, DatabaseError>) -> Result<T, OpenError> {
        loop {
            match question(&self.database) {
                // SQLite has waited for some seconds already.
                Err(DatabaseError::Busy) => {}
                Ok(answer) => return Ok(answer),
                Err(error) => return Err(explained(error, &self.failure, self.path.clone(), self.data_dir.clone())),
            }
        }
    }

    /// Asks what takes long and holds up whoever writes: until somebody wants to.
    pub(crate) fn ask_until_somebody_writes<T>(
        &mut self,
        source: &Source,
        question: impl Fn(&Database) -> Result<Option<T>, DatabaseError>,
    ) -> Result<Option<T>, OpenError> {
        let file = source.disk.open(HISTORY, Access::Read).map_err(open_error("opening", &self.path))?;
        let is_wanted = move || is_reserved_by_another(file.as_ref()).unwrap_or(true);
        let set = self.database.give_way_to(Some(is_wanted)).map_err(|error| self.explained(error));
        let answer = set.and_then(|()| self.ask(question));
        self.database.give_way_to(None::<fn() -> bool>).map_err(|error| self.explained(error))?;
        answer
    }

    pub(crate) fn rows(&self) -> Rows<'_> {
        Rows { history: self, row: 0, last_row: self.ask(Database::last_row).ok(), unreadable_len: 0 }
    }

    fn explained(&self, error: DatabaseError) -> OpenError {
        explained(error, &self.failure, self.path.clone(), self.data_dir.clone())
    }
}

impl Rows<'_> {
    /// How far it is, and how far it has to go.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.row.unsigned_abs(), self.last_row.unwrap_or(self.row).unsigned_abs())
    }
}

impl Iterator for Rows<'_> {
    type Item = (i64, Result<Stored, OpenError>);

    /// The next row and its segment, or what is wrong with it. A page that cannot be read costs the rows on it, one by one.
    fn next(&mut self) -> Option<(i64, Result<Stored, OpenError>)> {
        loop {
            let row = match self.history.ask(|database| database.row_after(self.row)) {
                Ok(next) => next?,
                // The way to it is damaged: perhaps not the way to the one after it.
                Err(_) => self.row.checked_add(1)?,
            };
            if self.last_row.map_or(self.unreadable_len >= UNREADABLE_ROWS_MAX, |last_row| row > last_row) {
                return None;
            }
            self.row = row;
            match self.history.ask(|database| database.segment(row)) {
                Ok(Some(stored)) => {
                    self.unreadable_len = 0;
                    return Some((row, Ok(stored)));
                }
                Ok(None) => {}
                Err(error) => {
                    self.unreadable_len = self.unreadable_len.saturating_add(1);
                    return Some((row, Err(error)));
                }
            }
        }
    }
}

fn explained(error: DatabaseError, failure: &LastFailure, path: PathBuf, data_dir: PathBuf) -> OpenError {
    let text = failure.take();
    match error {
        DatabaseError::Damaged { what } => OpenError::DamagedHistory { path, reason: text.unwrap_or(what), data_dir },
        DatabaseError::Unfinished => OpenError::Unfinished { path, data_dir },
        error => OpenError::Io { action: "reading", path, source: io::Error::other(text.unwrap_or_else(|| error.to_string())) },
    }
}
