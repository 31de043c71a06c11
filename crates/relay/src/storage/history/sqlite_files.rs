//! SQLite's files on our disk: each page of the database is sealed when it is written and checked when it is read.
//!
//! SQLite finds a [`Disk`] by a number in the name that a connection is opened with, `17/history.db`. Knows nothing of tables. Costs the
//! seal and a copy of each page: beside SQLite's own way to the disk, transactions of 1 MiB take 3 to 7 % more CPU and no more time, since
//! the journal is written in fewer calls; reading much takes 1.8 times as long. Next: `connection.rs`.

use super::{
    file_lock::FileLock,
    journal_file::JournalFile,
    page_seal::{self, PAGE_BYTES, Page},
    reported_file::{LastFailure, ReportedFile},
};
use crate::storage::disk::{Access, Disk};
use sqlite_vfs::{Access as Wanted, Error, File, Files, Kind, Lock};
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// The disk of one connection, as SQLite's files share it. The files of the connection keep it; whoever opens one holds it until then.
pub(super) struct Opened {
    number: u64,
    disk: Arc<dyn Disk>,
    pub(super) failure: LastFailure,
    /// What the disk holds of the journal is what its header in the kernel's cache says, and its name is durable. Unknown at first: the
    /// process before may have been killed after a failed sync, or before it synced the folder.
    journal_is_known: AtomicBool,
}

impl Opened {
    /// Makes the disk known to SQLite, for as long as the value or a file of it lives.
    ///
    /// # Errors
    ///
    /// SQLite does not start: what it said.
    pub(super) fn new(disk: Arc<dyn Disk>) -> Result<Arc<Opened>, String> {
        static REGISTERED: OnceLock<Result<(), String>> = OnceLock::new();
        REGISTERED.get_or_init(|| sqlite_vfs::register(VFS, SqliteFiles).map_err(|error| error.to_string())).clone()?;

        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let opened = Arc::new(Opened { number, disk, failure: LastFailure::default(), journal_is_known: AtomicBool::new(false) });
        table().insert(number, Arc::downgrade(&opened));
        Ok(opened)
    }

    /// The name by which SQLite finds a file of this disk.
    pub(super) fn sqlite_name(&self, name: &str) -> String {
        format!("{}/{name}", self.number)
    }

    fn file(&self, name: &str, access: Access) -> io::Result<ReportedFile> {
        let file = self.disk.open(name, access)?;
        Ok(self.reported(name, file))
    }

    fn reported(&self, name: &str, file: Box<dyn crate::storage::disk::DiskFile>) -> ReportedFile {
        ReportedFile { file, path: self.disk.path().join(name), failure: self.failure.clone() }
    }

    fn io(&self, action: &str, name: &str, error: &io::Error) -> Error {
        self.failure.io(action, &self.disk.path().join(name), error)
    }

    fn sync_folder(&self) -> Result<(), Error> {
        self.disk.sync_folder().map_err(|error| self.failure.io("syncing", self.disk.path(), &error))
    }

    fn set_journal_is_known(&self, is_known: bool) {
        self.journal_is_known.store(is_known, Ordering::Relaxed);
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        table().remove(&self.number);
    }
}

/// What SQLite knows our files by.
pub(super) const VFS: &str = "relay";

/// The one thing of this process that is reachable from everywhere: SQLite's table of file systems is global too.
fn table() -> MutexGuard<'static, BTreeMap<u64, Weak<Opened>>> {
    static TABLE: Mutex<BTreeMap<u64, Weak<Opened>>> = Mutex::new(BTreeMap::new());
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every connection's files.
struct SqliteFiles;

impl Files for SqliteFiles {
    fn open(&self, name: &str, kind: Kind, wanted: Wanted) -> Result<Box<dyn File>, Error> {
        let (opened, name) = find(name)?;
        let access = if wanted == Wanted::Read { Access::Read } else { Access::ReadWrite };
        let file = match opened.file(name, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted == Wanted::Create => {
                opened.set_journal_is_known(false);
                opened.disk.create(name).map(|file| opened.reported(name, file))
            }
            file => file,
        };
        let file = file.map_err(|error| opened.io("opening", name, &error))?;
        Ok(match kind {
            Kind::Database => Box::new(DatabaseFile { file, lock: FileLock::new(), page: Box::new([0; PAGE_BYTES]), _opened: opened }),
            Kind::Journal => Box::new(OpenedJournal { journal: JournalFile::new(file), opened }),
        })
    }

    fn remove(&self, name: &str, sync_folder: bool) -> Result<(), Error> {
        let (opened, name) = find(name)?;
        opened.set_journal_is_known(false);
        opened.disk.remove(name).map_err(|error| opened.io("removing", name, &error))?;
        if sync_folder { opened.sync_folder() } else { Ok(()) }
    }

    fn exists(&self, name: &str) -> Result<bool, Error> {
        let (opened, name) = find(name)?;
        match opened.disk.open(name, Access::Read) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(opened.io("looking for", name, &error)),
        }
    }
}

/// The connection's disk, and the name on it.
fn find(name: &str) -> Result<(Arc<Opened>, &str), Error> {
    let (number, name) = name.split_once('/').ok_or(Error::NotFound)?;
    let number = number.parse().map_err(|_| Error::NotFound)?;
    let opened = table().get(&number).and_then(Weak::upgrade).ok_or(Error::NotFound)?;
    Ok((opened, name))
}

