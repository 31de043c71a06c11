//! Blocking jobs: a call that would block the loop, on one of the loop's own threads.
//!
//! The queue is `engine/pool_jobs.rs`, an answer travels as a `reply.rs`, and the loop ends the pool when it is closed, before its driver.
//! A late answer then finds an inbox that refuses, which is all that it can touch. A job costs two allocations and four locks, and a thread
//! if none is free. Whether a caller waits for room or in the queue is the same to everybody, so the queue of
//! [`spawn_blocking`] is as long as there are callers who wait in it, and a caller that goes takes its job with it.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use super::asker::Asker;
use super::error::{BlockingError, Full};
use super::start::start;
use crate::config::BLOCKING_QUEUE_LEN;
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::in_flight::{InFlight, poll_counted};
use crate::engine::pool_jobs::{PoolJobs, PoolTicket, Queued};
use crate::handle::LoopHandle;
use crate::panic_payload::PanicPayload;
use crate::reply::{Receiver, reply};
use crate::report::log_error;

/// Runs `job` on a thread of the running loop's pool, and gives a future for its result. The job is in the queue from now on, whether or
/// not the future is polled. [`thread`](crate::thread) says what is better on a worker of its own.
///
/// ```
/// use miniloop::spawn_blocking;
///
/// miniloop::run(async {
///     let words = spawn_blocking(|| std::fs::read_to_string("/usr/share/dict/words")); // a disk may take its time
///     match words.await? {
///         Ok(words) => println!("{} words", words.lines().count()),
///         Err(error) => println!("no words: {error}"),
///     }
///     Ok::<(), miniloop::thread::BlockingError>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancellation
/// Dropping the future withdraws the job if it has not started. If it has, it runs to its end and its result is dropped, on its thread.
///
/// # Panics
/// Outside a loop. On a loop that is being closed the job is dropped, and the future says so.
#[doc(alias = "run_in_executor")]
#[doc(alias = "to_thread")]
#[doc(alias = "unblock")]
#[track_caller]
pub fn spawn_blocking<R: Send + 'static>(job: impl FnOnce() -> R + Send + 'static) -> Blocking<R> {
    submit_patiently(&context::current(), job, Location::caller())
}

/// [`spawn_blocking`] for callers with something better to do than to wait in a long queue.
///
/// ```
/// # miniloop::run(async {
/// match miniloop::try_spawn_blocking(|| 6 * 7) {
///     Ok(job) => assert_eq!(job.await.unwrap(), 42),
///     Err(full) => println!("come back later: {full}"),
/// }
/// # }).unwrap();
/// ```
///
/// # Errors
/// [`Full`] when 1,024 jobs are waiting. The job has been dropped.
///
/// # Panics
/// As [`spawn_blocking`].
#[track_caller]
pub fn try_spawn_blocking<R: Send + 'static>(job: impl FnOnce() -> R + Send + 'static) -> Result<Blocking<R>, Full> {
    submit(&context::current(), job, BLOCKING_QUEUE_LEN, Location::caller())
}

impl LoopHandle {
    /// [`spawn_blocking`] on the pool of this loop.
    ///
    /// # Panics
    /// When the loop is closed.
    #[doc(alias = "run_in_executor")]
    #[track_caller]
    pub fn spawn_blocking<R: Send + 'static>(&self, job: impl FnOnce() -> R + Send + 'static) -> Blocking<R> {
        submit_patiently(&self.core, job, Location::caller())
    }
}

#[track_caller]
fn submit_patiently<R: Send + 'static>(
    core: &Rc<Core>,
    job: impl FnOnce() -> R + Send + 'static,
    place: &'static Location<'static>,
) -> Blocking<R> {
    submit(core, job, usize::MAX, place).unwrap_or_else(|Full { .. }| unreachable!("a queue without a bound is not full"))
}

