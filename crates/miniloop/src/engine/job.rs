//! What stands behind a word: a task, a callback, or somebody who waits for a deadline.
//!
//! Everything that can be run or woken is a slot of one table, so one word, one queue and one way to cancel serve all of them.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::os::fd::RawFd;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use crate::driver::Direction;
use crate::engine::cancel_tree::Level;
use crate::engine::locals::Locals;
use crate::engine::member_list::Seat;
use crate::engine::word::Word;
use crate::instant::Instant;
use crate::outcome::Flow;
use crate::report::Report;
use crate::slots::Key;

pub(crate) struct Slot {
    pub(crate) job: Job,
    /// It stands in the ready queue: waking it again adds nothing.
    pub(crate) is_queued: bool,
    /// It was woken since it ran last. One that is only queued, to begin or to hear that it is to stop, was not.
    pub(crate) is_woken: bool,
    /// It stands in the timer queue: removing it leaves a dead entry there.
    pub(crate) is_armed: bool,
    /// The line that made it, for reports.
    pub(crate) place: &'static Location<'static>,
    /// The task-locals that it sees.
    pub(crate) locals: Locals,
    /// How often it was polled; stops at the end of the numbers.
    pub(crate) polls: u32,
    /// What the clock had shown when it was polled last, or made.
    pub(crate) since: Instant,
    /// What it said in its last poll that it waits for.
    pub(crate) waits_for: &'static str,
    /// The member of a group whose value that is. Whoever awaits a task is found by their waker.
    pub(crate) awaits: Word,
}

impl Slot {
    pub(crate) fn new(job: Job, place: &'static Location<'static>, locals: Locals, reading: Instant) -> Slot {
        Slot {
            job,
            is_queued: false,
            is_woken: false,
            is_armed: false,
            place,
            locals,
            polls: 0,
            since: reading,
            waits_for: "",
            awaits: Word::STALE,
        }
    }

    /// A job is about to run: it stands in the queue no more, and has yet to say what it waits for. Whether it was woken since last time.
    pub(crate) fn begin_poll(&mut self, reading: Instant) -> bool {
        self.is_queued = false;
        self.polls = self.polls.saturating_add(1);
        self.since = reading;
        (self.waits_for, self.awaits) = ("", Word::STALE);
        std::mem::take(&mut self.is_woken)
    }
}

pub(crate) enum Job {
    /// The future given to `run_until_complete`, which keeps it in its own frame.
    Main,
    Task(Pin<Rc<dyn RunTask>>),
    /// A member of a task group, which polls it itself. It never stands in the loop's queue, only in its group's list.
    Member(Seat),
    Once(Box<dyn FnOnce() -> Flow>),
    Repeat(Rc<Repeat>),
    /// Somebody who waits for a deadline. It never runs; when it is due its waker is woken.
    Deadline(Waker),
    /// The end of the grace of a level that was asked to stop. It never runs.
    Grace(Key),
    /// The next report in line goes to the error handler.
    Report,
}

/// A callback that stays until it is cancelled or breaks.
pub(crate) struct Repeat {
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

/// What a task is called: the name that it was given, or its number.
pub(crate) struct TaskName<'a>(pub(crate) Option<&'a str>, pub(crate) u64);

impl fmt::Display for TaskName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskName(Some(given), _) => f.write_str(given),
            TaskName(None, number) => write!(f, "task-{number}"),
        }
    }
}

/// A spawned task as the loop sees it. The loop never knows the type of its future or of its value.
pub(crate) trait RunTask {
    /// Polls the future once. True when the task has finished and its slot is to be freed.
    fn run(self: Pin<&Self>, waker: &Waker, reports: &mut dyn FnMut(Report)) -> bool;

    /// Drops the future where it is and finishes the task as cancelled.
    fn drop_future(&self, reports: &mut dyn FnMut(Report));

    /// Where the task is asked to stop.
    fn level(&self) -> &Level;

    /// How many tasks the loop had spawned before this one.
    fn number(&self) -> u64;

    /// The name that it was given.
    fn given_name(&self) -> Option<Rc<str>>;

    /// The same, or its number.
    fn name(&self) -> String {
        TaskName(self.given_name().as_deref(), self.number()).to_string()
    }

    /// Names it.
    fn set_name(&self, name: Rc<str>);

    /// Shows the wakers of those who wait for its result.
    fn readers(&self, show: &mut dyn FnMut(&Waker));

    /// The task that spawned it, if that lives.
    fn parent(&self) -> Option<Word>;
}
