//! The owner of a loop: who makes it, turns it and closes it.
//!
//! ```text
//! new ---> Open --- close, drop ---> Closing ---> Closed
//!            run_forever, run_until_complete    turn until something says stop
//!            run_once, run_ready                one poll and one round, for a host with a loop of its own
//! ```

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{GRACE, JOBS_PER_POLL};
use crate::doorbell::Doorbell;
use crate::driver::{Driver, DriverKind};
use crate::engine::alarm::{AT_ONCE, Alarm};
use crate::engine::cancel::Level;
use crate::engine::close;
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::inbox::Inbox;
use crate::engine::job::Job;
use crate::engine::locals::{self, Locals};
use crate::engine::pool::{Pool, PoolSettings};
use crate::engine::registry;
use crate::engine::run_job::skip_unreachable;
use crate::engine::shutdown;
use crate::engine::turn::{self, Running, Wait};
use crate::engine::word::Word;
use crate::error::LoopError;
use crate::handle::LoopHandle;

/// An event loop, owned by the thread that made it.
///
/// Turn it to the end with [`run_until_complete`](EventLoop::run_until_complete) or [`run_forever`](EventLoop::run_forever), or turn it by
/// hand from another program's loop with [`run_once`](EventLoop::run_once). Dropping it closes it.
///
/// # As a guest in another loop
/// A host that waits for descriptors itself watches the loop's one ([`AsFd`]) for readability, level-triggered, and keeps this contract:
/// after every call into miniloop, and before it sleeps, it asks [`next_timeout`](EventLoop::next_timeout), sleeps at most that long, then
/// calls [`run_ready`](EventLoop::run_ready). A host that can only watch descriptors asks for [`timer_fd`](Builder::timer_fd) and calls
/// `run_ready` whenever the descriptor is readable. A host that turns the loop at fixed times, once a frame say, needs neither: what has
/// become due runs with the first `run_ready` after it, and what that makes ready with the next one. That is one step a frame for each
/// task; a host whose tasks move much data calls `run_ready` again while `next_timeout` is zero, for as long as it can spare.
#[doc(alias = "new_event_loop")]
pub struct EventLoop {
    core: Rc<Core>,
    /// The driver's descriptor once more, for [`AsFd`]: the driver itself is behind a cell. `None` once closed, and where there is none.
    pollable: Option<OwnedFd>,
}

/// The settings of a new [`EventLoop`].
///
/// ```
/// let event_loop = miniloop::EventLoop::builder().jobs_per_poll(1).build()?; // asyncio's turn: one round for each poll
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    clock: Clock,
    jobs_per_poll: usize,
    grace: Duration,
    pool: PoolSettings,
    driver: DriverKind,
    has_timer_fd: bool,
    slow_callback: Option<Duration>,
    /// `None`: as the environment says.
    debug: Option<bool>,
}

