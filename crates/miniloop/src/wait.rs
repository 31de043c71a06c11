//! Waiting for some of several tasks, which go on: asyncio's `wait` and `as_completed`.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedFuture, FusedStream, Stream};

use crate::branches::Branches;
use crate::task::Task;
use crate::task_cell::Finished;
use crate::task_error::TaskError;

/// Waits until `is_enough` says so of the result of a task that has ended, or until all of them have. Takes those that have ended out of
/// `tasks` and returns them, in the order in which they stood; the others stay, and go on.
///
/// `is_enough` is one of [`first_completed`], [`first_error`] and [`all_completed`], or a function of your own. Tasks that end in the same
/// round are all among those returned, and to await one of them gives its result without waiting.
///
/// Each call looks at all tasks once: who takes thousands one by one takes [`as_completed`].
///
/// ```
/// use miniloop::{first_completed, sleep, spawn, wait};
/// use std::time::Duration;
///
/// # miniloop::run(async {
/// let mut tasks: Vec<_> = [50, 1, 40].map(|ms| spawn(async move { sleep(Duration::from_millis(ms)).await; ms })).into();
/// for done in wait(&mut tasks, first_completed).await {
///     assert_eq!(done.await.unwrap(), 1);
/// }
/// assert_eq!(tasks.len(), 2); // they still run
/// # }).unwrap();
/// ```
///
/// With a limit: `timeout(limit, wait(&mut tasks, all_completed))`. When the time is up, `tasks` still has all of them, the ended ones too.
///
/// # Panics
/// When it is polled outside a loop, under another one than the first time, or after its end.
///
/// # Cancellation
/// Dropping it changes nothing for the tasks.
#[track_caller]
pub fn wait<T, P: FnMut(&Result<T, TaskError>) -> bool>(tasks: &mut Vec<Task<T>>, is_enough: P) -> Wait<'_, T, P> {
    let branches = Branches::new(tasks.iter().map(Task::finished), Location::caller());
    Wait { tasks, is_enough, branches: Some(branches) }
}

/// The future of [`wait`].
#[must_use = "futures do nothing unless awaited"]
pub struct Wait<'a, T, P> {
    tasks: &'a mut Vec<Task<T>>,
    is_enough: P,
    /// `None` once it is done.
    branches: Option<Branches<Finished<T>>>,
}

/// The futures stand in boxes; nothing else is pinned.
impl<T, P> Unpin for Wait<'_, T, P> {}

impl<T, P: FnMut(&Result<T, TaskError>) -> bool> Future for Wait<'_, T, P> {
    type Output = Vec<Task<T>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let branches = this.branches.as_mut().expect("a wait was polled after its end");
        let mut turn = branches.begin(cx, "wait");
        let mut has_enough = false;
        while let Some(branch) = branches.next(&mut turn) {
            if branches.poll(branch.index).is_ready() {
                has_enough |= this.tasks[branch.index].inspect(&mut this.is_enough);
            }
        }
        let polled = branches.end(&"some of several tasks");
        if polled.is_pending() && !has_enough {
            return Poll::Pending;
        }
        this.branches = None;
        Poll::Ready(this.tasks.extract_if(.., |task| task.is_finished()).collect())
    }
}

impl<T, P: FnMut(&Result<T, TaskError>) -> bool> FusedFuture for Wait<'_, T, P> {
    fn is_terminated(&self) -> bool {
        self.branches.is_none()
    }
}

impl<T, P> fmt::Debug for Wait<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wait").field("is_terminated", &self.branches.is_none()).finish_non_exhaustive()
    }
}

/// For [`wait`]: enough as soon as a task has ended, however.
#[doc(alias = "FIRST_COMPLETED")]
pub fn first_completed<T>(_: &Result<T, TaskError>) -> bool {
    true
}

/// For [`wait`]: enough as soon as a task has returned an error or panicked. Being cancelled is neither.
#[doc(alias = "FIRST_EXCEPTION")]
pub fn first_error<T, E>(result: &Result<Result<T, E>, TaskError>) -> bool {
    match result {
        Ok(value) => value.is_err(),
        Err(error) => error.is_panic(),
    }
}

/// For [`wait`]: not before all tasks have ended.
#[doc(alias = "ALL_COMPLETED")]
pub fn all_completed<T>(_: &Result<T, TaskError>) -> bool {
    false
}

/// Runs `futures` beside each other and gives their outputs in the order in which they end, each with the place of its future.
///
/// ```
/// use miniloop::{as_completed, sleep};
/// use std::time::Duration;
///
/// # miniloop::run(async {
/// let mut answers = as_completed([30, 1, 20].map(async |ms| sleep(Duration::from_millis(ms)).await));
/// let mut order = Vec::new();
/// while let Some((index, ())) = answers.next().await {
///     order.push(index);
/// }
/// assert_eq!(order, [1, 2, 0]);
/// # }).unwrap();
/// ```
#[track_caller]
pub fn as_completed<F: Future>(futures: impl IntoIterator<Item = F>) -> AsCompleted<F> {
    AsCompleted { branches: Branches::new(futures, Location::caller()) }
}

/// A stream of outputs, from [`as_completed`].
///
/// # Panics
/// When it is polled outside a loop, or under another loop than the first time.
///
/// # Cancellation
/// Dropping it drops the futures that have not ended; dropping the future of [`next`](AsCompleted::next) loses nothing.
#[must_use = "streams do nothing unless polled"]
pub struct AsCompleted<F> {
    branches: Branches<F>,
}

/// The futures stand in boxes; nothing else is pinned.
impl<F> Unpin for AsCompleted<F> {}

impl<F: Future> AsCompleted<F> {
    /// The next output, or `None` when all have been given.
    ///
    /// # Panics
    /// When it is polled outside a loop, or under another loop than the first time.
    ///
    /// # Cancellation
    /// Dropping it loses nothing.
    pub async fn next(&mut self) -> Option<(usize, F::Output)> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl<F: Future> Stream for AsCompleted<F> {
    type Item = (usize, F::Output);

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let branches = &mut self.get_mut().branches;
        let mut turn = branches.begin(cx, "stream of outputs");
        while let Some(branch) = branches.next(&mut turn) {
            if let Poll::Ready(output) = branches.poll(branch.index) {
                return Poll::Ready(Some((branch.index, output)));
            }
        }
        ready!(branches.end(&"the next of several futures"));
        Poll::Ready(None)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.branches.alive(), Some(self.branches.alive()))
    }
}

impl<F: Future> FusedStream for AsCompleted<F> {
    fn is_terminated(&self) -> bool {
        self.branches.alive() == 0
    }
}

impl<F: Future> fmt::Debug for AsCompleted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsCompleted").field("running", &self.branches.alive()).finish_non_exhaustive()
    }
}
