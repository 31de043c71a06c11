//! A line of waiters in which things are handed over: the one way to wait in this folder.
//!
//! Whoever releases something gives it to the first in line *then*, not when that one is polled. From that moment it belongs to the waiter,
//! so nobody who comes later can overtake, and a waiter that is dropped instead of polled knows what it has to pass on: that is all there
//! is to "first come, first served" and to cancelling without loss.
//!
//! ```text
//! wait                 grant                     collect
//! ------> in line ---------------> set aside ----------------> over
//!            |                         |
//!            | dropped                 | dropped
//!            v                         v
//!         leave: no trace           leave: what it was given is passed on
//! ```
//!
//! [`Line`] keeps the waiters, a [`Desk`] says what is handed over and how, [`Waiting`] is the future between them. Nothing here knows what
//! a permit or an item is. Wakers are foreign code: cloned before a borrow, woken ([`Wakes`]) and dropped after it. They may do anything to
//! what they wait for, so a poll looks again when it has cloned one.
//!
//! Cost: each step is O(1); no allocation per waiter in a line that is used again and again (`wait_queue.rs`). Next: `permits.rs`.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use futures_core::FusedFuture;

use crate::engine::context::{self, Home};
use crate::engine::record::WaitsFor;
use crate::wait_queue::{Key, WaitQueue, wake_all};

/// Waiters, each with what it asks for, `R`, until it is given a `G`.
pub(super) struct Line<G, R = ()> {
    queue: RefCell<WaitQueue<Waiter<G, R>>>,
    /// How many have been given something and have not collected it.
    granted: Cell<usize>,
    /// Nothing in here is for another thread, not even by moving it there: its waiters stay behind.
    _not_send: PhantomData<Rc<()>>,
}

impl<G, R: Copy> Default for Line<G, R> {
    fn default() -> Self {
        Self::new()
    }
}

enum Waiter<G, R> {
    Waiting { waker: Waker, request: R },
    Granted(G),
}

impl<G, R: Copy> Line<G, R> {
    pub(super) const fn new() -> Self {
        Self { queue: RefCell::new(WaitQueue::new()), granted: Cell::new(0), _not_send: PhantomData }
    }

    /// How many wait. Those who have been given something do not.
    pub(super) fn len(&self) -> usize {
        self.queue.borrow().len() - self.granted.get()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    /// What the first asks for.
    pub(super) fn first(&self) -> Option<R> {
        match self.queue.borrow().first()? {
            Waiter::Waiting { request, .. } => Some(*request),
            Waiter::Granted(_) => None,
        }
    }

    /// Gives the first in line what is from now on its own. False if nobody waits.
    pub(super) fn grant_first(&self, grant: G, wakes: &mut Wakes) -> bool {
        let mut queue = self.queue.borrow_mut();
        let Some(waiter) = queue.set_first_aside() else { return false };
        if let Waiter::Waiting { waker, .. } = mem::replace(waiter, Waiter::Granted(grant)) {
            wakes.push(waker);
        }
        self.granted.set(self.granted.get() + 1);
        true
    }

    /// Gives something to everybody who waits now, in the order in which they came.
    pub(super) fn grant_all(&self, mut grant: impl FnMut() -> G, wakes: &mut Wakes) {
        while !self.is_empty() {
            self.grant_first(grant(), wakes);
        }
    }

    /// What this waiter has been given, if it has; its key is stale then.
    fn collect(&self, key: Key) -> Option<G> {
        let is_granted = matches!(self.queue.borrow_mut().get_mut(key)?, Waiter::Granted(_));
        if is_granted { self.leave(key) } else { None }
    }

    /// Joins the line, or keeps its place in it with another waker. `waker` is exchanged for what to drop afterwards.
    fn wait(&self, key: &mut Option<Key>, request: R, waker: &mut Waker) {
        let mut queue = self.queue.borrow_mut();
        if let Some(present) = key.and_then(|key| queue.get_mut(key)) {
            if let Waiter::Waiting { waker: present, .. } = present {
                mem::swap(present, waker);
            }
            return;
        }
        let waker = mem::replace(waker, Waker::noop().clone());
        *key = Some(queue.push(Waiter::Waiting { waker, request }));
    }

    /// Gives up a place. What the waiter has been given, and never collected, comes back.
    fn leave(&self, key: Key) -> Option<G> {
        let waiter = self.queue.borrow_mut().remove(key)?;
        match waiter {
            Waiter::Granted(grant) => {
                self.granted.set(self.granted.get() - 1);
                Some(grant)
            }
            Waiter::Waiting { .. } => None,
        }
    }
}

/// Who is to be woken as soon as nothing is borrowed and everything is in order: the last thing that an operation does.
#[must_use = "who has been given something and is not woken hangs"]
#[derive(Default)]
pub(super) struct Wakes {
    /// Nearly always there is one, which then costs no allocation.
    first: Option<Waker>,
    others: Vec<Waker>,
}

impl Wakes {
    pub(super) fn push(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.others.push(waker),
        }
    }

