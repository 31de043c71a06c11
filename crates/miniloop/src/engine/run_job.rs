//! One job of a round: taken out of the table, run, and put back or dropped.
//!
//! User code runs here while a loop turns, and below here: the members of a group in `group/run.rs`. What else runs is wakers of other
//! executors, in `turn.rs`. All of it with nothing borrowed and every panic caught.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Waker;

use crate::config::OPS_PER_POLL;
use crate::engine::cancel::{Level, Verdict};
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::failures;
use crate::engine::job::{Cause, Job, Repeat, RunTask};
use crate::engine::locals::{self, Locals};
use crate::engine::waker;
use crate::engine::watched::{self, Subject, Watched};
use crate::engine::word::Word;
use crate::outcome::{Failure, Flow};
use crate::report::Report;

/// Polls the future given to `run_until_complete`, with its waker.
pub(crate) type Main<'a> = &'a mut dyn FnMut(&Waker);

/// Runs the job that stands behind `word`; a word that has gone stale since it was queued is skipped (O4).
pub(crate) fn run_job(core: &Rc<Core>, word: Word, main: Main<'_>) {
    let Some((turn, place, locals)) = take(core, word) else { return };
    core.jobs_since_poll.set(core.jobs_since_poll.get() + 1);
    core.ops_left.set(OPS_PER_POLL);
    if locals.is_none() && !core.probes.is_watched() {
        run_turn(core, word, turn, place, main);
    } else {
        run_in_locals(core, word, turn, place, locals, main);
    }
}

/// The same with task-locals, or while somebody looks. Apart, so that the way of a job without either stays short.
#[inline(never)]
fn run_in_locals(core: &Rc<Core>, word: Word, turn: Turn, place: &'static Location<'static>, locals: Locals, main: Main<'_>) {
    let entered = locals::enter(locals.clone());
    let watched = core.probes.is_watched().then(|| Watched::start(core, word, subject_of(&turn), place));
    run_turn(core, word, turn, place, main);
    drop(watched);
    drop(entered);
    core.drop_safely(locals, "task-local value", place);
}

#[inline(always)]
fn run_turn(core: &Rc<Core>, word: Word, turn: Turn, place: &'static Location<'static>, main: Main<'_>) {
    match turn {
        Turn::Main => {
            context::set_current_task(Some(word));
            main(&waker::of(word));
            context::set_current_task(None);
        }
        Turn::Task { task, is_woken } => run_task(core, word, task, place, is_woken),
        Turn::Once(callback) => {
            if let Err(failure) = call(callback) {
                core.report(Report::of_failure(failure, "callback".to_owned(), place));
            }
        }
        Turn::Repeat(repeat) => run_repeat(core, word, repeat, place),
        Turn::Report => {
            failures::deliver_next(core);
        }
    }
}

/// A job whose turn it is.
enum Turn {
    Main,
    /// It was woken since it ran last, or else it was only queued (C12).
    Task {
        task: Pin<Rc<dyn RunTask>>,
        is_woken: bool,
    },
    Once(Box<dyn FnOnce() -> Flow>),
    Repeat(Rc<Repeat>),
    Report,
}

fn take(core: &Core, word: Word) -> Option<(Turn, &'static Location<'static>, Locals)> {
    let reading = core.latest_reading.get();
    let staying = core.with_slot(word, |slot| {
        let is_woken = slot.begin_poll(reading);
        let turn = match &slot.job {
            Job::Main => Some(Turn::Main),
            Job::Task(task) => Some(Turn::Task { task: task.clone(), is_woken }),
            Job::Repeat(repeat) => Some(Turn::Repeat(repeat.clone())),
            Job::Once(_) | Job::Report | Job::Deadline(_) | Job::Grace(_) | Job::Member(_) => None,
        };
        turn.map(|turn| (turn, slot.place, slot.locals.clone()))
    })?;
    if staying.is_some() {
        return staying;
    }
    let slot = core.remove(word)?;
    match slot.job {
        Job::Once(callback) => Some((Turn::Once(callback), slot.place, slot.locals)),
        Job::Report => Some((Turn::Report, slot.place, None)),
        _ => None,
    }
}

fn subject_of(turn: &Turn) -> Subject {
    match turn {
        Turn::Main => Subject::Main,
        Turn::Task { task, .. } => Subject::Task { number: task.number(), name: task.given_name() },
        Turn::Once(_) => Subject::Callback,
        Turn::Repeat(repeat) => Subject::Repeat(watched::copy_of(&repeat.cause)),
        Turn::Report => Subject::Report,
    }
}

fn run_task(core: &Rc<Core>, word: Word, task: Pin<Rc<dyn RunTask>>, place: &'static Location<'static>, is_woken: bool) {
    let level = task.level();
    let is_requested = level.is_requested(core);
    let before = if is_requested { level.verdict(core) } else { Verdict::Undisturbed };
    context::set_current_task(Some(word));
    // Dropped unpolled if it never ran (C9) or was not woken: what it may have been given with a wake is not lost (C12).
    let is_over = before.must_drop(!is_woken);
    let waker = waker::of(word);
    let inside = level.enter_job(core, &waker);
    let has_finished = !is_over && task.as_ref().run(&waker, &mut |report| report_of(core, word, report));
    drop(inside);
    if !has_finished {
        skip_unreachable(core, word, level);
        // Who was asked during this very poll hears of it in a job of its own (C4).
        let after = if is_requested { level.verdict(core) } else { Verdict::Undisturbed };
        if !after.must_drop(true) {
            return context::set_current_task(None);
        }
        drop_future(core, word, &*task, place);
    }
    level.remove();
    context::set_current_task(None);
    let slot = core.remove(word);
    // The value may still be in there, unread.
    core.drop_safely((slot, task), "value of a task", place);
}

/// Ends a task that has been asked to stop. What it holds goes while it still counts as asked.
fn drop_future(core: &Core, word: Word, task: &dyn RunTask, place: &'static Location<'static>) {
    let level = task.level();
    let out_of_grace = level.out_of_grace(core, || format!("task `{}`", task.name()), place);
    out_of_grace.into_iter().for_each(|report| report_of(core, word, report));
    let waker = waker::of(word);
    let _inside = level.enter_job(core, &waker);
    task.drop_future(&mut |report| report_of(core, word, report));
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
