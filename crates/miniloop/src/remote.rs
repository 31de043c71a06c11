//! A loop as other threads see it.
//!
//! A [`Remote`] is the way into the inbox of a loop, nothing more: it may be cloned, sent, and kept longer than the loop lives. What it is
//! given runs on the loop's thread, in arrival order, so only the closures have to be `Send`; what they make there need not be. A call
//! costs one lock, one allocation, and one system call if the loop sleeps and nobody else has woken it yet.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::Duration;

use futures_core::FusedFuture;

use crate::clock::Clock;
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::in_flight::poll_counted;
use crate::engine::inbox::{Inbox, Message};
use crate::engine::word::LoopId;
use crate::error::LoopError;
use crate::handle::LoopHandle;
use crate::instant::Instant;
use crate::outcome::Outcome;
use crate::panic_payload::PanicPayload;
use crate::reply::{Receiver, Sender, reply};
use crate::report::{Report, ReportKind, log_error};
use crate::task::{TaskId, cancel_by_id, spawn_on};
use crate::task_error::TaskError;

/// Reaches a loop from other threads. The loop's own thread uses [`LoopHandle`].
///
/// ```
/// let mut event_loop = miniloop::EventLoop::new()?;
/// let remote = event_loop.handle().remote();
/// let thread = std::thread::Builder::new().spawn(move || {
///     remote.call_soon(|| println!("on the loop's thread"))?;
///     remote.stop()
/// })?;
/// event_loop.run_forever()?;
/// thread.join().unwrap()?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Clone)]
pub struct Remote {
    inbox: Arc<Inbox>,
    /// By this a job that has been sent finds the loop that runs it. The current loop may be another one, which a task has entered.
    id: LoopId,
}

impl LoopHandle {
    /// What other threads need to reach this loop.
    pub fn remote(&self) -> Remote {
        Remote { inbox: self.core.inbox.clone(), id: self.core.id }
    }
}

impl Remote {
    /// Runs `callback` on the loop's thread, after what other threads have sent before. Its failure goes to
    /// [`LoopHandle::on_error`]. Works from the loop's own thread, too.
    ///
    /// # Errors
    /// [`LoopError::Closed`]: the callback was dropped without running. After `Ok` it runs, unless the loop is closed first, which drops
    /// it.
    #[doc(alias = "call_soon_threadsafe")]
    #[track_caller]
    pub fn call_soon<O: Outcome>(&self, callback: impl FnOnce() -> O + Send + 'static) -> Result<(), LoopError> {
        self.push(callback, Location::caller())
    }

