//! The reference loop: the ordering rules O1 to O10 written down as plainly as possible, without I/O, wakers, futures or `unsafe`.
//!
//! It must not know the real loop: it was written from the rules, and where a test finds the two apart, the text of the rules decides.
//! It costs what it costs. A task is its list of steps and a position; time is a number; a program played here gives a list of lines,
//! the trace, which the real loop must give too. Read next: `real.rs`.

use std::collections::{BTreeMap, VecDeque};

use super::program::{Body, ClockKind, End, Ending, Ms, Program, Step, TaskStep};

/// Plays the program on the reference loop and returns the trace.
pub(crate) fn play(program: &Program) -> Vec<String> {
    let mut model = Model::new(program.clock, program.jobs_per_poll);
    for step in &program.steps {
        model.host(step);
    }
    model.end(program.end);
    model.trace
}

pub(super) struct Model {
    pub(super) clock: ClockKind,
    pub(super) jobs_per_poll: usize,
    pub(super) now: Ms,
    pub(super) trace: Vec<String>,
    /// O1: one queue, first in, first out, callbacks and tasks together.
    pub(super) ready: VecDeque<Job>,
    /// O6: what other threads sent, in arrival order.
    pub(super) inbox: Vec<usize>,
    /// O7: by deadline, then by creation.
    pub(super) timers: BTreeMap<TimerKey, Fire>,
    pub(super) timers_created: u64,
    pub(super) callbacks: Vec<Callback>,
    /// The callbacks that somebody may still cancel.
    pub(super) handles: Vec<usize>,
    pub(super) tasks: Vec<Task>,
    /// The tasks whose handles the program holds or held, oldest first: all but the main futures.
    pub(super) spawned: Vec<usize>,
    pub(super) promises: Vec<Promise>,
    pub(super) reader: Option<usize>,
    pub(super) readers_created: usize,
    pub(super) pipe_readable: bool,
    pub(super) stop: bool,
    /// The next round begins with a poll, whatever the count.
    pub(super) poll_next: bool,
    pub(super) closing: bool,
}

pub(super) enum Job {
    Callback(usize),
    Task(usize),
    Reader(usize),
    Report(String),
}

pub(super) type TimerKey = (Ms, u64);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fire {
    Callback(usize),
    Task(usize),
}

pub(super) struct Callback {
    pub(super) body: Body,
    /// Run, cancelled or broken off: its entry in the queue is skipped.
    pub(super) over: bool,
    pub(super) timer: Option<TimerKey>,
    /// The period and how many runs are left.
    pub(super) repeat: Option<(Ms, u8)>,
    pub(super) chain_left: u8,
    /// What `on_done` passes to it.
    pub(super) argument: Option<String>,
}

pub(super) struct Task {
    pub(super) steps: Vec<TaskStep>,
    pub(super) next_step: usize,
    pub(super) ending: Ending,
    pub(super) waiting: Option<Waiting>,
    pub(super) queued: bool,
    pub(super) cancelled: bool,
    pub(super) polled: bool,
    pub(super) outcome: Option<&'static str>,
    pub(super) reader: Reader,
    pub(super) waiters: Vec<Fire>,
}

pub(super) struct Promise {
    pub(super) has_resolver: bool,
    pub(super) value: Option<String>,
    pub(super) reader: Reader,
    pub(super) waiters: Vec<Fire>,
}

/// Who reads the value of a task or a promise.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    /// The program holds the handle.
    Held,
    /// The handle was moved into an await or given to `on_done`.
    Moved,
    Shared,
    /// `detach`: failures go to `on_error`.
    Loop,
    Dropped,
}

/// What a suspended task waits for, and the limit that a `timeout` set.
pub(super) struct Waiting {
    /// The duration, and the timer once it is armed.
    pub(super) limit: Option<(Ms, Option<TimerKey>)>,
    pub(super) inner: Inner,
}

pub(super) enum Inner {
    Yield { polled: bool },
    Sleep(TimerKey),
    Promise(usize),
    Task(usize),
    Receive(u16),
}

impl Model {
    fn new(clock: ClockKind, jobs_per_poll: usize) -> Self {
        Self {
            clock,
            jobs_per_poll,
            now: 0,
            trace: Vec::new(),
            ready: VecDeque::new(),
            inbox: Vec::new(),
            timers: BTreeMap::new(),
            timers_created: 0,
            callbacks: Vec::new(),
            handles: Vec::new(),
            tasks: Vec::new(),
            spawned: Vec::new(),
            promises: Vec::new(),
            reader: None,
            readers_created: 0,
            pipe_readable: false,
            stop: false,
            poll_next: false,
            closing: false,
        }
    }

