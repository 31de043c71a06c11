//! Recurring jobs: named async functions that run again and again, each at most once at a time.
//!
//! Every job is a task of the scheduler's that waits for the next tick and then spawns the run as a task of its own, so that a run that
//! panics, fails or hangs is seen by name and hurts neither its successors nor other jobs. For a plain callback,
//! [`LoopHandle::call_every`](crate::LoopHandle::call_every) is enough.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::engine::context;
use crate::engine::core::Core;
use crate::instant::Instant;
use crate::interval::{Interval, interval_at};
use crate::outcome::{Failure, Outcome};
use crate::report::Report;
use crate::task::{Task, spawn_on};
use crate::task_cell::settle;

/// Owns recurring jobs. Dropping it cancels them; [`stop`](Scheduler::stop) lets those that run come to their end.
///
/// ```
/// use miniloop::schedule::Scheduler;
/// use miniloop::{EventLoop, VirtualClock, sleep};
/// use std::time::Duration;
///
/// let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build()?;
/// event_loop.run_until_complete(async {
///     let scheduler = Scheduler::new();
///     let sweep = scheduler.every("sweep", Duration::from_secs(60), || async { println!("sweeping") });
///     sleep(Duration::from_secs(150)).await;
///     assert_eq!(sweep.statistics().runs, 2);
///     scheduler.stop().await;
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Default)]
pub struct Scheduler {
    jobs: RefCell<Vec<(Rc<State>, Task<()>)>>,
}

impl Scheduler {
    /// A scheduler without jobs.
    pub fn new() -> Scheduler {
        Scheduler::default()
    }

    /// Runs `job` every `period`, for the first time after one period. The runs stand on a grid; one that takes longer than the period is
    /// followed at once by the next, and the ticks in between are skipped and counted.
    ///
    /// A run that returns an error or panics is reported to [`on_error`](crate::LoopHandle::on_error), and the job goes on. One that
    /// returns [`Break`](ControlFlow::Break) ends the job.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn every<Fut: Future<Output: Outcome> + 'static>(
        &self,
        name: impl Into<String>,
        period: Duration,
        job: impl FnMut() -> Fut + 'static,
    ) -> RecurringJob {
        let core = context::current();
        let ticks = interval_at(core.now() + period, period);
        self.add(core, name.into(), ticks, job, Location::caller())
    }

    /// Runs `job` again and again, `pause` after the end of its last run.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn after_each<Fut: Future<Output: Outcome> + 'static>(
        &self,
        name: impl Into<String>,
        pause: Duration,
        job: impl FnMut() -> Fut + 'static,
    ) -> RecurringJob {
        self.add(context::current(), name.into(), Interval::fixed_delay(pause), job, Location::caller())
    }

    fn add<Fut: Future<Output: Outcome> + 'static>(
        &self,
        core: Rc<Core>,
        name: String,
        ticks: Interval,
        job: impl FnMut() -> Fut + 'static,
        place: &'static Location<'static>,
    ) -> RecurringJob {
        let state = Rc::new(State {
            core: core.clone(),
            name,
            place,
            wish: Cell::new(Wish::GoOn),
            is_run_asked: Cell::new(false),
            waker: Cell::new(None),
            statistics: Cell::new(JobStatistics::default()),
        });
        let task = spawn_on(&core, drive(state.clone(), ticks, job), place).named(format!("schedule of `{}`", state.name));
        drop(self.take_ended());
        self.jobs.borrow_mut().push((state.clone(), task));
        RecurringJob { state }
    }

    /// Jobs that have ended go when the list is full, and leave room for as many as are left: so adding one costs the same however many
    /// there are.
    fn take_ended(&self) -> Vec<(Rc<State>, Task<()>)> {
        let mut jobs = self.jobs.borrow_mut();
        if jobs.len() < jobs.capacity() {
            return Vec::new();
        }
        let ended = jobs.extract_if(.., |(_, task)| task.is_finished()).collect();
        let len = jobs.len();
        jobs.reserve(len);
        ended
    }

    /// Starts no run any more, and waits for those under way.
    ///
    /// # Cancellation
    /// Dropping the future cancels what still runs.
    pub async fn stop(self) {
        let jobs = self.jobs.take();
        jobs.iter().for_each(|(state, _)| state.end(Wish::FinishRun));
        for (_, task) in jobs {
            // It returns nothing, and whatever its runs do is reported by name.
            let _ = task.await;
        }
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.jobs.borrow().iter().map(|(state, _)| &state.name)).finish()
    }
}

/// A job of a [`Scheduler`]. Dropping the handle changes nothing.
#[derive(Clone)]
pub struct RecurringJob {
    state: Rc<State>,
}

