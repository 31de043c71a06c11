//! The state of one loop, and the doors through which everything above reaches it.
//!
//! A core is shared by the loop and its handles, all on one thread. Its parts stand in cells of their own, and no door calls user code
//! while one of them is borrowed: what a door removes, it returns or drops last. `turn.rs` runs the core, `close.rs` ends it.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::clock::Clock;
use crate::config::{GRACE, OPS_PER_POLL, PARENTS_PER_REPORT};
use crate::driver::Driver;
use crate::engine::alarm::{AT_ONCE, Alarm};
use crate::engine::cancel_tree::CancelTree;
use crate::engine::inbox::{Inbox, Message};
use crate::engine::job::{Job, Slot};
use crate::engine::locals::{self, InLocals, Locals};
use crate::engine::pool::Pool;
use crate::engine::probes::Probes;
use crate::engine::record::{Origin, Record};
use crate::engine::task_head::AnyTask;
use crate::engine::timers::Timers;
use crate::engine::word::{LoopId, Word};
use crate::error::LoopError;
use crate::instant::Instant;
use crate::mutant::{Mutant, is_broken};
use crate::outcome::Flow;
use crate::report::{Report, ReportKind};
use crate::slots::{GENERATION_BITS, Slots};

pub(crate) type ErrorHandler = Rc<RefCell<dyn FnMut(&Report) -> Flow>>;

/// The number of the next loop.
fn next_number() -> u64 {
    static LOOPS: AtomicU64 = AtomicU64::new(1);
    // Relaxed: it only has to be another one.
    LOOPS.fetch_add(1, Ordering::Relaxed)
}

/// Where the generations of a loop start: spread over the numbers that there are, so that a waker of a closed loop finds nothing in a later
/// one that has got its id. By the golden ratio's share of 2^32 any few in a row lie far apart.
fn first_generation(number: u64) -> u32 {
    (number as u32).wrapping_mul(0x9E37_79B1) >> (u32::BITS - GENERATION_BITS + 1)
}

pub(crate) struct Core {
    /// By this a word finds its loop. A later loop may have it again.
    pub(crate) id: LoopId,
    /// Loops are counted from 1, and no number is used twice in a process: who remembers a loop remembers this, and it is what people see.
    pub(crate) number: u64,
    pub(crate) clock: Clock,
    pub(crate) jobs_per_poll: usize,
    /// How long who is cancelled may clean up, unless the one who cancels says otherwise.
    pub(crate) grace: Cell<Duration>,
    pub(crate) phase: Cell<Phase>,

    slots: RefCell<Slots<Slot>>,
    pub(crate) ready: RefCell<VecDeque<Word>>,
    timers: RefCell<Timers>,
    /// Who was asked to stop, and who cleans up: belongs to `cancel.rs`.
    pub(crate) cancels: RefCell<CancelTree>,
    /// The node in there of the job that is being polled, `STALE` until it has one. `None` outside any.
    pub(crate) job_level: Cell<Option<Word>>,
    /// `None` once the loop is closed.
    driver: RefCell<Option<Driver>>,
    pub(crate) inbox: Arc<Inbox>,
    /// Threads for blocking jobs.
    pub(crate) pool: Pool,
    /// Tells a host when to turn the loop, if it asked for that.
    pub(crate) alarm: Option<Alarm>,
    /// Each with the task-locals of what failed.
    pub(crate) reports: RefCell<VecDeque<(Report, Locals)>>,
    pub(crate) on_error: RefCell<Option<ErrorHandler>>,