    pub(super) fn say(&mut self, line: impl Into<String>) {
        self.trace.push(line.into());
    }

    fn poll(&mut self, may_wait: bool) -> Result<(), &'static str> {
        self.poll_next = false;
        let readable = self.pipe_readable && self.reader.is_some();
        let earliest = self.timers.keys().next().map(|&(deadline, _)| deadline);
        let idle = self.ready.is_empty() && self.inbox.is_empty() && !self.stop && !readable && earliest.is_none_or(|at| at > self.now);
        if may_wait && idle {
            match (self.clock, earliest) {
                (ClockKind::Jumping, Some(deadline)) => self.now = deadline,
                _ => return Err("deadlock"),
            }
        }
        // O3: already ready, then I/O, then other threads, then due timers.
        if let Some(reader) = self.reader.filter(|_| readable) {
            self.ready.push_back(Job::Reader(reader));
        }
        self.join_inbox();
        while let Some(entry) = self.timers.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Fire::Callback(id) => self.ready.push_back(Job::Callback(id)),
                Fire::Task(id) => self.wake(id),
            }
        }
        Ok(())
    }

    fn join_inbox(&mut self) {
        self.ready.extend(self.inbox.drain(..).map(Job::Callback));
    }

    /// O2: what the jobs add waits for the next round.
    fn round(&mut self) -> usize {
        let snapshot = self.ready.len();
        for _ in 0..snapshot {
            match self.ready.pop_front() {
                Some(Job::Callback(id)) => self.run_callback(id),
                Some(Job::Task(id)) => self.run_task(id),
                Some(Job::Reader(id)) if self.reader == Some(id) => {
                    self.pipe_readable = false;
                    self.say(format!("reader {id} at {}", self.now));
                }
                Some(Job::Report(report)) => self.say(report),
                Some(Job::Reader(_)) | None => {}
            }
        }
        snapshot
    }

    fn turn(&mut self) -> Result<(), &'static str> {
        self.poll(true)?;
        let mut jobs_run = self.round();
        while !self.ready.is_empty() && jobs_run < self.jobs_per_poll && !self.poll_next && !self.stop {
            self.join_inbox();
            jobs_run += self.round();
        }
        Ok(())
    }

    fn run_until(&mut self, main: Option<usize>) -> &'static str {
        let end = loop {
            if let Err(error) = self.turn() {
                break error;
            }
            if let Some(outcome) = main.and_then(|id| self.tasks[id].outcome) {
                break outcome;
            }
            if self.stop {
                break "stopped";
            }
        };
        self.stop = false;
        if let Some(id) = main.filter(|&id| self.tasks[id].outcome.is_none()) {
            self.finish(id, "cancelled");
        }
        end
    }

    fn host(&mut self, step: &Step) {
        match step {
            Step::Do(act) => self.act(act),
            Step::RunOnce | Step::RunReady => {
                let may_wait = matches!(step, Step::RunOnce);
                let result = self.poll(may_wait).map(|()| self.round());
                self.say(format!("run: {}", result.err().unwrap_or("ok")));
            }
            Step::RunForever => {
                let end = self.run_until(None);
                self.say(format!("run_forever: {end}"));
            }
            Step::RunUntilComplete(body) => {
                let main = self.new_task(body, Reader::Moved);
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

    /// O9: the tasks newest first, then callbacks and timers, then the reports.
    fn end(&mut self, end: End) {
        if let End::Shutdown = end {
            for id in 0..self.tasks.len() {
                self.cancel_task(id);
            }
            while self.tasks.iter().any(|task| task.outcome.is_none()) && self.turn().is_ok() {}
        }
        self.say("close");
        self.closing = true;
        for id in (0..self.tasks.len()).rev() {
            if self.tasks[id].outcome.is_none() {
                self.finish(id, "cancelled");
            }
        }
        self.join_inbox();
        let timers = std::mem::take(&mut self.timers);
        let fired = timers.into_values().map(|fire| match fire {
            Fire::Callback(id) => Job::Callback(id),
            Fire::Task(id) => Job::Task(id),
        });
        let left: Vec<Job> = self.ready.drain(..).chain(fired).collect();
        for job in &left {
            if let Job::Callback(id) = *job {
                self.drop_callback(id);
            }
        }
        for job in left {
            if let Job::Report(report) = job {
                self.say(report);
            }
        }
        self.say("closed");
    }
}
