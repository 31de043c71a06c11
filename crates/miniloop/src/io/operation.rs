//! One operation of a buffered reader or writer, as a future.
//!
//! All that it gathers or queues belongs to the reader or writer, so dropping it loses nothing. It counts in the task's budget (O10) also
//! when the stream is not asked: a peer that sends many small records at once must not hold the loop.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::FusedFuture;

use crate::engine::context;
use crate::engine::record::WaitsFor;

/// Takes one step after the other on an `S`, until one is ready.
#[must_use = "futures do nothing unless awaited"]
pub(super) struct Operation<'a, S, F> {
    on: &'a mut S,
    /// What its task waits for, in a few words.
    what: WaitsFor,
    /// `None` once it is done.
    step: Option<F>,
}

impl<'a, S, F> Operation<'a, S, F> {
    pub(super) fn new<T>(on: &'a mut S, what: WaitsFor, step: F) -> Self
    where
        F: FnMut(&mut S, &mut Context<'_>) -> Poll<T>,
    {
        Operation { on, what, step: Some(step) }
    }
}

/// The step is only ever called, never pinned.
impl<S, F> Unpin for Operation<'_, S, F> {}

impl<S, T, F: FnMut(&mut S, &mut Context<'_>) -> Poll<T>> Future for Operation<'_, S, F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = &mut *self;
        let step = this.step.as_mut().expect("a read or write was polled after it was done");
        let polled = context::poll_operation(cx, |cx| step(this.on, cx));
        if polled.is_pending() {
            context::waits_for(this.what);
        } else {
            this.step = None;
        }
        polled
    }
}

impl<S, T, F: FnMut(&mut S, &mut Context<'_>) -> Poll<T>> FusedFuture for Operation<'_, S, F> {
    fn is_terminated(&self) -> bool {
        self.step.is_none()
    }
}
