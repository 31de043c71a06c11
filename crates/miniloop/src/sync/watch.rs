//! One value, of which everybody wants to know the latest.
//!
//! The value lies behind an `Rc`, and to borrow it is to share that. So a borrow may be held as long as one likes, across `await` too: who
//! changes the value meanwhile puts a new one in its place, made from a clone if it is to be modified.
//!
//! Cost: a change wakes those who wait for it. Only the last of several changes is seen.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::rc::Rc;

use futures_core::FusedFuture;

use super::error::SendError;
use super::line::{Desk, Line, Waiting, Wakes};
use crate::engine::context;
use crate::engine::record::WaitsFor;

/// Makes a value that is watched.
///
/// ```
/// miniloop::run(async {
///     let (sender, mut receiver) = miniloop::sync::watch("starting");
///     let watcher = miniloop::spawn(async move {
///         let mut seen = vec![*receiver.borrow_and_update()];
///         while receiver.changed().await.is_ok() {
///             seen.push(*receiver.borrow_and_update());
///         }
///         seen
///     });
///     miniloop::yield_now().await;
///     sender.send("running").unwrap();
///     miniloop::yield_now().await;
///     drop(sender);
///     assert_eq!(watcher.await.unwrap(), ["starting", "running"]);
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
pub fn watch<T>(value: T) -> (Sender<T>, Receiver<T>) {
    let state = Rc::new(State {
        value: RefCell::new(Some(Rc::new(value))),
        version: Cell::new(0),
        senders: Cell::new(1),
        receivers: Cell::new(0),
        line: Line::new(),
    });
    let receiver = Receiver::new(&state, 0);
    (Sender { state }, receiver)
}

struct State<T> {
    /// `None` while a function of the user's modifies it.
    value: RefCell<Option<Rc<T>>>,
    /// Counts the changes.
    version: Cell<u64>,
    senders: Cell<usize>,
    receivers: Cell<usize>,
    line: Line<()>,
}

impl<T> State<T> {
    fn value(&self) -> Ref<T> {
        Ref { value: self.value.borrow().clone().expect(MODIFYING) }
    }

    /// Puts another value in place of the present one, which is returned to be dropped.
    fn replace(&self, value: T) -> Rc<T> {
        let mut value = Rc::new(value);
        let present = self.value.borrow_mut().as_mut().map(|present| mem::swap(present, &mut value));
        present.expect(MODIFYING);
        self.tell();
        value
    }

    fn tell(&self) {
        self.version.set(self.version.get() + 1);
        self.wake_all();
    }

    fn wake_all(&self) {
        let mut wakes = Wakes::default();
        self.line.grant_all(|| (), &mut wakes);
        wakes.wake();
    }

    fn statistics(&self) -> WatchStatistics {
        WatchStatistics {
            changes: self.version.get(),
            senders: self.senders.get(),
            receivers: self.receivers.get(),
            waiting: self.line.len(),
        }
    }
}

/// What a [`watch`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchStatistics {
    /// How often the value was changed.
    pub changes: u64,
    /// How many senders there are.
    pub senders: usize,
    /// How many receivers there are.
    pub receivers: usize,
    /// How many of them wait for a change.
    pub waiting: usize,
}

/// The value of a [`watch`] as it was when it was borrowed. It may be held across an `await` and does not hinder anybody.
#[must_use = "it was borrowed to be looked at"]
pub struct Ref<T> {
    value: Rc<T>,
}

impl<T> Deref for Ref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The side of a [`watch`] that changes the value.
pub struct Sender<T> {
    state: Rc<State<T>>,
}

impl<T> Sender<T> {
    /// Sets the value, and lets all who wait for a change go on.
    ///
    /// # Errors
    /// [`SendError`] with the value, which then is not set, when there is no receiver. [`send_replace`](Sender::send_replace) does not
    /// care.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.state.receivers.get() == 0 {
            return Err(SendError(value));
        }
        drop(self.state.replace(value));
        Ok(())
    }

    /// Sets the value, whether or not there is a receiver, and returns the one before.
    pub fn send_replace(&self, value: T) -> Ref<T> {
        Ref { value: self.state.replace(value) }
    }

    /// Changes the value in place, whether or not there is a receiver. If somebody holds a [`Ref`] to it, that one keeps the value and a
    /// clone is changed.
    ///
    /// # Panics
    /// When `modify` does, which leaves the value as it is then and tells nobody; and when it uses this watch.
    pub fn send_modify(&self, modify: impl FnOnce(&mut T))
    where
        T: Clone,
    {
        self.send_if_modified(|value| {
            modify(value);
            true
        });
    }

    /// The same, but nobody is told of it if `modify` returns false. Returns what that has returned.
    ///
    /// # Panics
    /// As [`send_modify`](Sender::send_modify).
    pub fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool
    where
        T: Clone,
    {
        let value = self.state.value.borrow_mut().take().expect(MODIFYING);
        let mut modified = Modified { state: &self.state, value: Some(value) };
        let is_modified = modified.value.as_mut().is_some_and(|value| modify(Rc::make_mut(value)));
        drop(modified);
        if is_modified {
            self.state.tell();
        }
        is_modified
    }

    /// The value now.
    pub fn borrow(&self) -> Ref<T> {
        self.state.value()
    }

    /// Another receiver, which has seen the present value.
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(&self.state, self.state.version.get())
    }

    /// What it is like now.
    pub fn statistics(&self) -> WatchStatistics {
        self.state.statistics()
    }
}