    /// Somebody asked the running `run_*` to return.
    pub(crate) is_stopping: Cell<bool>,
    /// The report for which the error handler returned `Break`.
    pub(crate) failure: RefCell<Option<Box<Report>>>,
    /// The next round must begin with a poll, however few jobs have run: a timer is known to be due.
    pub(crate) is_poll_due: Cell<bool>,
    /// How many jobs have run since the last poll.
    pub(crate) jobs_since_poll: Cell<usize>,
    /// The latest reading of the clock, so that a deadline in the past is known without another one.
    pub(crate) latest_reading: Cell<Instant>,
    /// What a virtual clock showed at the last poll.
    pub(crate) time_at_poll: Cell<Instant>,
    /// No live timer is earlier; the earliest may be later when it was cancelled since.
    earliest_deadline: Cell<Instant>,
    /// Operations (O10) that the running job may still make before it has to yield.
    pub(crate) ops_left: Cell<u32>,
    /// How many system calls its jobs have made since the last poll, for I/O that did not have to wait.
    pub(crate) calls_since_poll: Cell<u32>,
    /// Jobs given to other threads whose answers have not run yet: a virtual clock waits for them.
    pub(crate) jobs_in_flight: Cell<usize>,
    pub(crate) tasks_spawned: Cell<u64>,
    pub(crate) tasks_alive: Cell<usize>,
    pub(crate) probes: Probes,
    /// Kept between polls for their allocations: who is woken by I/O, and what the inbox held.
    pub(crate) woken: Cell<Vec<Waker>>,
    pub(crate) mail: Cell<Vec<Message>>,

    /// The next in the list of loops that live on this thread; belongs to `context.rs`.
    pub(crate) next_resident: Cell<*const Core>,
}

/// The life of a loop. It only ever moves down this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// New work is dropped at once.
    Closing,
    Closed,
}

impl Core {
    pub(crate) fn new(
        id: LoopId,
        clock: Clock,
        jobs_per_poll: usize,
        driver: Driver,
        inbox: Arc<Inbox>,
        pool: Pool,
        alarm: Option<Alarm>,
    ) -> Core {
        let number = next_number();
        Core {
            id,
            number,
            clock,
            jobs_per_poll,
            grace: Cell::new(GRACE),
            phase: Cell::new(Phase::Open),
            slots: RefCell::new(Slots::starting_at(first_generation(number))),
            ready: RefCell::default(),
            timers: RefCell::default(),
            cancels: RefCell::new(CancelTree::starting_at(first_generation(number))),
            job_level: Cell::new(None),
            driver: RefCell::new(Some(driver)),
            inbox,
            pool,
            alarm,
            reports: RefCell::default(),
            on_error: RefCell::default(),
            is_stopping: Cell::new(false),
            failure: RefCell::default(),
            is_poll_due: Cell::new(false),
            jobs_since_poll: Cell::new(0),
            latest_reading: Cell::new(Instant::from_nanos(0)),
            time_at_poll: Cell::new(Instant::from_nanos(0)),
            earliest_deadline: Cell::new(Instant::FAR_FUTURE),
            ops_left: Cell::new(OPS_PER_POLL),
            calls_since_poll: Cell::new(0),
            jobs_in_flight: Cell::new(0),
            tasks_spawned: Cell::new(0),
            tasks_alive: Cell::new(0),
            probes: Probes::default(),
            woken: Cell::default(),
            mail: Cell::default(),
            next_resident: Cell::new(std::ptr::null()),
        }
    }

    // Jobs.

    /// Puts a job into the table, not yet into the queue.
    pub(crate) fn insert(&self, job: Job) -> Word {
        self.insert_with(|_| job)
    }

    /// The same for a job that has to know its own word. `make` must not call user code.
    #[inline]
    pub(crate) fn insert_with(&self, make: impl FnOnce(Word) -> Job) -> Word {
        let key = self.slots.borrow_mut().insert_with(|key| Slot::new(make(Word::new(self.id, key))));
        Word::new(self.id, key)
    }

    /// Puts a task into the table and behind everything that is ready. `make` must not call user code.
    pub(crate) fn insert_task(&self, make: impl FnOnce(Word) -> AnyTask) -> Word {
        let make = |key| Slot { is_queued: true, ..Slot::new(Job::Task(make(Word::new(self.id, key)))) };
        let word = Word::new(self.id, self.slots.borrow_mut().insert_with(make));
        self.tasks_alive.set(self.tasks_alive.get() + 1);
        self.push_ready(word, true);
        word
    }

    /// A task has ended: its word goes stale.
    pub(crate) fn remove_task(&self, word: Word) {
        let slot = self.slots.borrow_mut().remove(word.key());
        self.tasks_alive.set(self.tasks_alive.get() - 1);
        // Not the last reference to the task: that is its runner's.
        drop(slot);
    }

    /// A record of what begins now, made at `place`.
    pub(crate) fn record(&self, place: &'static Location<'static>) -> Record {
        Record::new(place, self.latest_reading.get())
    }

