//! The await face of a loop: tasks.
//!
//! ```text
//!           spawn                 polled: pending
//!  (future) -----> Queued ----------------------------+
//!                    ^  |                             v
//!                    |  | cancelled: dropped       Waiting
//!                    |  | in its own job              |
//!                    +--|------- woken ---------------+
//!                       v
//!                   Finished(value | Cancelled | Panicked) ----> the reader: await, on_done, shared, or the loop after detach
//! ```
//!
//! A task is one allocation that holds the future, its result and whoever waits for that. The loop holds it as "something that can be
//! polled", the [`Task`] as "something that ends with a `T`".

use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::FusedFuture;

use crate::completion::Completion;
use crate::dump;
use crate::engine::cancel_tree::CancelReason;
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::job::{Job, Slot};
use crate::engine::locals;
use crate::engine::probes::DEBUG;
use crate::engine::task_head::{Spawned, TaskHead};
use crate::engine::waker;
use crate::engine::word::Word;
use crate::handle::{CallbackHandle, LoopHandle};
use crate::outcome::{Failure, Outcome};
use crate::report::{Report, ReportKind};
use crate::shared::{Shared, Source};
use crate::task_cell::{Finished, Join, JoinTask, Owner, TaskBody, settle};
use crate::task_error::TaskError;

/// Spawns a task on the running loop. Its first poll comes in the next round, after everything that is ready already.
///
/// ```
/// miniloop::run(async {
///     let sum = miniloop::spawn(async { 1 + 1 });
///     assert_eq!(sum.await?, 2);
///     Ok::<(), miniloop::TaskError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Panics
/// Outside a loop. On a loop that is being closed the future is dropped and the task is a cancelled one.
#[doc(alias = "create_task")]
#[doc(alias = "ensure_future")]
#[track_caller]
pub fn spawn<F: Future + 'static>(future: F) -> Task<F::Output> {
    spawn_on(&context::current(), future, Location::caller())
}

impl LoopHandle {
    /// Spawns a task on this loop; see [`spawn`].
    ///
    /// # Panics
    /// When the loop is closed.
    #[doc(alias = "create_task")]
    #[track_caller]
    pub fn spawn<F: Future + 'static>(&self, future: F) -> Task<F::Output> {
        spawn_on(&self.core, future, Location::caller())
    }
}

#[track_caller]
pub(crate) fn spawn_on<F: Future + 'static>(core: &Rc<Core>, future: F, place: &'static Location<'static>) -> Task<F::Output> {
    let is_wanted = core.must_accept_work();
    let number = core.tasks_spawned.get();
    core.tasks_spawned.set(number + 1);
    // A parent is looked up among the tasks of its own loop.
    let parent = context::current_task_of(core.id);
    let task_of = |word| Rc::pin(Spawned { head: TaskHead::new(word, number, parent, core.record(place)), body: TaskBody::new(future) });
    if !is_wanted {
        let task = task_of(Word::STALE);
        task.drop_future(&mut |report| core.report(report));
        return Task { cell: Some(task), core: core.clone() };
    }
    let mut handle = None;
    core.insert_task(|word| {
        let task = task_of(word);
        handle = Some(task.clone() as JoinTask<F::Output>);
        task
    });
    Task { cell: handle, core: core.clone() }
}

/// A spawned task: await it for its result.
///
/// Dropping it [cancels](Task::cancel) the task. A task that is to go on without a handle is given to the loop with
/// [`detach`](Task::detach).
///
/// # Panics
/// Polling it panics when the result has been taken, when the task awaits itself, and under another loop than the first time.
#[must_use = "dropping a task cancels it: await it, keep it, or `detach` it"]
pub struct Task<T> {
    /// `None` once it has been detached.
    cell: Option<JoinTask<T>>,
    core: Rc<Core>,
}

impl<T> Task<T> {
    /// Asks the task to stop, and to clean up within the loop's grace ([`Builder::grace`](crate::Builder::grace), 5 s).
    ///
    /// A task without a [catch point](crate::catch) is dropped in its own next job, never inside this call, and ends with
    /// [`TaskError::is_cancelled`]; one that never ran is dropped without running. Catch points get their turn first, innermost first. A
    /// task that ends with a value ends with that value. Cancelling again changes nothing.
    pub fn cancel(&self) {
        self.cancel_within(self.core.grace.get());
    }

