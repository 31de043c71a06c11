//! Stands in for `src/primitives.rs`: the same names, loom's versions.

pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics under a lock")
}

pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).expect("no thread panics under a lock")
}

/// Time does not pass here: a limit of zero is over at once, any other one never.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'a, T>,
    limit: std::time::Duration,
    condition: impl Fn(&T) -> bool,
) -> (MutexGuard<'a, T>, bool) {
    while condition(&guard) {
        if limit.is_zero() {
            return (guard, true);
        }
        guard = wait(condvar, guard);
    }
    (guard, false)
}