/// Puts the value back, whatever `modify` has done.
struct Modified<'a, T> {
    state: &'a State<T>,
    value: Option<Rc<T>>,
}

impl<T> Drop for Modified<'_, T> {
    fn drop(&mut self) {
        *self.state.value.borrow_mut() = self.value.take();
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.state.senders.set(self.state.senders.get() + 1);
        Sender { state: self.state.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let senders = self.state.senders.get() - 1;
        self.state.senders.set(senders);
        if senders == 0 {
            self.state.wake_all();
        }
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("statistics", &self.statistics()).finish()
    }
}

/// The side of a [`watch`] that follows the value. Clones have seen what this one has seen.
pub struct Receiver<T> {
    state: Rc<State<T>>,
    /// The version that it has seen.
    seen: u64,
}

impl<T> Receiver<T> {
    fn new(state: &Rc<State<T>>, seen: u64) -> Receiver<T> {
        state.receivers.set(state.receivers.get() + 1);
        Receiver { state: state.clone(), seen }
    }

    /// The value now; it does not count as seen.
    pub fn borrow(&self) -> Ref<T> {
        self.state.value()
    }

    /// The value now, which counts as seen: [`changed`](Receiver::changed) waits for another.
    pub fn borrow_and_update(&mut self) -> Ref<T> {
        self.seen = self.state.version.get();
        self.state.value()
    }

    /// Waits until the value has been changed since this receiver has seen it, not at all if it has, and counts the change as seen. The
    /// value that there is at the beginning counts as seen.
    ///
    /// # Errors
    /// [`WatchClosed`] when all senders have gone and the last change is seen.
    ///
    /// # Cancellation
    /// Loses nothing: the change is not seen then.
    pub fn changed(&mut self) -> impl FusedFuture<Output = Result<(), WatchClosed>> + Unpin {
        Waiting::new(Changed { receiver: self })
    }

    /// Waits until `condition` holds, asked first at once, and returns the value, which counts as seen.
    ///
    /// ```
    /// # miniloop::run(async {
    /// let (sender, mut receiver) = miniloop::sync::watch(0);
    /// let watcher = miniloop::spawn(async move { *receiver.wait_for(|level| *level > 2).await.unwrap() });
    /// for level in 1..=3 {
    ///     sender.send(level).unwrap();
    /// }
    /// assert_eq!(watcher.await.unwrap(), 3);
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`WatchClosed`] when all senders have gone and the last value is not such.
    ///
    /// # Cancellation
    /// Loses nothing; changes for which `condition` did not hold are seen.
    pub async fn wait_for(&mut self, mut condition: impl FnMut(&T) -> bool) -> Result<Ref<T>, WatchClosed> {
        context::at_once().await;
        loop {
            let value = self.borrow_and_update();
            if condition(&value) {
                return Ok(value);
            }
            drop(value);
            self.changed().await?;
        }
    }

    /// Whether the value has been changed since this receiver has seen it.
    pub fn has_changed(&self) -> bool {
        self.seen != self.state.version.get()
    }

    /// What it is like now.
    pub fn statistics(&self) -> WatchStatistics {
        self.state.statistics()
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Receiver<T> {
        Receiver::new(&self.state, self.seen)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.state.receivers.set(self.state.receivers.get() - 1);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("has_changed", &self.has_changed()).field("statistics", &self.statistics()).finish()
    }
}

/// All senders of a [`watch`] have gone: its value changes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchClosed;

impl fmt::Display for WatchClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this value changes no more: all its senders have gone")
    }
}

impl std::error::Error for WatchClosed {}

struct Changed<'a, T> {
    receiver: &'a mut Receiver<T>,
}

impl<T> Desk for Changed<'_, T> {
    type Request = ();
    type Grant = ();
    type Output = Result<(), WatchClosed>;
    const WAITS_FOR: WaitsFor = &"a watched value to change";

    fn line(&self) -> &Line<()> {
        &self.receiver.state.line
    }

    fn request(&self) {}

    fn try_now(&mut self) -> Option<Result<(), WatchClosed>> {
        if self.receiver.has_changed() {
            self.receiver.seen = self.receiver.state.version.get();
            return Some(Ok(()));
        }
        (self.receiver.state.senders.get() == 0).then_some(Err(WatchClosed))
    }

    fn redeem(&mut self, (): ()) -> Option<Result<(), WatchClosed>> {
        self.try_now()
    }

    /// The others have been told themselves.
    fn pass_on(&self, _: Option<()>) {}
}

const MODIFYING: &str = "a function that modifies a watched value must not use the watch itself";