    /// The same with another grace. A later, shorter one counts; a longer one does not.
    ///
    /// ```
    /// use miniloop::{catch, sleep, spawn, yield_now};
    /// use std::time::Duration;
    ///
    /// miniloop::run(async {
    ///     let task = spawn(async {
    ///         match catch(sleep(Duration::MAX)).await {
    ///             Ok(()) => unreachable!("for ever is long"),
    ///             Err(cleanup) => {
    ///                 yield_now().await; // says goodbye
    ///                 cleanup.finish();
    ///                 "cleaned up"
    ///             }
    ///         }
    ///     });
    ///     yield_now().await;
    ///     task.cancel_within(Duration::from_millis(100));
    ///     assert_eq!(task.await.unwrap(), "cleaned up");
    /// })?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    pub fn cancel_within(&self, grace: Duration) {
        if let Some(cell) = self.unfinished() {
            cell.head.level.request(&self.core, CancelReason::Cancelled, self.core.now() + grace);
            self.core.enqueue(cell.head.word);
        }
    }

    /// Ends the task without clean-up: its future is dropped in its own next job, whatever it is doing.
    pub fn abort(&self) {
        if let Some(cell) = self.unfinished() {
            cell.head.level.abort(&self.core, CancelReason::Cancelled);
            self.core.enqueue(cell.head.word);
        }
    }

    /// Whether the task has been asked to stop, and has neither ended nor [absorbed](crate::Cleanup::absorb) that since.
    #[doc(alias = "cancelling")]
    pub fn is_cancel_requested(&self) -> bool {
        self.unfinished().is_some_and(|cell| cell.head.level.is_requested(&self.core))
    }

    fn unfinished(&self) -> Option<&JoinTask<T>> {
        self.cell.as_ref().filter(|cell| cell.body.completion().is_pending())
    }

    /// Whether the task has ended.
    #[doc(alias = "done")]
    pub fn is_finished(&self) -> bool {
        self.cell.as_ref().is_none_or(|cell| !cell.body.completion().is_pending())
    }

    /// Waits for the end without taking the result.
    pub(crate) fn finished(&self) -> Finished<T> {
        Finished(self.cell.clone())
    }

    /// What `look` says of the result; false while there is none.
    pub(crate) fn inspect(&self, look: impl FnOnce(&Result<T, TaskError>) -> bool) -> bool {
        self.cell.as_ref().and_then(|cell| cell.body.completion().inspect(look)).unwrap_or(false)
    }

    /// The name that was set, or `task-7` for the eighth task of its loop.
    #[doc(alias = "get_name")]
    pub fn name(&self) -> String {
        self.cell.as_ref().map_or_else(String::new, |cell| cell.head.name())
    }

    /// Names the task in reports and dumps.
    ///
    /// ```
    /// # miniloop::run(async {
    /// let pump = miniloop::spawn(async {}).named("pump");
    /// assert_eq!(pump.name(), "pump");
    /// # }).unwrap();
    /// ```
    #[doc(alias = "set_name")]
    pub fn named(self, name: impl Into<String>) -> Task<T> {
        if let Some(cell) = &self.cell {
            cell.head.set_name(name.into().into());
        }
        self
    }

    /// The identity of the task, which [`current_task`] returns inside it.
    pub fn id(&self) -> TaskId {
        TaskId(self.cell.as_ref().map_or(Word::STALE, |cell| cell.head.word))
    }
}

impl<T: 'static> Task<T> {
    /// Leaves the task to the loop, which reports its error or panic to [`LoopHandle::on_error`]. It ends with the loop at the latest.
    ///
    /// ```
    /// # miniloop::run(async {
    /// miniloop::LoopHandle::current().on_error(|report| println!("{report}"));
    /// let sweeper = miniloop::spawn(async { Err::<(), _>("the broom is gone") });
    /// sweeper.named("sweeper").detach(); // nobody holds it any more, and its error is printed
    /// # }).unwrap();
    /// ```
    pub fn detach(mut self)
    where
        T: Outcome,
    {
        let Some(cell) = self.cell.take() else { return };
        match cell.body.completion().take() {
            None => {
                cell.body.set_owner(Owner::Loop(T::into_flow));
                cell.body.completion().forget_sole();
            }
            Some(result) => {
                let _locals = locals::enter(cell.head.record.origin.locals.clone());
                let settled = catch_unwind(AssertUnwindSafe(|| settle(result, T::into_flow)));
                if let Err(failure) = settled.unwrap_or_else(|payload| Err(Failure::Panic(payload))) {
                    self.core.report(Report::of_failure(failure, format!("task `{}`", cell.head.name()), cell.head.place()));
                }
            }
        }
    }

    /// Calls `callback` with the result, as a job of the task's loop, never inside this call. Cancelling the handle cancels the task.
    ///
    /// ```
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let (handle, stop) = (event_loop.handle(), event_loop.handle());
    /// handle.spawn(async { 1 + 1 }).on_done(move |sum| {
    ///     println!("{}", sum.unwrap());
    ///     stop.stop();
    /// });
    /// event_loop.run_forever()?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Panics
    /// When the loop is closed.
    #[doc(alias = "add_done_callback")]
    #[track_caller]
    pub fn on_done<O: Outcome>(self, callback: impl FnOnce(Result<T, TaskError>) -> O + 'static) -> CallbackHandle {
        let core = self.core.clone();
        let cell = self.cell.clone();
        let take = move || {
            let result = self.cell.as_ref().and_then(|cell| cell.body.completion().take());
            result.map_or(Ok(ControlFlow::Continue(())), |result| callback(result).into_flow())
        };
        let word = core.admit(core.must_accept_work(), Location::caller(), |_| Job::once(Location::caller(), take));
        if let Some(cell) = cell {
            cell.body.completion().register_sole(&waker::of(word));
            if !cell.body.completion().is_pending() {
                core.schedule(word);
            }
        }
        CallbackHandle { core, word }
    }

    /// Lets many wait for the result, which they get behind an `Rc`.
    ///
    /// ```
    /// # miniloop::run(async {
    /// let sum = miniloop::spawn(async { 1 + 1 }).shared();
    /// for reader in [sum.clone(), sum] {
    ///     assert!(matches!(*reader.await, Ok(2)));
    /// }
    /// # }).unwrap();
    /// ```
    pub fn shared(self) -> Shared<Result<T, TaskError>> {
        Shared::new(self)
    }
}

