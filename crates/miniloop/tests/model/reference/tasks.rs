//! The reference loop's tasks: how they are woken, polled, cancelled and finished, and what they can wait for.
//!
//! A task is interpreted: a list of steps and a position, so a poll is a walk until a step has to wait.

use super::completion::{Completion, Source};
use super::{Job, Model, TimerKey, Wake};
use crate::model::program::{Ending, Ms, TaskBody, TaskStep, Wait};

#[derive(Default)]
pub(super) struct Task {
    body: TaskBody,
    next_step: usize,
    waiting: Option<Waiting>,
    queued: bool,
    /// It was woken since it was polled last; being spawned or cancelled only queues it.
    woken: bool,
    cancelled: bool,
    pub(super) polled: bool,
    pub(super) is_main: bool,
    pub(super) completion: Completion,
}

/// What a suspended task waits for, and the limit that a `timeout` set.
struct Waiting {
    limit: Option<TimerKey>,
    inner: Inner,
}

enum Inner {
    Yield { polled: bool },
    Sleep(TimerKey),
    Read(Source),
    Receive(u16),
}

impl Model {
    pub(super) fn new_task(&mut self, body: &TaskBody) -> usize {
        self.tasks.push(Task { body: body.clone(), cancelled: self.shutting_down, ..Task::default() });
        self.queue_task(self.tasks.len() - 1);
        self.tasks.len() - 1
    }

    pub(super) fn wake_task(&mut self, id: usize) {
        self.tasks[id].woken = true;
        self.queue_task(id);
    }

    /// O5: queued once, however often it is woken.
    fn queue_task(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if task.completion.value.is_none() && !task.queued && !self.closing {
            task.queued = true;
            self.ready.push_back(Job::Task(id));
        }
    }

    /// The future is dropped in the task's own next job (C4).
    pub(super) fn cancel_task(&mut self, id: usize) {
        self.tasks[id].cancelled = true;
        self.queue_task(id);
    }

    /// Whether there was something to run.
    pub(super) fn run_task(&mut self, id: usize) -> bool {
        let Task { queued, woken, cancelled, completion, .. } = &mut self.tasks[id];
        let runs = completion.value.is_none();
        *queued = false;
        let (was_woken, was_cancelled) = (std::mem::take(woken), *cancelled);
        // C12: what it was woken for is not lost.
        if runs && (was_woken || !was_cancelled) {
            self.poll_task(id);
        }
        if runs && was_cancelled {
            self.finish(id, "cancelled");
        }
        runs
    }

    fn poll_task(&mut self, id: usize) {
        self.tasks[id].polled = true;
        self.say(format!("poll task {id} at {}", self.now));
        let mut operations_left = OPS_PER_POLL;
        loop {
            if let Some(mut waiting) = self.tasks[id].waiting.take() {
                let Some(line) = self.poll_waiting(id, &mut waiting, &mut operations_left) else {
                    self.tasks[id].waiting = Some(waiting);
                    return;
                };
                self.say(format!("task {id}: {line}"));
            }
            let step = self.tasks[id].next_step;
            self.tasks[id].next_step += 1;
            match self.tasks[id].body.steps.get(step).cloned() {
                Some(TaskStep::Do(act)) => self.act(&act),
                Some(TaskStep::Await(wait)) => self.begin_wait(id, &wait, None),
                Some(TaskStep::Timeout(limit, wait)) => self.begin_wait(id, &wait, Some(limit)),
                // C10: a value counts, even if the task was cancelled meanwhile.
                None => break,
            }
        }
        self.finish(
            id,
            match self.tasks[id].body.ending {
                Ending::Return => "ok",
                Ending::Fail => "failed",
                Ending::Panic => "panicked",
            },
        );
    }

    /// The future goes first, then those who wait for it are told.
    pub(super) fn finish(&mut self, id: usize, outcome: &str) {
        if self.tasks[id].completion.value.is_some() {
            return;
        }
        match self.tasks[id].is_main {
            true => self.main_panicked = outcome == "panicked",
            false => self.drop_future(id),
        }
        self.complete(Source::Task(id), outcome.to_owned());
    }

