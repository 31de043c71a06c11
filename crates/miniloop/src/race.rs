//! The first of several futures wins, and the others are cancelled properly.
//!
//! `futures::select!` drops the losers on the spot; whatever they had in hand is gone. Here a loser with a [catch point](crate::catch)
//! cleans up before the race ends, and one that ends with a value all the same, in the same moment or in its clean-up, gives it back: a
//! connection that was accepted too late is not lost.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use crate::branches::Branches;
use crate::engine::cancel::{CancelReason, Level};
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::record::WaitsFor;

/// Runs `futures` beside each other until the first one ends, then cancels the others gracefully and waits until they have ended.
///
/// ```
/// use miniloop::{race, sleep};
/// use std::time::Duration;
///
/// # miniloop::run(async {
/// let won = race([30, 1, 20].map(async |ms| {
///     sleep(Duration::from_millis(ms)).await;
///     format!("mirror {ms}")
/// }))
/// .await;
/// assert_eq!((won.index, won.value.as_str()), (1, "mirror 1"));
/// assert!(won.late.is_empty());
/// # }).unwrap();
/// ```
///
/// Losers have the loop's grace ([`Builder::grace`](crate::Builder::grace)) to clean up. One that has no catch point is dropped; if it was
/// woken already, it is polled once before. When several end in the same round, the one that was woken first wins.
///
/// The futures stand in one array, so they have one type. Those of two `async` functions or blocks do not; boxes of them do:
///
/// ```
/// use miniloop::{race, sleep};
/// use std::pin::Pin;
/// use std::time::Duration;
///
/// async fn fetch() -> &'static str {
///     sleep(Duration::from_millis(1)).await;
///     "fetched"
/// }
///
/// # miniloop::run(async {
/// let give_up = async {
///     sleep(Duration::from_millis(50)).await;
///     "gave up"
/// };
/// let futures: [Pin<Box<dyn Future<Output = _>>>; 2] = [Box::pin(fetch()), Box::pin(give_up)];
/// assert_eq!(race(futures).await.value, "fetched");
/// # }).unwrap();
/// ```
///
/// Where it is right to drop the losers, `futures::select!` takes futures of any types.
///
/// # Panics
/// When it is polled outside a loop, under another loop than the first time, or after its end.
///
/// # Cancellation
/// Dropping it drops all futures, the late values included. A race without futures never ends.
#[track_caller]
pub fn race<F: Future>(futures: impl IntoIterator<Item = F>) -> Race<F> {
    let place = Location::caller();
    let branches = Branches::new(futures, place);
    let levels = (0..branches.alive()).map(|_| Level::new()).collect();
    Race { levels, branches, ended: Vec::new(), is_done: false, place }
}

/// How a [`race`] ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raced<T> {
    /// The place of the winner among the futures.
    pub index: usize,
    /// What it ended with.
    pub value: T,
    /// Losers that ended with a value all the same, with their places, in the order in which they ended.
    pub late: Vec<(usize, T)>,
}

/// The future of [`race`].
#[must_use = "futures do nothing unless awaited"]
pub struct Race<F: Future> {
    /// Of each branch. They go before the branches.
    levels: Vec<Level>,
    branches: Branches<F>,
    /// Who has ended with what; the winner is the first.
    ended: Vec<(usize, F::Output)>,
    is_done: bool,
    place: &'static Location<'static>,
}

/// The futures stand in boxes; nothing else is pinned.
impl<F: Future> Unpin for Race<F> {}

impl<F: Future> Race<F> {
    fn run(&mut self, core: &Core, index: usize, was_woken: bool) {
        if self.levels[index].verdict(core).must_drop(!was_woken) {
            return self.drop_loser(core, index);
        }
        let waker = self.branches.waker(index);
        let inside = self.levels[index].enter(core, &waker);
        let polled = self.branches.poll(index);
        drop(inside);
        match polled {
            Poll::Ready(value) => {
                self.levels[index].remove();
                self.ended.push((index, value));
                if self.ended.len() == 1 {
                    self.ask_losers(core);
                }
            }
            Poll::Pending if self.levels[index].verdict(core).must_drop(true) => self.drop_loser(core, index),
            Poll::Pending => {}
        }
    }

    fn ask_losers(&mut self, core: &Core) {
        let deadline = core.now() + core.grace.get();
        for index in self.branches.indices() {
            self.levels[index].request(core, CancelReason::RaceLost, deadline);
            let is_woken = self.branches.is_woken(index);
            if self.levels[index].verdict(core).must_drop(!is_woken) {
                self.drop_loser(core, index);
            }
        }
    }

    fn drop_loser(&mut self, core: &Core, index: usize) {
        let level = &self.levels[index];
        level.report_if_out_of_grace(core, || format!("branch {index} of a race"), self.place);
        level.remove();
        self.branches.drop_branch(index);
    }
}

impl<F: Future> Future for Race<F> {
    type Output = Raced<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        assert!(!this.is_done, "a race was polled after its end");
        let mut turn = this.branches.begin(cx, "race");
        let core = context::current();
        while let Some(branch) = this.branches.next(&mut turn) {
            this.run(&core, branch.index, branch.was_woken);
        }
        let what: WaitsFor = if this.ended.is_empty() { &"the first future of a race" } else { &"the losers of a race" };
        ready!(this.branches.end(what));
        if this.ended.is_empty() {
            // Nobody takes part.
            context::waits_for(what);
            return Poll::Pending;
        }
        this.is_done = true;
        let (index, value) = this.ended.remove(0);
        Poll::Ready(Raced { index, value, late: std::mem::take(&mut this.ended) })
    }
}

impl<F: Future> FusedFuture for Race<F> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl<F: Future> fmt::Debug for Race<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Race").field("running", &self.branches.alive()).field("is_decided", &!self.ended.is_empty()).finish_non_exhaustive()
    }
}
