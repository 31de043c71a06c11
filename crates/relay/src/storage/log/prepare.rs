//! Makes log files ahead of time: zeros over their whole length, synced, under their final name only then.
//!
//! A commit into such a file allocates nothing and changes no length, so its `fdatasync` writes data and no journal. Making one costs
//! 64 MiB of writing (0.05 to 0.2 s on the SSD it was measured on), which is why another thread should do it, and in steps of a MiB. The
//! space of a file whose records are all in the history is used again, which works on a full disk too; else a new file is made.
//! Next: `log/mod.rs`.
//!
//! ```text
//! 00000001.log  --rename-->  00000003.log.new  --zeros, sync, again and again-->  --rename, sync the folder-->  00000003.log  --take-->
//!  (free)                     (or created)                                                                       (ready)
//! ```
//!
//! The process may die anywhere: what is named `.new` is removed at the next start, and a free file has a number below the place that the
//! history has come to, so that nobody looks at its content.

use super::file_names::{file_name, new_file_name};
use crate::storage::{
    contract::{Failure, StorageError, is_full},
    disk::{Disk, DiskFile, PartlyWritten, write_all_at},
    limits::{FREE_BYTES_MIN, LOG_FILES_SPARE_MAX, PREPARE_STEP_BYTES},
};
use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Makes the next log file ahead of time, on whatever thread calls it, and takes back those that are not needed any more.
///
/// Without it the log works as well, but the commit that finds no file waits until one is made.
#[derive(Clone)]
pub struct Preparer {
    files: Arc<ReadyFiles>,
}

impl Preparer {
    pub(crate) fn new(files: Arc<ReadyFiles>) -> Preparer {
        Preparer { files }
    }

    /// Whether [`prepare`](Preparer::prepare) has something to do: at the first start, and after a commit that began a new file.
    /// Costs one atomic load.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.files.due.load(Ordering::Acquire)
    }

    /// Makes the next log file if there is none. Blocks while 64 MiB are written; a commit waits for it only if it needs the file.
    ///
    /// # Errors
    ///
    /// As [`prepare_step`](Preparer::prepare_step).
    pub fn prepare(&self) -> Result<(), StorageError> {
        while self.is_due() {
            self.prepare_step()?;
        }
        Ok(())
    }

    /// Does a piece of that: a MiB is written and synced, which takes some milliseconds. It is not due any more when the file is there.
    ///
    /// # Errors
    ///
    /// The disk is full or refuses: messages are still stored in the current file. To be called again later, which tries again unless a
    /// write or a sync failed.
    pub fn prepare_step(&self) -> Result<(), StorageError> {
        self.files.prepare_step()
    }

    /// Files below this number may be used again: all that they hold is in the history, durably, and so is that it is. Removes those of
    /// which there are more than enough.
    pub fn free_below(&self, file_number: u64) {
        self.files.free_below(file_number);
    }

    /// How many files were used again, since the log was opened.
    #[must_use]
    pub fn recycled_count(&self) -> u64 {
        self.files.recycled_count.load(Ordering::Relaxed)
    }
}

/// The files that are complete and hold no record yet, and those that such are made of. Shared by the log, which takes them, and its
/// [`Preparer`].
pub(crate) struct ReadyFiles {
    disk: Arc<dyn Disk>,
    file_bytes: u64,
    /// What `queue` says, for those who do not want to wait for its lock: it is held while a piece of a file is made.
    due: AtomicBool,
    recycled_count: AtomicU64,
    queue: Mutex<Queue>,
}

/// A log file without records.
pub(crate) struct ReadyFile {
    pub(crate) number: u64,
    pub(crate) file: Box<dyn DiskFile>,
}

struct Queue {
    /// More than one only after a crash between taking a file and writing its first record.
    ready: VecDeque<ReadyFile>,
    making: Option<Making>,
    /// The number of the file that is being made, or is made next.
    next_number: u64,
    /// Numbers of files whose content nobody needs, ascending.
    free: VecDeque<u64>,
    /// The lowest number that is not free.
    first_number: u64,
    failure: Option<Failure>,
}

/// A file that has its name yet to get.
struct Making {
    file: Box<dyn DiskFile>,
    zeroed_bytes: u64,
}

impl ReadyFiles {
    /// `numbers` are those of the files in the folder, ascending; below `first_number` they are free.
    pub(crate) fn new(disk: Arc<dyn Disk>, file_bytes: u64, ready: VecDeque<ReadyFile>, numbers: &[u64], first_number: u64) -> ReadyFiles {
        let (free, used) = numbers.split_at(numbers.partition_point(|number| *number < first_number));
        let due = AtomicBool::new(ready.is_empty());
        let next_number = used.last().map_or(first_number, |last| last.saturating_add(1));
        let queue = Queue { ready, making: None, next_number, free: free.iter().copied().collect(), first_number, failure: None };
        ReadyFiles { disk, file_bytes, due, recycled_count: AtomicU64::new(0), queue: Mutex::new(queue) }
    }

    /// The next file: a prepared one, or the one that is being prepared, or one that is made now.
    pub(crate) fn take(&self) -> Result<ReadyFile, StorageError> {
        let mut queue = self.lock();
        let file = loop {
            match queue.ready.pop_front() {
                Some(file) => break file,
                None => self.step(&mut queue)?,
            }
        };
        self.due.store(queue.ready.is_empty(), Ordering::Release);
        Ok(file)
    }

