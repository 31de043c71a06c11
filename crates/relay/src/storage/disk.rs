//! The seam between the stores and the disk: the few calls that the log and SQLite make, so that tests can pass a disk that fails or loses
//! power under both.
//!
//! Everything happens in one folder; names are file names, never paths. The real disk is [`OsDisk`]; the tests' is `memory_disk.rs`.
//! One dynamic call per system call costs nothing beside it. Next: `folder.rs`, which says whose folder it is.

use crate::storage::direct_file::DirectFile;
use nix::{
    errno::Errno,
    fcntl::{FcntlArg, fcntl},
    libc,
};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use std::{
    fs::File,
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// The folder of a store.
pub(crate) trait Disk: Send + Sync {
    /// Where it is, for messages.
    fn path(&self) -> &Path;
    fn names(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>>;
    /// The same for reading, and for writing past the kernel's cache where the file system can do that: whole pages that are read once.
    fn open_direct(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open(name, Access::ReadWrite)
    }
    /// Makes an empty file, for reading and writing; one that stands there is emptied.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the names durable: what was created, renamed and removed.
    fn sync_folder(&self) -> io::Result<()>;
    /// What the file system has left for us.
    fn free_bytes(&self) -> io::Result<u64>;
    /// A number that tells the file of this name from others, as long as either is open.
    fn identity(&self, name: &str) -> io::Result<u64>;
}

/// A file of that folder.
pub(crate) trait DiskFile: Send + Sync {
    fn byte_count(&self) -> io::Result<u64>;
    /// One `pread`: fewer bytes than asked for do not mean the end of the file, none do.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;
    /// One `pwrite`: may write less than it was given.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// One `fdatasync`: content and length, not the times.
    fn sync_data(&self) -> io::Result<()>;
    /// Gives the file this length: what it lacks is zeros.
    fn truncate(&self, byte_count: u64) -> io::Result<()>;
    /// Locks these bytes for this open file instead of as they were, against other open files of this and of other processes; dropping the
    /// file gives all back. False if a lock of another is in the way. What is locked need not exist, and may be read and written by all.
    fn lock(&self, bytes: Range<u64>, lock: RangeLock) -> io::Result<bool>;
    /// Whether another open file has a lock on any of these bytes.
    fn is_locked(&self, bytes: Range<u64>) -> io::Result<bool>;
}

/// A lock on some bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeLock {
    None,
    /// Others may share it.
    Shared,
    Exclusive,
}

/// What an opened file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadWrite,
}

/// A write that did not get everything out.
pub(crate) struct PartlyWritten {
    pub(crate) written_bytes: usize,
    pub(crate) error: io::Error,
}

/// Writes all of `bytes`, which is one `pwrite` unless the disk is full or a signal came.
pub(crate) fn write_all_at(file: &dyn DiskFile, bytes: &[u8], offset: u64) -> Result<(), PartlyWritten> {
    let mut written_bytes = 0;
    while written_bytes < bytes.len() {
        match file.write_at(&bytes[written_bytes..], offset + written_bytes as u64) {
            Ok(0) => return Err(PartlyWritten { written_bytes, error: io::ErrorKind::WriteZero.into() }),
            Ok(count) => written_bytes += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(PartlyWritten { written_bytes, error }),
        }
    }
    Ok(())
}

/// The folder on the machine's file system.
pub(crate) struct OsDisk {
    path: PathBuf,
    /// Held open: what is synced, and what names are looked up in even if somebody renames the folder.
    folder: File,
}

impl OsDisk {
    pub(crate) fn open(path: &Path) -> io::Result<OsDisk> {
        Ok(OsDisk { path: path.to_owned(), folder: File::open(path)? })
    }

    fn open_with(&self, name: &str, flags: OFlags) -> io::Result<File> {
        // No link is followed out of the folder, and a pipe that somebody put there does not block us.
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::openat(&self.folder, name, flags, Mode::RUSR | Mode::WUSR)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(file)
    }
}

impl Disk for OsDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn names(&self) -> io::Result<Vec<String>> {
        // A name that is not UTF-8 is not one of ours.
        Dir::read_from(&self.folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open_with(name, if access == Access::Read { OFlags::RDONLY } else { OFlags::RDWR })?))
    }

    fn open_direct(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let cached = self.open_with(name, OFlags::RDWR)?;
        match self.open_with(name, OFlags::RDWR | OFlags::DIRECT) {
            Ok(direct) => Ok(Box::new(DirectFile { cached, direct })),
            // A file system in memory, or over a network.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(Box::new(cached)),
            Err(error) => Err(error),
        }
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(self.open_with(name, OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.folder, from, &self.folder, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())?)
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let file_system = rustix::fs::fstatvfs(&self.folder)?;
        Ok(file_system.f_bavail.saturating_mul(file_system.f_frsize))
    }

    fn identity(&self, name: &str) -> io::Result<u64> {
        Ok(rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?.st_ino)
    }
}

impl DiskFile for File {
    fn byte_count(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn truncate(&self, byte_count: u64) -> io::Result<()> {
        self.set_len(byte_count)
    }

    fn lock(&self, bytes: Range<u64>, lock: RangeLock) -> io::Result<bool> {
        match fcntl(self, FcntlArg::F_OFD_SETLK(&record_lock(bytes, lock))) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn is_locked(&self, bytes: Range<u64>) -> io::Result<bool> {
        let mut lock = record_lock(bytes, RangeLock::Exclusive);
        fcntl(self, FcntlArg::F_OFD_GETLK(&mut lock))?;
        Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
    }
}

impl DiskFile for DirectFile {
    fn byte_count(&self) -> io::Result<u64> {
        DiskFile::byte_count(&self.cached)
    }

    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        DiskFile::read_at(&self.cached, out, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        DirectFile::write_at(self, bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        DiskFile::sync_data(&self.cached)
    }

    fn truncate(&self, byte_count: u64) -> io::Result<()> {
        DiskFile::truncate(&self.cached, byte_count)
    }

    fn lock(&self, bytes: Range<u64>, lock: RangeLock) -> io::Result<bool> {
        DiskFile::lock(&self.cached, bytes, lock)
    }

    fn is_locked(&self, bytes: Range<u64>) -> io::Result<bool> {
        DiskFile::is_locked(&self.cached, bytes)
    }
}

/// The kernel's form of a lock. It belongs to the open file, not to the process as the older kind does, which is lost as soon as the
/// process closes the same file elsewhere; the two kinds exclude each other.
fn record_lock(bytes: Range<u64>, lock: RangeLock) -> libc::flock {
    let kind = match lock {
        RangeLock::None => libc::F_UNLCK,
        RangeLock::Shared => libc::F_RDLCK,
        RangeLock::Exclusive => libc::F_WRLCK,
    };
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: bytes.start as libc::off_t,
        l_len: (bytes.end - bytes.start) as libc::off_t,
        l_pid: 0,
    }
}
