//! The jobs that wait for the threads of a pool, and how many threads there are.
//!
//! ```text
//!         push             a free thread                  the job returns
//! (job) -------> Waiting ----------------> on its thread ----------------> the thread is free again
//!                   | withdraw: back to its owner
//!
//! a thread:  started, free ---> has a job ---> free ---> has a job ..      it ends when it was free for `idle`, or at the close
//! ```
//!
//! One lock between the loop's thread, which adds and withdraws, and the pool's, which take. First come, first served. A thread is asked
//! for only when there are more jobs than free threads, so a pool never has more threads than it had jobs at one time. Jobs are user
//! values: none is run or dropped under the lock. `tests/loom.rs` builds this file again. Next: `pool.rs`, the loop's side.

use std::collections::VecDeque;
use std::mem;
use std::task::Waker;
use std::time::Duration;

use crate::primitives::{Condvar, Mutex, lock, wait_while};

/// The queue of one pool.
pub(crate) struct PoolJobs {
    state: Mutex<State>,
    /// There is something to take, or the pool closes.
    changed: Condvar,
    /// A thread has ended.
    ended: Condvar,
    threads_max: usize,
    /// How long a thread without a job stays.
    idle: Duration,
}

/// A job catches its own panics.
pub(crate) type PoolJob = Box<dyn FnOnce() + Send>;

/// The place of a job in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolTicket(u64);

/// A job that stands in the queue.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(crate) ticket: PoolTicket,
    /// The threads that are there have enough to do: the caller has to start one more, which calls [`PoolJobs::work`], or to say that it
    /// could not.
    pub(crate) needs_thread: bool,
}

/// A job that was not taken, and whether for want of room.
pub(crate) struct PoolRefused {
    pub(crate) job: PoolJob,
    pub(crate) is_full: bool,
}

/// What was left when the patience of the one who closed was at its end.
pub(crate) struct Unfinished {
    pub(crate) running: usize,
    /// To be dropped with care.
    pub(crate) never_ran: VecDeque<(PoolTicket, PoolJob)>,
}

struct State {
    waiting: VecDeque<(PoolTicket, PoolJob)>,
    next_ticket: u64,
    /// Threads that were asked for and have not ended.
    threads: usize,
    /// Those of them that have no job. Each takes one when it has started or woken.
    free: usize,
    is_open: bool,
    /// Who waits until nothing runs and nothing waits. A waker of the loop's own: no foreign code.
    when_quiet: Option<Waker>,
}

impl PoolJobs {
    pub(crate) fn new(threads_max: usize, idle: Duration) -> PoolJobs {
        let state = State { waiting: VecDeque::new(), next_ticket: 0, threads: 0, free: 0, is_open: true, when_quiet: None };
        PoolJobs { state: Mutex::new(state), changed: Condvar::new(), ended: Condvar::new(), threads_max, idle }
    }

    /// Adds a job behind the others, if fewer than `len_max` are waiting.
    pub(crate) fn push(&self, job: PoolJob, len_max: usize) -> Result<Queued, PoolRefused> {
        let mut state = lock(&self.state);
        if !state.is_open || state.waiting.len() >= len_max {
            return Err(PoolRefused { job, is_full: state.is_open });
        }
        let ticket = PoolTicket(state.next_ticket);
        state.next_ticket += 1;
        state.waiting.push_back((ticket, job));
        let needs_thread = state.waiting.len() > state.free && state.threads < self.threads_max;
        if needs_thread {
            state.threads += 1;
            state.free += 1;
        }
        drop(state);
        if !needs_thread {
            self.changed.notify_one();
        }
        Ok(Queued { ticket, needs_thread })
    }

    /// Takes a job out again, unless a thread has it already.
    pub(crate) fn withdraw(&self, ticket: PoolTicket) -> Option<PoolJob> {
        let mut state = lock(&self.state);
        let index = state.waiting.binary_search_by_key(&ticket, |(ticket, _)| *ticket).ok()?;
        let job = state.waiting.remove(index).map(|(_, job)| job);
        let waker = state.take_quiet_waker();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        job
    }

    /// Whether nothing runs and nothing waits. If not, `waker` is woken when it is so; the last one counts.
    pub(crate) fn poll_quiet(&self, waker: &Waker) -> bool {
        let mut state = lock(&self.state);
        if state.is_quiet() {
            return true;
        }
        state.when_quiet = Some(waker.clone());
        false
    }

    /// The thread that was asked for cannot be started. False: there is no other one either, so nobody would ever run what waits.
    pub(crate) fn has_other_thread(&self) -> bool {
        let mut state = lock(&self.state);
        state.free -= 1;
        state.threads -= 1;
        state.threads > 0
    }

    /// The life of a thread.
    pub(crate) fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some((_, job)) = state.waiting.pop_front() {
                state.free -= 1;
                drop(state);
                job();
                state = lock(&self.state);
                state.free += 1;
                state.take_quiet_waker().into_iter().for_each(Waker::wake);
                continue;
            }
            let is_over;
            (state, is_over) = wait_while(&self.changed, state, self.idle, |state| state.waiting.is_empty() && state.is_open);
            // Looked at again under the same lock: what came while the time ran out is not left behind.
            if (is_over || !state.is_open) && state.waiting.is_empty() {
                break;
            }
        }
        state.free -= 1;
        state.threads -= 1;
        drop(state);
        self.ended.notify_all();
    }

    /// Lets nothing more in. What waits is still run.
    pub(crate) fn close(&self) {
        lock(&self.state).is_open = false;
        self.changed.notify_all();
    }

    /// After [`close`](PoolJobs::close): waits until the last thread has ended, and no longer than `limit`. Threads that have no job by
    /// then, and find none, are as good as ended.
    ///
    /// # Errors
    /// The time is up. What had not begun will not; what runs goes on.
    pub(crate) fn wait_ended(&self, limit: Duration) -> Result<(), Unfinished> {
        let (mut state, _) = wait_while(&self.ended, lock(&self.state), limit, |state| state.threads > 0);
        if state.is_quiet() {
            return Ok(());
        }
        Err(Unfinished { running: state.threads - state.free, never_ran: mem::take(&mut state.waiting) })
    }

    /// For tests: threads without a job.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        lock(&self.state).free
    }

    /// For tests: threads that were asked for and have not ended, and jobs that wait for one.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.threads, state.waiting.len())
    }
}

impl State {
    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.free == self.threads
    }

    fn take_quiet_waker(&mut self) -> Option<Waker> {
        if self.is_quiet() { self.when_quiet.take() } else { None }
    }
}
