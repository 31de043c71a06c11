//! The reference loop's tasks and promises: polling, waiting, cancelling, finishing, and telling those who wait.
//!
//! Tasks are interpreted: a list of steps and a position, so a "poll" is a walk until a step has to wait. Read with `reference.rs`.

use super::program::{Ending, Ms, Nth, TaskBody, TaskStep, Wait, pick};
use super::reference::{Fire, Inner, Job, Model, Promise, Reader, Task, Waiting};

impl Model {
    pub(super) fn new_task(&mut self, body: &TaskBody, reader: Reader) -> usize {
        let id = self.tasks.len();
        self.tasks.push(Task {
            steps: body.steps.clone(),
            next_step: 0,
            ending: body.ending,
            waiting: None,
            queued: false,
            cancelled: false,
            polled: false,
            outcome: None,
            reader,
            waiters: Vec::new(),
        });
        self.wake(id);
        id
    }

    /// O5: queued once, however often it is woken.
    pub(super) fn wake(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if task.outcome.is_none() && !task.queued && !self.closing {
            task.queued = true;
            self.ready.push_back(Job::Task(id));
        }
    }

    pub(super) fn held_task(&self, nth: usize) -> Option<usize> {
        let id = self.spawned[pick(nth, self.spawned.len())?];
        (self.tasks[id].reader == Reader::Held).then_some(id)
    }

    /// Marks and queues: the future goes in the task's own job (C4).
    pub(super) fn cancel_task(&mut self, id: usize) {
        if self.tasks[id].outcome.is_none() {
            self.tasks[id].cancelled = true;
            self.wake(id);
        }
    }

    pub(super) fn drop_task_handle(&mut self, id: usize) {
        self.tasks[id].reader = Reader::Dropped;
        self.cancel_task(id);
        self.report_unread(id);
    }

