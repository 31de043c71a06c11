//! What the loop remembers of a job, for reports and for those who look: where it came from, what it sees, how it is doing.
//!
//! A record stands with the job itself: in the allocation of a task or callback, in the list of a group. So the table of jobs holds little,
//! and a job that runs writes where it reads anyway. Next: `member_list.rs` and `task_head.rs`, which hold them.

use std::cell::Cell;
use std::panic::Location;

use crate::engine::locals::{self, Locals};
use crate::engine::word::Word;
use crate::instant::Instant;

/// Where a job came from.
pub(crate) struct Origin {
    /// The line that made it.
    pub(crate) place: &'static Location<'static>,
    /// The task-locals that it sees.
    pub(crate) locals: Locals,
}

impl Origin {
    /// With the task-locals of the code that runs now.
    pub(crate) fn new(place: &'static Location<'static>) -> Origin {
        Origin { place, locals: locals::current() }
    }
}

/// The same of a job that is polled, and how it is doing.
pub(crate) struct Record {
    pub(crate) origin: Origin,
    /// How often it was polled; stops at the end of the numbers.
    pub(crate) polls: Cell<u32>,
    /// What the clock had shown when it was polled last, or made.
    pub(crate) since: Cell<Instant>,
    /// What its futures have said in the last poll that they wait for.
    pub(crate) waits_for: Cell<WaitsFor>,
    /// The member of a group whose value that is, when it is that. Whoever awaits a task is found by their waker.
    pub(crate) awaits: Cell<Word>,
}

/// What somebody waits for, in a few words. One word wide, since every poll that ends pending leaves one.
pub(crate) type WaitsFor = &'static &'static str;

impl Record {
    pub(crate) fn new(place: &'static Location<'static>, reading: Instant) -> Record {
        let awaits = Cell::new(Word::STALE);
        Record { origin: Origin::new(place), polls: Cell::new(0), since: Cell::new(reading), waits_for: Cell::new(&""), awaits }
    }

    /// The job is about to be polled.
    #[inline]
    pub(crate) fn begin_poll(&self, reading: Instant) {
        self.polls.set(self.polls.get().saturating_add(1));
        self.since.set(reading);
    }
}