    /// Wakes a job: it stands in the ready queue from now on, once. A word that has gone stale does nothing.
    pub(crate) fn schedule(&self, word: Word) {
        if let Some(waker) = self.make_ready(word, true) {
            self.wake_safely(waker);
        }
    }

    /// Queues a job that is to begin, or to hear that it was asked to stop. That is no wake (C12).
    pub(crate) fn enqueue(&self, word: Word) {
        if let Some(waker) = self.make_ready(word, false) {
            self.wake_safely(waker);
        }
    }

    /// Does the same and calls nobody: a member of a group is ready in its group's list, and whoever is to poll the group is returned.
    #[must_use = "a group that is not woken hangs"]
    #[inline(always)]
    pub(crate) fn make_ready(&self, word: Word, is_wake: bool) -> Option<Waker> {
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(word.key())?;
        slot.is_woken |= is_wake;
        if (slot.is_queued && !is_broken(Mutant::WakesAddUp)) || matches!(slot.job, Job::Deadline(_) | Job::Grace(_)) {
            return None;
        }
        slot.is_queued = true;
        if let Job::Member(seat) = &slot.job {
            self.probes.note_wake(word, &self.clock);
            return seat.list.push(word);
        }
        self.push_ready(word, matches!(slot.job, Job::Task(_)));
        None
    }

    #[inline(always)]
    fn push_ready(&self, word: Word, is_task: bool) {
        self.probes.note_wake(word, &self.clock);
        if is_task && is_broken(Mutant::WakesJumpTheQueue) {
            self.ready.borrow_mut().push_front(word);
        } else {
            self.ready.borrow_mut().push_back(word);
        }
        self.announce(AT_ONCE);
    }

    /// Asks the running `run_*` to return, or the next one.
    pub(crate) fn stop(&self) {
        self.is_stopping.set(true);
        self.announce(AT_ONCE);
    }

    /// Tells a host that has asked for it that there will be something to do.
    fn announce(&self, deadline: Instant) {
        if let Some(alarm) = &self.alarm {
            alarm.announce(deadline);
        }
    }

    /// Reads, or changes, the slot of a live word. `read` must not call user code.
    pub(crate) fn with_slot<R>(&self, word: Word, read: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.slots.borrow_mut().get_mut(word.key()).map(read)
    }

    /// What is remembered of a live word that is polled. `look` must not call user code.
    pub(crate) fn with_record<R>(&self, word: Word, look: impl FnOnce(&Record) -> R) -> Option<R> {
        self.with_slot(word, |slot| slot.job.record(look)).flatten()
    }

    /// A member of a group is about to be polled, as a job that counts like any other: its place in the group, whether it was woken, and
    /// what `look` sees of its origin. `None` for a word that has gone stale since it was listed. `look` must not call user code.
    pub(crate) fn begin_member<R>(&self, word: Word, look: impl FnOnce(&Origin) -> R) -> Option<(u32, bool, R)> {
        let reading = self.latest_reading.get();
        let begun = self.with_slot(word, |slot| {
            let was_woken = slot.begin();
            let Job::Member(seat) = &slot.job else { return None };
            let looked = seat.record(|record| {
                record.begin_poll(reading);
                look(&record.origin)
            });
            Some((seat.index, was_woken, looked?))
        });
        let begun = begun.flatten()?;
        self.jobs_since_poll.set(self.jobs_since_poll.get() + 1);
        Some(begun)
    }

    /// Takes in a job that somebody asks for, or drops it at once when it is not wanted because the loop is closing: then its word is a
    /// stale one. `make` must not call user code.
    pub(crate) fn admit(&self, is_wanted: bool, place: &'static Location<'static>, make: impl FnOnce(Word) -> Job) -> Word {
        if is_wanted {
            return self.insert_with(make);
        }
        self.drop_safely(make(Word::STALE), "callback", place);
        Word::STALE
    }

    /// Takes a job out of the table: whatever still carries its word has gone stale. The caller drops the job, with nothing borrowed.
    pub(crate) fn remove(&self, word: Word) -> Option<Slot> {
        let slot = self.slots.borrow_mut().remove(word.key())?;
        if slot.is_armed {
            let slots = self.slots.borrow();
            self.timers.borrow_mut().cancelled(|word| slots.get(word.key()).is_some());
        }
        Some(slot)
    }

