//! The turn of a loop: one poll, then rounds.
//!
//! ```text
//! poll     1. timeout = 0 if anything is ready or stop was asked; else time to the next timer; else none
//!          2. wait that long in the driver
//!          3. append woken tasks and I/O callbacks, then the inbox of other threads, then due timers
//! round    4. run the jobs that are in the queue now; what they add waits for the next round
//! ```
//!
//! This order is the promise that users build on (rules O1 to O6 in ARCHITECTURE.md); `tests/random_programs.rs` compares it with a model
//! that was written from the rules alone.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use crate::clock::VirtualClock;
use crate::config::{CALLS_PER_POLL, MESSAGES_PER_ROUND};
use crate::engine::cancel;
use crate::engine::context::{self, Entered};
use crate::engine::core::{Core, Phase};
use crate::engine::inbox::Message;
use crate::engine::inspect;
use crate::engine::job::Job;
use crate::engine::locals::{self, InLocals};
use crate::engine::probes::count;
use crate::engine::run_job::{Main, run_job};
use crate::engine::timeline::What;
use crate::engine::watched;
use crate::error::LoopError;
use crate::mutant::{Mutant, is_broken};

/// How long a poll may wait when there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Not at all.
    No,
    /// Until something happens; a loop that is turned by hand does not insist that something can.
    Turn,
    /// Until something happens; on a virtual clock it is an error when nothing can.
    Forever,
}

/// One poll and one round.
pub(crate) fn turn(core: &Rc<Core>, wait: Wait) -> Result<(), LoopError> {
    poll(core, wait)?;
    round(core, &mut |_| ());
    take_failure(core)
}

/// Turns until `is_done`, or until stop was asked. However it ends, it takes the stop request with it.
pub(crate) fn run(core: &Rc<Core>, main: Main<'_>, is_done: &Cell<bool>) -> Result<(), LoopError> {
    let stop = StopRequest(core);
    poll(core, Wait::Forever)?;
    loop {
        round(core, main);
        take_failure(core)?;
        if is_done.get() || stop.is_asked() {
            return Ok(());
        }
        let is_empty = core.ready.borrow().is_empty();
        let is_full = core.jobs_since_poll.get() >= core.jobs_per_poll;
        if is_full && !is_empty {
            count(&core.probes.counters.full_turns);
        }
        let is_sated = core.calls_since_poll.get() >= CALLS_PER_POLL;
        if is_empty || is_full || is_sated || core.is_poll_due.get() || has_moved(core) {
            poll(core, Wait::Forever)?;
        } else if !is_broken(Mutant::InboxOnlyAtPoll) {
            collect_inbox(core);
        }
    }
}

/// The request to stop, granted when this is dropped.
struct StopRequest<'a>(&'a Core);

impl StopRequest<'_> {
    fn is_asked(&self) -> bool {
        self.0.is_stopping.get()
    }
}

impl Drop for StopRequest<'_> {
    fn drop(&mut self) {
        self.0.is_stopping.set(false);
    }
}

/// A loop inside `run_*`: it is the current one, awake, and the only one on this thread.
pub(crate) struct Running<'a> {
    core: &'a Rc<Core>,
    _entered: Entered,
    /// What whoever runs the loop sees is none of its jobs' business.
    _locals: InLocals,
}

impl<'a> Running<'a> {
    pub(crate) fn start(core: &'a Rc<Core>) -> Result<Running<'a>, LoopError> {
        if core.phase.get() != Phase::Open {
            return Err(LoopError::Closed);
        }
        if !context::start_running() {
            return Err(LoopError::AlreadyRunning);
        }
        core.inbox.wake_up();
        if let Some(alarm) = &core.alarm {
            alarm.host_enters();
        }
        Ok(Running { core, _entered: context::enter(core), _locals: locals::enter(None) })
    }
}

impl Drop for Running<'_> {
    /// Leaves the loop asleep: from now on another thread rings the doorbell, which the host of a loop turned by hand watches. With mail
    /// left over it stays awake, since the host, who asks `next_timeout`, must turn it again at once; so threads that send without end
    /// cannot keep it in here.
    fn drop(&mut self) {
        watched::turn(self.core, false);
        if !self.core.inbox.fall_asleep() {
            collect_inbox(self.core);
            let _has_no_mail_left = self.core.inbox.fall_asleep();
        }
        if let Some(alarm) = &self.core.alarm {
            alarm.host_leaves(self.core.next_turn(), || self.core.now());
        }
        context::stop_running();
    }
}

fn poll(core: &Rc<Core>, wait: Wait) -> Result<(), LoopError> {
    watched::turn(core, true);
    let _slice = watched::slice(core, What::Poll);
    let counters = &core.probes.counters;
    count(&counters.polls);
    counters.jobs_before_poll.set(counters.jobs_before_poll.get() + core.jobs_since_poll.replace(0) as u64);
    core.calls_since_poll.set(0);
    core.is_poll_due.set(false);
    let is_busy = wait == Wait::No || core.is_stopping.get() || !core.ready.borrow().is_empty();
    match core.clock.as_virtual() {
        // Nothing is watched and nobody waits: the kernel has nothing to say. A host that turns the loop by hand watches its descriptor,
        // which a wait makes silent.
        _ if is_busy && wait == Wait::Forever && core.driver().is_ok_and(|driver| driver.len() == 0) => {
            collect_inside(core);
            Ok(())
        }
        _ if is_busy => collect(core, Some(Duration::ZERO)),
        None => collect(core, core.next_deadline().map(|deadline| deadline - core.now())),
        Some(clock) => poll_idle_virtual(core, clock, wait),
    }
}

