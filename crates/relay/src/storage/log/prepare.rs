//! Makes log files ahead of time: zeros over their whole length, synced, under their final name only then.
//!
//! A commit into such a file allocates nothing and changes no length, so its `fdatasync` writes data and no journal. Making one costs
//! 64 MiB of writing (0.05 to 0.2 s on the SSD it was measured on), which is why another thread should do it. Next: `log.rs`.
//!
//! ```text
//! 00000003.log.new  --write zeros, sync-->  --rename, sync the folder-->  00000003.log  --take-->  the commits'
//! ```

use super::{
    file_names::{file_name, new_file_name},
    record::Beneath,
};
use crate::storage::{
    contract::{Failure, StorageError, is_full},
    disk::{Disk, DiskFile, PartlyWritten, write_all_at},
    limits::{FREE_BYTES_MIN, PREPARE_STEP_BYTES},
};
use std::{
    collections::VecDeque,
    error::Error,
    fmt, io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Makes the next log file ahead of time, on whatever thread calls it.
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
    /// The disk is full or refuses: messages are still stored in the current file. To be called again later, which tries again unless a
    /// write or a sync failed.
    pub fn prepare(&self) -> Result<(), PrepareError> {
        self.files.prepare().map_err(PrepareError)
    }
}

/// Why the next log file is not there. The commit that needs it meets the same error, if it still stands then.
#[derive(Debug)]
pub struct PrepareError(StorageError);

impl fmt::Display for PrepareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            StorageError::Full { folder } => write!(f, "too little disk is free for {}", folder.display())?,
            StorageError::Refused(Failure { action, path, source, .. }) => write!(f, "{action} {} failed: {source}", path.display())?,
            StorageError::Failed(Failure { action, path, source, .. }) => {
                return write!(
                    f,
                    "{action} {} failed: {source}; messages are still stored in the current file, but not beyond its end: look for the \
                     cause (`dmesg`), then start relay again",
                    path.display()
                );
            }
        }
        f.write_str("; messages are still stored in the current file, and the next one is tried again: it is needed when that file is full")
    }
}

impl Error for PrepareError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The files that are complete and hold no record yet. Shared by the log, which takes them, and its [`Preparer`].
pub(crate) struct ReadyFiles {
    disk: Arc<dyn Disk>,
    file_bytes: u64,
    /// What `queue` says, for those who do not want to wait for its lock: it is held while a file is made.
    due: AtomicBool,
    queue: Mutex<Queue>,
}

/// A log file without records.
pub(crate) struct ReadyFile {
    pub(crate) number: u64,
    pub(crate) file: Box<dyn DiskFile>,
    pub(crate) beneath: Beneath,
}

struct Queue {
    /// More than one only after a crash between taking a file and writing its first record.
    ready: VecDeque<ReadyFile>,
    next_number: u64,
    failure: Option<Failure>,
}

impl ReadyFiles {
    pub(crate) fn new(disk: Arc<dyn Disk>, file_bytes: u64, ready: VecDeque<ReadyFile>, next_number: u64) -> ReadyFiles {
        let due = AtomicBool::new(ready.is_empty());
        ReadyFiles { disk, file_bytes, due, queue: Mutex::new(Queue { ready, next_number, failure: None }) }
    }

    /// The next file: a prepared one, the one that is being prepared once it is complete, or one that is made now.
    pub(crate) fn take(&self) -> Result<ReadyFile, StorageError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match queue.ready.pop_front() {
            Some(file) => file,
            None => self.make(&mut queue)?,
        };
        self.due.store(queue.ready.is_empty(), Ordering::Release);
        Ok(file)
    }

    fn prepare(&self) -> Result<(), StorageError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.ready.is_empty() {
            let file = self.make(&mut queue)?;
            queue.ready.push_back(file);
            self.due.store(false, Ordering::Release);
        }
        Ok(())
    }

    fn make(&self, queue: &mut Queue) -> Result<ReadyFile, StorageError> {
        if let Some(failure) = &queue.failure {
            return Err(StorageError::Failed(failure.clone()));
        }
        let number = queue.next_number;
        match self.make_file(number) {
            Ok(file) => {
                queue.next_number += 1;
                Ok(ReadyFile { number, file, beneath: Beneath::Zeros })
            }
            Err(error) => {
                // What was half made helps nobody, and takes room; if it cannot be removed now, the next start or try does it.
                let _ = self.disk.remove(&new_file_name(number));
                if let StorageError::Failed(failure) = &error {
                    queue.failure = Some(failure.clone());
                }
                Err(error)
            }
        }
    }

    fn make_file(&self, number: u64) -> Result<Box<dyn DiskFile>, StorageError> {
        let (new_name, name) = (new_file_name(number), file_name(number));
        let folder = self.disk.path();
        let stopped = |kind: fn(Failure) -> StorageError, action, path: PathBuf, offset, error: io::Error| match is_full(&error) {
            true => StorageError::Full { folder: folder.to_owned() },
            false => kind(Failure::new(action, path, offset, error)),
        };
        let refused = |action, path| move |error| stopped(StorageError::Refused, action, path, 0, error);
        // The disk may have lost more than this call was about: it is not to be trusted any more.
        let failed = |action, path, offset| move |error| stopped(StorageError::Failed, action, path, offset, error);

        let free_bytes = self.disk.free_bytes().map_err(refused("asking for the free space of", folder.to_owned()))?;
        if free_bytes < self.file_bytes + FREE_BYTES_MIN {
            return Err(StorageError::Full { folder: folder.to_owned() });
        }

        let file = self.disk.create(&new_name).map_err(refused("creating", folder.join(&new_name)))?;
        let zeros = vec![0; PREPARE_STEP_BYTES.min(self.file_bytes as usize)];
        let mut offset = 0;
        while offset < self.file_bytes {
            let step = &zeros[..zeros.len().min((self.file_bytes - offset) as usize)];
            let written = write_all_at(file.as_ref(), step, offset).map_err(|PartlyWritten { error, .. }| error);
            written.and_then(|()| file.sync_data()).map_err(failed("writing to", folder.join(&new_name), offset))?;
            offset += step.len() as u64;
        }
        // A file that has its final name is complete: what a crash leaves under the other name is removed at the next start.
        self.disk.rename(&new_name, &name).map_err(refused("renaming", folder.join(&new_name)))?;
        self.disk.sync_folder().map_err(failed("syncing", folder.to_owned(), 0))?;
        Ok(file)
    }
}