impl Builder {
    /// Where the loop gets its time from; [`Clock::SYSTEM`] by default.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Builder {
        self.clock = clock.into();
        self
    }

    /// After so many jobs the next round begins with a poll; 64 by default. A round is never cut short. 0 and 1 poll before every round. So
    /// does the round after 64 operations on I/O, which take longer than most jobs.
    pub fn jobs_per_poll(mut self, jobs: usize) -> Builder {
        self.jobs_per_poll = jobs;
        self
    }

    /// How long a task that is cancelled may clean up before it is dropped all the same; 5 s by default.
    pub fn grace(mut self, grace: Duration) -> Builder {
        self.grace = grace;
        self
    }

    /// How many threads the loop has for blocking jobs at most; 32 by default. They start with jobs that find none free and end when they
    /// have had nothing to do for 10 s, so a loop without such jobs has none. 0 counts as 1.
    pub fn blocking_threads(mut self, threads: usize) -> Builder {
        self.pool.threads_max = threads;
        self
    }

    /// How long [`close`](EventLoop::close) waits for the blocking jobs that were submitted; 10 s by default. When the time is up, those
    /// that wait are dropped and those that run are left alone, with a report to [`LoopHandle::on_error`].
    pub fn blocking_grace(mut self, limit: Duration) -> Builder {
        self.pool.grace = limit;
        self
    }

    /// How the loop waits for descriptors; the best that the system has by default.
    ///
    /// ```
    /// use miniloop::{DriverKind, EventLoop};
    ///
    /// let event_loop = EventLoop::builder().driver(DriverKind::Poll).build()?; // as on any Unix
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    pub fn driver(mut self, driver: DriverKind) -> Builder {
        self.driver = driver;
        self
    }

    /// Whether the loop's descriptor ([`AsFd`]) also becomes readable when the next timer is due, and when something is ready: for a host
    /// that can only watch descriptors, and cannot sleep for as long as [`next_timeout`](EventLoop::next_timeout) says. Off by default: it
    /// costs a descriptor (a timerfd), and a system call whenever a host leaves the loop with another deadline ahead.
    ///
    /// # Errors
    /// [`build`](Builder::build) fails with [`Unsupported`](io::ErrorKind::Unsupported) where there is no such descriptor: with
    /// [`DriverKind::Poll`], and on other systems than Linux. It fails with [`InvalidInput`](io::ErrorKind::InvalidInput) when the loop has
    /// a [`VirtualClock`](crate::VirtualClock), whose hours the kernel does not know.
    pub fn timer_fd(mut self, is_wanted: bool) -> Builder {
        self.has_timer_fd = is_wanted;
        self
    }

    /// Reports callbacks and polls that take longer than `limit` and keep everybody else waiting for so long. Off by default, 100 ms in
    /// debug mode. The report ([`ReportKind::Slow`](crate::ReportKind::Slow)) names the job and its place; see [`diag`](crate::diag).
    #[doc(alias = "slow_callback_duration")]
    pub fn slow_callback(mut self, limit: Duration) -> Builder {
        self.slow_callback = Some(limit);
        self
    }

    /// Debug mode: see [`LoopHandle::set_debug`]. By default as the environment variable `MINILOOP_DEBUG` says when the loop is built: on
    /// when it is set and neither empty nor `0`.
    pub fn debug(mut self, is_debug: bool) -> Builder {
        self.debug = Some(is_debug);
        self
    }

    /// Makes the loop.
    ///
    /// # Errors
    /// [`LoopError::Io`] when the system has no descriptors left or lacks what was asked for, or when 4,096 loops are open in this process.
    pub fn build(self) -> Result<EventLoop, LoopError> {
        let inbox = Arc::new(Inbox::new(Doorbell::new()?));
        let mut driver = Driver::new(self.driver)?;
        driver.add_doorbell(inbox.doorbell().as_fd())?;
        let alarm = self.has_timer_fd.then(|| self.alarm(&mut driver)).transpose()?;
        let pollable = driver.pollable().map(|fd| fd.try_clone_to_owned()).transpose()?;
        let id = registry::register(inbox.clone())?;
        let core = Rc::new(Core::new(id, self.clock, self.jobs_per_poll, driver, inbox, Pool::new(self.pool), alarm));
        core.grace.set(self.grace);
        core.probes.set_slow_limit(self.slow_callback);
        core.probes.set_debug(self.debug.unwrap_or_else(|| is_set_in_environment("MINILOOP_DEBUG")));
        context::add_resident(&core);
        Ok(EventLoop { core, pollable })
    }

    /// The alarm of a host, which the loop's own descriptor passes on.
    fn alarm(&self, driver: &mut Driver) -> io::Result<Alarm> {
        if self.clock.as_virtual().is_some() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "`timer_fd` needs the system's clock: no timer follows a virtual one"));
        }
        if driver.pollable().is_none() {
            return Err(no_pollable());
        }
        let alarm = Alarm::new()?;
        // Like the doorbell it ends a wait and wakes nobody.
        driver.add_doorbell(alarm.as_fd())?;
        Ok(alarm)
    }
}

