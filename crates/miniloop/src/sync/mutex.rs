//! A lock around a value that is held across `await`.
//!
//! While it is locked the guard owns the value, in its box: so a guard can be kept by anybody (a task, a structure) without `unsafe`, and
//! stays two words long whatever it guards. The price is one allocation when the mutex is made.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use futures_core::FusedFuture;

use super::line::{Desk, Line, Waiting, Wakes};
use super::permits::{Granted, Permits};
use crate::engine::record::WaitsFor;

/// A value that one task at a time may use, also across an `await`. Where nothing is awaited meanwhile, a `RefCell` does.
///
/// First come, first served: a lock that is released belongs to the first who waits from that moment on. It is not poisoned: when its
/// holder panics the lock is released like by any other drop of the guard, with the value as the panic left it.
///
/// ```
/// use miniloop::sync::Mutex;
/// use std::rc::Rc;
///
/// miniloop::run(async {
///     let log = Rc::new(Mutex::new(Vec::new()));
///     let writer = miniloop::spawn({
///         let log = log.clone();
///         async move {
///             let mut lines = log.lock().await;
///             lines.push("one");
///             miniloop::yield_now().await;
///             lines.push("two");
///         }
///     });
///     miniloop::yield_now().await;
///     assert!(log.try_lock().is_none());
///     assert_eq!(*log.lock().await, ["one", "two"]);
///     writer.await.unwrap();
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[doc(alias = "Lock")]
pub struct Mutex<T: ?Sized> {
    permits: Permits,
    /// `None` while a guard has it.
    value: Cell<Option<Box<T>>>,
}

/// The guard of a borrowed mutex.
pub type MutexGuard<'a, T> = Guard<&'a Mutex<T>, T>;

/// A guard that keeps its mutex alive, for tasks and structures of their own.
pub type OwnedMutexGuard<T> = Guard<Rc<Mutex<T>>, T>;

impl<T> Mutex<T> {
    /// An unlocked mutex around `value`.
    pub fn new(value: T) -> Mutex<T> {
        Box::new(value).into()
    }

    /// The value, when nobody uses the mutex any more.
    ///
    /// # Panics
    /// When a guard was leaked with [`mem::forget`](std::mem::forget): the value is in there.
    pub fn into_inner(self) -> T {
        *self.value.into_inner().expect(LEAKED)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// # Cancellation
    /// Loses its place in line. A lock that it had been given already goes to the next.
    #[doc(alias = "acquire")]
    pub fn lock(&self) -> impl FusedFuture<Output = MutexGuard<'_, T>> + Unpin {
        lock(self)
    }

    /// The same with a guard that keeps the mutex alive.
    ///
    /// ```
    /// # use miniloop::sync::Mutex;
    /// # use std::rc::Rc;
    /// # miniloop::run(async {
    /// let total = Rc::new(Mutex::new(40));
    /// let mut guard = total.clone().lock_owned().await;
    /// miniloop::spawn(async move { *guard += 2 }).await.unwrap();
    /// assert_eq!(*total.lock().await, 42);
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancellation
    /// As [`lock`](Mutex::lock).
    pub fn lock_owned(self: Rc<Self>) -> impl FusedFuture<Output = OwnedMutexGuard<T>> + Unpin {
        lock(self)
    }

    /// The lock, if nobody has it or waits for it.
    #[doc(alias = "acquire_nowait")]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        Lock::new(self).try_now()
    }

    /// The same with a guard that keeps the mutex alive.
    pub fn try_lock_owned(self: Rc<Self>) -> Option<OwnedMutexGuard<T>> {
        Lock::new(self).try_now()
    }

    /// The value, which nobody else can use meanwhile.
    ///
    /// # Panics
    /// When a guard was leaked with [`mem::forget`](std::mem::forget): the value is in there.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut().as_deref_mut().expect(LEAKED)
    }

    /// Whether somebody has the lock, or has been given it and not run since.
    #[doc(alias = "locked")]
    pub fn is_locked(&self) -> bool {
        self.permits.available() == 0
    }

    /// What it is like now.
    pub fn statistics(&self) -> MutexStatistics {
        MutexStatistics { is_locked: self.is_locked(), waiting: self.permits.line().len() }
    }

    fn unlock(&self, value: Option<Box<T>>) {
        self.value.set(value);
        let mut wakes = Wakes::default();
        self.permits.release(1, &mut wakes);
        wakes.wake();
    }
}

