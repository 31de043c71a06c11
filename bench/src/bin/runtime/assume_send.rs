//! A future that is said to be `Send`, for contenders that ask for it though their tasks stay on one thread.
//!
//! tokio and async-executor have a way for futures that are not `Send` (`LocalSet`, `LocalExecutor`), which costs them something that
//! their users do not pay for futures that are. Programs share state through `Rc` and `Cell`, so that nobody pays for atomics that a
//! contender does not need; with this, those two take the fast way nevertheless. It must know no contender. Next: `gate.rs`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that never leaves the thread on which it was made.
pub(crate) struct AssumeSend<F>(F);

impl<F> AssumeSend<F> {
    /// Only for a runtime that runs on the thread of the caller and on no other, which both users are built as: a current-thread
    /// runtime, and an executor that one thread knows.
    pub(crate) fn new(future: F) -> AssumeSend<F> {
        AssumeSend(future)
    }
}

// SAFETY: what it is sent to is the queue of a runtime that polls and drops its tasks on the thread that has spawned them; see `new`.
unsafe impl<F> Send for AssumeSend<F> {}

impl<F: Future> Future for AssumeSend<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the field is pinned as long as the whole is: nothing moves out of it, and there is no `Drop` and no `Unpin` of its own.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }.poll(cx)
    }
}
