//! Several futures that one future polls, each with a waker of its own: what joining, racing and waiting have in common.
//!
//! A wake leads to its branch and to no other, so a thousand branches that are woken one by one cost a thousand polls, not a million. The
//! mechanism is that of task groups (`engine/member_list.rs`): a branch has a slot of the loop, whose waker lists it and wakes the future
//! around it. Unlike a member of a group, a branch is a part of the task that polls it: it is never the current task.
//!
//! The owner polls in three steps, since what is to be done with each branch is its business:
//!
//! ```text
//! let mut turn = branches.begin(cx, "what this is");      who is ready now, at most 32
//! while let Some(ready) = branches.next(&mut turn) { .. } branches.poll(ready.index), take the output, or drop the branch
//! branches.end("what is waited for")                      the rest is for the next poll, which is asked for
//! ```
//!
//! A branch costs an allocation and a slot, from its first poll until it ends.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::job::Job;
use crate::engine::member_list::MemberList;
use crate::engine::record::WaitsFor;
use crate::engine::waker;
use crate::engine::word::Word;

pub(crate) struct Branches<F> {
    branches: Vec<Branch<F>>,
    list: Rc<MemberList>,
    /// The loop, from the first poll on.
    core: Option<Rc<Core>>,
    /// Branches that have not ended.
    alive: usize,
    place: &'static Location<'static>,
}

struct Branch<F> {
    /// `None` once it has ended.
    future: Option<Pin<Box<F>>>,
    word: Word,
}

/// The branches that a poll of the owner may still run.
pub(crate) struct Turn {
    left: usize,
}

/// A branch whose turn it is.
pub(crate) struct Ready {
    pub(crate) index: usize,
    /// It was woken, and not only begins or hears that it is to stop.
    pub(crate) was_woken: bool,
}

impl<F: Future> Branches<F> {
    pub(crate) fn new(futures: impl IntoIterator<Item = F>, place: &'static Location<'static>) -> Branches<F> {
        let branch = |future| Branch { future: Some(Box::pin(future)), word: Word::STALE };
        let branches: Vec<_> = futures.into_iter().map(branch).collect();
        let alive = branches.len();
        Branches { branches, list: Rc::default(), core: None, alive, place }
    }

    /// How many have not ended.
    pub(crate) fn alive(&self) -> usize {
        self.alive
    }

    /// The indices of those that have not ended.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> + use<F> {
        let alive: Vec<_> =
            self.branches.iter().enumerate().filter(|(_, branch)| branch.future.is_some()).map(|(index, _)| index).collect();
        alive.into_iter()
    }

    /// # Panics
    /// Outside a loop, and under another one than the first time.
    #[track_caller]
    pub(crate) fn begin(&mut self, cx: &Context<'_>, what: &str) -> Turn {
        match &self.core {
            Some(core) => context::check_home(core.number, what),
            None => self.start(),
        }
        self.list.set_poller(self.core.as_ref().and_then(|core| context::current_task_of(core.id)), cx.waker());
        Turn { left: self.list.turn_len() }
    }

    #[track_caller]
    fn start(&mut self) {
        let core = context::current();
        for (index, branch) in self.branches.iter_mut().enumerate() {
            let index = u32::try_from(index).expect("fewer branches than slots");
            branch.word = core.insert(Job::Member(self.list.sit(index, index, core.record(self.place))));
            core.enqueue(branch.word);
        }
        self.core = Some(core);
    }

    /// The next branch that is ready.
    pub(crate) fn next(&mut self, turn: &mut Turn) -> Option<Ready> {
        let core = self.core.as_ref()?;
        while turn.left > 0 {
            turn.left -= 1;
            let word = self.list.pop()?;
            if let Some((index, was_woken, ())) = core.begin_member(word, |_| ()) {
                return Some(Ready { index: index as usize, was_woken });
            }
        }
        None
    }

    /// The waker of a branch.
    pub(crate) fn waker(&self, index: usize) -> Waker {
        waker::of(self.branches[index].word)
    }

    /// Whether a branch has been woken since its last poll.
    pub(crate) fn is_woken(&self, index: usize) -> bool {
        self.core.as_ref().and_then(|core| core.with_slot(self.branches[index].word, |slot| slot.is_woken)).unwrap_or(false)
    }

    /// Polls a branch. One that ends is dropped at once.
    pub(crate) fn poll(&mut self, index: usize) -> Poll<F::Output> {
        let waker = self.waker(index);
        let Some(future) = &mut self.branches[index].future else { return Poll::Pending };
        // What it waits for it tells its task, as everybody does. If it does not, what its neighbour has told is not taken for its own.
        context::waits_for(&"");
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        if polled.is_pending() {
            self.list.record(index as u32, context::note_told);
        }
        if polled.is_ready() {
            self.drop_branch(index);
        }
        polled
    }

    /// Ends a branch. A destructor that panics is reported, and changes nothing for the others.
    pub(crate) fn drop_branch(&mut self, index: usize) {
        let branch = &mut self.branches[index];
        let future = branch.future.take();
        self.alive -= usize::from(future.is_some());
        if let Some(core) = &self.core {
            let slot = core.remove(branch.word);
            core.drop_safely((slot, self.list.rise(index as u32, branch.word)), "task-local value", self.place);
            core.drop_safely(future, "branch", self.place);
        }
    }

    /// Ends a poll of the owner: what is left over comes in the next one. Ready when no branch is left.
    pub(crate) fn end(&mut self, what: WaitsFor) -> Poll<()> {
        if self.alive == 0 {
            return Poll::Ready(());
        }
        self.list.end_poll();
        context::waits_for(what);
        Poll::Pending
    }
}

impl<F> Drop for Branches<F> {
    /// The slots go first, so that what the futures wake in their destructors finds nobody.
    fn drop(&mut self) {
        let Some(core) = &self.core else { return };
        for (index, branch) in (0..).zip(&self.branches) {
            let slot = core.remove(branch.word);
            core.drop_safely((slot, self.list.rise(index, branch.word)), "task-local value", self.place);
        }
        for branch in &mut self.branches {
            core.drop_safely(branch.future.take(), "branch", self.place);
        }
    }
}