impl EventLoop {
    /// A loop with the system's clock and default settings.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn new() -> Result<EventLoop, LoopError> {
        EventLoop::builder().build()
    }

    /// Settings for a new loop.
    pub fn builder() -> Builder {
        Builder {
            clock: Clock::SYSTEM,
            jobs_per_poll: JOBS_PER_POLL,
            grace: GRACE,
            pool: PoolSettings::default(),
            driver: DriverKind::default(),
            has_timer_fd: false,
            slow_callback: None,
            debug: None,
        }
    }

    /// A handle for callbacks and tasks.
    pub fn handle(&self) -> LoopHandle {
        LoopHandle { core: self.core.clone() }
    }

    /// Runs the loop until `future` is done, and returns its value. The future may borrow from the caller. The round in which it is done
    /// runs to its end; other tasks stay where they are and go on when the loop is run again.
    ///
    /// ```
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let name = String::from("relay");
    /// let len = event_loop.run_until_complete(async { name.len() })?; // borrows `name`
    /// assert_eq!(len, 5);
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Errors
    /// [`LoopError::Stopped`] when `stop` came first. Pass `&mut future` (pinned) to keep a future that is not done.
    /// [`LoopError::Failed`] also when the future is done in the very round in which the error handler breaks: its value is dropped.
    /// [`LoopError::Closed`], [`LoopError::AlreadyRunning`], [`LoopError::Deadlock`] and [`LoopError::Io`] as they say.
    ///
    /// # Panics
    /// When the future panics, at once: the rest of its round stays queued, and the loop can be used again.
    #[track_caller]
    pub fn run_until_complete<F: Future>(&mut self, future: F) -> Result<F::Output, LoopError> {
        let locals = locals::current();
        let running = Running::start(&self.core)?;
        let main = MainSlot::insert(&self.core, locals, Location::caller());
        let value = Cell::new(None);
        let is_done = Cell::new(false);
        let level = Level::new();
        {
            let mut future = pin!(future);
            let mut poll = |waker: &Waker| {
                if is_done.get() {
                    return;
                }
                let poll = || catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(waker))));
                match level.as_job(&self.core, waker, poll).unwrap_or_else(|payload| resume_unwind(payload)) {
                    Poll::Ready(ready) => {
                        value.set(Some(ready));
                        is_done.set(true);
                    }
                    Poll::Pending => skip_unreachable(&self.core, main.word, &level),
                }
            };
            turn::run(&self.core, &mut poll, &is_done)?;
        }
        drop(main);
        drop(running);
        value.into_inner().ok_or(LoopError::Stopped)
    }

    /// Runs the loop until [`LoopHandle::stop`]. The round in which stop is called runs to its end; what that round has scheduled stays
    /// for the next run.
    ///
    /// # Errors
    /// As [`run_until_complete`](EventLoop::run_until_complete), except that being stopped is none.
    pub fn run_forever(&mut self) -> Result<(), LoopError> {
        let _running = Running::start(&self.core)?;
        turn::run(&self.core, &mut |_| (), &Cell::new(false))
    }

    /// One poll, which waits when there is nothing to do, and one round. For hosts and tests that turn the loop by hand.
    ///
    /// While a stop request stands, it does not wait; `run_once` leaves it standing, see [`is_stopping`](EventLoop::is_stopping). On a
    /// virtual clock with nothing to wait for it returns at once.
    ///
    /// # Errors
    /// As [`run_forever`](EventLoop::run_forever).
    pub fn run_once(&mut self) -> Result<(), LoopError> {
        let _running = Running::start(&self.core)?;
        turn::turn(&self.core, Wait::Turn)
    }

    /// The same without ever waiting: what is ready takes one step. [`next_timeout`](EventLoop::next_timeout) is zero then if there is
    /// another to take.
    ///
    /// # Errors
    /// As [`run_forever`](EventLoop::run_forever).
    pub fn run_ready(&mut self) -> Result<(), LoopError> {
        let _running = Running::start(&self.core)?;
        turn::turn(&self.core, Wait::No)
    }

    /// Whether somebody called [`LoopHandle::stop`] since the last `run_forever` or `run_until_complete`, which take the request with them.
    pub fn is_stopping(&self) -> bool {
        self.core.is_stopping.get()
    }

    /// How long a host may sleep before it must turn the loop again, unless the descriptor becomes readable first: zero when something is
    /// ready or sent by another thread, the time to the next timer, or `None` for as long as it takes.
    pub fn next_timeout(&self) -> Option<Duration> {
        match self.core.next_turn() {
            Some(AT_ONCE) => Some(Duration::ZERO),
            deadline => deadline.map(|deadline| deadline - self.core.now()),
        }
    }

    /// The descriptor that [`AsFd`] gives.
    ///
    /// ```
    /// use miniloop::{DriverKind, EventLoop};
    ///
    /// let event_loop = EventLoop::builder().driver(DriverKind::Poll).build()?;
    /// assert!(event_loop.try_as_fd().is_err(), "a host can only turn such a loop at fixed times");
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Errors
    /// [`LoopError::Closed`], and [`Unsupported`](io::ErrorKind::Unsupported) on [`DriverKind::Poll`]: `poll(2)` has no descriptor that
    /// stands for all that a loop watches.
    pub fn try_as_fd(&self) -> Result<BorrowedFd<'_>, LoopError> {
        match &self.pollable {
            Some(fd) => Ok(fd.as_fd()),
            None if self.core.is_closed() => Err(LoopError::Closed),
            None => Err(no_pollable().into()),
        }
    }

    /// Cancels all tasks, newest first, and turns the loop until they have ended: it waits for their clean-up, for at most `grace`. What
    /// has not ended by then is aborted and reported ([`ReportKind::GraceExceeded`](crate::ReportKind::GraceExceeded)). Tasks that are
    /// spawned meanwhile are cancelled too. Then it goes on turning until the [blocking jobs](crate::spawn_blocking()) that were submitted
    /// are done, while the grace lasts; [`close`](EventLoop::close) sees to the rest. Completion callbacks of what has ended run. Other
    /// callbacks and timers stay, and a stop request is taken back.
    ///
    /// A virtual clock jumps to the end of the grace like to any deadline; one that is moved by hand stands still, so there only what needs
    /// no time is waited for.
    ///
    /// # Errors
    /// As [`run_forever`](EventLoop::run_forever).
    pub fn shutdown(&mut self, grace: Duration) -> Result<(), LoopError> {
        let core = &self.core;
        let _running = Running::start(core)?;
        shutdown::shutdown(core, grace)
    }

    /// Closes the loop: messages from other threads are refused, tasks are dropped, newest spawned first, then callbacks and timers; what
    /// failed in that is reported. Then it waits for the [blocking jobs](crate::spawn_blocking) that were submitted, up to a
    /// [limit](Builder::blocking_grace). Closing again does nothing. A panic in a destructor is reported and hurts nobody else.
    ///
    /// ```
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// event_loop.close();
    /// event_loop.close();
    /// assert!(matches!(event_loop.run_once(), Err(miniloop::LoopError::Closed)));
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    pub fn close(&mut self) {
        close::close(&self.core);
        self.pollable = None;
    }
}