#[track_caller]
fn submit<R: Send + 'static>(
    core: &Rc<Core>,
    job: impl FnOnce() -> R + Send + 'static,
    len_max: usize,
    place: &'static Location<'static>,
) -> Result<Blocking<R>, Full> {
    let is_wanted = core.must_accept_work();
    let (sender, answer) = reply();
    let mut blocking = Blocking { answer, queued: None, refusal: None, home: core.number, place, is_over: false };
    let asker = Asker::new(sender, InFlight::new(core));
    // Wakers and what was panicked with are foreign code, too. What they panic with has been told by the panic hook.
    let job = move || drop(catch_unwind(AssertUnwindSafe(|| run(job, asker, place))).map_err(PanicPayload::into_message));
    if !is_wanted {
        core.drop_safely(job, "blocking job", place);
        return Ok(blocking);
    }
    let jobs = core.pool.jobs();
    match jobs.push(Box::new(job), place, len_max) {
        Ok(Queued { ticket, needs_thread }) => {
            blocking.queued = Some((jobs.clone(), ticket));
            if needs_thread {
                blocking.refusal = start_thread(core, jobs, ticket).err();
            }
        }
        Err(refused) => {
            core.drop_safely(refused.job, "blocking job", place);
            if refused.is_full {
                return Err(Full::OF_POOL);
            }
        }
    }
    Ok(blocking)
}

/// Starts the thread that a job asked for. Without one the job waits for those that are there.
///
/// # Errors
/// There is none: the job has been dropped.
fn start_thread(core: &Core, jobs: &Arc<PoolJobs>, ticket: PoolTicket) -> std::io::Result<()> {
    let working = jobs.clone();
    match start("miniloop-pool", move || working.work()) {
        Ok(thread) => {
            core.pool.adopt(thread);
            Ok(())
        }
        Err(_) if jobs.has_other_thread() => Ok(()),
        Err(error) => {
            core.drop_safely(jobs.withdraw(ticket), "blocking job", Location::caller());
            Err(error)
        }
    }
}

/// A blocking job on its way: await it for its result, on this loop or anywhere else. See [`spawn_blocking`].
///
/// # Panics
/// Polling it panics when it has given its result.
#[must_use = "dropping it withdraws the job if that has not started"]
pub struct Blocking<R> {
    answer: Receiver<Result<R, PanicPayload>>,
    /// `None` when there is nothing to withdraw.
    queued: Option<(Arc<PoolJobs>, PoolTicket)>,
    /// Why the job was not even queued, unless its loop is closing.
    refusal: Option<std::io::Error>,
    /// The number of the loop that knows that the job is in flight.
    home: u64,
    place: &'static Location<'static>,
    is_over: bool,
}

impl<R> Blocking<R> {
    /// Leaves the job to itself: it runs, although nobody waits for it. For what was promised already.
    pub(crate) fn leave(mut self) {
        self.queued = None;
    }
}

impl<R> Future for Blocking<R> {
    type Output = Result<R, BlockingError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over, "this blocking job was polled after it had given its result");
        ready!(context::poll_budget(cx));
        let polled = poll_counted(cx, |core| core.number == self.home, |cx| self.answer.poll(cx));
        let Poll::Ready(answer) = polled else {
            context::waits_for(&"a blocking job");
            return Poll::Pending;
        };
        self.is_over = true;
        self.queued = None;
        Poll::Ready(match (answer, self.refusal.take()) {
            (Some(Ok(value)), _) => Ok(value),
            (Some(Err(payload)), _) => Err(BlockingError::panicked(payload, self.place)),
            (None, Some(error)) => {
                // Nobody has waited for it: who tries again must give way.
                context::spend_system_call();
                Err(BlockingError::no_thread(error, self.place))
            }
            (None, None) => Err(BlockingError::closed(self.place)),
        })
    }
}

impl<R> FusedFuture for Blocking<R> {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<R> Drop for Blocking<R> {
    fn drop(&mut self) {
        // Whoever drops the future hears the panic of a destructor of the job, as of any other value of theirs.
        drop(self.queued.take().and_then(|(jobs, ticket)| jobs.withdraw(ticket)));
        if let Some(Err(panicked)) = self.answer.close() {
            log_unread_panic(self.place, &panicked.discard());
        }
    }
}

impl<R> fmt::Debug for Blocking<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").field("submitted_at", &self.place).field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// On the thread: the job, and its answer.
fn run<R: Send + 'static>(job: impl FnOnce() -> R, asker: Asker<R>, place: &'static Location<'static>) {
    let result = catch_unwind(AssertUnwindSafe(job)).map_err(PanicPayload::new);
    if let Err(Err(unread)) = asker.sender.send(result) {
        log_unread_panic(place, &unread.discard());
    }
}

fn log_unread_panic(place: &'static Location<'static>, message: &str) {
    log_error(&format!("a blocking job (submitted at {place}), whose result nobody has read, panicked: {message}"));
}
