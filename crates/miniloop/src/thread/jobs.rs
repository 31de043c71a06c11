//! The jobs that wait for a worker thread, in the order in which they were submitted.
//!
//! One lock and one condition variable between the loop's thread, which adds and withdraws, and the worker, which takes. A withdrawn job
//! leaves no trace, so the queue is never longer than there are callers who wait for an answer. Jobs own user values: none is dropped in
//! here, each one goes to the worker or back. `tests/loom.rs` builds this file again.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use crate::primitives::{Condvar, Mutex, lock, wait};

/// The queue of one worker.
pub(crate) struct Jobs<S> {
    state: Mutex<State<S>>,
    changed: Condvar,
}

/// A job. If it panics, it returns what is left to do once the state is gone.
pub(crate) type Job<S> = Box<dyn FnOnce(&mut S) -> Option<Panicked> + Send>;

/// A job has panicked.
pub(crate) struct Panicked {
    pub(crate) message: String,
    /// Tells its caller.
    pub(crate) tell: Box<dyn FnOnce() + Send>,
}

/// The place of a job in the queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// A job that was not taken, and whether for want of room.
pub(crate) struct Refused<S> {
    pub(crate) job: Job<S>,
    pub(crate) is_full: bool,
}

struct State<S> {
    waiting: VecDeque<(Ticket, Job<S>)>,
    next_ticket: u64,
    phase: Phase,
}

enum Phase {
    Open,
    /// Nothing comes in any more; what is there is finished.
    Closing,
    /// The worker has ended early, for this reason.
    Gone(Arc<str>),
}

impl<S> Jobs<S> {
    pub(crate) fn new() -> Jobs<S> {
        let state = State { waiting: VecDeque::new(), next_ticket: 0, phase: Phase::Open };
        Jobs { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds a job behind the others, if fewer than `len_max` are waiting.
    pub(crate) fn push(&self, job: Job<S>, len_max: usize) -> Result<Ticket, Refused<S>> {
        let mut state = lock(&self.state);
        let is_open = matches!(state.phase, Phase::Open);
        if !is_open || state.waiting.len() >= len_max {
            return Err(Refused { job, is_full: is_open });
        }
        let ticket = Ticket(state.next_ticket);
        state.next_ticket += 1;
        state.waiting.push_back((ticket, job));
        drop(state);
        self.changed.notify_one();
        Ok(ticket)
    }

    /// Takes a job out again, unless the worker has it already.
    pub(crate) fn withdraw(&self, ticket: Ticket) -> Option<Job<S>> {
        let mut state = lock(&self.state);
        let index = state.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()?;
        state.waiting.remove(index).map(|(_, job)| job)
    }

    /// For the worker: waits for the next job. `None`: the queue was closed and nothing is left in it.
    pub(crate) fn take(&self) -> Option<Job<S>> {
        let mut state = lock(&self.state);
        loop {
            if let Some((_, job)) = state.waiting.pop_front() {
                return Some(job);
            }
            if !matches!(state.phase, Phase::Open) {
                return None;
            }
            state = wait(&self.changed, state);
        }
    }

    /// Lets nothing more in.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        if matches!(state.phase, Phase::Open) {
            state.phase = Phase::Closing;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// For the worker: it ends now. Returns the jobs that never ran, to be dropped.
    #[must_use = "the jobs own user values, to be dropped with care"]
    pub(crate) fn end(&self, reason: Arc<str>) -> VecDeque<(Ticket, Job<S>)> {
        let mut state = lock(&self.state);
        state.phase = Phase::Gone(reason);
        mem::take(&mut state.waiting)
    }

    /// Why the worker has ended early, if it has.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        match &lock(&self.state).phase {
            Phase::Gone(reason) => Some(reason.clone()),
            Phase::Open | Phase::Closing => None,
        }
    }
}
