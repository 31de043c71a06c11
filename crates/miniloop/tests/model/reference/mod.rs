//! The reference loop: the ordering rules O1 to O10 written down as plainly as possible, without I/O, wakers, futures or `unsafe`.
//!
//! It must not know the real loop: it was written from the rules, and where a test finds the two apart, the text of the rules decides.
//! It costs what it costs. A task is its list of steps and a position; time is a number; a program played here gives a list of lines,
//! the trace, which the real loop must give too. Read next: `acts.rs`, `tasks.rs`, `completion.rs`.

mod acts;
mod tasks;
mod completion;

use std::collections::{BTreeMap, VecDeque};

use super::program::{ClockKind, End, Ms, Program, Step};
use acts::Callback;
use completion::{Completion, Source};
use tasks::Task;

/// Plays the program on the reference loop and returns the trace.
pub(crate) fn play(program: &Program) -> Vec<String> {
    let mut model = Model { clock: Some(program.clock), jobs_per_poll: program.jobs_per_poll, ..Model::default() };
    for step in &program.steps {
        model.host(step);
    }
    model.end(program.end);
    model.trace
}

#[derive(Default)]
struct Model {
    clock: Option<ClockKind>,
    jobs_per_poll: usize,
    now: Ms,
    trace: Vec<String>,
    /// O1: one queue, first in, first out, callbacks and tasks together.
    ready: VecDeque<Job>,
    /// O6: what other threads sent, in arrival order.
    inbox: Vec<Wake>,
    /// O7: by deadline, then by creation.
    timers: BTreeMap<TimerKey, Wake>,
    timers_created: u64,
    callbacks: Vec<Callback>,
    /// The callbacks that the program can cancel.
    handles: Vec<usize>,
    tasks: Vec<Task>,
    /// The tasks whose handles the program was given: all but the main futures.
    spawned: Vec<usize>,
    promises: Vec<Completion>,
    reader: Option<usize>,
    readers_created: usize,
    pipe_readable: bool,
    stop: bool,
    /// The next round begins with a poll, whatever the count.
    poll_next: bool,
    /// O10: operations on I/O since the last poll.
    calls_since_poll: u16,
    main_panicked: bool,
    shutting_down: bool,
    closing: bool,
}

#[derive(PartialEq, Eq)]
enum Job {
    Callback(usize),
    Task(usize),
    Reader(usize),
    Report(String),
}

/// What a timer, another thread or a completion brings into the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wake {
    Callback(usize),
    Task(usize),
}

/// The deadline, then the order of creation.
type TimerKey = (Ms, u64);

impl Model {
    fn say(&mut self, line: impl Into<String>) {
        self.trace.push(line.into());
    }

    fn wake(&mut self, wake: Wake) {
        match wake {
            Wake::Callback(id) => self.ready.push_back(Job::Callback(id)),
            Wake::Task(id) => self.wake_task(id),
        }
    }

