//! Opens a data folder for a server: the lock, the history, the log behind it; and folds what is not folded yet.
//!
//! A kill or a power cut at any moment leaves what this understands: an unfinished record is dropped, a finished one is kept though nobody
//! may have been shown it, an unfinished fold is done again. Costs a read of the unfolded part of the log, at most 1 GiB, and its folding;
//! what was folded before costs nothing. Next: `tools/mod.rs`, what people do with a folder.

use super::{
    contract::{Archive, ArchiveError},
    disk::{Access, OsDisk},
    error::{OpenError, open_error, quoted},
    folder::{Folder, HISTORY, log_dir},
    history::{self, ConnectError, Database, DatabaseError, Disks, HistoryArchive, HistoryConnection, Retention},
    limits::{ARCHIVE_BUSY, BUSY_RETRY, FILE_BYTES},
    log::{self, Log, Recovered},
    position::LogPosition,
    wall_clock,
};
use std::{io, path::Path, sync::Arc};

/// A data folder that this process alone writes to.
pub struct Opened {
    /// Makes batches durable.
    pub log: Log,
    /// Folds them, and reads rooms back.
    pub archive: HistoryArchive,
    /// What stood in the log and not in the history.
    pub recovered: Recovered,
    /// The last commit. The next one has the number behind it.
    pub sequence: u64,
}

/// Opens the data folder, making it where it is missing, with what is to be kept in it.
///
/// When it returns, everything committed is in the history. `progress` is told how many bytes of the log are folded, and of how
/// many, after each piece of that.
///
/// # Errors
///
/// The folder is used by another server, open to other users or somebody else's; log or history are damaged; or the system refuses.
pub fn open(data_dir: &Path, retention: Retention, progress: &mut dyn FnMut(u64, u64)) -> Result<Opened, OpenError> {
    let folder = Folder::open(data_dir)?;
    let data = OsDisk::open(data_dir).map_err(open_error("opening", data_dir))?;
    let path = log_dir(data_dir);
    let log = OsDisk::open(&path).map_err(open_error("opening", path))?;
    let disks = Disks { data: Arc::new(data), log: Arc::new(log) };
    let mut opened = open_on(disks, FILE_BYTES, retention, wall_clock::unix_ms, progress)?;
    opened.log.hold(folder);
    Ok(opened)
}

/// Opens what stands on these disks, whose log files are all `file_bytes` long.
pub(crate) fn open_on(
    disks: Disks,
    file_bytes: u64,
    retention: Retention,
    unix_ms: fn() -> u64,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Opened, OpenError> {
    let HistoryConnection { connection, failure } =
        history::open_connection(disks.data.clone(), HISTORY, Access::ReadWrite).map_err(|error| cannot_connect(&disks, error))?;
    let in_history = |error: DatabaseError| cannot_use(&disks, failure.take(), error);
    let database = Database::create_or_check(connection).map_err(in_history)?;
    let folded = database.folded().map_err(in_history)?;
    if folded == LogPosition::START {
        check_history_is_not_lost(&disks)?;
    }
    let (log, recovered) = Log::open_on(disks.log.clone(), file_bytes, folded, unix_ms)?;
    let sequence = log.committed();
    let reader = log.reader(folded);
    let mut archive = HistoryArchive::new(database, failure.clone(), reader, log.preparer(), retention, disks.clone(), unix_ms);
    fold_all(&mut archive, sequence, recovered.record_bytes, progress).map_err(|error| cannot_fold(&disks, error))?;
    Ok(Opened { log, archive, recovered, sequence })
}

/// A log that begins in the middle has been folded before: without the history, all that was in it would be missing.
fn check_history_is_not_lost(disks: &Disks) -> Result<(), OpenError> {
    match log::first_file_number(disks.log.as_ref())? {
        Some(2..) => Err(damaged_history(disks, "it is new or empty, but the log goes on behind a part that was moved into it".to_owned())),
        _ => Ok(()),
    }
}

fn damaged_history(disks: &Disks, reason: String) -> OpenError {
    let data_dir = disks.data.path();
    OpenError::DamagedHistory { path: data_dir.join(HISTORY), reason, data_dir: data_dir.to_owned() }
}

fn cannot_connect(disks: &Disks, error: ConnectError) -> OpenError {
    match error {
        ConnectError::Damaged(reason) => damaged_history(disks, reason),
        error => cannot_write(disks, error.to_string()),
    }
}

fn cannot_use(disks: &Disks, detail: Option<String>, error: DatabaseError) -> OpenError {
    let text = detail.unwrap_or_else(|| error.to_string());
    match error {
        DatabaseError::Damaged { .. } => damaged_history(disks, text),
        _ => cannot_write(disks, text),
    }
}

fn cannot_write(disks: &Disks, text: String) -> OpenError {
    OpenError::Io { action: "opening", path: disks.data.path().join(HISTORY), source: io::Error::other(text) }
}

fn cannot_fold(disks: &Disks, error: ArchiveError) -> OpenError {
    match error {
        ArchiveError::Full { .. } => {
            let way_out = "too little disk is free for what the log still has: nothing is lost; free some space, then start again";
            cannot_write(disks, way_out.to_owned())
        }
        ArchiveError::Locked { .. } => {
            let path = disks.data.path().join(HISTORY);
            cannot_write(disks, format!("another program keeps it locked: `fuser {}` says which; then start again", quoted(&path)))
        }
        ArchiveError::Failed(text) => cannot_write(disks, text),
    }
}

fn fold_all(archive: &mut HistoryArchive, sequence: u64, log_bytes: u64, progress: &mut dyn FnMut(u64, u64)) -> Result<(), ArchiveError> {
    // Nobody waits for a room yet, so each try may wait as long as there would be between two.
    archive.be_busy_for(BUSY_RETRY)?;
    let mut folded_bytes = 0;
    while archive.folded() < sequence {
        let worked = archive.work(sequence)?;
        folded_bytes += worked.log_bytes;
        progress(folded_bytes, log_bytes);
    }
    archive.be_busy_for(ARCHIVE_BUSY)
}
