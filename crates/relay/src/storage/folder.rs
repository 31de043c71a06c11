//! The data folder: made private, checked, and locked against a second server. Somebody else's folder is left as it is.
//!
//! Knows nothing of what is in the log. Costs a handful of system calls at start. Next: `log/record.rs`.

use super::error::{OpenError, open_error};
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
};

/// A data folder that this process alone may write to, as long as this value lives; the kernel gives the lock back even after `kill -9`.
#[derive(Debug)]
pub(crate) struct Folder {
    _locks: [File; 2],
}

impl Folder {
    /// Makes the folder and the log's within it where they are missing, and takes the lock.
    ///
    /// # Errors
    ///
    /// [`OpenError::NotAFolder`], [`OpenError::Foreign`], [`OpenError::Exposed`], [`OpenError::InUse`], and what the operating system says,
    /// as that the parent does not exist.
    pub(crate) fn open(data_dir: &Path) -> Result<Folder, OpenError> {
        make_private(data_dir, check_ours)?;
        let lock = lock(data_dir)?;
        let log_dir = log_dir(data_dir);
        make_private(&log_dir, |_| Ok(()))?;
        // The lock file may have been removed under a server that runs: "stale", somebody thought. The log's folder cannot.
        let log = File::open(&log_dir).map_err(open_error("opening", &log_dir))?;
        if !try_lock(&log, &log_dir)? {
            return Err(OpenError::InUse { path: data_dir.to_owned(), pid: None });
        }
        Ok(Folder { _locks: [lock, log] })
    }
}

/// Where the log files of a data folder stand.
pub(crate) fn log_dir(data_dir: &Path) -> PathBuf {
    data_dir.join(LOG)
}

/// The data folder whose log files stand in `log_dir`: what people name at the command line.
pub(crate) fn data_dir_of(log_dir: &Path) -> &Path {
    log_dir.parent().unwrap_or(log_dir)
}

/// The folder that a name stands in.
pub(crate) fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// All for which [`Folder::open`] would refuse a data folder that is there, but for a server that uses it. What is missing is made by it.
///
/// # Errors
///
/// Something else stands there, or the operating system refuses.
pub(crate) fn refusals(data_dir: &Path) -> Result<Vec<OpenError>, OpenError> {
    let mut refusals = Vec::new();
    for (path, ours) in [(data_dir.to_owned(), check_ours as fn(&Path) -> _), (log_dir(data_dir), |_: &Path| Ok(()))] {
        match check_private(&path, ours) {
            Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error @ (OpenError::Io { .. } | OpenError::NotAFolder { .. })) => return Err(error),
            Err(refusal) => refusals.push(refusal),
            Ok(()) => {}
        }
    }
    Ok(refusals)
}

/// Makes the folder, or checks that it is one, that it is `ours`, and private.
fn make_private(path: &Path, ours: fn(&Path) -> Result<(), OpenError>) -> Result<(), OpenError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {
            // The folder's own name is durable only when its parent is synced: else a power cut takes the log with it.
            let parent = parent_of(path);
            File::open(parent).and_then(|parent| parent.sync_all()).map_err(open_error("syncing", parent))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_private(path, ours),
        Err(error) => Err(open_error("making the folder", path)(error)),
    }
}

fn check_private(path: &Path, ours: fn(&Path) -> Result<(), OpenError>) -> Result<(), OpenError> {
    let metadata = fs::metadata(path).map_err(open_error("looking at", path))?;
    if !metadata.is_dir() {
        return Err(OpenError::NotAFolder { path: path.to_owned() });
    }
    // First: whoever is told to make a folder private must not be told so of `/`.
    ours(path)?;
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(OpenError::Exposed { path: path.to_owned(), mode }) }
}

/// A data folder holds nothing but what relay made in it.
fn check_ours(data_dir: &Path) -> Result<(), OpenError> {
    let names = fs::read_dir(data_dir).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>());
    let foreign = names.map_err(open_error("listing", data_dir))?.into_iter().filter(|name| !OURS.iter().any(|ours| name == ours)).min();
    foreign.map_or(Ok(()), |name| Err(OpenError::Foreign { path: data_dir.to_owned(), name }))
}

fn lock(data_dir: &Path) -> Result<File, OpenError> {
    let path = data_dir.join(LOCK);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR);
    let mut file = File::from(opened.map_err(|error| open_error("opening", &path)(error.into()))?);
    if !try_lock(&file, &path)? {
        // The number is a help for people; what decides is the kernel's lock. A number has at most ten digits.
        let mut text = String::new();
        let pid = file.take(10).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
        return Err(OpenError::InUse { path: data_dir.to_owned(), pid });
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(open_error("writing to", path))?;
    Ok(file)
}

/// False if another process has it.
fn try_lock(file: &File, path: &Path) -> Result<bool, OpenError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(open_error("locking", path)(error.into())),
    }
}

const LOCK: &str = "lock";
const LOG: &str = "log";
/// The history in a data folder.
pub(crate) const HISTORY: &str = "history.db";
/// Its rollback journal.
pub(crate) const JOURNAL: &str = "history.db-journal";
/// What a history is called until it has its first page.
const UNBORN: &str = "history.db.new";
const OURS: [&str; 5] = [LOCK, LOG, HISTORY, JOURNAL, UNBORN];