impl<T: ?Sized> From<Box<T>> for Mutex<T> {
    fn from(value: Box<T>) -> Mutex<T> {
        Mutex { permits: Permits::new(1), value: Cell::new(Some(value)) }
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_struct("Mutex").field("value", &&*guard).finish_non_exhaustive(),
            None => f.debug_struct("Mutex").field("value", &format_args!("<locked>")).finish_non_exhaustive(),
        }
    }
}

/// What a [`Mutex`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MutexStatistics {
    /// Somebody has the lock, or has been given it and not run since.
    pub is_locked: bool,
    /// How many wait in line.
    pub waiting: usize,
}

/// The lock of a [`Mutex`], and the way to its value. Dropping it unlocks. See [`MutexGuard`] and [`OwnedMutexGuard`].
#[must_use = "dropping a guard unlocks"]
pub struct Guard<M: Deref<Target = Mutex<T>>, T: ?Sized> {
    mutex: M,
    /// `None` only while it is being dropped.
    value: Option<Box<T>>,
}

impl<M: Deref<Target = Mutex<T>>, T: ?Sized> Guard<M, T> {
    /// What this is a guard of.
    pub(super) fn mutex(&self) -> &M {
        &self.mutex
    }
}

impl<M: Deref<Target = Mutex<T>>, T: ?Sized> Deref for Guard<M, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_deref().expect(HELD)
    }
}

impl<M: Deref<Target = Mutex<T>>, T: ?Sized> DerefMut for Guard<M, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_deref_mut().expect(HELD)
    }
}

impl<M: Deref<Target = Mutex<T>>, T: ?Sized> Drop for Guard<M, T> {
    fn drop(&mut self) {
        self.mutex.unlock(self.value.take());
    }
}

impl<M: Deref<Target = Mutex<T>>, T: ?Sized + fmt::Debug> fmt::Debug for Guard<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<M: Deref<Target = Mutex<T>>, T: ?Sized + fmt::Display> fmt::Display for Guard<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Waits for the lock, by either way to the mutex.
pub(super) fn lock<M: Deref<Target = Mutex<T>> + Clone, T: ?Sized>(mutex: M) -> Waiting<Lock<M, T>> {
    Waiting::new(Lock::new(mutex))
}

pub(super) struct Lock<M, T: ?Sized> {
    mutex: M,
    _value: PhantomData<Box<T>>,
}

impl<M: Deref<Target = Mutex<T>> + Clone, T: ?Sized> Lock<M, T> {
    fn new(mutex: M) -> Self {
        Self { mutex, _value: PhantomData }
    }

    fn guard(&self) -> Guard<M, T> {
        Guard { mutex: self.mutex.clone(), value: self.mutex.value.take() }
    }
}

impl<M: Deref<Target = Mutex<T>> + Clone, T: ?Sized> Desk for Lock<M, T> {
    type Request = usize;
    type Grant = Granted;
    type Output = Guard<M, T>;
    const WAITS_FOR: WaitsFor = &"the lock of a mutex";

    fn line(&self) -> &Line<Granted, usize> {
        self.mutex.permits.line()
    }

    fn request(&self) -> usize {
        1
    }

    fn try_now(&mut self) -> Option<Guard<M, T>> {
        self.mutex.permits.try_take(1).then(|| self.guard())
    }

    fn redeem(&mut self, _: Granted) -> Option<Guard<M, T>> {
        Some(self.guard())
    }

    fn pass_on(&self, granted: Option<Granted>) {
        self.mutex.permits.pass_on(1, granted);
    }
}

const LEAKED: &str = "the value of this mutex is in a guard that was leaked (`mem::forget`)";
const HELD: &str = "a guard has the value until it is dropped";
