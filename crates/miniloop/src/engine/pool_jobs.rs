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
//! values: none is run or dropped under the lock. Who looks inside ([`PoolJobs::survey`]) holds it for as long as it takes to copy the
//! places. `tests/loom.rs` builds this file again. Next: `pool.rs`, the loop's side.

use std::collections::VecDeque;
use std::mem;
use std::panic::Location;
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

/// A job that no thread has yet.
pub(crate) struct WaitingJob {
    ticket: PoolTicket,
    /// The line that submitted it.
    place: &'static Location<'static>,
    pub(crate) job: PoolJob,
}

/// How much a pool holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolCounts {
    /// Threads that were asked for and have not ended.
    pub(crate) threads: usize,
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// How often a job has found as many threads as there may be, and none of them free.
    pub(crate) waits: u64,
}

/// What was left when the patience of the one who closed was at its end.
pub(crate) struct Unfinished {
    pub(crate) running: usize,
    /// To be dropped with care.
    pub(crate) never_ran: VecDeque<WaitingJob>,
}

struct State {
    waiting: VecDeque<WaitingJob>,
    next_ticket: u64,
    /// Threads that were asked for and have not ended. Those without a job take one when they have started or woken.
    threads: usize,
    /// What the others have, in no order, each with the line that submitted it.
    running: Vec<(PoolTicket, &'static Location<'static>)>,
    waits: u64,
    is_open: bool,
    /// Who waits until nothing runs and nothing waits. A waker of the loop's own: no foreign code.
    when_quiet: Option<Waker>,
}

impl PoolJobs {
    pub(crate) fn new(threads_max: usize, idle: Duration) -> PoolJobs {
        let state =
            State { waiting: VecDeque::new(), next_ticket: 0, threads: 0, running: Vec::new(), waits: 0, is_open: true, when_quiet: None };
        PoolJobs { state: Mutex::new(state), changed: Condvar::new(), ended: Condvar::new(), threads_max, idle }
    }

    /// Adds a job behind the others, if fewer than `len_max` are waiting.
    pub(crate) fn push(&self, job: PoolJob, place: &'static Location<'static>, len_max: usize) -> Result<Queued, PoolRefused> {
        let mut state = lock(&self.state);
        if !state.is_open || state.waiting.len() >= len_max {
            return Err(PoolRefused { job, is_full: state.is_open });
        }
        let ticket = PoolTicket(state.next_ticket);
        state.next_ticket += 1;
        state.waiting.push_back(WaitingJob { ticket, place, job });
        let must_wait = state.waiting.len() > state.free();
        let needs_thread = must_wait && state.threads < self.threads_max;
        state.threads += usize::from(needs_thread);
        state.waits += u64::from(must_wait && !needs_thread);
        drop(state);
        if !needs_thread {
            self.changed.notify_one();
        }
        Ok(Queued { ticket, needs_thread })
    }

    /// Takes a job out again, unless a thread has it already.
    pub(crate) fn withdraw(&self, ticket: PoolTicket) -> Option<PoolJob> {
        let mut state = lock(&self.state);
        let index = state.waiting.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()?;
        let job = state.waiting.remove(index).map(|waiting| waiting.job);
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
        state.threads -= 1;
        state.threads > 0
    }

    /// The life of a thread.
    pub(crate) fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(WaitingJob { ticket, place, job }) = state.waiting.pop_front() {
                state.running.push((ticket, place));
                drop(state);
                job();
                state = lock(&self.state);
                state.running.retain(|(running, _)| *running != ticket);
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
        Err(Unfinished { running: state.running.len(), never_ran: mem::take(&mut state.waiting) })
    }

    pub(crate) fn counts(&self) -> PoolCounts {
        let state = lock(&self.state);
        PoolCounts { threads: state.threads, running: state.running.len(), waiting: state.waiting.len(), waits: state.waits }
    }

    /// The jobs in the order in which they were submitted, each with its line and whether a thread has it.
    pub(crate) fn survey(&self) -> Vec<(&'static Location<'static>, bool)> {
        let (mut running, waiting): (Vec<_>, Vec<_>) = {
            let state = lock(&self.state);
            (state.running.clone(), state.waiting.iter().map(|waiting| (waiting.place, false)).collect())
        };
        running.sort_by_key(|(ticket, _)| *ticket);
        running.into_iter().map(|(_, place)| (place, true)).chain(waiting).collect()
    }
}

impl State {
    fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// How many threads have no job.
    fn free(&self) -> usize {
        self.threads - self.running.len()
    }

    fn take_quiet_waker(&mut self) -> Option<Waker> {
        if self.is_quiet() { self.when_quiet.take() } else { None }
    }
}
