//! SQLite's locks on a database file, taken as SQLite itself takes them on Unix, so that `sqlite3 history.db` and other relay processes are
//! safe beside us.
//!
//! The places are bytes behind the first GiB, on a page that SQLite leaves empty; they need not exist. Each step is one system call and
//! never waits. Next: `sqlite_files.rs`.
//!
//! ```text
//! shared      the shared range, shared; taken while the pending byte is held, also shared
//! reserved    and the reserved byte, exclusive: one writer prepares, readers go on
//! pending     and the pending byte, exclusive: no new readers
//! exclusive   and the shared range, exclusive: no readers are left
//! ```

use crate::storage::disk::{DiskFile, RangeLock};
use sqlite_vfs::Lock;
use std::{io, ops::Range};

/// What one open file holds.
pub(super) struct FileLock {
    held: Lock,
}

impl FileLock {
    pub(super) fn new() -> FileLock {
        FileLock { held: Lock::None }
    }

    pub(super) fn held(&self) -> Lock {
        self.held
    }

    /// Raises the lock. False if another's is in the way; then `Pending` may have been reached on the way to `Exclusive`, and stays.
    pub(super) fn raise(&mut self, file: &dyn DiskFile, wanted: Lock) -> io::Result<bool> {
        if wanted <= self.held {
            return Ok(true);
        }
        let is_taken = match wanted {
            Lock::None => true,
            Lock::Shared => {
                // Whoever holds the pending byte is about to write, and would never get to it if readers kept coming.
                if !file.lock(PENDING, RangeLock::Shared)? {
                    return Ok(false);
                }
                let is_taken = file.lock(SHARED, RangeLock::Shared);
                file.lock(PENDING, RangeLock::None)?;
                is_taken?
            }
            Lock::Reserved => file.lock(RESERVED, RangeLock::Exclusive)?,
            Lock::Pending | Lock::Exclusive => {
                // From `Shared` it is for a journal to be rolled back: others may want the same, and would stop each other half way.
                if self.held == Lock::Reserved {
                    if !file.lock(PENDING, RangeLock::Exclusive)? {
                        return Ok(false);
                    }
                    self.held = Lock::Pending;
                }
                file.lock(SHARED, RangeLock::Exclusive)?
            }
        };
        if is_taken {
            self.held = wanted;
        }
        Ok(is_taken)
    }

    /// Lowers the lock to `Shared` or `None`.
    pub(super) fn lower(&mut self, file: &dyn DiskFile, wanted: Lock) -> io::Result<()> {
        if wanted >= self.held {
            return Ok(());
        }
        if wanted == Lock::Shared {
            // First what others wait for least: between the two calls the file must not look free.
            if self.held == Lock::Exclusive && !file.lock(SHARED, RangeLock::Shared)? {
                return Err(io::Error::other("a lock could not be lowered"));
            }
            file.lock(PENDING.start..RESERVED.end, RangeLock::None)?;
        } else {
            file.lock(PENDING.start..SHARED.end, RangeLock::None)?;
        }
        self.held = wanted;
        Ok(())
    }

    /// Whether this or another file is reserved.
    pub(super) fn is_reserved(&self, file: &dyn DiskFile) -> io::Result<bool> {
        if self.held > Lock::Shared { Ok(true) } else { is_reserved_by_another(file) }
    }
}

/// Whether somebody writes, or waits for readers to let him. For a file on which nothing of that kind is held.
pub(crate) fn is_reserved_by_another(file: &dyn DiskFile) -> io::Result<bool> {
    file.is_locked(RESERVED)
}

const PENDING: Range<u64> = 0x4000_0000..0x4000_0001;
const RESERVED: Range<u64> = 0x4000_0001..0x4000_0002;
const SHARED: Range<u64> = 0x4000_0002..0x4000_0002 + 510;

#[cfg(test)]
#[path = "file_lock_tests.rs"]
mod tests;