    /// Takes a callback out and drops it, and with it all that it owns, at once.
    pub(crate) fn cancel(&self, word: Word) {
        if is_broken(Mutant::CancelTooLate) && self.with_slot(word, |slot| slot.is_queued) == Some(true) {
            return;
        }
        if let Some(slot) = self.remove(word) {
            let place = slot.job.origin(|origin| origin.place).unwrap_or(Location::caller());
            self.drop_safely(slot, "callback", place);
        }
    }

    /// Has the code that follows see what the job of this word sees.
    pub(crate) fn enter_locals(&self, word: Word) -> InLocals {
        locals::enter(self.with_slot(word, |slot| slot.job.origin(|origin| origin.locals.clone())).flatten().flatten())
    }

    /// The words of all jobs for which `read` has an answer, with it, in no order that anybody may observe.
    pub(crate) fn select<R>(&self, read: impl Fn(&Job) -> Option<R>) -> Vec<(Word, R)> {
        self.survey(|word, slot| Some((word, read(&slot.job)?)))
    }

    /// The same with all that the table knows. `read` must not call user code.
    pub(crate) fn survey<R>(&self, read: impl Fn(Word, &Slot) -> Option<R>) -> Vec<R> {
        let slots = self.slots.borrow();
        slots.iter().filter_map(|(key, slot)| read(Word::new(self.id, key), slot)).collect()
    }

    // Time.

    pub(crate) fn now(&self) -> Instant {
        let now = self.clock.now();
        self.latest_reading.set(now);
        if now >= self.earliest_deadline.get() {
            self.is_poll_due.set(true);
        }
        now
    }

    /// Puts a live word into the timer queue. Once due, a job is scheduled and a [`Job::Deadline`] has its waker woken. A deadline that
    /// never comes needs no entry.
    pub(crate) fn arm(&self, word: Word, deadline: Instant) {
        if deadline == Instant::FAR_FUTURE {
            return;
        }
        let is_alive = self.with_slot(word, |slot| slot.is_armed = true).is_some();
        debug_assert!(is_alive, "only a live word can be armed");
        self.timers.borrow_mut().arm(deadline, word);
        self.announce(deadline);
        if deadline < self.earliest_deadline.get() {
            self.earliest_deadline.set(deadline);
        }
        let reading = self.clock.as_virtual().map_or(self.latest_reading.get(), |clock| clock.now());
        if deadline <= reading {
            self.is_poll_due.set(true);
        }
    }

    /// Has `waker` woken at the deadline; [`Core::remove`] of the word takes that back.
    pub(crate) fn arm_waker(&self, deadline: Instant, waker: Waker) -> Word {
        let word = self.insert(Job::Deadline(waker));
        self.arm(word, deadline);
        word
    }

    /// Whether the time of what [`Core::arm_waker`] has set has come; if not, `cx` is who is woken.
    pub(crate) fn poll_armed(&self, word: Word, deadline: Instant, cx: &Context<'_>) -> Poll<()> {
        // Cloned before the slot is borrowed, and what stood there is dropped after.
        let mut waker = cx.waker().clone();
        let is_armed = self.with_slot(word, |slot| {
            if let Job::Deadline(present) = &mut slot.job {
                std::mem::swap(present, &mut waker);
            }
        });
        // A loop that has been closed has dropped its timers; their time has not come by that.
        let is_dropped = || self.is_closed() && self.now() < deadline;
        if is_armed.is_some() || is_dropped() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// The deadline of the next live timer.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let slots = self.slots.borrow();
        let earliest = self.timers.borrow_mut().earliest(|word| slots.get(word.key()).is_some());
        self.earliest_deadline.set(earliest.unwrap_or(Instant::FAR_FUTURE));
        earliest
    }

