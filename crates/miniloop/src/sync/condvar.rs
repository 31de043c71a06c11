//! A condition variable: waiting, with a lock, for what somebody else does with the value in it.

use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use super::line::{Desk, Line, Waiting, Wakes};
use super::mutex::{Guard, Lock, Mutex, lock};
use crate::engine::context;
use crate::engine::record::WaitsFor;

/// Lets holders of a [`Mutex`] wait until its value is as they need it.
///
/// Waiting takes the guard and gives it back, so it cannot be done without the lock. Notifying needs no lock on a single thread: whoever
/// changes the value with the lock held and notifies afterwards is understood.
///
/// ```
/// use miniloop::sync::{Condvar, Mutex};
/// use std::rc::Rc;
///
/// miniloop::run(async {
///     let shared = Rc::new((Mutex::new(0), Condvar::new()));
///     let counter = miniloop::spawn({
///         let shared = shared.clone();
///         async move {
///             for _ in 0..3 {
///                 *shared.0.lock().await += 1;
///                 shared.1.notify_all();
///             }
///         }
///     });
///     let count = shared.1.wait_while(shared.0.lock().await, |count| *count < 3).await;
///     assert_eq!(*count, 3);
///     # drop(count);
///     counter.await.unwrap();
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[doc(alias = "Condition")]
#[derive(Default)]
pub struct Condvar {
    line: Line<Notice>,
}

/// Whom a notification was meant for.
#[derive(Clone, Copy)]
enum Notice {
    One,
    All,
}

impl Condvar {
    /// A condition variable that nobody waits for.
    pub const fn new() -> Condvar {
        Condvar { line: Line::new() }
    }

    /// Unlocks, waits for a notification, locks again. Between the notification and the lock others may have had it, so look at the value
    /// again, or use [`wait_while`](Condvar::wait_while). The wait begins with the first poll of the future: until then the lock is held.
    ///
    /// ```
    /// # use miniloop::sync::{Condvar, Mutex};
    /// # use std::rc::Rc;
    /// # miniloop::run(async {
    /// let shared = Rc::new((Mutex::new("nothing"), Condvar::new()));
    /// let other = miniloop::spawn({
    ///     let shared = shared.clone();
    ///     async move {
    ///         *shared.0.lock().await = "news";
    ///         shared.1.notify_one();
    ///     }
    /// });
    /// let value = shared.1.wait(shared.0.lock().await).await;
    /// assert_eq!(*value, "news");
    /// # drop(value);
    /// # other.await.unwrap();
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancellation
    /// The lock is not held any more, as the guard was in the future. A notification that it had been given alone goes to the next who
    /// waits, also when only the lock was missing.
    pub fn wait<M, T: ?Sized>(&self, guard: Guard<M, T>) -> impl FusedFuture<Output = Guard<M, T>> + Unpin
    where
        M: Deref<Target = Mutex<T>> + Clone + Unpin,
    {
        let relock = lock(guard.mutex().clone());
        Wait { guard: Some(guard), notified: Waiting::new(Notified { condvar: self }), notification: None, relock }
    }

    /// Waits until `condition` says no. It is asked with the lock held, first at once, then after each notification.
    ///
    /// # Cancellation
    /// As [`wait`](Condvar::wait).
    #[doc(alias = "wait_for")]
    pub async fn wait_while<M, T: ?Sized>(&self, mut guard: Guard<M, T>, mut condition: impl FnMut(&mut T) -> bool) -> Guard<M, T>
    where
        M: Deref<Target = Mutex<T>> + Clone + Unpin,
    {
        context::at_once().await;
        while condition(&mut guard) {
            guard = self.wait(guard).await;
        }
        guard
    }

    /// Lets the first who waits go on. If nobody waits, nothing happens: a notification is not kept.
    #[doc(alias = "notify")]
    pub fn notify_one(&self) {
        let mut wakes = Wakes::default();
        self.line.grant_first(Notice::One, &mut wakes);
        wakes.wake();
    }

    /// Lets all who wait go on, one after the other, in the order in which they came.
    pub fn notify_all(&self) {
        let mut wakes = Wakes::default();
        self.line.grant_all(|| Notice::All, &mut wakes);
        wakes.wake();
    }

    /// What it is like now.
    pub fn statistics(&self) -> CondvarStatistics {
        CondvarStatistics { waiting: self.line.len() }
    }

    fn pass_on(&self, notice: Notice) {
        // All others have one of their own.
        if matches!(notice, Notice::One) {
            self.notify_one();
        }
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").field("statistics", &self.statistics()).finish()
    }
}

/// What a [`Condvar`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CondvarStatistics {
    /// How many wait for a notification. Those who wait for the lock stand in that of the mutex.
    pub waiting: usize,
}

/// First for a notification, then for the lock.
struct Wait<'a, M: Deref<Target = Mutex<T>> + Clone, T: ?Sized> {
    /// Until it stands in line.
    guard: Option<Guard<M, T>>,
    notified: Waiting<Notified<'a>>,
    /// While it waits for the lock.
    notification: Option<Notification<'a>>,
    relock: Waiting<Lock<M, T>>,
}

impl<M: Deref<Target = Mutex<T>> + Clone + Unpin, T: ?Sized> Future for Wait<'_, M, T> {
    type Output = Guard<M, T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Guard<M, T>> {
        let this = self.get_mut();
        if !this.notified.is_terminated() {
            let polled = Pin::new(&mut this.notified).poll(cx);
            // Not before: who unlocks and stands nowhere misses what happens next.
            if this.notified.is_in_line() {
                drop(this.guard.take());
            }
            this.notification = Some(ready!(polled));
        }
        let guard = ready!(Pin::new(&mut this.relock).poll(cx));
        if let Some(mut notification) = this.notification.take() {
            notification.is_used = true;
        }
        Poll::Ready(guard)
    }
}

impl<M: Deref<Target = Mutex<T>> + Clone + Unpin, T: ?Sized> FusedFuture for Wait<'_, M, T> {
    fn is_terminated(&self) -> bool {
        self.relock.is_terminated()
    }
}

/// A notification on its way to somebody who uses it. If that one goes, it is passed on.
struct Notification<'a> {
    condvar: &'a Condvar,
    notice: Notice,
    is_used: bool,
}

impl Drop for Notification<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            self.condvar.pass_on(self.notice);
        }
    }
}

struct Notified<'a> {
    condvar: &'a Condvar,
}

impl<'a> Desk for Notified<'a> {
    type Request = ();
    type Grant = Notice;
    type Output = Notification<'a>;
    const WAITS_FOR: WaitsFor = &"a notification of a condition variable";

    fn line(&self) -> &Line<Notice> {
        &self.condvar.line
    }

    fn request(&self) {}

    fn try_now(&mut self) -> Option<Notification<'a>> {
        None
    }

    fn redeem(&mut self, notice: Notice) -> Option<Notification<'a>> {
        Some(Notification { condvar: self.condvar, notice, is_used: false })
    }

    fn pass_on(&self, notice: Option<Notice>) {
        if let Some(notice) = notice {
            self.condvar.pass_on(notice);
        }
    }
}