    pub(crate) fn free_below(&self, file_number: u64) {
        let mut queue = self.lock();
        let freed = queue.first_number..file_number;
        queue.first_number = queue.first_number.max(file_number);
        queue.free.extend(freed);
        while queue.free.len() > LOG_FILES_SPARE_MAX
            && let Some(number) = queue.free.pop_front()
        {
            // What cannot be removed now is found at the next start.
            let _ = self.disk.remove(&file_name(number));
        }
    }

    fn prepare_step(&self) -> Result<(), StorageError> {
        let mut queue = self.lock();
        if queue.ready.is_empty() {
            self.step(&mut queue)?;
            self.due.store(queue.ready.is_empty(), Ordering::Release);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a piece of what makes the next file, the last of which adds it to those that are ready.
    fn step(&self, queue: &mut Queue) -> Result<(), StorageError> {
        if let Some(failure) = &queue.failure {
            return Err(StorageError::Failed(failure.clone()));
        }
        self.make(queue).inspect_err(|error| {
            // What was half made helps nobody, and takes room; if it cannot be removed now, the next start or try does it.
            queue.making = None;
            let _ = self.disk.remove(&new_file_name(queue.next_number));
            if let StorageError::Failed(failure) = error {
                queue.failure = Some(failure.clone());
            }
        })
    }

    fn make(&self, queue: &mut Queue) -> Result<(), StorageError> {
        let folder = self.disk.path();
        let new_name = new_file_name(queue.next_number);
        let making = match &mut queue.making {
            Some(making) => making,
            None => {
                let file = match self.reuse(&mut queue.free, &new_name)? {
                    Some(file) => file,
                    None => self.create(&new_name)?,
                };
                queue.making.insert(Making { file, zeroed_bytes: 0 })
            }
        };

        // The disk may have lost more than a call that failed was about: it is not to be trusted any more.
        let failed = |action, path, offset| move |error| self.stopped(StorageError::Failed, action, path, offset, error);
        let step = &ZEROS.0[..ZEROS.0.len().min((self.file_bytes - making.zeroed_bytes) as usize)];
        let written = write_all_at(making.file.as_ref(), step, making.zeroed_bytes).map_err(|PartlyWritten { error, .. }| error);
        let synced = written.and_then(|()| making.file.sync_data());
        synced.map_err(failed("writing to", folder.join(&new_name), making.zeroed_bytes))?;
        making.zeroed_bytes += step.len() as u64;
        if making.zeroed_bytes < self.file_bytes {
            return Ok(());
        }

        // A file that has its final name is complete: what a crash leaves under the other name is removed at the next start.
        let renamed = self.disk.rename(&new_name, &file_name(queue.next_number));
        renamed.map_err(|error| self.stopped(StorageError::Refused, "renaming", folder.join(&new_name), 0, error))?;
        self.disk.sync_folder().map_err(failed("syncing", folder.to_owned(), 0))?;
        if let Some(Making { file, .. }) = queue.making.take() {
            queue.ready.push_back(ReadyFile { number: queue.next_number, file });
            queue.next_number += 1;
        }
        Ok(())
    }

    /// Gives a free file the name of one that is being made. Takes no space, so it asks for none.
    fn reuse(&self, free: &mut VecDeque<u64>, new_name: &str) -> Result<Option<Box<dyn DiskFile>>, StorageError> {
        for index in 0..free.len() {
            let name = file_name(free[index]);
            // One that somebody made longer or shorter, or took away, is no file to begin with.
            let Ok(file) = self.disk.open_direct(&name) else { continue };
            if !file.byte_count().is_ok_and(|bytes| bytes == self.file_bytes) {
                continue;
            }
            let renamed = self.disk.rename(&name, new_name);
            renamed.map_err(|error| self.stopped(StorageError::Refused, "renaming", self.disk.path().join(&name), 0, error))?;
            free.remove(index);
            self.recycled_count.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(file));
        }
        Ok(None)
    }

    fn create(&self, new_name: &str) -> Result<Box<dyn DiskFile>, StorageError> {
        let folder = self.disk.path();
        let refused = |action, path| move |error| self.stopped(StorageError::Refused, action, path, 0, error);
        let free_bytes = self.disk.free_bytes().map_err(refused("asking for the free space of", folder.to_owned()))?;
        if free_bytes < self.file_bytes + FREE_BYTES_MIN {
            return Err(StorageError::Full { folder: folder.to_owned() });
        }
        let created = self.disk.create(new_name).and_then(|_| self.disk.open_direct(new_name));
        created.map_err(refused("creating", folder.join(new_name)))
    }

    fn stopped(
        &self,
        kind: fn(Failure) -> StorageError,
        action: &'static str,
        path: PathBuf,
        offset: u64,
        error: io::Error,
    ) -> StorageError {
        match is_full(&error) {
            true => StorageError::Full { folder: self.disk.path().to_owned() },
            false => kind(Failure::new(action, path, offset, error)),
        }
    }
}

static ZEROS: Zeros = Zeros([0; PREPARE_STEP_BYTES]);

/// They begin on a page, as [`DirectFile`](crate::storage::direct_file::DirectFile) asks.
#[repr(align(4096))]
struct Zeros([u8; PREPARE_STEP_BYTES]);

#[cfg(test)]
#[path = "prepare_tests.rs"]
mod tests;
