//! A semaphore: a number of permits, handed out in the order in which they were asked for.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use futures_core::FusedFuture;

use super::line::{Desk, Line, Waiting, Wakes};
use super::permits::{Granted, Permits};
use crate::engine::record::WaitsFor;

/// A number of permits; whoever needs one waits until one is there.
///
/// First come, first served: a permit that is given back belongs to the first who waits from that moment on, and nobody overtakes, not even
/// one who asks for less. Giving back is dropping the [`Permit`], so none is given back twice.
///
/// ```
/// use miniloop::sync::Semaphore;
/// use std::rc::Rc;
///
/// miniloop::run(async {
///     let connections = Rc::new(Semaphore::new(2));
///     let first = connections.acquire().await;
///     let _second = connections.acquire().await;
///     assert!(connections.try_acquire().is_none());
///     let third = miniloop::spawn({
///         let connections = connections.clone();
///         async move { drop(connections.acquire().await) }
///     });
///     drop(first);
///     third.await.unwrap();
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[doc(alias = "BoundedSemaphore")]
#[doc(alias = "CapacityLimiter")]
pub struct Semaphore {
    permits: Permits,
}

/// A permit that borrows its semaphore.
pub type SemaphorePermit<'a> = Permit<&'a Semaphore>;

/// A permit that keeps its semaphore alive, for tasks and structures of their own.
pub type OwnedSemaphorePermit = Permit<Rc<Semaphore>>;

impl Semaphore {
    /// A semaphore with so many permits.
    pub const fn new(permits: usize) -> Semaphore {
        Semaphore { permits: Permits::new(permits) }
    }

    /// Waits for one permit.
    ///
    /// # Cancellation
    /// Loses its place in line. A permit that it had been given already goes to the next.
    ///
    /// # Panics
    /// When the future is polled under another loop than the first time, or again after it was done. This holds for all futures of
    /// [`sync`](super).
    pub fn acquire(&self) -> impl FusedFuture<Output = SemaphorePermit<'_>> + Unpin {
        self.acquire_many(1)
    }

    /// Waits for `count` permits at once. Those who come later wait behind it, also for a single one: so it cannot be starved.
    ///
    /// ```
    /// # use miniloop::sync::Semaphore;
    /// # miniloop::run(async {
    /// let memory_kib = Semaphore::new(1_024);
    /// let held = memory_kib.acquire_many(1_000).await;
    /// assert_eq!((held.count(), memory_kib.available_permits()), (1_000, 24));
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancellation
    /// As [`acquire`](Semaphore::acquire); those who waited behind it are served if there is enough for them.
    pub fn acquire_many(&self, count: usize) -> impl FusedFuture<Output = SemaphorePermit<'_>> + Unpin {
        Waiting::new(Acquire { semaphore: self, count })
    }

    /// The same with a permit that keeps the semaphore alive.
    ///
    /// ```
    /// # use miniloop::sync::Semaphore;
    /// # use std::rc::Rc;
    /// # miniloop::run(async {
    /// let semaphore = Rc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().acquire_owned().await;
    /// miniloop::spawn(async move { drop(permit) }).await.unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancellation
    /// As [`acquire`](Semaphore::acquire).
    pub fn acquire_owned(self: Rc<Self>) -> impl FusedFuture<Output = OwnedSemaphorePermit> + Unpin {
        self.acquire_many_owned(1)
    }

    /// [`acquire_many`](Semaphore::acquire_many) with a permit that keeps the semaphore alive.
    ///
    /// # Cancellation
    /// As [`acquire_many`](Semaphore::acquire_many).
    pub fn acquire_many_owned(self: Rc<Self>, count: usize) -> impl FusedFuture<Output = OwnedSemaphorePermit> + Unpin {
        Waiting::new(Acquire { semaphore: self, count })
    }

    /// One permit, if there is one and nobody waits.
    #[doc(alias = "acquire_nowait")]
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// `count` permits, if there are as many and nobody waits.
    pub fn try_acquire_many(&self, count: usize) -> Option<SemaphorePermit<'_>> {
        Acquire { semaphore: self, count }.try_now()
    }

    /// One permit that keeps the semaphore alive, if there is one and nobody waits.
    pub fn try_acquire_owned(self: Rc<Self>) -> Option<OwnedSemaphorePermit> {
        self.try_acquire_many_owned(1)
    }

    /// `count` permits that keep the semaphore alive, if there are as many and nobody waits.
    pub fn try_acquire_many_owned(self: Rc<Self>, count: usize) -> Option<OwnedSemaphorePermit> {
        Acquire { semaphore: self, count }.try_now()
    }

    /// Adds permits, for ever. Beyond [`usize::MAX`] there are no more.
    #[doc(alias = "release")]
    pub fn add_permits(&self, count: usize) {
        let mut wakes = Wakes::default();
        self.permits.release(count, &mut wakes);
        wakes.wake();
    }

    /// How many permits are neither held nor given to somebody who waits for them.
    pub fn available_permits(&self) -> usize {
        self.permits.available()
    }

    /// What it is like now.
    pub fn statistics(&self) -> SemaphoreStatistics {
        SemaphoreStatistics { available: self.available_permits(), waiting: self.permits.line().len() }
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("statistics", &self.statistics()).finish()
    }
}

/// What a [`Semaphore`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SemaphoreStatistics {
    /// Permits that are neither held nor given to somebody who waits for them.
    pub available: usize,
    /// How many wait in line.
    pub waiting: usize,
}

/// One or more permits of a [`Semaphore`], given back when this is dropped. See [`SemaphorePermit`] and [`OwnedSemaphorePermit`].
#[must_use = "dropping a permit gives it back"]
pub struct Permit<S: Deref<Target = Semaphore>> {
    semaphore: S,
    count: usize,
}

impl<S: Deref<Target = Semaphore>> Permit<S> {
    /// How many permits this is.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Does not give them back: the semaphore has so many permits less, until [`add_permits`](Semaphore::add_permits).
    pub fn forget(mut self) {
        self.count = 0;
    }
}

impl<S: Deref<Target = Semaphore>> Drop for Permit<S> {
    fn drop(&mut self) {
        if self.count > 0 {
            self.semaphore.add_permits(self.count);
        }
    }
}

impl<S: Deref<Target = Semaphore>> fmt::Debug for Permit<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("count", &self.count).finish_non_exhaustive()
    }
}

struct Acquire<S> {
    semaphore: S,
    count: usize,
}

impl<S: Deref<Target = Semaphore> + Clone> Acquire<S> {
    fn permit(&self) -> Permit<S> {
        Permit { semaphore: self.semaphore.clone(), count: self.count }
    }
}

impl<S: Deref<Target = Semaphore> + Clone> Desk for Acquire<S> {
    type Request = usize;
    type Grant = Granted;
    type Output = Permit<S>;
    const WAITS_FOR: WaitsFor = &"a permit of a semaphore";

    fn line(&self) -> &Line<Granted, usize> {
        self.semaphore.permits.line()
    }

    fn request(&self) -> usize {
        self.count
    }

    fn try_now(&mut self) -> Option<Permit<S>> {
        self.semaphore.permits.try_take(self.count).then(|| self.permit())
    }

    fn redeem(&mut self, _: Granted) -> Option<Permit<S>> {
        Some(self.permit())
    }

    fn pass_on(&self, granted: Option<Granted>) {
        self.semaphore.permits.pass_on(self.count, granted);
    }
}
