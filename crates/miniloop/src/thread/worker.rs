//! A [`Worker`] owns a value on a thread of its own and runs jobs on it, one after the other.
//!
//! ```text
//!  call ------> Waiting ------> Running ------> answered: the caller's task is woken through its loop's inbox
//!                  |               | panics
//!                  | the call is   +----------> the state is dropped, the caller has the panic, everybody else gets `WorkerGone`
//!                  v dropped
//!              Withdrawn
//! ```
//!
//! The queue between the two sides is `jobs.rs`, an answer travels as a `reply.rs`. A call costs two allocations and three locks; answers
//! ring the loop at most once per sleep, however many come. The state is made, used and dropped on the worker's thread, so it need not be
//! `Send`: a database connection, an open log.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};

use futures_core::FusedFuture;

use super::asker::Asker;
use super::error::{Full, WorkerGone};
use super::jobs::{Jobs, Panicked, Ticket};
use super::start::start;
use crate::config::WORKER_QUEUE_LEN;
use crate::engine::context;
use crate::engine::in_flight::{InFlight, poll_counted};
use crate::panic_payload::PanicPayload;
use crate::reply::{Receiver, reply};
use crate::report::log_error;

/// A thread that owns an `S`, and runs jobs on it in the order in which they were submitted.
///
/// ```
/// use miniloop::thread::Worker;
///
/// miniloop::run(async {
///     let worker = Worker::new("words", Vec::new)?;
///     let added = worker.call(|words: &mut Vec<&str>| words.push("hello"));
///     let count = worker.call(|words| words.len());
///     added.await?;
///     assert_eq!(count.await?, 1);
///     worker.close().await?;
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`close`](Worker::close) is the normal end. Dropping the worker finishes what is queued and **blocks** until the thread has ended.
pub struct Worker<S> {
    name: Arc<str>,
    jobs: Arc<Jobs<S>>,
    /// Sent as the last thing that the thread does: why it ended early, if it did.
    ended: Receiver<Result<(), Arc<str>>>,
    /// `None` only while it is being dropped.
    thread: Option<JoinHandle<()>>,
}

