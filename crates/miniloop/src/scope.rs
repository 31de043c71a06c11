//! Limits: `timeout`, `scope` and `shield`.
//!
//! A body with a limit is a level (`engine/cancel.rs`): when the time is up, or somebody cancels the scope, it is asked to stop. The catch
//! points inside clean up first, and the body is dropped once none is left. Without any it is dropped at once, after the poll that it is
//! given in any case: a value that is ready wins.
//!
//! Cost: a `timeout` is a timer and two words, and nothing is allocated; a scope is one allocation.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::FusedFuture;
use pin_project_lite::pin_project;

use crate::catch::Cancelled;
use crate::engine::cancel::{Level, Point};
use crate::engine::cancel_tree::CancelReason;
use crate::engine::context;
use crate::engine::core::Core;
use crate::instant::Instant;
use crate::time::{Sleep, sleep, sleep_until};

/// Awaits `future` for at most `limit`, counted from this call.
///
/// The future is polled before the clock is asked, so a value that is ready in the poll in which the time runs out is returned. A zero
/// limit lets the future be polled until it has given way once.
///
/// ```
/// use miniloop::{Elapsed, sleep, timeout};
/// use std::time::Duration;
///
/// miniloop::run(async {
///     assert_eq!(timeout(Duration::from_secs(5), async { 42 }).await, Ok(42));
///     assert_eq!(timeout(Duration::from_millis(1), sleep(Duration::MAX)).await, Err(Elapsed));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// When the time is up, [catch points](crate::catch) inside `future` clean up before it is dropped, within the loop's
/// [grace](crate::Builder::grace). A value that the future returns meanwhile is returned; so what `timeout(d, catch(f).cleanup(c))` says
/// when it was late is `Ok(Err(cancelled))`, with [`CancelReason::Deadline`]. [`Stopped`] takes both apart with two `?`.
///
/// # Errors
/// [`Elapsed`] when the time is up; the future has been dropped. Where errors are [`io::Error`]s `?` makes it a `TimedOut`.
///
/// # Cancellation
/// Dropping it drops the future.
///
/// # Panics
/// Outside a loop, and when polled under another loop.
#[doc(alias = "wait_for")]
#[track_caller]
pub fn timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timeout { level: Level::new(), limit: sleep(limit), has_elapsed: false, body: Some(future) }
}

pin_project! {
    /// The future of [`timeout`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F> {
        // Goes before the body: what that held answers to the level above.
        level: Level,
        limit: Sleep,
        has_elapsed: bool,
        #[pin]
        body: Option<F>,
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        context::check_home(this.limit.core().number, "time limit");
        let body = this.body.as_mut().as_pin_mut().expect("this `timeout` was polled after it had given its value");
        let polled = {
            let _inside = this.level.enter(this.limit.core(), cx.waker());
            body.poll(cx)
        };
        let ended = match polled {
            Poll::Ready(value) => Ok(value),
            Poll::Pending => {
                if !*this.has_elapsed && this.limit.poll_as_limit(cx).is_ready() {
                    *this.has_elapsed = true;
                    let core = this.limit.core();
                    this.level.request(core, CancelReason::Deadline, core.now() + core.grace.get());
                }
                if !must_end(this.level, this.limit.core(), "timeout", this.limit.place()) {
                    return Poll::Pending;
                }
                Err(Elapsed)
            }
        };
        this.level.remove();
        this.body.set(None);
        Poll::Ready(ended)
    }
}

impl<F: Future> FusedFuture for Timeout<F> {
    fn is_terminated(&self) -> bool {
        self.body.is_none()
    }
}

impl<F> fmt::Debug for Timeout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("deadline", &self.limit.deadline())
            .field("is_terminated", &self.body.is_none())
            .finish_non_exhaustive()
    }
}

/// Whether a body that is pending is to be dropped.
fn must_end(level: &Level, core: &Core, what: &str, place: &'static Location<'static>) -> bool {
    let must_end = level.verdict(core).must_drop(true);
    if must_end {
        level.report_if_out_of_grace(core, || what.to_owned(), place);
    }
    must_end
}

/// The time given to [`timeout`] is up. You asked for a limit; compare [`Cancelled`] and
/// [`TaskError::is_cancelled`](crate::TaskError::is_cancelled), where somebody stopped you.
#[doc(alias = "TimeoutError")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit was reached")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    /// [`TimedOut`](io::ErrorKind::TimedOut).
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}

/// Why a [`scope`] ended without a value. Made of [`Elapsed`] and [`Cancelled`] by `?`, so that one error type serves both.
///
/// ```
/// use miniloop::{Stopped, catch, sleep, timeout};
/// use std::time::Duration;
///
/// async fn polite() -> Result<(), Stopped> {
///     let pause = catch(sleep(Duration::MAX)).cleanup(async |_| println!("goodbye"));
///     Ok(timeout(Duration::from_millis(1), pause).await??)
/// }
///
/// assert!(miniloop::run(polite())?.is_err());
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Its deadline passed.
    Elapsed,
    /// It was cancelled.
    Cancelled(Cancelled),
}

