//! What a loop keeps for those who look inside it: counters, and who is looking.
//!
//! Always there, so it must cost next to nothing. Counters are plain cells, written once per turn, or when something rare happens; jobs are
//! counted by the poll that ends their turn. Whoever wants to hear of each job sets a bit, and a job asks once whether any is set. Next:
//! `inspect.rs` makes a dump, `watched.rs` is the way of a job while somebody looks.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::clock::Clock;
use crate::config::SLOW_CALLBACK_IN_DEBUG;
use crate::engine::pulse::Pulse;
use crate::engine::timeline::Timeline;
use crate::engine::word::Word;

/// Reports what is legal and most likely a mistake, and reads the clock for exact dumps.
pub(crate) const DEBUG: u8 = 1;
/// Jobs are timed, and slow ones reported.
pub(crate) const TIMED: u8 = 2;
/// A watchdog wants to know what runs.
pub(crate) const PULSE: u8 = 4;
/// A timeline is recorded.
pub(crate) const TIMELINE: u8 = 8;

#[derive(Default)]
pub(crate) struct Probes {
    /// The bits above.
    watchers: Cell<u8>,
    /// The limit that was asked for; in debug mode there is one anyway.
    slow_limit: Cell<Option<Duration>>,
    /// How much of the time of the job that runs has been reported already, of members of its groups.
    pub(crate) slow_inside: Cell<Duration>,
    /// Kept while a watchdog reads it.
    pub(crate) pulse: RefCell<Option<Arc<Pulse>>>,
    /// Kept while it is recorded.
    pub(crate) timeline: RefCell<Option<Timeline>>,
    pub(crate) counters: Counters,
}

/// How often things have happened since the loop was made.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) polls: Cell<u64>,
    pub(crate) rounds: Cell<u64>,
    /// Without those since the last poll.
    pub(crate) jobs_before_poll: Cell<u64>,
    pub(crate) messages: Cell<u64>,
    pub(crate) timers_fired: Cell<u64>,
    pub(crate) slow_jobs: Cell<u64>,
    /// A turn ended with jobs left, because `jobs_per_poll` had run.
    pub(crate) full_turns: Cell<u64>,
    /// A task gave way, because it had made all the operations of one poll.
    pub(crate) spent_budgets: Cell<u64>,
    /// Messages of other threads waited for the next round, because as many as join at a time had joined.
    pub(crate) full_mailbags: Cell<u64>,
}

/// Adds one.
pub(crate) fn count(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Probes {
    /// Whether anybody wants to hear of each job.
    pub(crate) fn is_watched(&self) -> bool {
        self.watchers.get() != 0
    }

    pub(crate) fn has(&self, bit: u8) -> bool {
        self.watchers.get() & bit != 0
    }

    pub(crate) fn set(&self, bit: u8, is_set: bool) {
        let others = self.watchers.get() & !bit;
        self.watchers.set(if is_set { others | bit } else { others });
    }

    pub(crate) fn set_debug(&self, is_debug: bool) {
        self.set(DEBUG, is_debug);
        self.set(TIMED, self.slow_limit().is_some());
    }

    pub(crate) fn set_slow_limit(&self, limit: Option<Duration>) {
        self.slow_limit.set(limit);
        self.set(TIMED, self.slow_limit().is_some());
    }

    /// A job was put into the ready queue.
    #[inline]
    pub(crate) fn note_wake(&self, woken: Word, clock: &Clock) {
        if self.has(TIMELINE) {
            self.record_wake(woken, clock);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_wake(&self, woken: Word, clock: &Clock) {
        if let Some(timeline) = &mut *self.timeline.borrow_mut() {
            timeline.wake(woken, clock.now());
        }
    }

    /// Nothing runs now. The pulse goes when its last reader has gone.
    pub(crate) fn rest_pulse(&self) {
        let mut pulse = self.pulse.borrow_mut();
        match &*pulse {
            Some(read) if read.readers.load(Ordering::Relaxed) > 0 => read.end(),
            _ => {
                *pulse = None;
                self.set(PULSE, false);
            }
        }
    }

    /// How long a job may take before it is reported.
    pub(crate) fn slow_limit(&self) -> Option<Duration> {
        self.slow_limit.get().or(self.has(DEBUG).then_some(SLOW_CALLBACK_IN_DEBUG))
    }
}