/// A poll on a virtual clock with nothing ready: first what has happened already, then what is on its way, then the jump.
fn poll_idle_virtual(core: &Rc<Core>, clock: &VirtualClock, wait: Wait) -> Result<(), LoopError> {
    collect(core, Some(Duration::ZERO))?;
    // Mail that is left over is not on its way, it has happened: the wakes before it may all have been stale.
    if !core.ready.borrow().is_empty() || core.inbox.has_mail() {
        return Ok(());
    }
    if core.jobs_in_flight.get() > 0 || clock.is_held() {
        return collect(core, None);
    }
    match core.next_deadline() {
        Some(deadline) if clock.jumps() => {
            clock.jump_to(deadline);
            collect(core, Some(Duration::ZERO))
        }
        _ if wait == Wait::Turn => Ok(()),
        _ => Err(LoopError::Deadlock(Box::new(inspect::dump(core)))),
    }
}

/// Whether nothing can happen any more, unless somebody moves the virtual clock.
pub(crate) fn is_stuck(core: &Core) -> bool {
    core.clock.as_virtual().is_some_and(|clock| {
        core.ready.borrow().is_empty()
            && !core.inbox.has_mail()
            && core.jobs_in_flight.get() == 0
            && !clock.is_held()
            && !(clock.jumps() && core.next_deadline().is_some())
    })
}

/// Steps 2 and 3 of a turn.
fn collect(core: &Rc<Core>, timeout: Option<Duration>) -> Result<(), LoopError> {
    let may_sleep = timeout != Some(Duration::ZERO);
    let is_asleep = may_sleep && core.inbox.fall_asleep();
    let timeout = if is_asleep { timeout } else { Some(Duration::ZERO) };
    let mut woken = core.woken.take();
    let waiting = watched::slice(core, What::Wait);
    let waited = core.driver().and_then(|mut driver| driver.wait(timeout, &mut woken));
    drop(waiting);
    if is_asleep {
        core.inbox.wake_up();
    }
    woken.drain(..).for_each(|waker| core.wake_safely(waker));
    core.woken.set(woken);
    match waited {
        Ok(_) => {}
        // A signal. What has happened meanwhile is seen by the next poll, and the deadlines wait for it: a process that was stopped for a
        // while must see the answers that have come before it judges that they are missing.
        Err(error) if error.kind() == io::ErrorKind::Interrupted => {
            collect_inbox(core);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    }
    collect_inside(core);
    Ok(())
}

/// Step 3 but for the outside world: what other threads have sent, then what is due.
fn collect_inside(core: &Core) {
    if is_broken(Mutant::TimersBeforeInbox) {
        collect_due_timers(core);
    }
    collect_inbox(core);
    collect_due_timers(core);
    if let Some(clock) = core.clock.as_virtual() {
        core.time_at_poll.set(clock.now());
        core.latest_reading.set(clock.now());
    }
}

#[inline]
fn collect_inbox(core: &Core) {
    if core.inbox.has_mail() {
        collect_mail(core);
    }
}

fn collect_mail(core: &Core) {
    let _slice = watched::slice(core, What::Inbox);
    let mut mail = core.mail.take();
    core.inbox.drain(&mut mail, MESSAGES_PER_ROUND);
    let counters = &core.probes.counters;
    counters.messages.set(counters.messages.get() + mail.len() as u64);
    if core.inbox.has_mail() {
        count(&counters.full_mailbags);
    }
    for message in mail.drain(..) {
        match message {
            Message::Wake(word) => core.schedule(word),
            Message::Call { job, place } => core.schedule(core.insert(Job::once(place, job))),
        }
    }
    core.mail.set(mail);
}

fn collect_due_timers(core: &Core) {
    if core.next_deadline().is_none() {
        return;
    }
    let _slice = watched::slice(core, What::Timers);
    let now = core.now();
    core.is_poll_due.set(false);
    while let Some(word) = core.pop_due(now) {
        count(&core.probes.counters.timers_fired);
        if core.with_slot(word, |slot| matches!(slot.job, Job::Deadline(_) | Job::Grace(_))) != Some(true) {
            core.schedule(word);
            continue;
        }
        match core.remove(word).map(|slot| slot.job) {
            Some(Job::Deadline(waker)) => core.wake_safely(waker),
            Some(Job::Grace(level)) => cancel::end_grace(core, level),
            _ => {}
        }
    }
    core.next_deadline();
}

/// Whether the virtual clock was moved since the last poll, which noted the time.
fn has_moved(core: &Core) -> bool {
    core.clock.as_virtual().is_some_and(|clock| clock.now() != core.time_at_poll.get())
}

#[inline(always)]
fn round(core: &Rc<Core>, main: Main<'_>) {
    let _slice = watched::slice(core, What::Round);
    count(&core.probes.counters.rounds);
    let mut left = core.ready.borrow().len();
    while left > 0 {
        left -= 1;
        let word = core.ready.borrow_mut().pop_front();
        if let Some(word) = word {
            run_job(core, word, main);
        }
        if is_broken(Mutant::RoundWithoutSnapshot) {
            left = core.ready.borrow().len();
        }
    }
}

fn take_failure(core: &Core) -> Result<(), LoopError> {
    match core.failure.take() {
        Some(report) => Err(LoopError::Failed(report)),
        None => Ok(()),
    }
}
