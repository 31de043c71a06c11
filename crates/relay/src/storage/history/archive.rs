//! The archive: folds the log into the history behind the commits, keeps log files coming, deletes what is kept long enough, and reads
//! rooms back. Step by step, so that a room that somebody waits for is loaded between two steps.
//!
//! ```text
//!   gather: records of the log, up to a window --> write: a transaction at a time --> the last one moves `folded`
//!      ^                                                                                      |
//!      +--------- delete what the rules no longer keep <--- log files below are free <--------+
//! ```
//!
//! The log is the queue: nothing is handed over in memory, and after a crash the same steps begin again at `folded`. Knows nothing of the
//! server; what a step costs is bounded by `limits.rs`. Next: `open.rs`, which puts a data folder together.

use super::{
    database::{Database, DatabaseError},
    fold::Window,
    reported_file::LastFailure,
    retention::{Disks, Retaining, Retention},
};
use crate::storage::{
    contract::{Archive, ArchiveError, Loaded, Next, StorageError, Worked},
    disk::Disk,
    error::quoted,
    folder::HISTORY,
    limits::{BUSY_RETRY, BUSY_TRIES_MAX, FOLD_TRANSACTION_BYTES, GATHER_STEP_BYTES, REFUSED_RETRY, RETENTION_STEPS_MAX},
    log::{Preparer, Scan},
};
use relay_core::limits::HISTORY_LEN_MAX_MESSAGES;
use std::{sync::Arc, time::Duration};

/// The archive of a data folder.
pub struct HistoryArchive {
    database: Database,
    /// Stands behind the last record that was gathered.
    reader: Scan,
    files: Preparer,
    window: Window,
    /// What the records in the window take in the log, and how much of that was said to be folded.
    window_log_bytes: u64,
    told_log_bytes: u64,
    /// The lines that the window had when it was full.
    window_line_bytes: usize,
    is_writing: bool,
    /// How often in a row another program was in the way.
    busy_count: u32,
    /// How many steps of retention may be done before the next window is gathered.
    retention_steps_left: u32,
    folded: u64,
    retaining: Retaining,
    unix_ms: fn() -> u64,
    disk: Arc<dyn Disk>,
    /// The file that SQLite has open.
    identity: Option<u64>,
    failure: LastFailure,
}

impl HistoryArchive {
    /// The archive whose history is `database`, of the log that `reader` reads from `folded` on.
    pub(crate) fn new(
        database: Database,
        failure: LastFailure,
        reader: Scan,
        files: Preparer,
        retention: Retention,
        disks: Disks,
        unix_ms: fn() -> u64,
    ) -> HistoryArchive {
        let disk = disks.data.clone();
        HistoryArchive {
            folded: reader.position().sequence,
            database,
            reader,
            files,
            window: Window::default(),
            window_log_bytes: 0,
            told_log_bytes: 0,
            window_line_bytes: 0,
            is_writing: false,
            busy_count: 0,
            retention_steps_left: 0,
            retaining: Retaining::new(retention, disks),
            unix_ms,
            identity: disk.identity(HISTORY).ok(),
            disk,
            failure,
        }
    }

    /// Everything up to this commit is in the history.
    pub(crate) fn folded(&self) -> u64 {
        self.folded
    }

    /// How long to wait for another program that has the history locked, each time.
    pub(crate) fn be_busy_for(&self, time: Duration) -> Result<(), ArchiveError> {
        self.database.be_busy_for(time).map_err(|error| self.explained(error))
    }

    /// Reads a piece of the log. The window is written when it is full, or when it has all there is.
    fn gather(&mut self, committed: u64) -> Result<(), ArchiveError> {
        let mut gathered_bytes = 0;
        while gathered_bytes < GATHER_STEP_BYTES && !self.window.is_full() {
            let record = self.reader.next_record_up_to(committed).map_err(|error| ArchiveError::Failed(error.to_string()))?;
            let Some(record) = record else { break };
            self.window.add(&record);
            gathered_bytes += record.padded_bytes();
        }
        self.window.ends_at(self.reader.position());
        self.window_log_bytes += gathered_bytes;
        if self.window.is_full() || self.reader.position().sequence >= committed {
            self.is_writing = !self.window.is_empty();
            self.window_line_bytes = self.window.line_bytes();
        }
        Ok(())
    }

    /// Writes one transaction of the window; the last one of it makes log files free.
    fn write(&mut self) -> Result<u64, DatabaseError> {
        let behind = self.window.behind();
        let written = self.window.write_some(&self.database, FOLD_TRANSACTION_BYTES)?;
        self.busy_count = 0;
        self.retaining.rooms_grew(written.rooms);
        if written.finished {
            if let Some(behind) = behind {
                self.check_it_is_still_there()?;
                self.folded = behind.sequence;
                self.files.free_below(behind.file_number);
            }
            self.retaining.history_grew();
            self.is_writing = false;
            self.retention_steps_left = RETENTION_STEPS_MAX;
            let rest = std::mem::take(&mut self.window_log_bytes) - std::mem::take(&mut self.told_log_bytes);
            return Ok(rest);
        }
        // The log's bytes go with the lines', so that whoever waits for them sees them go.
        let done_lines = (self.window_line_bytes - self.window.line_bytes()) as u64;
        let done_log_bytes = (u128::from(self.window_log_bytes) * u128::from(done_lines) / (self.window_line_bytes as u128).max(1)) as u64;
        let log_bytes = done_log_bytes - self.told_log_bytes;
        self.told_log_bytes = done_log_bytes;
        Ok(log_bytes)
    }

