//! One job of a round: taken out of the table, run, and put back or dropped.
//!
//! User code runs here while a loop turns, and below here: the members of a group in `group/run.rs`. What else runs is wakers of other
//! executors, in `turn.rs`. All of it with nothing borrowed and every panic caught.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::task::Waker;

use crate::config::OPS_PER_POLL;
use crate::engine::cancel::Level;
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::failures;
use crate::engine::job::{Cause, Job, Repeat, RunOnce};
use crate::engine::locals;
use crate::engine::record::{Origin, Record};
use crate::engine::task_head::{AnyTask, RunBody, Spawned, TaskHead};
use crate::engine::waker;
use crate::engine::watched::{self, Subject, Watched};
use crate::engine::word::Word;
use crate::outcome::{Failure, Flow};
use crate::report::Report;

/// Polls the future given to `run_until_complete`, with its waker.
pub(crate) type Main<'a> = &'a mut dyn FnMut(&Waker);

/// Runs the job that stands behind `word`; a word that has gone stale since it was queued is skipped (O4).
#[inline(always)]
pub(crate) fn run_job(core: &Rc<Core>, word: Word, main: Main<'_>) {
    let reading = core.latest_reading.get();
    let begun = core.with_slot(word, |slot| {
        let is_woken = slot.begin();
        match &slot.job {
            Job::Task(task) => {
                task.head.record.begin_poll(reading);
                Begun::Task(task.clone(), is_woken)
            }
            Job::Main(record) => {
                record.begin_poll(reading);
                Begun::Main(record.clone())
            }
            Job::Repeat(repeat) => Begun::Staying(Turn::Repeat(repeat.clone())),
            Job::Once(_) | Job::Report => Begun::Leaving,
            Job::Deadline(_) | Job::Grace(_) | Job::Member(_) => Begun::Nothing,
        }
    });
    let turn = match begun {
        Some(Begun::Task(task, is_woken)) => {
            begin(core);
            // Without task-locals, and while nobody looks, the way is short.
            if task.head.record.origin.locals.is_none() && !core.probes.is_watched() {
                return run_task(core, word, task, is_woken);
            }
            return run_in_locals(core, word, Turn::Task(task, is_woken), main);
        }
        Some(Begun::Main(record)) => {
            begin(core);
            if record.origin.locals.is_none() && !core.probes.is_watched() {
                return run_main(word, &record, main);
            }
            return run_in_locals(core, word, Turn::Main(record), main);
        }
        Some(Begun::Staying(turn)) => turn,
        Some(Begun::Leaving) => match core.remove(word).map(|slot| slot.job) {
            Some(Job::Once(once)) => Turn::Once(once),
            _ => Turn::Report,
        },
        Some(Begun::Nothing) | None => return,
    };
    begin(core);
    run_in_locals(core, word, turn, main);
}

/// One job more has its turn, with operations of its own.
#[inline]
fn begin(core: &Core) {
    core.jobs_since_poll.set(core.jobs_since_poll.get() + 1);
    core.ops_left.set(OPS_PER_POLL);
}

/// A job whose word was good.
enum Begun {
    /// With whether it was woken since it ran last, or else only queued (C12).
    Task(AnyTask, bool),
    Main(Rc<Record>),
    /// It may run again.
    Staying(Turn),
    /// It runs once.
    Leaving,
    Nothing,
}

/// A job whose turn it is.
enum Turn {
    Main(Rc<Record>),
    Task(AnyTask, bool),
    Once(Box<dyn RunOnce>),
    Repeat(Rc<Repeat>),
    Report,
}

impl Turn {
    /// Where it came from. A report is delivered with what its sender sees, by `failures.rs`.
    fn origin(&self) -> Option<&Origin> {
        match self {
            Turn::Main(record) => Some(&record.origin),
            Turn::Task(task, _) => Some(&task.head.record.origin),
            Turn::Once(once) => Some(once.origin()),
            Turn::Repeat(repeat) => Some(&repeat.origin),
            Turn::Report => None,
        }
    }
}

#[inline(never)]
fn run_in_locals(core: &Rc<Core>, word: Word, turn: Turn, main: Main<'_>) {
    let (place, locals) = turn.origin().map_or((Location::caller(), None), |origin| (origin.place, origin.locals.clone()));
    if locals.is_none() && !core.probes.is_watched() {
        return run_turn(core, word, turn, place, main);
    }
    let entered = locals::enter(locals.clone());
    let watched = core.probes.is_watched().then(|| Watched::start(core, word, subject_of(&turn), place));
    run_turn(core, word, turn, place, main);
    drop(watched);
    drop(entered);
    core.drop_safely(locals, "task-local value", place);
}

fn run_turn(core: &Rc<Core>, word: Word, turn: Turn, place: &'static Location<'static>, main: Main<'_>) {
    match turn {
        Turn::Main(record) => run_main(word, &record, main),
        Turn::Task(task, is_woken) => run_task(core, word, task, is_woken),
        Turn::Once(once) => {
            if let Err(failure) = call(|| once.call()) {
                core.report(Report::of_failure(failure, "callback".to_owned(), place));
            }
        }
        Turn::Repeat(repeat) => run_repeat(core, word, repeat, place),
        Turn::Report => {
            failures::deliver_next(core);
        }
    }
}

