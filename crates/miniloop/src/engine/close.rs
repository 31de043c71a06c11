//! The end of a loop (O9): the inbox refuses; tasks go, newest first; then callbacks and timers; then reports are delivered; then the
//! pool; then the driver.
//!
//! Everything that is dropped here belongs to users, and its destructors may do anything that a handle allows: spawn, schedule, cancel,
//! wake, panic. New work is dropped as it comes, so the table only shrinks; a panic is reported and the rest is dropped all the same.

use std::cmp::Reverse;
use std::panic::Location;
use std::rc::Rc;

use crate::engine::context;
use crate::engine::core::{Core, Phase};
use crate::engine::failures;
use crate::engine::job::Job;
use crate::engine::locals;
use crate::engine::pool_jobs::Unfinished;
use crate::engine::registry;
use crate::engine::task_head::AnyTask;
use crate::engine::word::Word;
use crate::instant::Instant;
use crate::mutant::{Mutant, is_broken};
use crate::report::{Report, ReportKind};

/// Closes the loop; closing it again does nothing. Must not be called while it runs.
pub(crate) fn close(core: &Rc<Core>) {
    if core.phase.get() != Phase::Open {
        return;
    }
    core.phase.set(Phase::Closing);
    let entered = context::enter(core);
    // Who closes this loop may be a task of another one, which is not the task whose future is dropped here.
    let closing_task = context::current_task();
    context::set_current_task(None);
    let locals = locals::enter(None);
    for message in core.inbox.close() {
        core.drop_safely(message, "call from another thread", Location::caller());
    }
    for (word, task) in newest_first(core) {
        drop_task(core, word, task);
    }
    drop_callbacks(core);
    deliver_reports(core);
    end_pool(core);
    deliver_reports(core);
    let handler = core.on_error.take();
    core.drop_safely(handler, "error handler", Location::caller());
    while failures::deliver_next(core) {}
    core.close_driver();
    while failures::deliver_next(core) {}
    core.phase.set(Phase::Closed);
    context::set_current_task(closing_task);
    drop(locals);
    drop(entered);
    context::remove_resident(core);
    registry::unregister(core.id);
}

pub(crate) fn newest_first(core: &Core) -> Vec<(Word, AnyTask)> {
    let mut tasks = core.select(|job| if let Job::Task(task) = job { Some(task.clone()) } else { None });
    tasks.sort_by_key(|(_, task)| Reverse(task.head.number));
    if is_broken(Mutant::CloseOldestFirst) {
        tasks.reverse();
    }
    tasks
}

fn drop_task(core: &Core, word: Word, task: AnyTask) {
    let place = task.head.place();
    let locals = core.enter_locals(word);
    task.head.level.remove();
    task.drop_future(&mut |report| core.report(report.with_parents(core.parents_of(word))));
    drop(locals);
    core.remove_task(word);
    core.drop_safely(task, "value of a task", place);
}

/// Tells the error handler of what has failed. What it brings itself is for the next time and, when it has gone, for the log: one that
/// brings a report for each would go on for ever.
fn deliver_reports(core: &Core) {
    let len = core.reports.borrow().len();
    for _ in 0..len {
        failures::deliver_next(core);
    }
}

/// Finishes the blocking jobs that were submitted. Nothing of the loop can be reached from them any more, so they cannot wait for it.
fn end_pool(core: &Core) {
    let Err(Unfinished { running, never_ran }) = core.pool.end() else { return };
    let (waiting, grace) = (never_ran.len(), core.pool.grace());
    let message = format!(
        "{running} blocking jobs still run and {waiting} never ran, {grace:?} after the event loop began to wait for them; \
         `Builder::blocking_grace` sets this limit"
    );
    core.report(Report::new(ReportKind::Degraded, "blocking pool".to_owned(), Location::caller(), message));
    for waiting in never_ran {
        core.drop_safely(waiting.job, "blocking job", Location::caller());
    }
}

/// Drops the callbacks in the order in which they would have run: the queue, then the timers, then those that wait for something else.
/// Reports stay: they are delivered next.
fn drop_callbacks(core: &Core) {
    let is_report = |word| core.with_slot(word, |slot| matches!(slot.job, Job::Report)) == Some(true);
    let queued = core.ready.take();
    queued.into_iter().filter(|word| !is_report(*word)).for_each(|word| core.cancel(word));
    while let Some(word) = core.pop_due(Instant::FAR_FUTURE) {
        core.cancel(word);
    }
    let waiting = core.select(|job| (!matches!(job, Job::Report)).then_some(()));
    waiting.into_iter().for_each(|(word, ())| core.cancel(word));
}