    pub(super) fn run_task(&mut self, id: usize) {
        if self.tasks[id].outcome.is_some() {
            return;
        }
        self.tasks[id].queued = false;
        if self.tasks[id].cancelled {
            return self.finish(id, "cancelled");
        }
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
            match self.tasks[id].steps.get(step).cloned() {
                Some(TaskStep::Do(act)) => self.act(&act),
                Some(TaskStep::Await(wait)) => self.begin_wait(id, &wait, None),
                Some(TaskStep::Timeout(limit, wait)) => self.begin_wait(id, &wait, Some(limit)),
                // C10: a value counts, even if the task was cancelled meanwhile.
                None => {
                    let outcome = match self.tasks[id].ending {
                        Ending::Return => "ok",
                        Ending::Fail => "failed",
                        Ending::Panic => "panicked",
                    };
                    return self.finish(id, outcome);
                }
            }
        }
    }

    fn begin_wait(&mut self, id: usize, wait: &Wait, limit: Option<Ms>) {
        let inner = match *wait {
            Wait::Yield | Wait::Sleep(0) => Inner::Yield { polled: false },
            Wait::Sleep(delay) => Inner::Sleep(self.arm(self.now + delay, Fire::Task(id))),
            Wait::Receive(count) => Inner::Receive(count),
            Wait::Promise(nth) => match self.promise_to_await(nth) {
                Some(promise) => Inner::Promise(promise),
                None => return,
            },
            Wait::Task(nth) => match self.task_to_await(nth, id) {
                Some(task) => Inner::Task(task),
                None => return,
            },
        };
        self.tasks[id].waiting = Some(Waiting { limit: limit.map(|limit| (limit, None)), inner });
    }

    fn promise_to_await(&mut self, nth: Nth) -> Option<usize> {
        let id = pick(nth, self.promises.len())?;
        take_or_share(&mut self.promises[id].reader).then_some(id)
    }

    /// A task that awaits itself is another story (C064).
    fn task_to_await(&mut self, nth: Nth, by: usize) -> Option<usize> {
        let id = self.spawned[pick(nth, self.spawned.len())?];
        (id != by && take_or_share(&mut self.tasks[id].reader)).then_some(id)
    }

    /// The line that says what came, or `None`: the task waits.
    fn poll_waiting(&mut self, id: usize, waiting: &mut Waiting, operations_left: &mut u16) -> Option<String> {
        if let Some(line) = self.poll_inner(id, &mut waiting.inner, operations_left) {
            self.drop_limit(waiting);
            return Some(line);
        }
        match waiting.limit {
            Some((limit, None)) => waiting.limit = Some((limit, Some(self.arm(self.now + limit, Fire::Task(id))))),
            Some((_, Some(timer))) if !self.timers.contains_key(&timer) => {
                self.drop_inner(id, &waiting.inner);
                return Some("elapsed".to_owned());
            }
            _ => {}
        }
        None
    }

    fn poll_inner(&mut self, id: usize, inner: &mut Inner, operations_left: &mut u16) -> Option<String> {
        match inner {
            Inner::Yield { polled: true } => Some("yielded".to_owned()),
            Inner::Yield { polled } => {
                *polled = true;
                self.wake(id);
                None
            }
            Inner::Sleep(timer) => (!self.timers.contains_key(timer)).then(|| "slept".to_owned()),
            Inner::Promise(promise) => {
                let Promise { value, waiters, .. } = &mut self.promises[*promise];
                if value.is_none() && !waiters.contains(&Fire::Task(id)) {
                    waiters.push(Fire::Task(id));
                }
                value.as_ref().map(|value| format!("promise {promise} is {value}"))
            }
            Inner::Task(task) => {
                let Task { outcome, waiters, .. } = &mut self.tasks[*task];
                if outcome.is_none() && !waiters.contains(&Fire::Task(id)) {
                    waiters.push(Fire::Task(id));
                }
                outcome.map(|outcome| format!("task {task} is {outcome}"))
            }
            // O10: so many operations in one poll, then a wake and another round.
            Inner::Receive(left) => {
                let now = (*left).min(*operations_left);
                *left -= now;
                *operations_left -= now;
                if *left == 0 {
                    return Some("received".to_owned());
                }
                self.wake(id);
                None
            }
        }
    }

    fn drop_limit(&mut self, waiting: &Waiting) {
        if let Some((_, Some(timer))) = waiting.limit {
            self.timers.remove(&timer);
        }
    }

    /// What was awaited is dropped: a timer is cancelled, a sole reader cancels, one of many readers just goes.
    fn drop_inner(&mut self, id: usize, inner: &Inner) {
        match *inner {
            Inner::Yield { .. } | Inner::Receive(_) => {}
            Inner::Sleep(timer) => {
                self.timers.remove(&timer);
            }
            Inner::Promise(promise) => {
                let Promise { reader, waiters, .. } = &mut self.promises[promise];
                waiters.retain(|&waiter| waiter != Fire::Task(id));
                if *reader == Reader::Moved {
                    *reader = Reader::Dropped;
                }
            }
            Inner::Task(task) => {
                self.tasks[task].waiters.retain(|&waiter| waiter != Fire::Task(id));
                if self.tasks[task].reader == Reader::Moved {
                    self.drop_task_handle(task);
                }
            }
        }
    }

    /// The future goes first, then those who wait for it are told.
    pub(super) fn finish(&mut self, id: usize, outcome: &'static str) {
        self.say(format!("drop task {id}"));
        self.tasks[id].outcome = Some(outcome);
        if let Some(waiting) = self.tasks[id].waiting.take() {
            self.drop_limit(&waiting);
            self.drop_inner(id, &waiting.inner);
        }
        self.tell_task_waiters(id);
        self.report_unread(id);
    }

    /// O8: in registration order, through the queue.
    pub(super) fn tell_task_waiters(&mut self, id: usize) {
        if let Some(outcome) = self.tasks[id].outcome {
            let waiters = std::mem::take(&mut self.tasks[id].waiters);
            self.tell(waiters, &format!(" with task {id} is {outcome}"));
        }
    }

    pub(super) fn complete_promise(&mut self, id: usize, value: String) {
        self.promises[id].has_resolver = false;
        self.promises[id].value = Some(value);
        self.tell_promise_waiters(id);
    }

    pub(super) fn tell_promise_waiters(&mut self, id: usize) {
        if let Some(value) = &self.promises[id].value {
            let argument = format!(" with promise {id} is {value}");
            let waiters = std::mem::take(&mut self.promises[id].waiters);
            self.tell(waiters, &argument);
        }
    }

    fn tell(&mut self, waiters: Vec<Fire>, argument: &str) {
        for waiter in waiters {
            match waiter {
                Fire::Task(task) => self.wake(task),
                Fire::Callback(callback) => {
                    self.callbacks[callback].argument = Some(argument.to_owned());
                    self.ready.push_back(Job::Callback(callback));
                }
            }
        }
    }

    /// A failure that nobody can read any more goes to `on_error`.
    pub(super) fn report_unread(&mut self, id: usize) {
        let failed = match (self.tasks[id].outcome, self.tasks[id].reader) {
            (Some("panicked"), Reader::Loop | Reader::Dropped) => "panics",
            (Some("failed"), Reader::Loop) => "fails",
            _ => return,
        };
        self.report(format!("report: task {id} {failed}"));
    }

    pub(super) fn resolver(&self, nth: Nth) -> Option<usize> {
        pick(nth, self.promises.len()).filter(|&id| self.promises[id].has_resolver)
    }

    pub(super) fn held_promise(&self, nth: Nth) -> Option<usize> {
        pick(nth, self.promises.len()).filter(|&id| self.promises[id].reader == Reader::Held)
    }
}

fn take_or_share(reader: &mut Reader) -> bool {
    if *reader == Reader::Held {
        *reader = Reader::Moved;
        return true;
    }
    *reader == Reader::Shared
}

/// `ops_per_poll`.
const OPS_PER_POLL: u16 = 64;
