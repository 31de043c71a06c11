//! The orderly end of all tasks: asked, waited for, and ended by force when their grace is over. Then blocking jobs are waited for.
//!
//! The loop turns as ever meanwhile, so clean-up may do I/O and wait for time. Each task is asked once; what it makes of that is its
//! business until the grace ends. What is left after that `close.rs` drops without asking anybody.

use std::ops::ControlFlow;
use std::panic::Location;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use crate::config::SHUTDOWN_TURNS;
use crate::engine::cancel_tree::CancelReason;
use crate::engine::close::newest_first;
use crate::engine::core::Core;
use crate::engine::in_flight::InFlight;
use crate::engine::job::Job;
use crate::engine::turn::{self, Wait};
use crate::engine::waker;
use crate::engine::word::Word;
use crate::error::LoopError;
use crate::instant::Instant;
use crate::report::{Report, ReportKind};

/// Ends all tasks within `grace`. The loop must be marked as running.
pub(crate) fn shutdown(core: &Rc<Core>, grace: Duration) -> Result<(), LoopError> {
    let end = End::after(core, grace);
    let mut asked_len = 0;
    // Only destructors and clean-up that spawn can make it many.
    let mut turns_with_new_tasks = 0;
    while core.tasks_alive.get() > 0 && !end.has_come() && turns_with_new_tasks < SHUTDOWN_TURNS && !(asked_len > 0 && turn::is_stuck(core))
    {
        turns_with_new_tasks += usize::from(ask_new_tasks(core, &mut asked_len, end.deadline));
        core.is_stopping.set(false);
        turn::turn(core, Wait::Turn)?;
    }
    for (word, task) in newest_first(core).into_iter().filter(|(_, task)| task.head.number < asked_len) {
        let message = "had not ended when the grace of the shutdown was over, and was aborted".to_owned();
        core.report(Report::new(ReportKind::GraceExceeded, format!("task `{}`", task.head.name()), task.head.place(), message));
        task.head.level.abort(core, CancelReason::Shutdown);
        core.enqueue(word);
    }
    for _ in 0..SHUTDOWN_TURNS {
        if core.tasks_alive.get() == 0 {
            break;
        }
        ask_new_tasks(core, &mut asked_len, end.deadline);
        turn::turn(core, Wait::No)?;
    }
    finish_blocking_jobs(core, &end, &mut asked_len)?;
    // What the last ones have scheduled: completion callbacks, reports.
    turn::turn(core, Wait::No)
}

/// Turns the loop until no blocking job runs or waits, as long as the grace lasts: one of them may be waiting for the loop.
fn finish_blocking_jobs(core: &Rc<Core>, end: &End<'_>, asked_len: &mut u64) -> Result<(), LoopError> {
    let Some(jobs) = core.pool.started_jobs() else { return Ok(()) };
    // Also for those who are past their answer and not yet back.
    let _in_flight = InFlight::new(core);
    loop {
        let woken = core.insert(Job::once(Location::caller(), || Ok(ControlFlow::Continue(()))));
        if jobs.poll_quiet(&waker::of(woken)) || end.has_come() {
            core.cancel(woken);
            return Ok(());
        }
        ask_new_tasks(core, asked_len, end.deadline);
        let turned = turn::turn(core, Wait::Turn);
        core.cancel(woken);
        turned?;
    }
}

/// Cancels the tasks spawned since the last time, newest first. True if there were any.
fn ask_new_tasks(core: &Core, asked_len: &mut u64, deadline: Instant) -> bool {
    let spawned_len = core.tasks_spawned.get();
    if *asked_len == spawned_len {
        return false;
    }
    for (word, task) in newest_first(core).into_iter().filter(|(_, task)| task.head.number >= *asked_len) {
        task.head.level.request(core, CancelReason::Shutdown, deadline);
        core.enqueue(word);
    }
    *asked_len = spawned_len;
    true
}

/// The end of the grace: an entry of the timer queue that wakes nobody, so that a poll waits no longer.
struct End<'a> {
    core: &'a Core,
    deadline: Instant,
    timer: Word,
}

impl End<'_> {
    fn after(core: &Core, grace: Duration) -> End<'_> {
        let deadline = core.now() + grace;
        End { core, deadline, timer: core.arm_waker(deadline, Waker::noop().clone()) }
    }

    fn has_come(&self) -> bool {
        self.core.with_slot(self.timer, |_| ()).is_none()
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        drop(self.core.remove(self.timer));
    }
}
