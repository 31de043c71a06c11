//! A future in the place where it is polled and dropped: the inside of a task, and of a member of a group.
//!
//! Its owner stands in an `Rc`, which those share who poll it and who wait for its result, so the future is in a cell. Panics end here, and
//! are handed to the owner. This file is listed for `unsafe`: a cell that is pinned pins its future.

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub(crate) struct FutureCell<F> {
    /// `None` once it has been dropped.
    future: RefCell<Option<F>>,
}

impl<F: Future> FutureCell<F> {
    pub(crate) fn new(future: Option<F>) -> FutureCell<F> {
        FutureCell { future: RefCell::new(future) }
    }

    /// Polls the future; an error is what it panicked with. One that has been dropped is pending.
    pub(crate) fn poll(self: Pin<&Self>, waker: &Waker) -> Poll<Result<F::Output, Box<dyn Any + Send>>> {
        let mut future = self.get_ref().future.borrow_mut();
        let Some(future) = future.as_mut() else { return Poll::Pending };
        // SAFETY: the future stands inside the cell, which is pinned, and is `Unpin` only if the future is. The field is private to this
        // file, where the only thing done to it besides this is to drop it in place.
        let future = unsafe { Pin::new_unchecked(future) };
        match catch_unwind(AssertUnwindSafe(|| future.poll(&mut Context::from_waker(waker)))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    }

    /// Drops the future where it is.
    ///
    /// # Errors
    /// What its destructor panicked with; it is gone all the same.
    pub(crate) fn drop_in_place(&self) -> Result<(), Box<dyn Any + Send>> {
        catch_unwind(AssertUnwindSafe(|| *self.future.borrow_mut() = None))
    }
}
