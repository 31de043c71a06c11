//! How much a loop has done, what it holds, and which of its bounds have bitten.
//!
//! Reading is a handful of loads and two locks; nothing is reset, so that any number of observers can take differences.

use crate::engine::core::Core;
use crate::engine::pool_jobs::PoolCounts;
use crate::handle::LoopHandle;

/// The numbers of a loop, see [`stats`]. Those that count up do so from the making of the loop on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Polls, each the beginning of a turn.
    pub turns: u64,
    /// Rounds; a turn has one or more.
    pub rounds: u64,
    /// Jobs run: polls of tasks, callbacks, reports.
    pub jobs: u64,
    /// Timers that came due.
    pub timers_fired: u64,
    /// Messages of other threads taken from the inbox: wakes and calls.
    pub messages: u64,
    /// Tasks spawned.
    pub tasks_spawned: u64,
    /// Callbacks and polls that took longer than the limit of [`Builder::slow_callback`](crate::Builder::slow_callback).
    pub slow_jobs: u64,

    /// Tasks that have not ended.
    pub tasks_alive: usize,
    /// Timers armed.
    pub timers: usize,
    /// Descriptors watched: those of I/O objects, and those of the user's for which a callback or a `sock_*` call waits.
    pub descriptors: usize,
    /// Messages of other threads that wait in the inbox.
    pub inbox: usize,
    /// Jobs in the ready queue.
    pub ready: usize,
    /// Threads of the blocking pool that have not ended, with a job or without.
    pub blocking_threads: usize,
    /// Blocking jobs that one of them runs.
    pub blocking_running: usize,
    /// Blocking jobs that wait for one of them.
    pub blocking_waiting: usize,

    /// How often a turn ended with jobs left because [`jobs_per_poll`](crate::Builder::jobs_per_poll) had run. Often: the loop is busy.
    pub turns_full: u64,
    /// How often a task gave way because it had made all the operations of one poll. Often: a peer floods it.
    pub budgets_spent: u64,
    /// How often messages of other threads had to wait for the next round because 1,024 had joined. Often: threads flood the loop.
    pub messages_left: u64,
    /// How often a blocking job had to wait because as many as there may be [threads](crate::Builder::blocking_threads) had one. Often:
    /// what waits should be a [`Worker`](crate::thread::Worker), or there are too few of them.
    pub blocking_waits: u64,
}

/// The numbers of the loop that runs on this thread.
///
/// ```
/// miniloop::run(async {
///     let before = miniloop::diag::stats();
///     miniloop::yield_now().await;
///     let after = miniloop::diag::stats();
///     assert_eq!(after.jobs - before.jobs, 1);
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn stats() -> Stats {
    LoopHandle::current().stats()
}

impl LoopHandle {
    /// How much this loop has done and what it holds; see [`Stats`]. A closed loop holds nothing.
    pub fn stats(&self) -> Stats {
        read(&self.core)
    }
}

fn read(core: &Core) -> Stats {
    let counters = &core.probes.counters;
    let pool = core.pool.started_jobs().map_or_else(PoolCounts::default, |jobs| jobs.counts());
    Stats {
        turns: counters.polls.get(),
        rounds: counters.rounds.get(),
        jobs: counters.jobs_before_poll.get() + core.jobs_since_poll.get() as u64,
        timers_fired: counters.timers_fired.get(),
        messages: counters.messages.get(),
        tasks_spawned: core.tasks_spawned.get(),
        slow_jobs: counters.slow_jobs.get(),
        tasks_alive: core.tasks_alive.get(),
        timers: core.timers_len(),
        descriptors: core.driver().map_or(0, |driver| driver.len()),
        inbox: core.inbox.len(),
        ready: core.ready.borrow().len(),
        blocking_threads: pool.threads,
        blocking_running: pool.running,
        blocking_waiting: pool.waiting,
        turns_full: counters.full_turns.get(),
        budgets_spent: counters.spent_budgets.get(),
        messages_left: counters.full_mailbags.get(),
        blocking_waits: pool.waits,
    }
}