impl<S: 'static> Worker<S> {
    /// Starts a thread and has it build its state. Calls wait until that is done. If `build` panics, they get [`WorkerGone`].
    ///
    /// # Errors
    /// The system has no thread left.
    ///
    /// # Panics
    /// When `name` contains a zero byte.
    pub fn new(name: &str, build: impl FnOnce() -> S + Send + 'static) -> io::Result<Worker<S>> {
        Worker::start(name, move || Some(build()))
    }

    /// The same for a state that may fail to be built; waits until it has been.
    ///
    /// ```
    /// use miniloop::thread::Worker;
    /// use std::fs::File;
    ///
    /// # miniloop::run(async {
    /// let error = Worker::try_new("log", || File::open("/no/such/file")).await.unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// Those of `build`, and that the system has no thread left.
    ///
    /// # Panics
    /// When `build` panics, and when `name` contains a zero byte.
    ///
    /// # Cancellation
    /// Dropping the future drops the worker: it blocks until `build` has returned.
    pub async fn try_new<E>(name: &str, build: impl FnOnce() -> Result<S, E> + Send + 'static) -> Result<Worker<S>, E>
    where
        E: From<io::Error> + Send + 'static,
    {
        let (sender, built) = reply();
        let worker = Worker::start(name, move || {
            let (state, told) = match catch_unwind(AssertUnwindSafe(build)) {
                Ok(Ok(state)) => (Some(state), Ok(Ok(()))),
                Ok(Err(error)) => (None, Ok(Err(error))),
                Err(payload) => (None, Err(payload)),
            };
            drop(sender.send(told));
            state
        })?;
        let _in_flight = in_flight();
        match poll_fn(|cx| context::waiting_for(&"a worker thread to begin", built.poll(cx))).await {
            Some(Ok(result)) => result.map(|()| worker),
            Some(Err(payload)) => resume_unwind(payload),
            None => unreachable!("the thread tells how building went, in every case"),
        }
    }

    fn start(name: &str, build: impl FnOnce() -> Option<S> + Send + 'static) -> io::Result<Worker<S>> {
        let name: Arc<str> = name.into();
        let jobs = Arc::new(Jobs::new());
        let (sender, ended) = reply();
        let thread = start(&name, {
            let jobs = jobs.clone();
            move || drop(sender.send(work(&jobs, build)))
        })?;
        Ok(Worker { name, jobs, ended, thread: Some(thread) })
    }

    /// Submits a job, and gives a future for its result. The job is in the queue from now on, whether or not the future is polled.
    ///
    /// # Cancellation
    /// Dropping the future withdraws the job if it has not started. If it has, it runs to its end and its result is dropped, on the
    /// worker's thread.
    #[doc(alias = "run_in_executor")]
    pub fn call<R: Send + 'static>(&self, job: impl FnOnce(&mut S) -> R + Send + 'static) -> Call<S, R> {
        // The queue is as long as there are callers waiting in it, so they are its bound: whether a caller waits for room or in the queue
        // is the same to everybody.
        self.submit(job, usize::MAX).unwrap_or_else(|Full { .. }| unreachable!("a queue without a bound is not full"))
    }

    /// The same for callers with something better to do than to wait in a long queue.
    ///
    /// # Errors
    /// [`Full`] when 1,024 jobs are waiting. The job has been dropped.
    pub fn try_call<R: Send + 'static>(&self, job: impl FnOnce(&mut S) -> R + Send + 'static) -> Result<Call<S, R>, Full> {
        self.submit(job, WORKER_QUEUE_LEN)
    }

    fn submit<R: Send + 'static>(&self, job: impl FnOnce(&mut S) -> R + Send + 'static, len_max: usize) -> Result<Call<S, R>, Full> {
        let (sender, answer) = reply();
        let name = self.name.clone();
        let in_flight = in_flight();
        let is_counted = in_flight.is_some();
        let asker = Asker::new(sender, in_flight);
        let ticket = match self.jobs.push(Box::new(move |state| run(&name, state, job, asker)), len_max) {
            Ok(ticket) => Some(ticket),
            Err(refused) => {
                // With the job goes the sender, which tells the caller of a worker that has ended.
                drop(refused.job);
                if refused.is_full {
                    return Err(Full::of_worker(self.name.clone()));
                }
                None
            }
        };
        Ok(Call { name: self.name.clone(), jobs: self.jobs.clone(), ticket, answer, is_counted, is_over: false })
    }

    /// Finishes what is queued, drops the state on its thread, ends the thread.
    ///
    /// # Errors
    /// [`WorkerGone`] when the worker had ended earlier because a job panicked, or when the destructor of the state panicked.
    ///
    /// # Cancellation
    /// Dropping the future drops the worker: it blocks until the thread has ended.
    pub async fn close(self) -> Result<(), WorkerGone> {
        self.jobs.close();
        let _in_flight = in_flight();
        let Some(ended) = poll_fn(|cx| context::waiting_for(&"a worker thread to end", self.ended.poll(cx))).await else {
            unreachable!("the thread tells how it ended, whatever its jobs do")
        };
        ended.map_err(|reason| WorkerGone::before(self.name.clone(), reason))
    }
}

impl<S> Drop for Worker<S> {
    fn drop(&mut self) {
        self.jobs.close();
        // A job that owns its own worker is the one case in which nobody can wait for the thread.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // The thread catches all panics.
            let _ = thread.join();
        }
    }
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A job on its way through a [`Worker`]: await it for its result. See [`Worker::call`].
///
/// # Panics
/// Polling it panics when it has given its result.
#[must_use = "dropping a call withdraws its job"]
pub struct Call<S, R> {
    name: Arc<str>,
    jobs: Arc<Jobs<S>>,
    /// `None` when there is nothing to withdraw.
    ticket: Option<Ticket>,
    answer: Receiver<Result<R, PanicPayload>>,
    /// The loop that submitted it knows that it is in flight.
    is_counted: bool,
    is_over: bool,
}

