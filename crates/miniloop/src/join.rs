//! Waiting for all of several futures: asyncio's `gather`.
//!
//! For two or three of different types there is `futures::join!`, which works here as everywhere.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use crate::branches::Branches;

/// Runs all `futures` beside each other, and gives their outputs in the order of the futures, whatever the order in which they end.
///
/// ```
/// use miniloop::{join_all, sleep};
/// use std::time::Duration;
///
/// # miniloop::run(async {
/// let pages = join_all([3, 1, 2].map(async |number| {
///     sleep(Duration::from_millis(number)).await;
///     format!("page {number}")
/// }));
/// assert_eq!(pages.await, ["page 3", "page 1", "page 2"]);
/// # }).unwrap();
/// ```
///
/// They run in the task that awaits this and begin with its first poll. Given [tasks](crate::Task), it waits for what runs already, and
/// gives what each of them ended with, errors included, as `gather` does with `return_exceptions`.
///
/// # Panics
/// When it is polled outside a loop, under another loop than the first time, or after its end.
///
/// # Cancellation
/// Dropping it drops all futures, and with them the outputs that are there.
#[doc(alias = "gather")]
#[track_caller]
pub fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> JoinAll<F> {
    let branches = Branches::new(futures, Location::caller());
    let outputs = (0..branches.alive()).map(|_| None).collect();
    JoinAll { branches, outputs, is_done: false }
}

/// The future of [`join_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct JoinAll<F: Future> {
    branches: Branches<F>,
    outputs: Vec<Option<F::Output>>,
    is_done: bool,
}

/// The futures stand in boxes; nothing else is pinned.
impl<F: Future> Unpin for JoinAll<F> {}

impl<F: Future> Future for JoinAll<F> {
    type Output = Vec<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!this.is_done, "a join was polled after it had given its outputs");
        let mut turn = this.branches.begin(cx, "join");
        while let Some(branch) = this.branches.next(&mut turn) {
            if let Poll::Ready(output) = this.branches.poll(branch.index) {
                this.outputs[branch.index] = Some(output);
            }
        }
        ready!(this.branches.end(&"all futures of a join"));
        this.is_done = true;
        Poll::Ready(std::mem::take(&mut this.outputs).into_iter().flatten().collect())
    }
}

impl<F: Future> FusedFuture for JoinAll<F> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl<F: Future> fmt::Debug for JoinAll<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinAll").field("futures", &self.outputs.len()).field("running", &self.branches.alive()).finish_non_exhaustive()
    }
}

/// The same for futures that can fail: gives all values, or the first error as soon as it is there.
///
/// ```
/// use miniloop::{sleep, try_join_all};
/// use std::time::Duration;
///
/// # miniloop::run(async {
/// let parse = async |text: &str| {
///     sleep(Duration::from_millis(text.len() as u64)).await;
///     text.parse::<i32>()
/// };
/// assert_eq!(try_join_all(["1", "23"].map(parse)).await, Ok(vec![1, 23]));
/// assert!(try_join_all(["1", "twenty-three"].map(parse)).await.is_err());
/// # }).unwrap();
/// ```
///
/// # Errors
/// The first error in time. The other futures are dropped; tasks among them are cancelled by that, so keep the handles of those that are to
/// go on, and [`wait`](crate::wait) for them.
///
/// # Panics
/// As [`join_all`].
///
/// # Cancellation
/// As [`join_all`].
#[doc(alias = "gather")]
#[track_caller]
pub fn try_join_all<T, E, F: Future<Output = Result<T, E>>>(futures: impl IntoIterator<Item = F>) -> TryJoinAll<T, F> {
    let branches = Branches::new(futures, Location::caller());
    let values = (0..branches.alive()).map(|_| None).collect();
    TryJoinAll { branches: Some(branches), values }
}

/// The future of [`try_join_all`].
#[must_use = "futures do nothing unless awaited"]
pub struct TryJoinAll<T, F> {
    /// `None` once it is done.
    branches: Option<Branches<F>>,
    values: Vec<Option<T>>,
}

/// As for [`JoinAll`].
impl<T, F> Unpin for TryJoinAll<T, F> {}

impl<T, E, F: Future<Output = Result<T, E>>> Future for TryJoinAll<T, F> {
    type Output = Result<Vec<T>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let branches = this.branches.as_mut().expect("a join was polled after it had given its outputs");
        let mut turn = branches.begin(cx, "join");
        while let Some(branch) = branches.next(&mut turn) {
            match branches.poll(branch.index) {
                Poll::Pending => {}
                Poll::Ready(Ok(value)) => this.values[branch.index] = Some(value),
                Poll::Ready(Err(error)) => {
                    this.branches = None;
                    this.values.clear();
                    return Poll::Ready(Err(error));
                }
            }
        }
        ready!(branches.end(&"all futures of a join"));
        this.branches = None;
        Poll::Ready(Ok(std::mem::take(&mut this.values).into_iter().flatten().collect()))
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> FusedFuture for TryJoinAll<T, F> {
    fn is_terminated(&self) -> bool {
        self.branches.is_none()
    }
}

impl<T, F> fmt::Debug for TryJoinAll<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TryJoinAll").field("futures", &self.values.len()).finish_non_exhaustive()
    }
}
