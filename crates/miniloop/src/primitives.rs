//! Locks and flags between threads: the standard library's.
//!
//! Files that share state between threads take them from here, so that `tests/loom.rs` can build the same files on loom's versions, which
//! try every order in which the threads may run.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;

/// Locks it. A poisoned lock is as good as any: no user code runs under the locks of this crate, so whoever panicked left nothing half
/// done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until it is notified, or for no reason at all: look again.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
