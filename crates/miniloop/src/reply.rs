//! One value on its way from one thread to another: the answer of a worker, the result of a task of another loop.
//!
//! ```text
//!            send                     poll
//!  Waiting ---------> Sent(value) ---------> Over
//!     |                                        ^
//!     +---- either side is dropped ------------+
//! ```
//!
//! Each side learns when the other has gone: the receiver instead of waiting for ever, the sender so that it can stop working. A receiver
//! may also ask the sender to stop, and go on waiting for what comes of that. Both sides are awaited with any waker; no user code,
//! destructors included, runs under the lock. A step costs that lock and, if somebody waits, a wake.

use std::mem;
use std::task::{Context, Poll, Waker};

use crate::primitives::{Arc, Mutex, lock};

/// A sender and the receiver of what it sends.
pub(crate) fn reply<T>() -> (Sender<T>, Receiver<T>) {
    let state = Arc::new(Mutex::new(State::Waiting { receiver: None, sender: None, is_stop_asked: false }));
    (Sender(state.clone()), Receiver(state))
}

/// Sends one value. Dropped without, it tells the receiver that none will come.
pub(crate) struct Sender<T>(Arc<Mutex<State<T>>>);

/// Receives one value. Dropped without, it tells the sender that nobody waits.
pub(crate) struct Receiver<T>(Arc<Mutex<State<T>>>);

enum State<T> {
    /// Who is to be woken by the other side's step.
    Waiting {
        receiver: Option<Waker>,
        sender: Option<Waker>,
        /// The receiver would rather have it over.
        is_stop_asked: bool,
    },
    Sent(T),
    Over,
}

impl<T> Sender<T> {
    /// # Errors
    /// The receiver has gone, or has been sent a value. This one comes back.
    pub(crate) fn send(&self, value: T) -> Result<(), T> {
        let mut state = lock(&self.0);
        if !matches!(*state, State::Waiting { .. }) {
            return Err(value);
        }
        let waiting = mem::replace(&mut *state, State::Sent(value));
        drop(state);
        waiting.wake_receiver();
        Ok(())
    }

    /// Whether the receiver has asked to stop. Whoever waits in [`poll_gone`](Sender::poll_gone) is woken when it does.
    pub(crate) fn is_stop_asked(&self) -> bool {
        matches!(*lock(&self.0), State::Waiting { is_stop_asked: true, .. })
    }

    /// Ready once the receiver has gone.
    pub(crate) fn poll_gone(&self, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.0);
        let State::Waiting { sender, .. } = &mut *state else { return Poll::Ready(()) };
        let replaced = sender.replace(waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        if matches!(*state, State::Waiting { .. }) {
            let waiting = mem::replace(&mut *state, State::Over);
            drop(state);
            waiting.wake_receiver();
        }
    }
}

impl<T> Receiver<T> {
    /// Ready with the value, or with `None` when none will come. So also after it has been ready.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Option<T>> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.0);
        if let State::Waiting { receiver, .. } = &mut *state {
            let replaced = receiver.replace(waker);
            drop(state);
            drop(replaced);
            return Poll::Pending;
        }
        let ended = mem::replace(&mut *state, State::Over);
        drop(state);
        match ended {
            State::Sent(value) => Poll::Ready(Some(value)),
            State::Waiting { .. } | State::Over => Poll::Ready(None),
        }
    }

    /// Asks the sender to stop. Whatever comes of that is still received.
    pub(crate) fn ask_stop(&self) {
        let mut state = lock(&self.0);
        let State::Waiting { sender, is_stop_asked, .. } = &mut *state else { return };
        *is_stop_asked = true;
        let waiting = sender.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether there is nothing to wait for.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(*lock(&self.0), State::Waiting { .. })
    }

    /// The value, if it is there. Otherwise tells the sender that nobody waits.
    pub(crate) fn close(&self) -> Option<T> {
        let ended = mem::replace(&mut *lock(&self.0), State::Over);
        match ended {
            State::Sent(value) => return Some(value),
            State::Waiting { sender, receiver, .. } => {
                drop(receiver);
                sender.into_iter().for_each(Waker::wake);
            }
            State::Over => {}
        }
        None
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<T> State<T> {
    fn wake_receiver(self) {
        if let State::Waiting { receiver, sender, .. } = self {
            drop(sender);
            receiver.into_iter().for_each(Waker::wake);
        }
    }
}
