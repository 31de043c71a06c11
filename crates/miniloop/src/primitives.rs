//! Locks and flags between threads: the standard library's.
//!
//! Files that share state between threads take them from here, so that `tests/loom.rs` can build the same files on loom's versions, which
//! try every order in which the threads may run.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;
use std::time::Duration;

/// Locks it. A poisoned lock is as good as any: no user code runs under the locks of this crate, so whoever panicked left nothing half
/// done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until it is notified, or for no reason at all: look again.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `condition` holds, for at most `limit`. True: the time is up, and it still holds.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    limit: Duration,
    condition: impl Fn(&T) -> bool,
) -> (MutexGuard<'a, T>, bool) {
    let waited = condvar.wait_timeout_while(guard, limit, |value| condition(value));
    let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
    (guard, waited.timed_out())
}
