//! A meeting point: nobody goes on before all have come.

use std::cell::Cell;
use std::fmt;

use futures_core::FusedFuture;

use super::line::{Desk, Line, Waiting, Wakes};
use crate::engine::record::WaitsFor;

/// Lets so many tasks wait for each other, again and again.
///
/// The last to come lets all go at once. Whoever comes after that belongs to the next meeting, however slow the others are to leave.
///
/// ```
/// use miniloop::sync::Barrier;
/// use std::rc::Rc;
///
/// miniloop::run(async {
///     let barrier = Rc::new(Barrier::new(2));
///     let other = miniloop::spawn({
///         let barrier = barrier.clone();
///         async move { barrier.wait().await.unwrap().is_leader() }
///     });
///     let is_leader = barrier.wait().await.unwrap().is_leader();
///     assert_ne!(is_leader, other.await.unwrap(), "one of them is");
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
pub struct Barrier {
    parties: usize,
    is_broken: Cell<bool>,
    line: Line<Result<BarrierWaitResult, BrokenBarrier>>,
}

impl Barrier {
    /// A barrier for so many; none is taken for one.
    pub const fn new(parties: usize) -> Barrier {
        Barrier { parties: if parties == 0 { 1 } else { parties }, is_broken: Cell::new(false), line: Line::new() }
    }

    /// Waits until as many wait as the barrier is for.
    ///
    /// # Errors
    /// [`BrokenBarrier`] after [`abort`](Barrier::abort), and when [`reset`](Barrier::reset) is called meanwhile.
    ///
    /// # Cancellation
    /// It has not come, unless the meeting was complete already; nobody is told.
    pub fn wait(&self) -> impl FusedFuture<Output = Result<BarrierWaitResult, BrokenBarrier>> + Unpin {
        Waiting::new(Wait { barrier: self })
    }

    /// Sends away all who wait, with an error, and starts again, also when it was broken.
    pub fn reset(&self) {
        self.is_broken.set(false);
        self.send_away();
    }

    /// Breaks the barrier: who waits and who comes gets an error, until [`reset`](Barrier::reset). For when one of them will never come.
    pub fn abort(&self) {
        self.is_broken.set(true);
        self.send_away();
    }

    /// Whether it was [aborted](Barrier::abort).
    #[doc(alias = "broken")]
    pub fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// For how many it is.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// What it is like now.
    pub fn statistics(&self) -> BarrierStatistics {
        BarrierStatistics { parties: self.parties, is_broken: self.is_broken(), waiting: self.line.len() }
    }

    fn send_away(&self) {
        let mut wakes = Wakes::default();
        self.line.grant_all(|| Err(BrokenBarrier), &mut wakes);
        wakes.wake();
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("statistics", &self.statistics()).finish()
    }
}

/// What a [`Barrier`] is like at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BarrierStatistics {
    /// For how many it is.
    pub parties: usize,
    /// It was aborted.
    pub is_broken: bool,
    /// How many have come and wait for the others.
    pub waiting: usize,
}

/// Whom the barrier has let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    index: usize,
    is_leader: bool,
}

impl BarrierWaitResult {
    /// A number of its own for each of the meeting, from 0, in the order in which they came.
    pub fn index(self) -> usize {
        self.index
    }

    /// Whether this is the one who came last. Exactly one of a meeting is.
    pub fn is_leader(self) -> bool {
        self.is_leader
    }
}

/// The barrier was [aborted](Barrier::abort), or [reset](Barrier::reset) while this one waited.
#[doc(alias = "BrokenBarrierError")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenBarrier;

impl fmt::Display for BrokenBarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the barrier was aborted, or reset while this one waited")
    }
}

impl std::error::Error for BrokenBarrier {}

struct Wait<'a> {
    barrier: &'a Barrier,
}

impl Desk for Wait<'_> {
    type Request = ();
    type Grant = Result<BarrierWaitResult, BrokenBarrier>;
    type Output = Result<BarrierWaitResult, BrokenBarrier>;
    const WAITS_FOR: WaitsFor = &"the others at a barrier";

    fn line(&self) -> &Line<Self::Grant> {
        &self.barrier.line
    }

    fn request(&self) {}

    fn try_now(&mut self) -> Option<Self::Output> {
        let barrier = self.barrier;
        if barrier.is_broken() {
            return Some(Err(BrokenBarrier));
        }
        if barrier.line.len() + 1 < barrier.parties {
            return None;
        }
        let mut indexes = 0..;
        let mut next = |is_leader| BarrierWaitResult { index: indexes.next().expect("endless"), is_leader };
        let mut wakes = Wakes::default();
        barrier.line.grant_all(|| Ok(next(false)), &mut wakes);
        let last = next(true);
        wakes.wake();
        Some(Ok(last))
    }

    fn redeem(&mut self, grant: Self::Grant) -> Option<Self::Output> {
        Some(grant)
    }

    /// Who left before the meeting was complete is not counted any more, who left after it is not missed.
    fn pass_on(&self, _: Option<Self::Grant>) {}
}