impl From<Elapsed> for Stopped {
    fn from(_: Elapsed) -> Stopped {
        Stopped::Elapsed
    }
}

impl From<Cancelled> for Stopped {
    fn from(cancelled: Cancelled) -> Stopped {
        Stopped::Cancelled(cancelled)
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Elapsed => Elapsed.fmt(f),
            Stopped::Cancelled(cancelled) => cancelled.fmt(f),
        }
    }
}

impl std::error::Error for Stopped {}

/// Runs `body` in a scope that can be cancelled, has a deadline that can be moved, and may be shielded from outside. Trio's cancel scope.
///
/// ```
/// use miniloop::{ScopeOptions, Stopped, scope, sleep};
/// use std::time::Duration;
///
/// miniloop::run(async {
///     let options = ScopeOptions::new().timeout(Duration::from_millis(1));
///     let read = scope(options, async |scope| {
///         scope.set_deadline(Some(miniloop::now() + Duration::from_millis(2))); // somebody is alive: more time
///         sleep(Duration::MAX).await;
///     });
///     assert_eq!(read.await, Err(Stopped::Elapsed));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// As with [`timeout`], a value that the body returns counts whatever was asked, and catch points inside clean up first.
///
/// The future is an `async` block around the body, so it has no name: box it to keep it in a struct, and `fuse` it for a `select!`.
///
/// # Errors
/// [`Stopped::Elapsed`] after the deadline, [`Stopped::Cancelled`] after [`Scope::cancel`]; what came first counts. The body has been
/// dropped.
///
/// # Cancellation
/// Dropping it drops the body.
///
/// # Panics
/// Outside a loop, and when polled under another loop.
#[doc(alias = "CancelScope")]
#[track_caller]
pub fn scope<T, B: AsyncFnOnce(&Scope) -> T>(options: ScopeOptions, body: B) -> impl Future<Output = Result<T, Stopped>> {
    let scope = Scope(Rc::new(State {
        core: context::current(),
        level: Level::new(),
        deadline: Cell::new(options.deadline),
        is_deadline_ahead: Cell::new(true),
        grace: options.grace,
        stopped: Cell::new(None),
        is_over: Cell::new(false),
        waker: RefCell::new(None),
        place: Location::caller(),
    }));
    async move {
        let body = body(&scope);
        Scoped { over: Over(scope.clone()), shield: options.is_shielded.then(Point::shield), timer: None, body: Some(body) }.await
    }
}

/// What a new [`scope`] is like. By default it has no deadline, the loop's grace and no shield.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct ScopeOptions {
    deadline: Option<Instant>,
    grace: Option<Duration>,
    is_shielded: bool,
}

impl ScopeOptions {
    /// The default.
    pub fn new() -> ScopeOptions {
        ScopeOptions::default()
    }

    /// The scope is to end when the loop's clock shows this.
    pub fn deadline(self, deadline: Instant) -> ScopeOptions {
        ScopeOptions { deadline: Some(deadline), ..self }
    }

    /// The same, counted from now.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn timeout(self, limit: Duration) -> ScopeOptions {
        self.deadline(context::current().now() + limit)
    }

    /// How long those inside may clean up when the scope is to end.
    pub fn grace(self, grace: Duration) -> ScopeOptions {
        ScopeOptions { grace: Some(grace), ..self }
    }

    /// Whether requests from outside have to wait for the scope to end, as with [`shield`]. Its own deadline and [`Scope::cancel`] work.
    pub fn shield(self, is_shielded: bool) -> ScopeOptions {
        ScopeOptions { is_shielded, ..self }
    }
}

/// A running [`scope`], to be cancelled from anywhere on its thread. Clones are handles of the same scope; once it has ended they do
/// nothing.
#[derive(Clone)]
pub struct Scope(Rc<State>);

struct State {
    core: Rc<Core>,
    level: Level,
    deadline: Cell<Option<Instant>>,
    /// It has not asked anybody to stop yet: one that did and was absorbed does not ask again.
    is_deadline_ahead: Cell<bool>,
    grace: Option<Duration>,
    /// What was asked first.
    stopped: Cell<Option<Stopped>>,
    is_over: Cell<bool>,
    /// Of the last poll.
    waker: RefCell<Option<Waker>>,
    place: &'static Location<'static>,
}

impl Scope {
    /// Asks the body to stop. Again, or after the deadline, it changes nothing.
    pub fn cancel(&self) {
        self.stop(Stopped::Cancelled(Cancelled::new(CancelReason::Cancelled)), CancelReason::Cancelled);
        self.wake();
    }

