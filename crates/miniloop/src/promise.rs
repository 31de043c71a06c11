//! A future that a callback can set: asyncio's `Future`, as a pair.
//!
//! asyncio checks at run time that a future is set once and read by those who may. A pair lets ownership say it: the [`Resolver`] is used
//! up by setting, so setting twice does not compile, and the [`Promise`] is the only reader until it is [shared](Promise::shared).
//! Dropping the resolver answers the reader with an error instead of leaving it to wait for ever; dropping the promise tells the resolver
//! that nobody waits.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug};
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
use crate::report::{Report, ReportKind, log_error};
use crate::shared::{Shared, Source};
use crate::wait_queue::{Key, WaitQueue, wake_all};

/// Makes a result that one side sets and the other side awaits.
///
/// ```
/// use miniloop::{Abandoned, LoopHandle, promise};
/// use std::time::Duration;
///
/// miniloop::run(async {
///     let (resolver, promise) = promise::<_, Abandoned>();
///     LoopHandle::current().call_later(Duration::from_millis(1), move || resolver.set_result("ready"));
///     assert_eq!(promise.await, Ok("ready"));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[doc(alias = "Future")]
#[doc(alias = "create_future")]
#[track_caller]
pub fn promise<T, E: From<Abandoned> + Debug>() -> (Resolver<T, E>, Promise<T, E>) {
    let state = Rc::new(State {
        completion: Completion::new(),
        is_cancelled: Cell::new(false),
        on_cancel: RefCell::new(WaitQueue::new()),
        is_abandoned: Cell::new(false),
        functions: Functions { abandoned: |abandoned| E::from(abandoned), describe: |error| format!("{error:?}") },
        place: Location::caller(),
    });
    (Resolver { state: Some(state.clone()) }, Promise { state })
}

/// Why a promise was not kept: its resolver was dropped unset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandoned;

impl fmt::Display for Abandoned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the resolver of this promise was dropped without setting it")
    }
}

impl std::error::Error for Abandoned {}

struct State<T, E> {
    completion: Completion<Result<T, E>>,
    is_cancelled: Cell<bool>,
    /// The resolver's side, waiting for the cancel.
    on_cancel: RefCell<WaitQueue>,
    /// The error is only that nobody set anything: not worth a report if it is never read.
    is_abandoned: Cell<bool>,
    functions: Functions<E>,
    place: &'static Location<'static>,
}

/// What can be done with an error whose type is known where the pair is made, so that the pair itself needs no bounds.
struct Functions<E> {
    abandoned: fn(Abandoned) -> E,
    describe: fn(&E) -> String,
}

/// The side of a [`promise`] that sets the result.
pub struct Resolver<T, E> {
    /// `None` once it has been used.
    state: Option<Rc<State<T, E>>>,
}

impl<T, E> Resolver<T, E> {
    /// Keeps the promise. Does nothing when nobody waits for it any more.
    #[doc(alias = "set_result_unless_cancelled")]
    pub fn set_result(mut self, value: T) {
        self.set(Ok(value));
    }

    /// Breaks it with an error. An error that is set and never read is reported.
    #[doc(alias = "set_exception")]
    pub fn set_error(mut self, error: E) {
        self.set(Err(error));
    }

    /// Whether the promise has been dropped: the result would reach nobody.
    pub fn is_cancelled(&self) -> bool {
        self.state.as_ref().is_none_or(|state| state.is_cancelled.get())
    }

    /// Waits until the promise is dropped: for whoever works for it.
    ///
    /// ```
    /// use miniloop::{Abandoned, promise, spawn};
    ///
    /// miniloop::run(async {
    ///     let (resolver, promise) = promise::<i32, Abandoned>();
    ///     let work = spawn(async move { resolver.cancelled().await }); // beside the work: in a `select!`, say
    ///     drop(promise);
    ///     work.await.unwrap();
    /// })?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Cancellation
    /// Dropping the wait loses nothing.
    pub async fn cancelled(&self) {
        if let Some(state) = &self.state {
            CancelWait { state, key: None }.await;
        }
    }

    fn set(&mut self, result: Result<T, E>) {
        let Some(state) = self.state.take() else { return };
        if !state.is_cancelled.get() {
            state.completion.complete(result);
        }
    }
}