impl<T> Future for Task<T> {
    type Output = Result<T, TaskError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(cell) = &self.cell else { return Poll::Pending };
        let polled = cell.body.completion().poll_take(cx, "task", &dump::TASK);
        assert!(
            polled.is_ready() || context::current_task() != Some(cell.head.word),
            "task `{}` awaits itself and would never end",
            cell.head.name()
        );
        polled
    }
}

impl<T> FusedFuture for Task<T> {
    fn is_terminated(&self) -> bool {
        self.cell.as_ref().is_none_or(|cell| cell.body.completion().is_taken())
    }
}

impl<T> Source<Result<T, TaskError>> for Task<T> {
    fn completion(&self) -> &Completion<Result<T, TaskError>> {
        match &self.cell {
            Some(cell) => cell.body.completion(),
            None => unreachable!("only `detach` takes the cell, and it takes the task with it"),
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        let Some(cell) = self.cell.as_ref().filter(|cell| !cell.body.completion().is_taken()) else { return };
        if self.core.probes.has(DEBUG) && cell.body.completion().is_pending() {
            report_unawaited(&self.core, cell);
        }
        self.cancel();
        cell.body.set_owner(Owner::Nobody);
        cell.body.completion().forget_sole();
        if let Some(Err(error)) = cell.body.completion().take()
            && let Some(payload) = error.into_panic()
        {
            let report = Report::of_panic(ReportKind::Panic, payload, format!("task `{}`", cell.head.name()), cell.head.place());
            let _locals = locals::enter(cell.head.record.origin.locals.clone());
            self.core.report(report);
        }
    }
}

/// In debug mode: says that a task is dropped which nobody has ever awaited, most likely by mistake. Asking it to stop first says that it
/// is none; neither is one whose owner ends because it is cancelled or panics, or with its loop.
fn report_unawaited<T>(core: &Core, task: &Spawned<dyn Join<T>>) {
    let mut is_awaited = false;
    task.body.completion().readers(&mut |_| is_awaited = true);
    let is_cancelled =
        |word| core.with_slot(word, |slot| matches!(&slot.job, Job::Task(owner) if owner.head.level.is_requested(core))) == Some(true);
    if context::current_task_of(core.id).is_some_and(is_cancelled) {
        return;
    }
    if is_awaited || task.head.level.is_requested(core) || !matches!(core.accepts_work(), Ok(true)) || std::thread::panicking() {
        return;
    }
    let message = match task.head.record.polls.get() {
        0 => "before it ran, and so will not",
        _ => "while it was pending, and so cancelled; nobody has ever awaited it",
    };
    let message = format!("{message}: await it, keep it, `detach` it, or `cancel` it first");
    let report = Report::new(ReportKind::Unawaited, format!("task `{}`", task.head.name()), task.head.place(), message);
    core.report(report.with_parents(core.parents_of(task.head.word)));
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("name", &self.name()).field("is_finished", &self.is_finished()).finish_non_exhaustive()
    }
}

/// [`Task::cancel`] for those who only know which task it is. Does nothing when it has ended.
pub(crate) fn cancel_by_id(core: &Core, TaskId(word): TaskId) {
    let task_of = |slot: &mut Slot| if let Job::Task(task) = &slot.job { Some(task.clone()) } else { None };
    if let Some(task) = core.with_slot(word, task_of).flatten() {
        task.head.level.request(core, CancelReason::Cancelled, core.now() + core.grace.get());
        core.enqueue(word);
    }
}

/// The identity of a task. It is never given to another task of the same loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(pub(crate) Word);

/// The task that is being polled on this thread; none inside a plain callback.
pub fn current_task() -> Option<TaskId> {
    context::current_task().map(TaskId)
}