    /// When the loop must be turned again although nothing happens outside, or a point long past when there is something to do already.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        let is_busy = self.is_stopping.get() || !self.ready.borrow().is_empty() || self.inbox.has_mail();
        if is_busy { Some(AT_ONCE) } else { self.next_deadline() }
    }

    /// How many live timers are armed.
    pub(crate) fn timers_len(&self) -> usize {
        self.timers.borrow().live_len()
    }

    /// Takes the next word that is due at `now` out of the timer queue.
    pub(crate) fn pop_due(&self, now: Instant) -> Option<Word> {
        let mut slots = self.slots.borrow_mut();
        let word = self.timers.borrow_mut().pop_due(now, |word| slots.get(word.key()).is_some())?;
        if let Some(slot) = slots.get_mut(word.key()) {
            slot.is_armed = false;
        }
        Some(word)
    }

    // Failures.

    /// Queues a report for the error handler, as a job like any other. A closed loop runs no more jobs, so there it is logged.
    pub(crate) fn report(&self, report: Report) {
        if self.is_closed() {
            return report.log();
        }
        self.reports.borrow_mut().push_back((report, locals::current()));
        let word = self.insert(Job::Report);
        self.schedule(word);
    }

    /// Drops a value of the user's. A destructor that panics is reported and hurts nobody else.
    pub(crate) fn drop_safely<T>(&self, value: T, what: &str, place: &'static Location<'static>) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            self.report(Report::of_panic(ReportKind::DropPanic, payload, what.to_owned(), place));
        }
    }

    /// Wakes whoever waits, perhaps a future of another executor. A waker that panics is reported and hurts nobody else.
    pub(crate) fn wake_safely(&self, waker: Waker) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            self.report(Report::of_panic(ReportKind::Panic, payload, "waker".to_owned(), Location::caller()));
        }
    }

    /// The tasks and the members of groups above this one that are still alive, nearest first, as many as a report has room for.
    pub(crate) fn parents_of(&self, word: Word) -> Vec<String> {
        self.lineage(self.parent_of(word))
    }

    /// The same with `nearest` as the nearest of them.
    pub(crate) fn lineage(&self, nearest: Option<Word>) -> Vec<String> {
        let parents = std::iter::successors(nearest, |word| self.parent_of(*word)).take(PARENTS_PER_REPORT);
        parents.filter_map(|word| self.describe(word)).collect()
    }

    /// A task or a member of a group as reports name it, while it lives.
    pub(crate) fn describe(&self, word: Word) -> Option<String> {
        self.task_at(word).map(|task| format!("task `{}`", task.head.name())).or_else(|| self.member_named(word))
    }

    /// Who spawned a task, or polls a member of a group.
    fn parent_of(&self, word: Word) -> Option<Word> {
        match self.task_at(word) {
            Some(task) => task.head.parent(),
            None => self.with_slot(word, |slot| if let Job::Member(seat) = &slot.job { seat.list.poller() } else { None })?,
        }
    }

    /// The task behind a word, while it lives.
    pub(crate) fn task_at(&self, word: Word) -> Option<AnyTask> {
        self.with_slot(word, |slot| if let Job::Task(task) = &slot.job { Some(task.clone()) } else { None })?
    }

    /// What a member of a group is called, while it lives.
    pub(crate) fn member_named(&self, word: Word) -> Option<String> {
        self.with_slot(word, |slot| if let Job::Member(seat) = &slot.job { Some(seat.describe(word)) } else { None }).flatten()
    }

    /// Whether new work may come in: yes while open, no while closing.
    pub(crate) fn accepts_work(&self) -> Result<bool, LoopError> {
        match self.phase.get() {
            Phase::Open => Ok(true),
            Phase::Closing => Ok(false),
            Phase::Closed => Err(LoopError::Closed),
        }
    }

    /// The same for those who have no way to say no.
    ///
    /// # Panics
    /// Once the loop is closed, at the caller's line.
    #[track_caller]
    pub(crate) fn must_accept_work(&self) -> bool {
        match self.accepts_work() {
            Ok(is_wanted) => is_wanted,
            Err(error) => panic!("{error}; `LoopHandle::try_call_soon` returns this as an error"),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase.get() == Phase::Closed
    }

    /// The driver. Whoever borrows it calls no user code meanwhile: wakers that it hands out are dropped and woken afterwards.
    ///
    /// # Errors
    /// When the loop is closed.
    pub(crate) fn driver(&self) -> io::Result<RefMut<'_, Driver>> {
        RefMut::filter_map(self.driver.borrow_mut(), Option::as_mut).map_err(|_| io::Error::other(LoopError::Closed))
    }

    /// Closes the driver's descriptors.
    pub(crate) fn close_driver(&self) {
        let driver = self.driver.take();
        self.drop_safely(driver, "waker", Location::caller());
    }
}