    /// Moves the deadline, or removes it. Nothing changes when the scope has been asked to stop already: it may be cleaning up.
    #[doc(alias = "reschedule")]
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.0.deadline.set(deadline);
        self.0.is_deadline_ahead.set(true);
        // Its next poll sets the timer.
        self.wake();
    }

    /// When it is to end.
    #[doc(alias = "when")]
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline.get()
    }

    /// Whether it was cancelled or its deadline has passed, and neither has been [absorbed](crate::Cleanup::absorb) since.
    pub fn is_cancel_requested(&self) -> bool {
        self.0.level.is_requested(&self.0.core)
    }

    fn stop(&self, stopped: Stopped, reason: CancelReason) {
        let state = &*self.0;
        if !state.is_over.get() && !self.is_cancel_requested() {
            state.stopped.set(Some(stopped));
            let grace = state.grace.unwrap_or(state.core.grace.get());
            state.level.request(&state.core, reason, state.core.now() + grace);
        }
    }

    fn wake(&self) {
        let waker = self.0.waker.take();
        waker.into_iter().for_each(|waker| self.0.core.wake_safely(waker));
    }

    fn keep_waker(&self, waker: &Waker) {
        if !self.0.waker.borrow().as_ref().is_some_and(|present| present.will_wake(waker)) {
            // Cloned before the borrow, and what it displaces is dropped after: both may be foreign code.
            let waker = Some(waker.clone());
            drop(self.0.waker.replace(waker));
        }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("deadline", &self.deadline())
            .field("is_cancel_requested", &self.is_cancel_requested())
            .finish_non_exhaustive()
    }
}

/// Ends the scope for its handles.
struct Over(Scope);

impl Over {
    fn end(&self) {
        self.0.0.is_over.set(true);
        self.0.0.level.remove();
        drop(self.0.0.waker.take());
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        self.end();
    }
}

pin_project! {
    struct Scoped<F> {
        // These go before the body: what that held answers to the level above.
        over: Over,
        shield: Option<Point>,
        // Of the deadline that it was set for.
        timer: Option<Sleep>,
        #[pin]
        body: Option<F>,
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = Result<F::Output, Stopped>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (scope, state) = (&this.over.0, &*this.over.0.0);
        context::check_home(state.core.number, "scope");
        let body = this.body.as_mut().as_pin_mut().expect("this scope was polled after it had given its value");
        scope.keep_waker(cx.waker());
        let inside_shield = this.shield.as_ref().and_then(|shield| shield.enter(cx.waker()));
        let polled = {
            let _inside = state.level.enter(&state.core, cx.waker());
            body.poll(cx)
        };
        let ended = match polled {
            Poll::Ready(value) => Ok(value),
            Poll::Pending => {
                let deadline = state.deadline.get().filter(|_| state.is_deadline_ahead.get());
                if !scope.is_cancel_requested() && poll_deadline(this.timer, deadline, cx) {
                    state.is_deadline_ahead.set(false);
                    scope.stop(Stopped::Elapsed, CancelReason::Deadline);
                }
                if !must_end(&state.level, &state.core, "scope", state.place) {
                    return Poll::Pending;
                }
                Err(state.stopped.get().unwrap_or(Stopped::Elapsed))
            }
        };
        drop(inside_shield);
        this.over.end();
        *this.timer = None;
        *this.shield = None;
        this.body.set(None);
        Poll::Ready(ended)
    }
}

/// Whether the deadline has passed. The timer follows it when it was moved.
fn poll_deadline(timer: &mut Option<Sleep>, deadline: Option<Instant>, cx: &mut Context<'_>) -> bool {
    if timer.as_ref().and_then(Sleep::deadline) != deadline {
        *timer = deadline.map(sleep_until);
    }
    timer.as_mut().is_some_and(|timer| timer.poll_as_limit(cx).is_ready())
}

/// Keeps requests to stop away from `future`: whoever is asked outside waits until it is done, though no longer than the grace of the
/// request. Time limits and scopes inside it work.
///
/// It holds the waiter, too. To let work go on while its waiter is stopped, spawn it: a task is stopped by its own handle only.
///
/// ```
/// use miniloop::{shield, sleep, spawn, yield_now};
/// use std::time::Duration;
///
/// miniloop::run(async {
///     let task = spawn(async {
///         shield(sleep(Duration::from_millis(1))).await; // half a write to disk is worse than none
///         "written"
///     });
///     yield_now().await;
///     task.cancel();
///     assert_eq!(task.await.unwrap(), "written");
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// Outside any task it is as if `shield` were not there.
///
/// # Cancellation
/// Dropping it drops the future: no shield helps against `select!`, [`Task::abort`](crate::Task::abort) or the end of a grace.
pub fn shield<F: Future>(future: F) -> Shield<F> {
    Shield { point: Point::shield(), body: Some(future) }
}

pin_project! {
    /// The future of [`shield`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct Shield<F> {
        // Goes before the body: what that held answers to the level above.
        point: Point,
        #[pin]
        body: Option<F>,
    }
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        let body = this.body.as_mut().as_pin_mut().expect("this shield was polled after it had given its value");
        let inside = this.point.enter(cx.waker());
        let polled = body.poll(cx);
        drop(inside);
        if polled.is_ready() {
            this.point.remove();
            this.body.set(None);
        }
        polled
    }
}

impl<F: Future> FusedFuture for Shield<F> {
    fn is_terminated(&self) -> bool {
        self.body.is_none()
    }
}

impl<F> fmt::Debug for Shield<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shield").field("is_terminated", &self.body.is_none()).finish_non_exhaustive()
    }
}