fn subject_of(turn: &Turn) -> Subject {
    match turn {
        Turn::Main(_) => Subject::Main,
        Turn::Task(task, _) => Subject::Task { number: task.head.number, name: task.head.given_name() },
        Turn::Once(_) => Subject::Callback,
        Turn::Repeat(repeat) => Subject::Repeat(watched::copy_of(&repeat.cause)),
        Turn::Report => Subject::Report,
    }
}

#[inline(always)]
fn run_main(word: Word, record: &Record, main: Main<'_>) {
    context::begin_task(Some(word));
    main(&waker::borrowed(word));
    context::note_told(record);
    context::set_current_task(None);
}

#[inline(always)]
fn run_task(core: &Rc<Core>, word: Word, task: AnyTask, is_woken: bool) {
    let TaskHead { level, record, .. } = &task.head;
    let is_requested = level.is_requested(core);
    context::begin_task(Some(word));
    // Dropped unpolled if it never ran (C9) or was not woken: what it may have been given with a wake is not lost (C12).
    let is_over = is_requested && level.verdict(core).must_drop(!is_woken);
    let waker = waker::borrowed(word);
    if !is_over {
        let has_finished = level.as_job(core, &waker, || task.as_ref().run(&waker, &mut |report| report_of(core, word, report)));
        if has_finished {
            return end_task(core, word, task);
        }
        context::note_told(record);
        // Nobody can be asked to stop without a node.
        if level.is_idle() {
            return context::set_current_task(None);
        }
    }
    after_poll(core, word, task, is_requested);
}

/// A task that may have been asked to stop has been polled, or is not to be.
#[inline(never)]
fn after_poll(core: &Rc<Core>, word: Word, task: AnyTask, was_requested: bool) {
    let level = &task.head.level;
    skip_unreachable(core, word, level);
    // Who was asked during this very poll hears of it in a job of its own (C4).
    if was_requested && level.verdict(core).must_drop(true) {
        drop_future(core, word, &task);
        return end_task(core, word, task);
    }
    context::set_current_task(None);
}

/// A task has finished: its place in the table is free.
#[inline(never)]
fn end_task(core: &Rc<Core>, word: Word, task: AnyTask) {
    task.head.level.remove();
    context::set_current_task(None);
    let place = task.head.place();
    core.remove_task(word);
    // The value may still be in there, unread.
    core.drop_safely(task, "value of a task", place);
}

/// Ends a task that has been asked to stop. What it holds goes while it still counts as asked.
fn drop_future(core: &Core, word: Word, task: &Spawned<dyn RunBody>) {
    let level = &task.head.level;
    let out_of_grace = level.out_of_grace(core, || format!("task `{}`", task.head.name()), task.head.place());
    out_of_grace.into_iter().for_each(|report| report_of(core, word, report));
    level.as_job(core, &waker::borrowed(word), || task.drop_future(&mut |report| report_of(core, word, report)));
}

fn report_of(core: &Core, task: Word, report: Report) {
    core.report(report.with_parents(core.parents_of(task)));
}

/// A job that has been polled and is not queued has nothing left to do.
#[inline]
pub(crate) fn skip_unreachable(core: &Core, job: Word, level: &Level) {
    if level.has_unpolled(core) && core.with_slot(job, |slot| slot.is_queued) == Some(false) {
        level.skip_unreachable(core);
    }
}

fn run_repeat(core: &Rc<Core>, word: Word, repeat: Rc<Repeat>, place: &'static Location<'static>) {
    let flow = call(|| (repeat.callback.borrow_mut())());
    let is_over = matches!(flow, Ok(ControlFlow::Break(())));
    if let Err(failure) = flow {
        core.report(Report::of_failure(failure, repeat.cause.to_string(), place));
    }
    match &repeat.cause {
        // It was cancelled while it ran, or another callback took its place: what the driver has now is not this one.
        _ if core.with_slot(word, |_| ()).is_none() => {}
        cause if is_over => {
            core.cancel(word);
            if let Cause::Readiness { fd, direction } = cause {
                let removed = core.driver().ok().and_then(|mut driver| driver.clear_callback(*fd, *direction));
                drop(removed);
            }
        }
        Cause::Period { period, next } => {
            next.set(next.get().next_beat(*period, core.now()));
            core.arm(word, next.get());
        }
        Cause::Readiness { .. } => {}
    }
    // When it is over, this is the last owner.
    core.drop_safely(repeat, "callback", place);
}

/// Calls user code that may panic.
fn call(callback: impl FnOnce() -> Flow) -> Flow {
    catch_unwind(AssertUnwindSafe(callback)).unwrap_or_else(|payload| Err(Failure::Panic(payload)))
}