    fn poll(&mut self, may_wait: bool) -> Result<(), &'static str> {
        self.poll_next = false;
        self.calls_since_poll = 0;
        self.forget_stale_wakes();
        let readable = self.pipe_readable && self.reader.is_some();
        let earliest = self.timers.keys().next().map(|&(deadline, _)| deadline);
        let idle = self.ready.is_empty() && self.inbox.is_empty() && !self.stop && !readable && earliest.is_none_or(|at| at > self.now);
        if may_wait && idle {
            match earliest {
                Some(deadline) if self.clock == Some(ClockKind::Jumping) => self.now = deadline,
                _ => return Err("deadlock"),
            }
        }
        // O3: already ready, then I/O, then other threads, then due timers.
        if let Some(reader) = self.reader.filter(|_| readable)
            && !self.ready.contains(&Job::Reader(reader))
        {
            self.ready.push_back(Job::Reader(reader));
        }
        self.join_inbox();
        while let Some(due) = self.timers.first_entry().filter(|timer| timer.key().0 <= self.now) {
            let wake = due.remove();
            self.wake(wake);
        }
        Ok(())
    }

    /// O6, without its bound: no program sends as many messages as join at a time.
    fn join_inbox(&mut self) {
        for wake in std::mem::take(&mut self.inbox) {
            self.wake(wake);
        }
    }

    /// A wake for a task that has ended is nothing, wherever it stands.
    fn forget_stale_wakes(&mut self) {
        self.inbox.retain(|wake| !matches!(*wake, Wake::Task(id) if self.tasks[id].completion.value.is_some()));
    }

    /// O2: what the jobs add waits for the next round. Returns how many have run; what is skipped has not.
    fn round(&mut self) -> usize {
        let snapshot = self.ready.len();
        let mut jobs_run = 0;
        for _ in 0..snapshot {
            let Some(job) = self.ready.pop_front() else { break };
            jobs_run += usize::from(self.run(job));
            // A panic of the main future leaves the loop as it is.
            if self.main_panicked {
                break;
            }
        }
        jobs_run
    }

    fn run(&mut self, job: Job) -> bool {
        match job {
            Job::Callback(id) => self.run_callback(id),
            Job::Task(id) => self.run_task(id),
            Job::Reader(id) => {
                let watching = self.reader == Some(id);
                if watching {
                    self.pipe_readable = false;
                    self.say(format!("reader {id} at {}", self.now));
                }
                watching
            }
            Job::Report(report) => {
                self.say(report);
                true
            }
        }
    }

    /// Turns until `main` is done or `stop` was asked: a poll, then rounds. The round in which it happens is the last.
    fn run_until(&mut self, main: Option<usize>) -> String {
        let value = |model: &Self| model.tasks[main?].completion.value.clone();
        let end = loop {
            if let Err(error) = self.poll(true) {
                break error.to_owned();
            }
            let mut jobs_run = self.round();
            let may_go_on =
                |model: &Self, jobs_run| jobs_run < model.jobs_per_poll && model.calls_since_poll < CALLS_PER_POLL && !model.poll_next;
            while value(self).is_none() && !self.stop && !self.ready.is_empty() && may_go_on(self, jobs_run) {
                self.join_inbox();
                jobs_run += self.round();
            }
            match value(self) {
                Some(value) => break value,
                None if self.stop => break "stopped".to_owned(),
                None => {}
            }
        };
        self.stop = false;
        self.main_panicked = false;
        if let Some(id) = main {
            // The main future belongs to run_until_complete, not to the loop.
            self.drop_future(id);
            self.finish(id, "cancelled");
        }
        self.join_inbox();
        end
    }

    fn host(&mut self, step: &Step) {
        match step {
            Step::Do(act) => self.act(act),
            Step::RunOnce | Step::RunReady => {
                // With nothing to wait for, run_once returns at once.
                if self.poll(matches!(step, Step::RunOnce)).is_ok() {
                    self.round();
                }
                self.join_inbox();
                self.say("run: ok");
            }
            Step::RunForever => {
                let end = self.run_until(None);
                self.say(format!("run_forever: {end}"));
            }
            Step::RunUntilComplete(body) => {
                let main = self.new_task(body);
                self.tasks[main].is_main = true;
                let end = self.run_until(Some(main));
                self.say(format!("run_until_complete: {end}"));
            }
            Step::NextTimeout => {
                let busy = !self.ready.is_empty() || !self.inbox.is_empty() || self.stop;
                let earliest = self.timers.keys().next().map(|&(deadline, _)| deadline.saturating_sub(self.now));
                let timeout = if busy { Some(0) } else { earliest };
                self.say(format!("next_timeout: {timeout:?}"));
            }
        }
    }

    fn end(&mut self, end: End) {
        if let End::Shutdown = end {
            self.shut_down();
        }
        self.say("close");
        self.close();
        self.say("closed");
    }

    /// All tasks are cancelled, newest first, new ones as they are spawned, and the loop turns until none is left, then once more for what
    /// the last ones have scheduled.
    fn shut_down(&mut self) {
        self.shutting_down = true;
        for id in (0..self.tasks.len()).rev() {
            self.cancel(Source::Task(id));
        }
        while self.tasks.iter().any(|task| task.completion.value.is_none()) {
            if let Err(error) = self.poll(true) {
                return self.say(error);
            }
            self.round();
        }
        if self.poll(false).is_ok() {
            self.round();
        }
        self.join_inbox();
    }

    /// O9: the inbox, the tasks newest first, then callbacks and timers, then the reports.
    fn close(&mut self) {
        self.closing = true;
        for wake in std::mem::take(&mut self.inbox) {
            if let Wake::Callback(id) = wake {
                self.drop_callback(id);
            }
        }
        for id in (0..self.tasks.len()).rev() {
            self.finish(id, "cancelled");
        }
        let queued = self.ready.iter().filter_map(|job| if let Job::Callback(id) = job { Some(*id) } else { None });
        let timed = self.timers.values().filter_map(|wake| if let Wake::Callback(id) = wake { Some(*id) } else { None });
        // In which order those go that wait for something else is not promised: `compare.rs` sorts.
        let order: Vec<_> = queued.chain(timed).chain(0..self.callbacks.len()).collect();
        for id in order {
            self.drop_callback(id);
        }
        let reports = self.ready.drain(..).filter_map(|job| if let Job::Report(report) = job { Some(report) } else { None });
        self.trace.extend(reports);
    }
}

/// O10: after so many operations on I/O the next round begins with a poll.
const CALLS_PER_POLL: u16 = 64;