    pub(super) fn drop_future(&mut self, id: usize) {
        self.say(format!("drop task {id}"));
        self.acts(&self.tasks[id].body.on_drop.clone());
        if let Some(waiting) = self.tasks[id].waiting.take() {
            self.drop_waiting(id, waiting);
        }
    }

    // ---- what a task waits for

    fn begin_wait(&mut self, id: usize, wait: &Wait, limit: Option<Ms>) {
        let inner = match *wait {
            Wait::Yield | Wait::Sleep(0) => Inner::Yield { polled: false },
            Wait::Sleep(delay) => Inner::Sleep(self.arm(self.now + delay, Wake::Task(id))),
            Wait::Receive(count) => Inner::Receive(count),
            Wait::Promise(nth) => match self.held_promise(nth) {
                Some(promise) => Inner::Read(promise),
                None => return,
            },
            // A task that awaits itself is another story (C064).
            Wait::Task(nth) => match self.held_task(nth).filter(|&task| task != Source::Task(id)) {
                Some(task) => Inner::Read(task),
                None => return,
            },
        };
        if let Inner::Read(source) = inner {
            self.add_reader(source);
        }
        let limit = limit.map(|limit| self.arm(self.now + limit, Wake::Task(id)));
        self.tasks[id].waiting = Some(Waiting { limit, inner });
    }

    /// The line that says what came, or `None`: the task waits.
    fn poll_waiting(&mut self, id: usize, waiting: &mut Waiting, operations_left: &mut u16) -> Option<String> {
        if let Some(line) = self.poll_inner(id, &mut waiting.inner, operations_left) {
            if let Some(timer) = waiting.limit {
                self.timers.remove(&timer);
            }
            return Some(line);
        }
        let elapsed = waiting.limit.is_some_and(|timer| !self.timers.contains_key(&timer));
        if elapsed {
            self.drop_inner(id, &waiting.inner);
        }
        elapsed.then(|| "elapsed".to_owned())
    }

    fn poll_inner(&mut self, id: usize, inner: &mut Inner, operations_left: &mut u16) -> Option<String> {
        match inner {
            Inner::Yield { polled: true } => Some("yielded".to_owned()),
            Inner::Yield { polled } => {
                *polled = true;
                self.wake_task(id);
                None
            }
            Inner::Sleep(timer) => (!self.timers.contains_key(timer)).then(|| "slept".to_owned()),
            // O10: to read a shared result is an operation each time.
            Inner::Read(source) if self.completion(*source).shared && *operations_left == 0 => {
                self.wake_task(id);
                None
            }
            Inner::Read(source) if self.completion(*source).value.is_some() => {
                *operations_left -= u16::from(self.completion(*source).shared);
                Some(self.read(*source))
            }
            Inner::Read(source) => {
                self.wait_for(*source, Wake::Task(id));
                None
            }
            // O10: so many operations in one poll, then a wake and another round.
            Inner::Receive(left) => {
                let done = (*left).min(*operations_left);
                *left -= done;
                *operations_left -= done;
                self.calls_since_poll = self.calls_since_poll.saturating_add(done);
                if *left == 0 {
                    return Some("received".to_owned());
                }
                self.wake_task(id);
                None
            }
        }
    }

    fn drop_waiting(&mut self, id: usize, waiting: Waiting) {
        if let Some(timer) = waiting.limit {
            self.timers.remove(&timer);
        }
        self.drop_inner(id, &waiting.inner);
    }

    fn drop_inner(&mut self, id: usize, inner: &Inner) {
        match *inner {
            Inner::Yield { .. } | Inner::Receive(_) => {}
            Inner::Sleep(timer) => {
                self.timers.remove(&timer);
            }
            Inner::Read(source) => {
                self.forget_waiter(source, Wake::Task(id));
                self.release(source);
            }
        }
    }
}

/// `ops_per_poll`.
const OPS_PER_POLL: u16 = 64;
