//! The log: opens it, and makes batches durable, one record and one `fdatasync` each.
//!
//! Knows nothing of rooms' rules, sockets or the loop, and of the history only how far it has come; runs on the commit worker's thread and
//! blocks it. A commit costs one copy and one checksum of its bytes, one `pwrite` past the kernel's cache, one `fdatasync`. Next:
//! `history/mod.rs`.

mod record;
mod file_names;
mod window;
mod scan;
mod log_end;
mod prepare;
mod salvage;

use crate::storage::{
    contract::{Committed, Failure, Storage, StorageError, is_full},
    direct_file::begin_on_page,
    disk::{Disk, PartlyWritten, write_all_at},
    error::{OpenError, open_error},
    folder::Folder,
    limits::{FREE_BYTES_MIN, RECORD_BYTES_MAX, SPACE_CHECK_BYTES},
    position::LogPosition,
};
use file_names::{file_name, file_numbers, remove_unfinished_files};
use prepare::{ReadyFile, ReadyFiles};
use record::Link;
use relay_core::Batch;
use std::{collections::VecDeque, io, sync::Arc};

pub(crate) use file_names::file_name as log_file_name;
pub(crate) use log_end::unfinished_commits;
pub use prepare::Preparer;
pub use record::{Record, StoredSection};
pub(crate) use salvage::{Gap, Salvage, Salvaged};
pub(crate) use scan::{Place, Scan};

/// The log of a data folder, open for commits.
pub struct Log {
    disk: Arc<dyn Disk>,
    file_bytes: u64,
    unix_ms: fn() -> u64,
    ready_files: Arc<ReadyFiles>,
    /// The file that commits go to. `None` until the first commit of all.
    current: Option<Current>,
    /// The last commit, and its checksum.
    sequence: u64,
    checksum: u32,
    /// The record in the making. Kept, because a new one would cost page faults for each commit.
    buffer: Vec<u8>,
    /// Committed since free space was last asked for; at the bound again as long as there is too little.
    space_unchecked_bytes: u64,
    failure: Option<Failure>,
    /// Keeps other servers out for as long as this one may write. `None` on a disk in memory.
    _folder: Option<Folder>,
}

struct Current {
    ready: ReadyFile,
    /// Where the next record begins.
    offset: u64,
}

/// What opening a log found behind the position that it was opened at.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Recovered {
    /// Commits.
    pub record_count: u64,
    /// Messages in those commits.
    pub message_count: u64,
    /// What the records take on disk, padding included.
    pub record_bytes: u64,
    /// Whether a last commit was dropped because parts of it are missing: the last process was interrupted in it, and nobody was shown it.
    /// A disk that lost whole sectors of a finished one leaves the same.
    pub dropped_unfinished: bool,
}

impl Log {
    /// Opens the log that stands on `disk`, whose files are all `file_bytes` long, with the clock that dates its records.
    ///
    /// Everything up to `position` is in the history, durably. The rest is read and checked, and is durable when this returns; files below
    /// the position's are free to be used again.
    pub(crate) fn open_on(
        disk: Arc<dyn Disk>,
        file_bytes: u64,
        position: LogPosition,
        unix_ms: fn() -> u64,
    ) -> Result<(Log, Recovered), OpenError> {
        // A file may have got its name just before the last process died.
        disk.sync_folder().map_err(open_error("syncing", disk.path()))?;
        remove_unfinished_files(disk.as_ref())?;

        let mut recovered = Recovered::default();
        let mut scan = Scan::start(disk.clone(), file_bytes, position);
        scan.check_position()?;
        while let Some(record) = scan.next_record()? {
            recovered.record_count += 1;
            recovered.message_count += u64::from(record.message_count());
            recovered.record_bytes += record.padded_bytes();
        }
        recovered.dropped_unfinished = log_end::settle(&mut scan, position.file_number)?;

        let end = scan.position();
        let mut ready = VecDeque::new();
        let numbers = file_numbers(disk.as_ref())?;
        for number in numbers.iter().copied().filter(|number| *number >= end.file_number) {
            let name = file_name(number);
            let file = disk.open_direct(&name).map_err(open_error("opening", disk.path().join(name)))?;
            ready.push_back(ReadyFile { number, file });
        }
        let current = ready.pop_front().map(|ready| Current { ready, offset: end.offset });
        let ready_files = ReadyFiles::new(disk.clone(), file_bytes, ready, &numbers, position.file_number);
        ready_files.free_below(position.file_number);
        let log = Log {
            ready_files: Arc::new(ready_files),
            disk,
            file_bytes,
            unix_ms,
            current,
            sequence: end.sequence,
            checksum: end.checksum,
            buffer: Vec::new(),
            space_unchecked_bytes: SPACE_CHECK_BYTES,
            failure: None,
            _folder: None,
        };
        Ok((log, recovered))
    }

