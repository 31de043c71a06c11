//! A value that arrives once, and those who wait for it: what a promise and a task have in common.
//!
//! ```text
//!             complete                       poll_take
//! Pending ---------------> Ready(value) ------------------> Taken        one reader, who owns the value
//!                               |  poll_shared
//!                               +-----------------> Shared(Rc of value)  many readers
//! ```
//!
//! Completing wakes the readers in the order in which they came; waking only queues them, so no reader runs inside the call (O8).

use std::cell::RefCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::dump;
use crate::engine::context::{self, Home};
use crate::engine::record::WaitsFor;
use crate::engine::waker;
use crate::mutant::{Mutant, is_broken};
use crate::wait_queue::{Key, WaitQueue, exchange, wake_all};

pub(crate) struct Completion<R> {
    state: RefCell<State<R>>,
    home: Home,
}

enum State<R> {
    Pending(Readers),
    Ready(R),
    Shared(Rc<R>),
    Taken,
}

enum Readers {
    /// The one reader of a value that is not shared: no allocation.
    Sole(Option<Waker>),
    /// Apart, because few are shared.
    Many(Box<WaitQueue>),
}

impl<R> Completion<R> {
    pub(crate) fn new() -> Completion<R> {
        Completion { state: RefCell::new(State::Pending(Readers::Sole(None))), home: Home::default() }
    }

    pub(crate) fn is_pending(&self) -> bool {
        matches!(*self.state.borrow(), State::Pending(_))
    }

    /// The sole reader has had its value.
    pub(crate) fn is_taken(&self) -> bool {
        matches!(*self.state.borrow(), State::Taken)
    }

    /// Shows the wakers of those who wait.
    pub(crate) fn readers(&self, show: &mut dyn FnMut(&Waker)) {
        match &*self.state.borrow() {
            State::Pending(Readers::Sole(waker)) => waker.iter().for_each(show),
            State::Pending(Readers::Many(queue)) => queue.waiters().for_each(show),
            State::Ready(_) | State::Shared(_) | State::Taken => {}
        }
    }

    /// Lets many wait from now on.
    pub(crate) fn share(&self) {
        let before = match &mut *self.state.borrow_mut() {
            State::Pending(readers) => mem::replace(readers, Readers::Many(Box::new(WaitQueue::new()))),
            _ => return,
        };
        // The waker of who waited alone: to drop it may be foreign code.
        drop(before);
    }

    /// Sets the value and wakes the readers. The first value stays; a later one is dropped.
    ///
    /// # Panics
    /// When the waker of a reader, one of another executor, panics; the others are woken all the same.
    pub(crate) fn complete(&self, value: R) {
        if !self.is_pending() {
            return;
        }
        let State::Pending(readers) = self.state.replace(State::Ready(value)) else { return };
        match readers {
            Readers::Sole(waker) => waker.into_iter().for_each(Waker::wake),
            Readers::Many(mut queue) => {
                let mut woken = Vec::new();
                queue.take_all(&mut woken);
                wake_all(woken);
            }
        }
    }

    /// The sole reader's poll.
    ///
    /// # Panics
    /// When the value has been taken, or under another loop than the first time.
    pub(crate) fn poll_take(&self, cx: &Context<'_>, what: &str, waits_for: WaitsFor) -> Poll<R> {
        let is_registered = match &mut *self.state.borrow_mut() {
            State::Pending(Readers::Sole(place)) => {
                self.home.check(what);
                waker::exchange_own(place, cx.waker())
            }
            state => match mem::replace(state, State::Taken) {
                State::Ready(value) => return Poll::Ready(value),
                _ => panic!("this {what} was polled after it had given its value"),
            },
        };
        context::waits_for(waits_for);
        if is_registered {
            return Poll::Pending;
        }
        self.register_sole(cx.waker());
        // The value may have come while the waker was cloned.
        self.take().map_or(Poll::Pending, Poll::Ready)
    }

    /// Wakes `waker` on completion, in the place of the sole reader.
    pub(crate) fn register_sole(&self, waker: &Waker) {
        // Cloned before the borrow, and what it displaces is dropped after: both may be foreign code.
        let mut waker = waker.clone();
        if let State::Pending(Readers::Sole(place)) = &mut *self.state.borrow_mut() {
            exchange(place, &mut waker);
        }
    }

    /// The sole reader waits no more: it is not woken.
    pub(crate) fn forget_sole(&self) {
        let waker = match &mut *self.state.borrow_mut() {
            State::Pending(Readers::Sole(place)) => place.take(),
            _ => None,
        };
        drop(waker);
    }

    /// Looks at the value, if it is there and neither taken nor shared. `look` is user code: the value counts as taken meanwhile, and is
    /// put back also when that panics.
    pub(crate) fn inspect<T>(&self, look: impl FnOnce(&R) -> T) -> Option<T> {
        let value = self.take()?;
        let looked = catch_unwind(AssertUnwindSafe(|| look(&value)));
        self.state.replace(State::Ready(value));
        Some(looked.unwrap_or_else(|payload| resume_unwind(payload)))
    }

    /// The value, if it is there and neither taken nor shared.
    pub(crate) fn take(&self) -> Option<R> {
        let mut state = self.state.borrow_mut();
        match mem::replace(&mut *state, State::Taken) {
            State::Ready(value) => Some(value),
            other => {
                *state = other;
                None
            }
        }
    }

    /// The poll of one of many readers. `key` is its place in the queue, which it keeps when it polls again.
    pub(crate) fn poll_shared(&self, cx: &Context<'_>, key: &mut Option<Key>, what: &str) -> Poll<Rc<R>> {
        if let Some(value) = self.shared_value() {
            return Poll::Ready(value);
        }
        self.home.check(what);
        context::waits_for(&dump::SHARED_RESULT);
        self.register_shared(key, cx.waker());
        // As above.
        self.shared_value().map_or(Poll::Pending, Poll::Ready)
    }

    /// The value, if it is there, for one of many readers.
    pub(crate) fn shared_value(&self) -> Option<Rc<R>> {
        if let Some(value) = self.take() {
            *self.state.borrow_mut() = State::Shared(Rc::new(value));
        }
        match &*self.state.borrow() {
            State::Shared(value) => Some(value.clone()),
            _ => None,
        }
    }

    /// Wakes `waker` on completion, behind those who wait already.
    pub(crate) fn register_shared(&self, key: &mut Option<Key>, waker: &Waker) {
        // As above.
        let mut waker = waker.clone();
        if let State::Pending(Readers::Many(queue)) = &mut *self.state.borrow_mut() {
            if is_broken(Mutant::WaiterLosesItsPlace) {
                drop(key.take().and_then(|key| queue.remove(key)));
            }
            queue.register(key, &mut waker);
        }
    }

    /// One of many readers waits no more.
    pub(crate) fn leave(&self, key: Key) {
        let waker = match &mut *self.state.borrow_mut() {
            State::Pending(Readers::Many(queue)) => queue.remove(key),
            _ => None,
        };
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_at_a_value_may_reach_for_it_and_may_panic() {
        let completion = Completion::new();
        completion.complete(1);
        let looked = completion.inspect(|value| {
            completion.complete(2);
            completion.share();
            (*value, completion.take())
        });
        assert_eq!(looked, Some((1, None)));
        assert!(catch_unwind(AssertUnwindSafe(|| completion.inspect(|_| panic!("in the look")))).is_err());
        assert_eq!(completion.take(), Some(1));
    }
}
