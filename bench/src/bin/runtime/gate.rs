//! A place where a known number of tasks meet: somebody waits there until all have come. Next: `contenders/mod.rs`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// It wakes through the wakers of std, so it costs every contender the same.
pub(crate) struct Gate {
    missing: Cell<usize>,
    waiting: RefCell<Vec<Waker>>,
}

impl Gate {
    pub(crate) fn of(parties: usize) -> Gate {
        Gate { missing: Cell::new(parties), waiting: RefCell::new(Vec::new()) }
    }

    /// Says that one has come, and tells whether it was the last.
    pub(crate) fn arrive(&self) -> bool {
        self.missing.set(self.missing.get() - 1);
        if self.missing.get() > 0 {
            return false;
        }
        for waker in self.waiting.take() {
            waker.wake();
        }
        true
    }

    /// Waits until all have come.
    pub(crate) async fn all(&self) {
        poll_fn(|cx| {
            if self.missing.get() == 0 {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}