    /// What was folded into a file that somebody has removed or replaced is in the log only, whose files must not be used again then.
    fn check_it_is_still_there(&self) -> Result<(), DatabaseError> {
        let identity = self.disk.identity(HISTORY).map_err(|error| DatabaseError::Io(format!("it was removed: {error}")))?;
        if Some(identity) == self.identity { Ok(()) } else { Err(DatabaseError::Io("another file was put in its place".to_owned())) }
    }

    fn worked(&self, log_bytes: u64, next: Next) -> Worked {
        Worked { folded: self.folded, log_bytes, next }
    }

    /// What a failure means for whoever waits for this step.
    fn busy_or_failed(&mut self, error: DatabaseError) -> Result<Worked, ArchiveError> {
        match error {
            // Another program reads. What is to be written stays where it is.
            DatabaseError::Busy if self.busy_count < BUSY_TRIES_MAX => {
                self.busy_count += 1;
                Ok(self.worked(0, Next::In(BUSY_RETRY)))
            }
            DatabaseError::Busy => Err(ArchiveError::Locked { path: self.disk.path().join(HISTORY) }),
            error => Err(self.explained(error)),
        }
    }

    /// What happened, for people. What the files know says more than SQLite, which takes a number from them.
    fn explained(&self, error: DatabaseError) -> ArchiveError {
        let detail = self.failure.take();
        match error {
            DatabaseError::Full => ArchiveError::Full { folder: self.disk.path().to_owned() },
            DatabaseError::Busy => {
                let history = self.disk.path().join(HISTORY);
                ArchiveError::Failed(format!("{}: {error}: `fuser {}` says which", history.display(), quoted(&history)))
            }
            error => {
                let what = detail.unwrap_or_else(|| error.to_string());
                let (history, data_dir) = (self.disk.path().join(HISTORY), quoted(self.disk.path()));
                ArchiveError::Failed(format!(
                    "{}: {what}; the log keeps what is not in it yet: `relay verify --data {data_dir}` says what is wrong, `dmesg` \
                     whether the disk is",
                    history.display()
                ))
            }
        }
    }
}

impl Archive for HistoryArchive {
    fn work(&mut self, committed: u64) -> Result<Worked, ArchiveError> {
        // A commit may wait for the file. When there is none to be had, folding may free one.
        let mut files_are_refused = None;
        if self.files.is_due() {
            match self.files.prepare_step() {
                Ok(()) => return Ok(self.worked(0, Next::Now)),
                Err(failed @ StorageError::Failed(_)) => return Err(ArchiveError::Failed(failed.to_string())),
                // Out of descriptors or the like: the commit that needs the file meets it too, if it lasts.
                Err(StorageError::Refused(_)) => files_are_refused = Some(Ok(self.worked(0, Next::In(REFUSED_RETRY)))),
                Err(StorageError::Full { folder }) => files_are_refused = Some(Err(ArchiveError::Full { folder })),
            }
        }
        if self.is_writing {
            return match self.write() {
                Ok(log_bytes) => Ok(self.worked(log_bytes, Next::Soon)),
                Err(error) => self.busy_or_failed(error),
            };
        }
        let has_more = self.reader.position().sequence < committed || !self.window.is_empty();
        // Between two windows, or it would wait for ever behind a flood; and the flood must not wait for it.
        if !has_more || self.retention_steps_left > 0 {
            self.retention_steps_left = self.retention_steps_left.saturating_sub(1);
            let stepped = self.retaining.step(&self.database, (self.unix_ms)());
            if stepped.is_ok() {
                self.busy_count = 0;
            }
            match stepped {
                Ok(Some(Next::Now)) => return Ok(self.worked(0, Next::Soon)),
                Ok(_) if has_more => self.retention_steps_left = 0,
                Ok(next) => return files_are_refused.unwrap_or(Ok(self.worked(0, next.unwrap_or(Next::WhenCommitted)))),
                Err(error) => return self.busy_or_failed(error),
            }
        }
        self.gather(committed)?;
        Ok(self.worked(0, Next::Soon))
    }

    fn load(&mut self, room: &str, up_to: u64) -> Result<Loaded, ArchiveError> {
        let loaded = self.database.last_messages(room, HISTORY_LEN_MAX_MESSAGES as u32, up_to);
        loaded.map_err(|error| self.explained(error))
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
