//! What has happened in a loop and when, as records in memory, until their number reaches a bound; from then on they are only counted.
//!
//! A record is made when something ends, a wake when it happens. Times are those of the loop's clock, each at least a nanosecond after the
//! one before, so that what nests in the program nests in the records also on a virtual clock, which stands still. Records hold numbers
//! and places; `diag/trace.rs` makes text of them, on another thread.

use std::collections::BTreeMap;
use std::panic::Location;

use crate::engine::word::Word;
use crate::instant::Instant;

pub(crate) struct Timeline {
    records: Records,
    records_max: usize,
    latest: u64,
    turn_began: Option<u64>,
}

/// All that a timeline has recorded. It can go to another thread.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) slices: Vec<Slice>,
    pub(crate) wakes: Vec<Wake>,
    /// The names of tasks, by their words.
    pub(crate) names: BTreeMap<u64, String>,
    /// How many slices and wakes there was no room for.
    pub(crate) dropped: u64,
    pub(crate) loop_number: u64,
}

impl Records {
    pub(crate) fn len(&self) -> usize {
        self.slices.len() + self.wakes.len()
    }
}

/// A stretch of time, in nanoseconds of the loop's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) what: What,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Turn,
    Poll,
    /// In the driver, asleep or looking.
    Wait,
    /// What other threads sent joins the queue.
    Inbox,
    /// Timers that are due join the queue.
    Timers,
    Round,
    Job {
        word: Word,
        kind: JobKind,
        place: &'static Location<'static>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobKind {
    Main,
    Task,
    Member,
    Callback,
    Repeat,
    Report,
}

/// A job was put into the ready queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wake {
    pub(crate) at: u64,
    pub(crate) woken: Word,
}

impl Timeline {
    pub(crate) fn new(records_max: usize, now: Instant, is_in_turn: bool) -> Timeline {
        let mut timeline = Timeline { records: Records::default(), records_max, latest: 0, turn_began: None };
        let began = timeline.stamp(now);
        timeline.turn_began = is_in_turn.then_some(began);
        timeline
    }

    pub(crate) fn set_records_max(&mut self, records_max: usize) {
        self.records_max = records_max;
    }

    /// Ends the turn that runs, and gives what was recorded.
    pub(crate) fn finish(mut self, now: Instant) -> Records {
        self.turn(false, now);
        self.records
    }

    /// The time of something that happens now.
    pub(crate) fn stamp(&mut self, now: Instant) -> u64 {
        self.latest = now.as_nanos().max(self.latest + 1);
        self.latest
    }

    pub(crate) fn slice(&mut self, what: What, begin: u64, now: Instant) {
        let end = self.stamp(now);
        if self.has_room() {
            self.records.slices.push(Slice { what, begin, end });
        }
    }

    pub(crate) fn wake(&mut self, woken: Word, now: Instant) {
        let at = self.stamp(now);
        if self.has_room() {
            self.records.wakes.push(Wake { at, woken });
        }
    }

    /// Notes what a task is called, the first time.
    pub(crate) fn name(&mut self, word: Word, name: impl FnOnce() -> String) {
        if self.records.len() < self.records_max {
            self.records.names.entry(word.as_u64()).or_insert_with(name);
        }
    }

    /// A turn ends, and another one begins if the loop goes on.
    pub(crate) fn turn(&mut self, goes_on: bool, now: Instant) {
        if let Some(begin) = self.turn_began.take() {
            self.slice(What::Turn, begin, now);
        }
        self.turn_began = goes_on.then(|| self.stamp(now));
    }

    fn has_room(&mut self) -> bool {
        let has_room = self.records.len() < self.records_max;
        self.records.dropped += u64::from(!has_room);
        has_room
    }
}
