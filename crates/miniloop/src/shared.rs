//! One result for many readers: what [`Task::shared`](crate::Task::shared) and [`Promise::shared`](crate::Promise::shared) return.
//!
//! asyncio lets everybody await a future; ownership in Rust allows one reader of a value. This is the way to have many, as in
//! `futures::FutureExt::shared`, with the order that asyncio gives: readers go on in the order in which they began to wait.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_core::FusedFuture;

use crate::completion::Completion;
use crate::engine::context;
use crate::engine::job::Job;
use crate::engine::waker;
use crate::handle::CallbackHandle;
use crate::outcome::Outcome;
use crate::wait_queue::Key;

/// One of many readers of a result. Clones wait independently and get the same value.
///
/// # Cancellation
/// Dropping one reader changes nothing for the others. Dropping the last one drops the task or promise, and so cancels it.
///
/// ```
/// miniloop::run(async {
///     let answer = miniloop::spawn(async { 42 }).shared();
///     let again = answer.clone();
///     assert!(matches!(*answer.await, Ok(42)));
///     assert!(matches!(*again.await, Ok(42)));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[must_use = "dropping the last reader cancels the task or promise"]
pub struct Shared<R> {
    source: Rc<dyn Source<R>>,
    /// This reader's place among those who wait.
    key: Option<Key>,
    is_done: bool,
}

/// Where a shared result comes from. Dropping the source cancels it.
pub(crate) trait Source<R> {
    fn completion(&self) -> &Completion<R>;
}

impl<R: 'static> Shared<R> {
    pub(crate) fn new(source: impl Source<R> + 'static) -> Shared<R> {
        source.completion().share();
        Shared { source: Rc::new(source), key: None, is_done: false }
    }

    /// Calls `callback` with the result once it is there, as a job of the running loop: after the readers that wait already, and never
    /// inside this call. Until then the callback holds a reader of its own.
    ///
    /// # Panics
    /// Outside a loop, and when the loop is closed.
    #[doc(alias = "add_done_callback")]
    #[track_caller]
    pub fn on_done<O: Outcome>(&self, callback: impl FnOnce(Rc<R>) -> O + 'static) -> CallbackHandle {
        let core = context::current();
        let mut reader = self.clone();
        let place = Location::caller();
        let word = core.admit(core.must_accept_work(), place, |word| {
            reader.source.completion().register_shared(&mut reader.key, &waker::of(word));
            Job::once(place, move || {
                let value = reader.source.completion().shared_value();
                value.map_or(Ok(std::ops::ControlFlow::Continue(())), |value| callback(value).into_flow())
            })
        });
        if !self.source.completion().is_pending() {
            core.schedule(word);
        }
        CallbackHandle { core, word }
    }
}

impl<R> Clone for Shared<R> {
    fn clone(&self) -> Shared<R> {
        Shared { source: self.source.clone(), key: None, is_done: false }
    }
}

impl<R> Future for Shared<R> {
    type Output = Rc<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Rc<R>> {
        let reader = &mut *self;
        // It may be asked for again and again.
        let polled = context::poll_operation(cx, |cx| reader.source.completion().poll_shared(cx, &mut reader.key, "shared result"));
        reader.is_done = polled.is_ready();
        polled
    }
}

impl<R> FusedFuture for Shared<R> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl<R> Drop for Shared<R> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.source.completion().leave(key);
        }
    }
}

impl<R> fmt::Debug for Shared<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("is_pending", &self.source.completion().is_pending()).finish_non_exhaustive()
    }
}