/// history.db.
struct DatabaseFile {
    file: ReportedFile,
    lock: FileLock,
    /// The page that is read or written.
    page: Box<Page>,
    _opened: Arc<Opened>,
}

impl DatabaseFile {
    /// Reads the page at `index`, counted from 0, and says how much of it there is: all, or nothing behind the end.
    fn read_page(&mut self, index: u64) -> Result<usize, Error> {
        let offset = index * PAGE_BYTES as u64;
        let count = self.file.read_at(self.page.as_mut_slice(), offset)?;
        if count == 0 {
            return Ok(0);
        }
        let number = page_number(index).ok_or(Error::Io)?;
        let damaged = |reason| self.file.damaged(&format!("page {number} (offset {offset}): {reason}"));
        if count < PAGE_BYTES {
            return Err(damaged("the file ends in the middle of it"));
        }
        page_seal::check(&self.page, number).map_err(|unsealed| damaged(unsealed.reason()))?;
        Ok(count)
    }
}

impl File for DatabaseFile {
    fn read_at(&mut self, out: &mut [u8], offset: u64) -> Result<usize, Error> {
        // Before it has a lock, SQLite looks at the first bytes of the file to guess the size of pages, while somebody may be writing them.
        // It reads them again with the first page, under a lock, and believes only that.
        if self.lock.held() == Lock::None {
            return self.file.read_at(out, offset);
        }
        // The change counter and, after a wrong guess, the first page come in pieces: they are cut out of whole pages.
        let mut done = 0;
        while done < out.len() {
            let place = offset + done as u64;
            let within = (place % PAGE_BYTES as u64) as usize;
            let there = self.read_page(place / PAGE_BYTES as u64)?;
            let count = there.saturating_sub(within).min(out.len() - done);
            if count == 0 {
                break;
            }
            out[done..][..count].copy_from_slice(&self.page[within..][..count]);
            done += count;
        }
        Ok(done)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        let is_page = bytes.len() == PAGE_BYTES && offset.is_multiple_of(PAGE_BYTES as u64);
        let number = page_number(offset / PAGE_BYTES as u64).filter(|_| is_page);
        let Some(number) = number else {
            return Err(self.file.unexpected(&format!("writes {} bytes at offset {offset}", bytes.len())));
        };
        self.page.copy_from_slice(bytes);
        page_seal::seal(&mut self.page, number);
        self.file.write_at(self.page.as_slice(), offset)
    }

    fn truncate(&mut self, byte_count: u64) -> Result<(), Error> {
        self.file.truncate(byte_count)
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.file.sync()
    }

    fn byte_count(&mut self) -> Result<u64, Error> {
        self.file.byte_count()
    }

    fn lock(&mut self, lock: Lock) -> Result<(), Error> {
        let is_taken = self.lock.raise(self.file.file.as_ref(), lock).map_err(|error| self.file.io("locking", &error))?;
        if is_taken { Ok(()) } else { Err(Error::Busy) }
    }

    fn unlock(&mut self, lock: Lock) -> Result<(), Error> {
        self.lock.lower(self.file.file.as_ref(), lock).map_err(|error| self.file.io("unlocking", &error))
    }

    fn is_reserved(&mut self) -> Result<bool, Error> {
        self.lock.is_reserved(self.file.file.as_ref()).map_err(|error| self.file.io("looking for locks on", &error))
    }
}

/// The number of the page at this index, counted from 1 as SQLite does.
fn page_number(index: u64) -> Option<u32> {
    u32::try_from(index + 1).ok()
}

/// history.db-journal.
struct OpenedJournal {
    journal: JournalFile,
    opened: Arc<Opened>,
}

impl OpenedJournal {
    fn known_if_right(&mut self, call: impl FnOnce(&mut JournalFile) -> Result<(), Error>) -> Result<(), Error> {
        call(&mut self.journal).inspect_err(|_| self.opened.set_journal_is_known(false))
    }
}

impl File for OpenedJournal {
    fn read_at(&mut self, out: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.journal.read_at(out, offset)
    }

    /// The disk may still have the header of a transaction that is long over, and what is written next would stand where its records do:
    /// until the new header and the name are known to be durable, nothing else may be. That is one sync more for each connection.
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.known_if_right(|journal| journal.write_at(bytes, offset))?;
        if !self.opened.journal_is_known.load(Ordering::Relaxed) {
            self.journal.file.sync()?;
            self.opened.sync_folder()?;
            self.opened.set_journal_is_known(true);
        }
        Ok(())
    }

    fn truncate(&mut self, byte_count: u64) -> Result<(), Error> {
        self.known_if_right(|journal| journal.truncate(byte_count))
    }

    fn sync(&mut self) -> Result<(), Error> {
        self.known_if_right(|journal| journal.file.sync())
    }

    fn byte_count(&mut self) -> Result<u64, Error> {
        self.journal.byte_count()
    }

    /// Who has the database has the journal.
    fn lock(&mut self, _lock: Lock) -> Result<(), Error> {
        Ok(())
    }

    fn unlock(&mut self, _lock: Lock) -> Result<(), Error> {
        Ok(())
    }

    fn is_reserved(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
}