impl AsFd for EventLoop {
    /// A descriptor that is readable when the loop has I/O or messages from other threads to handle; with [`Builder::timer_fd`] also when
    /// the next timer is due or something is ready. Never read it: [`run_ready`](EventLoop::run_ready) makes it silent. It may be readable
    /// although there is nothing to do (any more).
    ///
    /// # Panics
    /// When the loop has been closed, and on [`DriverKind::Poll`], which has none: [`try_as_fd`](EventLoop::try_as_fd) says so instead.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.try_as_fd().unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for EventLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The last says how many levels and catch points have a place in the tree of cancel requests.
        let cancel_nodes = self.core.cancels.try_borrow().map_or(0, |tree| tree.len());
        f.debug_struct("EventLoop")
            .field("loop", &self.core.number)
            .field("phase", &self.core.phase.get())
            .field("cancel_nodes", &cancel_nodes)
            .finish_non_exhaustive()
    }
}

fn no_pollable() -> io::Error {
    let text = "poll(2) has no descriptor that stands for all that a loop watches: a host that waits by itself needs `DriverKind::Epoll`";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

fn is_set_in_environment(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// The slot of a future that stays in the caller's frame. Dropping it, also by a panic, makes its wakers stale.
struct MainSlot<'a> {
    core: &'a Core,
    word: Word,
}

impl<'a> MainSlot<'a> {
    fn insert(core: &'a Core, locals: Locals, place: &'static Location<'static>) -> MainSlot<'a> {
        let _locals = locals::enter(locals);
        let word = core.insert(Job::Main(Rc::new(core.record(place))));
        core.schedule(word);
        MainSlot { core, word }
    }
}

impl Drop for MainSlot<'_> {
    fn drop(&mut self) {
        let slot = self.core.remove(self.word);
        self.core.drop_safely(slot, "task-local value", Location::caller());
    }
}

/// Runs `main` on a new loop: asyncio's `run`. When it is done, the tasks that are left are cancelled and get 5 s to clean up; then the
/// loop is closed.
///
/// ```
/// let answer = miniloop::run(async { 42 })?;
/// assert_eq!(answer, 42);
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// When `main` returns a `Result`, two `?` lead to its value: the first is about the loop, the second about `main`.
///
/// ```
/// use std::error::Error;
///
/// async fn answer() -> Result<i32, Box<dyn Error>> {
///     Ok("42".parse()?)
/// }
///
/// fn main() -> Result<(), Box<dyn Error>> {
///     assert_eq!(miniloop::run(answer())??, 42);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// As [`EventLoop::run_until_complete`].
///
/// # Panics
/// When `main` panics.
#[track_caller]
pub fn run<F: Future>(main: F) -> Result<F::Output, LoopError> {
    let mut event_loop = EventLoop::new()?;
    let value = event_loop.run_until_complete(main)?;
    event_loop.shutdown(GRACE)?;
    event_loop.close();
    Ok(value)
}