impl RecurringJob {
    /// The name given to it, which its runs have as tasks.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Runs it at once, besides the ticks of [`every`](Scheduler::every) or instead of the rest of a pause of
    /// [`after_each`](Scheduler::after_each). While it runs already, one more run follows, however often this is called.
    pub fn run_now(&self) {
        self.state.is_run_asked.set(true);
        self.state.wake();
    }

    /// Ends the job. A run under way is cancelled gracefully, like any task.
    pub fn cancel(&self) {
        self.state.end(Wish::CancelRun);
    }

    /// What it has done so far.
    pub fn statistics(&self) -> JobStatistics {
        self.state.statistics.get()
    }
}

impl fmt::Debug for RecurringJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecurringJob").field("name", &self.state.name).field("statistics", &self.statistics()).finish()
    }
}

/// What a [`RecurringJob`] has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobStatistics {
    /// Runs that have begun.
    pub runs: u64,
    /// Runs that have returned an error or panicked.
    pub failures: u64,
    /// Ticks that no run followed, because the one before took too long.
    pub skipped: u64,
    /// It is running now.
    pub is_running: bool,
    /// When the last run began.
    pub last_started: Option<Instant>,
    /// How long the last run took that has ended.
    pub last_took: Option<Duration>,
}

struct State {
    core: Rc<Core>,
    name: String,
    place: &'static Location<'static>,
    wish: Cell<Wish>,
    is_run_asked: Cell<bool>,
    /// The job's task, while it waits for a tick or for a run.
    waker: Cell<Option<Waker>>,
    statistics: Cell<JobStatistics>,
}

/// What its owner wants of the job; it only ever moves down this list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    GoOn,
    FinishRun,
    CancelRun,
}

impl State {
    fn end(&self, wish: Wish) {
        self.wish.set(self.wish.get().max(wish));
        self.wake();
    }

    fn wake(&self) {
        self.waker.take().into_iter().for_each(Waker::wake);
    }

    fn wait(&self, cx: &Context<'_>) {
        drop(self.waker.replace(Some(cx.waker().clone())));
    }

    fn count(&self, change: impl FnOnce(&mut JobStatistics)) {
        let mut statistics = self.statistics.get();
        change(&mut statistics);
        self.statistics.set(statistics);
    }

    fn report(&self, failure: Failure) {
        self.count(|statistics| statistics.failures += 1);
        self.core.report(Report::of_failure(failure, format!("recurring job `{}`", self.name), self.place));
    }
}

/// The life of a job.
async fn drive<Fut: Future<Output: Outcome> + 'static>(state: Rc<State>, mut ticks: Interval, job: impl FnMut() -> Fut + 'static) {
    // The run calls it, so that a panic of the function itself is the run's.
    let job = Rc::new(RefCell::new(job));
    while next_occasion(&state, &mut ticks).await {
        let started = state.core.now();
        state.count(|statistics| {
            let (runs, skipped) = (statistics.runs + 1, ticks.missed());
            *statistics = JobStatistics { runs, skipped, is_running: true, last_started: Some(started), ..*statistics };
        });
        let job = job.clone();
        let run = async move {
            let future = (job.borrow_mut())();
            future.await
        };
        let running = Running(&state);
        let result = finish(&state, spawn_on(&state.core, run, state.place).named(state.name.clone())).await;
        drop(running);
        ticks.delay_again();
        let took = state.core.now() - started;
        state.count(|statistics| statistics.last_took = Some(took));
        let settled = catch_unwind(AssertUnwindSafe(|| settle(result, Outcome::into_flow)));
        match settled.unwrap_or_else(|payload| Err(Failure::Panic(payload))) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return,
            Err(failure) => state.report(failure),
        }
    }
}

/// A run is under way. It is not any more when the job is dropped with its scheduler, either.
struct Running<'a>(&'a State);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.count(|statistics| statistics.is_running = false);
    }
}

/// Waits for the time of the next run. False when the job is to end.
async fn next_occasion(state: &State, ticks: &mut Interval) -> bool {
    let mut tick = ticks.tick();
    poll_fn(|cx| {
        if state.wish.get() > Wish::GoOn {
            return Poll::Ready(false);
        }
        if state.is_run_asked.replace(false) {
            return Poll::Ready(true);
        }
        state.wait(cx);
        Pin::new(&mut tick).poll(cx).map(|_| true)
    })
    .await
}

/// The end of a run, which comes sooner when the job is cancelled.
async fn finish<T>(state: &State, mut run: Task<T>) -> Result<T, crate::TaskError> {
    poll_fn(|cx| {
        if state.wish.get() == Wish::CancelRun {
            run.cancel();
        }
        state.wait(cx);
        Pin::new(&mut run).poll(cx)
    })
    .await
}