/// A wait for the end of the other side.
struct CancelWait<'a, T, E> {
    state: &'a State<T, E>,
    key: Option<Key>,
}

impl<T, E> Future for CancelWait<'_, T, E> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let wait = &mut *self;
        if wait.state.is_cancelled.get() {
            return context::poll_at_once(cx);
        }
        context::waits_for(&"the end of a promise");
        // Cloned before the borrow, and what it displaces is dropped after: both may be foreign code.
        let mut waker = cx.waker().clone();
        if wait.state.is_cancelled.get() {
            return Poll::Ready(());
        }
        wait.state.on_cancel.borrow_mut().register(&mut wait.key, &mut waker);
        Poll::Pending
    }
}

impl<T, E> Drop for CancelWait<'_, T, E> {
    fn drop(&mut self) {
        let waker = self.key.and_then(|key| self.state.on_cancel.borrow_mut().remove(key));
        drop(waker);
    }
}

impl<T, E> Drop for Resolver<T, E> {
    fn drop(&mut self) {
        if let Some(state) = self.state.take()
            && !state.is_cancelled.get()
        {
            state.is_abandoned.set(true);
            state.completion.complete(Err((state.functions.abandoned)(Abandoned)));
        }
    }
}

impl<T, E> Debug for Resolver<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

/// The side of a [`promise`] that waits for the result.
///
/// # Cancellation
/// Dropping it cancels: the resolver sees [`is_cancelled`](Resolver::is_cancelled), and setting does nothing.
///
/// # Panics
/// When polled under another loop than the first time, or again after it has given its result.
#[must_use = "a promise does nothing unless awaited, and dropping it cancels it"]
pub struct Promise<T, E> {
    state: Rc<State<T, E>>,
}

impl<T: 'static, E: 'static> Promise<T, E> {
    /// Calls `callback` with the result once it is there, as a job of the running loop, never inside this call. Cancelling the handle
    /// cancels the promise.
    ///
    /// # Panics
    /// Outside a loop, and when the loop is closed.
    #[doc(alias = "add_done_callback")]
    #[track_caller]
    pub fn on_done<O: Outcome>(self, callback: impl FnOnce(Result<T, E>) -> O + 'static) -> CallbackHandle {
        let core = context::current();
        let state = self.state.clone();
        let take = move || {
            let result = self.state.completion.take();
            result.map_or(Ok(std::ops::ControlFlow::Continue(())), |result| callback(result).into_flow())
        };
        let word = core.admit(core.must_accept_work(), Location::caller(), |_| Job::once(Location::caller(), take));
        state.completion.register_sole(&waker::of(word));
        if !state.completion.is_pending() {
            core.schedule(word);
        }
        CallbackHandle { core, word }
    }

    /// Lets many wait for the result, which they get behind an `Rc`.
    pub fn shared(self) -> Shared<Result<T, E>> {
        Shared::new(self)
    }
}

impl<T, E> Promise<T, E> {
    /// Whether the result is there.
    #[doc(alias = "done")]
    pub fn is_done(&self) -> bool {
        !self.state.completion.is_pending()
    }
}

impl<T, E> Future for Promise<T, E> {
    type Output = Result<T, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        self.state.completion.poll_take(cx, "promise", &"a promise")
    }
}

impl<T, E> FusedFuture for Promise<T, E> {
    fn is_terminated(&self) -> bool {
        self.state.completion.is_taken()
    }
}

impl<T, E> Source<Result<T, E>> for Promise<T, E> {
    fn completion(&self) -> &Completion<Result<T, E>> {
        &self.state.completion
    }
}

impl<T, E> Drop for Promise<T, E> {
    fn drop(&mut self) {
        let state = &self.state;
        state.is_cancelled.set(true);
        state.completion.forget_sole();
        let mut waiting = Vec::new();
        state.on_cancel.borrow_mut().take_all(&mut waiting);
        wake_all(waiting);
        if let Some(Err(error)) = state.completion.take()
            && !state.is_abandoned.get()
        {
            let report = Report::new(ReportKind::Error, "promise".to_owned(), state.place, (state.functions.describe)(&error));
            match context::try_current() {
                Some(core) => core.report(report),
                None => log_error(&report.to_string()),
            }
        }
    }
}

impl<T, E> Debug for Promise<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}