    /// Spawns a task on the loop. `make` runs there, so the future that it makes need not be `Send`.
    ///
    /// For a task that nobody waits for: `remote.call_soon(|| miniloop::spawn(..).detach())`.
    ///
    /// ```
    /// use std::{error::Error, rc::Rc, thread};
    ///
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let remote = event_loop.handle().remote();
    /// let thread = thread::Builder::new().spawn(move || {
    ///     let task = remote.spawn(|| async {
    ///         let shared = Rc::new(42); // stays on the loop's thread
    ///         miniloop::yield_now().await;
    ///         *shared
    ///     })?;
    ///     let answer = task.join()?;
    ///     remote.stop()?;
    ///     Ok::<i32, Box<dyn Error + Send + Sync>>(answer)
    /// })?;
    /// event_loop.run_forever()?;
    /// assert_eq!(thread.join().unwrap().unwrap(), 42);
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Errors
    /// [`LoopError::Closed`].
    #[doc(alias = "run_coroutine_threadsafe")]
    #[track_caller]
    pub fn spawn<F>(&self, make: impl FnOnce() -> F + Send + 'static) -> Result<RemoteTask<F::Output>, LoopError>
    where
        F: Future<Output: Send> + 'static,
    {
        let place = Location::caller();
        let (sender, result) = reply();
        let id = self.id;
        self.push(move || spawn_for(id, sender, make, place), place)?;
        Ok(RemoteTask { result, home: self.inbox.clone(), id, is_over: false, place })
    }

    /// As [`LoopHandle::stop`].
    ///
    /// # Errors
    /// [`LoopError::Closed`].
    #[track_caller]
    pub fn stop(&self) -> Result<(), LoopError> {
        let id = self.id;
        self.call_soon(move || {
            context::with_resident(id, |core| core.stop());
        })
    }

    fn push<O: Outcome>(&self, callback: impl FnOnce() -> O + Send + 'static, place: &'static Location<'static>) -> Result<(), LoopError> {
        let job = Box::new(move || callback().into_flow());
        self.inbox.push(Message::Call { job, place }).map_err(|_refused| LoopError::Closed)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

/// A task that another thread has spawned. Await it on any loop or any other executor, or [`join`](RemoteTask::join) it.
///
/// Dropping it cancels the task: its future is dropped on its loop, in a job of its own. [`cancel`](RemoteTask::cancel) does so and still
/// tells how the task ended. When the loop is closed, the task ends as cancelled.
///
/// # Panics
/// Polling it panics when it has given its result.
#[must_use = "dropping a remote task cancels it"]
pub struct RemoteTask<T> {
    result: Receiver<Result<T, TaskError>>,
    /// The inbox of the loop that runs it, for the loop's identity.
    home: Arc<Inbox>,
    id: LoopId,
    is_over: bool,
    place: &'static Location<'static>,
}

impl<T> RemoteTask<T> {
    /// Blocks this thread until the task has ended.
    ///
    /// # Errors
    /// As [`Task`](crate::Task): it was cancelled, its loop was closed, or it panicked.
    ///
    /// # Panics
    /// On a thread that runs a loop, which would stand still: await the task there. Also on the thread of the task's own loop, which nobody
    /// would turn meanwhile, unless the task has ended.
    pub fn join(mut self) -> Result<T, TaskError> {
        self.block(None).unwrap_or_else(|| unreachable!("it waits for as long as it takes"))
    }

    /// [`join`](RemoteTask::join) for at most `limit`.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let remote = event_loop.handle().remote();
    /// let thread = std::thread::Builder::new().spawn(move || {
    ///     let task = remote.spawn(|| miniloop::sleep(Duration::MAX)).unwrap();
    ///     let result = task.join_timeout(Duration::from_millis(1)).or_else(|task| {
    ///         task.cancel();
    ///         task.join_timeout(Duration::from_secs(60))
    ///     });
    ///     remote.stop().unwrap();
    ///     result.unwrap().is_err_and(|error| error.is_cancelled())
    /// })?;
    /// event_loop.run_forever()?;
    /// assert!(thread.join().unwrap());
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    ///
    /// # Errors
    /// The task itself, which goes on: join it again, cancel it, or drop it.
    ///
    /// # Panics
    /// As [`join`](RemoteTask::join).
    pub fn join_timeout(mut self, limit: Duration) -> Result<Result<T, TaskError>, RemoteTask<T>> {
        self.block(Some(Clock::SYSTEM.now() + limit)).ok_or(self)
    }

    /// Asks the task to stop, as [`Task::cancel`](crate::Task::cancel) does on its loop: it ends as cancelled, or with the value that it
    /// has by then. One that has not begun is dropped without running. Works on any thread; cancelling again does nothing.
    pub fn cancel(&self) {
        self.result.ask_stop();
    }

    /// Whether the task has ended, or its loop has.
    #[doc(alias = "done")]
    pub fn is_finished(&self) -> bool {
        self.result.is_settled()
    }

    /// `None` when the deadline has come first.
    fn block(&mut self, deadline: Option<Instant>) -> Option<Result<T, TaskError>> {
        assert!(context::try_current().is_none(), "`join` would block the event loop that runs on this thread: await the task instead");
        let waker = Arc::new(Unpark(thread::current())).into();
        loop {
            if let Poll::Ready(result) = Pin::new(&mut *self).poll(&mut Context::from_waker(&waker)) {
                return Some(result);
            }
            let is_ours = context::with_resident(self.id, |core| Arc::ptr_eq(&core.inbox, &self.home));
            assert!(is_ours != Some(true), "`join` would wait for ever: the event loop of this task is this thread's, to be run here");
            match deadline.map(|deadline| deadline - Clock::SYSTEM.now()) {
                None => thread::park(),
                Some(Duration::ZERO) => return None,
                Some(left) => thread::park_timeout(left),
            }
        }
    }
}

impl<T> Future for RemoteTask<T> {
    type Output = Result<T, TaskError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over, "this remote task was polled after it had given its result");
        // A loop that awaits a task of its own must let its clock go on: the task may be waiting for just that.
        let polled = poll_counted(cx, |core| Arc::ptr_eq(&core.inbox, &self.home), |cx| self.result.poll(cx));
        let Poll::Ready(result) = polled else {
            context::waits_for(&"a task that was spawned through a `Remote`");
            return Poll::Pending;
        };
        self.is_over = true;
        Poll::Ready(result.unwrap_or(Err(TaskError::CANCELLED)))
    }
}

impl<T> FusedFuture for RemoteTask<T> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<T> Drop for RemoteTask<T> {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.result.close()
            && error.is_panic()
        {
            log_error(&format!("remote task (spawned at {}), whose result nobody has read: {error}", self.place));
            drop(error.into_panic().map(PanicPayload::into_message));
        }
    }
}

impl<T> fmt::Debug for RemoteTask<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteTask").field("spawned_at", &self.place).finish_non_exhaustive()
    }
}

/// On the loop's thread: spawns the task, a callback that sends what becomes of it, and a second task that cancels it when the other side
/// says so. That the second one is cancelled with all others when the loop shuts down changes nothing about the result.
fn spawn_for<F>(
    id: LoopId,
    sender: Sender<Result<F::Output, TaskError>>,
    make: impl FnOnce() -> F + 'static,
    place: &'static Location<'static>,
) where
    F: Future<Output: Send> + 'static,
{
    let core = context::resident(id).expect("a loop that runs a job lives on this thread");
    if sender.is_stop_asked() {
        // Refused: nobody waits any more.
        let _ = sender.send(Err(TaskError::CANCELLED));
        return;
    }
    let sender = Rc::new(sender);
    let task = spawn_on(&core, async move { make().await }, place);
    let listens = Listens { core: core.clone(), sender: sender.clone(), task: task.id() };
    let listener = spawn_on(&core, poll_fn(move |cx| listens.poll(cx)), place);
    task.on_done(move |result| {
        if let Err(Err(unread)) = sender.send(result)
            && let Some(payload) = unread.into_panic()
        {
            core.report(Report::of_panic(ReportKind::Panic, payload, "task of another thread".to_owned(), place));
        }
        drop(listener);
    });
}

/// Hears of it when the other side has gone, or wants the task to stop.
struct Listens<T> {
    core: Rc<Core>,
    sender: Rc<Sender<T>>,
    task: TaskId,
}

impl<T> Listens<T> {
    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let gone = self.sender.poll_gone(cx);
        if gone.is_ready() || self.sender.is_stop_asked() {
            cancel_by_id(&self.core, self.task);
        }
        gone
    }
}

/// Wakes a thread that has parked itself.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