impl<S, R> Future for Call<S, R> {
    type Output = Result<R, WorkerGone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over, "this call of worker `{}` was polled after it had given its result", self.name);
        let polled = poll_counted(cx, |_| self.is_counted, |cx| self.answer.poll(cx));
        let Poll::Ready(answer) = polled else {
            context::waits_for(&"a worker thread");
            return Poll::Pending;
        };
        self.is_over = true;
        self.ticket = None;
        let name = self.name.clone();
        Poll::Ready(match answer {
            Some(Ok(value)) => Ok(value),
            Some(Err(payload)) => Err(WorkerGone::by_this_job(name, payload)),
            None => Err(WorkerGone::before(name, self.jobs.reason().unwrap_or_else(|| "it was closed".into()))),
        })
    }
}

impl<S, R> FusedFuture for Call<S, R> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<S, R> Drop for Call<S, R> {
    fn drop(&mut self) {
        drop(self.ticket.and_then(|ticket| self.jobs.withdraw(ticket)));
        if let Some(Err(panicked)) = self.answer.close() {
            log_unread_panic(&self.name, &panicked.discard());
        }
    }
}

impl<S, R> fmt::Debug for Call<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("worker", &self.name).field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// The life of the thread. An error is the reason why it ended before it was asked to.
fn work<S>(jobs: &Jobs<S>, build: impl FnOnce() -> Option<S>) -> Result<(), Arc<str>> {
    let mut state = match catch_unwind(AssertUnwindSafe(build)) {
        Ok(Some(state)) => state,
        Ok(None) => return end(jobs, "its state could not be built".to_owned()),
        Err(payload) => return end(jobs, format!("building its state panicked: {}", PanicPayload::into_message(payload))),
    };
    while let Some(job) = jobs.take() {
        if let Some(panicked) = job(&mut state) {
            // Whoever hears of the panic may open again what the state held open, so the state goes first.
            if let Err(message) = drop_safely(state) {
                log_error(&format!("the state of a worker panicked while it was dropped after a panic: {message}"));
            }
            // What was panicked with may panic again while it is dropped, for want of a reader; the queue must be ended all the same.
            let _ = catch_unwind(AssertUnwindSafe(panicked.tell)).map_err(PanicPayload::into_message);
            return end(jobs, format!("an earlier job panicked: {}", panicked.message));
        }
    }
    match drop_safely(state) {
        Ok(()) => Ok(()),
        Err(message) => end(jobs, format!("dropping its state panicked: {message}")),
    }
}

/// Ends the worker early. The jobs that never ran tell their callers by being dropped.
fn end<S>(jobs: &Jobs<S>, reason: String) -> Result<(), Arc<str>> {
    let reason: Arc<str> = reason.into();
    for (_, job) in jobs.end(reason.clone()) {
        // What a job owns may panic while it is dropped; the panic hook has said so, and the others still have to be told.
        let _ = drop_safely(job);
    }
    Err(reason)
}

fn run<S, R>(worker: &Arc<str>, state: &mut S, job: impl FnOnce(&mut S) -> R, asker: Asker<R>) -> Option<Panicked>
where
    R: Send + 'static,
{
    match catch_unwind(AssertUnwindSafe(|| job(state))) {
        Ok(value) => {
            // Nobody may be waiting any more. A panic in the value's destructor has been told by the panic hook.
            let _ = drop_safely(asker.sender.send(Ok(value)));
            None
        }
        Err(payload) => {
            let payload = PanicPayload::new(payload);
            let (message, worker) = (payload.message().to_owned(), worker.clone());
            let tell = move || {
                // All of it, so that the loop is told last.
                let asker = asker;
                if let Err(Err(unread)) = asker.sender.send(Err(payload)) {
                    log_unread_panic(&worker, &unread.discard());
                }
            };
            Some(Panicked { message, tell: Box::new(tell) })
        }
    }
}

fn drop_safely<T>(value: T) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| drop(value))).map_err(PanicPayload::into_message)
}

fn log_unread_panic(worker: &str, message: &str) {
    log_error(&format!("a job of worker `{worker}`, whose result nobody has read, panicked: {message}"));
}

fn in_flight() -> Option<InFlight> {
    context::try_current().and_then(|core| InFlight::new(&core))
}