    /// # Panics
    /// When a waker of another executor panics; the others are woken all the same.
    pub(super) fn wake(self) {
        wake_all(self.first.into_iter().chain(self.others));
    }
}

/// What is waited for, seen by one who waits.
pub(super) trait Desk {
    /// What a waiter asks for, if not all ask for the same.
    type Request: Copy;
    /// What it is given in line.
    type Grant;
    /// What its future gives.
    type Output;
    /// What its task waits for, in a few words.
    const WAITS_FOR: WaitsFor;

    fn line(&self) -> &Line<Self::Grant, Self::Request>;

    fn request(&self) -> Self::Request;

    /// What somebody gets who need not wait. Nobody may be overtaken.
    fn try_now(&mut self) -> Option<Self::Output>;

    /// What a grant gives. `None` if it came to nothing: the waiter goes to the end of the line.
    fn redeem(&mut self, grant: Self::Grant) -> Option<Self::Output>;

    /// A waiter has left, with what it had been given and cannot use any more.
    fn pass_on(&self, grant: Option<Self::Grant>);
}

/// The future of every operation that waits in a line.
///
/// It holds its place when it is polled again, gives it up when it is dropped, and counts in the task's budget (O10).
#[must_use = "futures do nothing unless awaited"]
pub(super) struct Waiting<D: Desk> {
    desk: D,
    key: Option<Key>,
    home: Home,
    is_over: bool,
}

impl<D: Desk> Waiting<D> {
    pub(super) fn new(desk: D) -> Self {
        Self { desk, key: None, home: Home::default(), is_over: false }
    }

    /// It has joined the line and not left it.
    pub(super) fn is_in_line(&self) -> bool {
        self.key.is_some()
    }

    fn attempt(&mut self) -> Option<D::Output> {
        match self.key {
            None => self.desk.try_now(),
            Some(key) => {
                let grant = self.desk.line().collect(key)?;
                self.key = None;
                self.desk.redeem(grant)
            }
        }
    }

    fn attempt_or_wait(&mut self, cx: &Context<'_>) -> Option<D::Output> {
        if let Some(output) = self.attempt() {
            return Some(output);
        }
        self.home.check(WHAT);
        let mut waker = cx.waker().clone();
        let output = self.attempt();
        if output.is_none() {
            let request = self.desk.request();
            self.desk.line().wait(&mut self.key, request, &mut waker);
        }
        output
    }
}

/// A desk is only ever called, never pinned.
impl<D: Desk> Unpin for Waiting<D> {}

impl<D: Desk> Future for Waiting<D> {
    type Output = D::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<D::Output> {
        let this = self.get_mut();
        assert!(!this.is_over, "a future that waited for {} was polled after it was done", D::WAITS_FOR);
        ready!(context::poll_budget(cx));
        let Some(output) = this.attempt_or_wait(cx) else {
            context::waits_for(D::WAITS_FOR);
            return Poll::Pending;
        };
        this.is_over = true;
        context::spend_operation();
        Poll::Ready(output)
    }
}

impl<D: Desk> FusedFuture for Waiting<D> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<D: Desk> Drop for Waiting<D> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let grant = self.desk.line().leave(key);
            self.desk.pass_on(grant);
        }
    }
}

/// What panics when it is polled under another loop.
pub(super) const WHAT: &str = "future of `sync`";