    /// Keeps other servers out for as long as this log is open.
    pub(crate) fn hold(&mut self, folder: Folder) {
        self._folder = Some(folder);
    }

    /// What makes the next file ahead of time; to be called from another thread when it says that it is due.
    #[must_use]
    pub fn preparer(&self) -> Preparer {
        Preparer::new(self.ready_files.clone())
    }

    /// Reads this log from `position` on, from whatever thread, while commits go on.
    pub(crate) fn reader(&self, position: LogPosition) -> Scan {
        Scan::start(self.disk.clone(), self.file_bytes, position)
    }

    /// The last commit that is durable; 0 when there is none.
    pub(crate) fn committed(&self) -> u64 {
        self.sequence
    }

    fn append(&mut self, batch: &Batch) -> Result<Committed, StorageError> {
        self.check_free_space()?;
        let Some(record_bytes) = record::padded_bytes(batch).filter(|bytes| *bytes <= self.file_bytes) else {
            let reason = format!("the batch is longer than the {RECORD_BYTES_MAX} bytes that a record may have");
            let error = io::Error::new(io::ErrorKind::InvalidInput, reason);
            return Err(Failure::new("making a record for", self.disk.path().to_owned(), 0, error).into());
        };
        let Current { ready, offset } = match &mut self.current {
            Some(current) if current.offset + record_bytes <= self.file_bytes => current,
            current => current.insert(Current { ready: self.ready_files.take()?, offset: 0 }),
        };
        let failed = |action, error| Failure::new(action, self.disk.path().join(file_name(ready.number)), *offset, error).into();

        let link = Link { file_number: ready.number, sequence: self.sequence + 1, previous_checksum: self.checksum };
        let begin = begin_on_page(&mut self.buffer, record_bytes as usize);
        let checksum = record::encode(&mut self.buffer, &link, (self.unix_ms)(), batch);
        if let Err(PartlyWritten { written_bytes, error }) = write_all_at(ready.file.as_ref(), &self.buffer[begin..], *offset) {
            if !is_full(&error) {
                return Err(failed("writing to", error));
            }
            // The place becomes as it was, durably: sectors of two commits that mix there would look like damage after a power cut.
            if written_bytes > 0 {
                let zeros = vec![0; written_bytes];
                write_all_at(ready.file.as_ref(), &zeros, *offset).map_err(|partly| failed("writing to", partly.error))?;
                ready.file.sync_data().map_err(|error| failed("syncing", error))?;
            }
            return Err(StorageError::Full { folder: self.disk.path().to_owned() });
        }
        ready.file.sync_data().map_err(|error| failed("syncing", error))?;

        let committed = Committed { sequence: link.sequence, log_bytes: record_bytes, file_taken: *offset == 0 };
        *offset += record_bytes;
        self.sequence = link.sequence;
        self.checksum = checksum;
        self.space_unchecked_bytes += record_bytes;
        Ok(committed)
    }

    /// Commits take no new space until the next file, so it is enough to ask now and then whether others took it.
    fn check_free_space(&mut self) -> Result<(), StorageError> {
        if self.space_unchecked_bytes < SPACE_CHECK_BYTES {
            return Ok(());
        }
        let folder = self.disk.path().to_owned();
        match self.disk.free_bytes() {
            Ok(free_bytes) if free_bytes < FREE_BYTES_MIN => Err(StorageError::Full { folder }),
            Ok(_) => {
                self.space_unchecked_bytes = 0;
                Ok(())
            }
            Err(error) => Err(StorageError::Refused(Failure::new("asking for the free space of", folder, 0, error))),
        }
    }
}

impl Storage for Log {
    fn commit(&mut self, batch: &Batch) -> Result<Committed, StorageError> {
        if let Some(failure) = &self.failure {
            return Err(StorageError::Failed(failure.clone()));
        }
        let appended = self.append(batch);
        if let Err(StorageError::Failed(failure)) = &appended {
            self.failure = Some(failure.clone());
        }
        appended
    }
}

/// The number of the first log file on the disk.
pub(crate) fn first_file_number(disk: &dyn Disk) -> Result<Option<u64>, OpenError> {
    Ok(file_numbers(disk)?.first().copied())
}

/// The number of the last log file on the disk, which may be empty still; 0 when there is none.
pub(crate) fn last_file_number(disk: &dyn Disk) -> Result<u64, OpenError> {
    Ok(file_numbers(disk)?.last().copied().unwrap_or(0))
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "power_cut_tests.rs"]
mod power_cut_tests;

#[cfg(test)]
#[path = "position_tests.rs"]
mod position_tests;
