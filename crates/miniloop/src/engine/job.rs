//! What stands behind a word: a task, a callback, or somebody who waits for a deadline.
//!
//! Everything that can be run or woken is a slot of one table, so one word, one queue and one way to cancel serve all of them.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::os::fd::RawFd;
use std::panic::Location;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use crate::driver::Direction;
use crate::engine::member_list::Seat;
use crate::engine::record::{Origin, Record};
use crate::engine::task_head::AnyTask;
use crate::instant::Instant;
use crate::outcome::Flow;
use crate::slots::Key;

pub(crate) struct Slot {
    pub(crate) job: Job,
    /// It stands in the ready queue: waking it again adds nothing.
    pub(crate) is_queued: bool,
    /// It was woken since it ran last. One that is only queued, to begin or to hear that it is to stop, was not.
    pub(crate) is_woken: bool,
    /// It stands in the timer queue: removing it leaves a dead entry there.
    pub(crate) is_armed: bool,
}

impl Slot {
    pub(crate) fn new(job: Job) -> Slot {
        Slot { job, is_queued: false, is_woken: false, is_armed: false }
    }

    /// The job is about to run, and stands in the queue no more. Whether it was woken since last time.
    pub(crate) fn begin(&mut self) -> bool {
        self.is_queued = false;
        std::mem::take(&mut self.is_woken)
    }
}

pub(crate) enum Job {
    /// The future given to `run_until_complete`, which keeps it in its own frame.
    Main(Rc<Record>),
    Task(AnyTask),
    /// A member of a task group, which polls it itself. It never stands in the loop's queue, only in its group's list.
    Member(Seat),
    Once(Box<dyn RunOnce>),
    Repeat(Rc<Repeat>),
    /// Somebody who waits for a deadline. It never runs; when it is due its waker is woken.
    Deadline(Waker),
    /// The end of the grace of a level that was asked to stop. It never runs.
    Grace(Key),
    /// The next report in line goes to the error handler.
    Report,
}

impl Job {
    /// A callback that runs once.
    pub(crate) fn once(place: &'static Location<'static>, callback: impl FnOnce() -> Flow + 'static) -> Job {
        Job::Once(Box::new(Once { origin: Origin::new(place), callback }))
    }

    /// Where it came from. `None` for what runs no code of its own.
    pub(crate) fn origin<R>(&self, look: impl FnOnce(&Origin) -> R) -> Option<R> {
        match self {
            Job::Once(once) => Some(look(once.origin())),
            Job::Repeat(repeat) => Some(look(&repeat.origin)),
            _ => self.record(|record| look(&record.origin)),
        }
    }

    /// The record of one that is polled.
    pub(crate) fn record<R>(&self, look: impl FnOnce(&Record) -> R) -> Option<R> {
        match self {
            Job::Main(record) => Some(look(record)),
            Job::Task(task) => Some(look(&task.head.record)),
            Job::Member(seat) => seat.record(look),
            Job::Once(_) | Job::Repeat(_) | Job::Deadline(_) | Job::Grace(_) | Job::Report => None,
        }
    }
}

/// A callback that runs once.
pub(crate) trait RunOnce {
    fn origin(&self) -> &Origin;
    fn call(self: Box<Self>) -> Flow;
}

struct Once<F> {
    origin: Origin,
    callback: F,
}

impl<F: FnOnce() -> Flow> RunOnce for Once<F> {
    fn origin(&self) -> &Origin {
        &self.origin
    }

    fn call(self: Box<Self>) -> Flow {
        (self.callback)()
    }
}

/// A callback that stays until it is cancelled or breaks.
pub(crate) struct Repeat {
    pub(crate) origin: Origin,
    pub(crate) callback: RefCell<Box<dyn FnMut() -> Flow>>,
    pub(crate) cause: Cause,
}

/// What makes a repeating callback run again.
pub(crate) enum Cause {
    Period { period: Duration, next: Cell<Instant> },
    Readiness { fd: RawFd, direction: Direction },
}

impl Cause {
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Cause::Period { next, .. } => Some(next.get()),
            Cause::Readiness { .. } => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Period { period, .. } => write!(f, "callback of every {period:?}"),
            Cause::Readiness { fd, direction: Direction::Read } => write!(f, "reader of descriptor {fd}"),
            Cause::Readiness { fd, direction: Direction::Write } => write!(f, "writer of descriptor {fd}"),
        }
    }
}
