//! The reference loop's jobs: what a callback, a task and the host may do to it, and how tasks are polled.
//!
//! A task is interpreted: a list of steps and a position, so a "poll" is a walk until a step has to wait. Read with `reference.rs`.

use super::program::{Act, Body, Ending, Ms, TaskBody, TaskStep, Wait, pick};
use super::reference::{Job, Model, TimerKey, Wake};
use super::reference_completion::{Completion, Source};

pub(super) struct Callback {
    body: Body,
    /// Run, cancelled or broken off: its entry in the queue is skipped.
    over: bool,
    timer: Option<TimerKey>,
    /// The period and how many runs are left.
    repeat: Option<(Ms, u8)>,
    chain_left: u8,
    /// A repeating callback that is cancelled while it runs is dropped when it returns.
    running: bool,
    /// What `on_done` reads for it.
    pub(super) reads: Option<Source>,
}

#[derive(Default)]
pub(super) struct Task {
    body: TaskBody,
    next_step: usize,
    waiting: Option<Waiting>,
    queued: bool,
    cancelled: bool,
    polled: bool,
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
    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::Soon(body) => {
                let id = self.new_handle(body);
                self.schedule(id);
            }
            Act::Later(delay, body) => self.call_at(self.now + delay, body, None),
            Act::At(deadline, body) => self.call_at(*deadline, body, None),
            Act::Every(period, runs, body) => self.call_at(self.now + period, body, Some((*period, *runs))),
            Act::Chain(len, body) => self.chain(*len, body),
            Act::Remote(body) => {
                let id = self.new_callback(body);
                match self.closing {
                    true => self.drop_callback(id),
                    false => self.inbox.push(Wake::Callback(id)),
                }
            }
            Act::CancelHandle(nth) => {
                if let Some(index) = pick(*nth, self.handles.len()) {
                    self.drop_callback(self.handles[index]);
                }
            }
            Act::Spawn(body) => {
                let id = self.new_task(body);
                self.spawned.push(id);
                if self.closing {
                    self.finish(id, "cancelled");
                }
            }
            Act::CancelTask(nth) => {
                if let Some(task) = self.held_task(*nth)
                    && !self.completion(task).shared
                {
                    self.cancel(task);
                }
            }
            Act::Detach(nth) => {
                if let Some(task) = self.held_task(*nth) {
                    self.detach(task);
                }
            }
            Act::DropTask(nth) => self.drop_handle(self.held_task(*nth)),
            Act::ShareTask(nth) => self.share(self.held_task(*nth)),
            Act::OnTaskDone(nth, body) => self.on_done(self.held_task(*nth), body),
            Act::NewPromise => self.promises.push(Completion::default()),
            Act::DropPromise(nth) => self.drop_handle(self.held_promise(*nth)),
            Act::SharePromise(nth) => self.share(self.held_promise(*nth)),
            Act::OnPromiseDone(nth, body) => self.on_done(self.held_promise(*nth), body),
            Act::Resolve(nth, value) => {
                if let Some(id) = self.resolver(*nth) {
                    let cancelled = self.promises[id].readers == 0;
                    self.say(format!("resolve promise {id}, cancelled: {cancelled}"));
                    let text = match value {
                        Ok(value) => format!("ok {value}"),
                        Err(error) => format!("error {error}"),
                    };
                    self.complete(Source::Promise(id), text);
                }
            }
            Act::DropResolver(nth) => {
                if let Some(id) = self.resolver(*nth) {
                    self.complete(Source::Promise(id), "abandoned".to_owned());
                }
            }
            Act::Wake(nth) => {
                if let Some(id) = self.polled_task(*nth) {
                    self.wake_task(id);
                }
            }
            Act::WakeFromThread(nth) => {
                if let Some(id) = self.polled_task(*nth) {
                    self.inbox.push(Wake::Task(id));
                }
            }
            Act::Advance(ms) => {
                self.now += ms;
                self.poll_next |= *ms > 0;
            }
            Act::Stop => self.stop = true,
            Act::AddReader => {
                self.reader = Some(self.readers_created);
                self.readers_created += 1;
            }
            Act::RemoveReader => self.reader = None,
            Act::WritePipe => self.pipe_readable = true,
        }
    }

    fn acts(&mut self, acts: &[Act]) {
        for act in acts {
            self.act(act);
        }
    }

    // ---- callbacks and timers

    pub(super) fn new_callback(&mut self, body: &Body) -> usize {
        let body = body.clone();
        self.callbacks.push(Callback { body, over: false, timer: None, repeat: None, chain_left: 0, running: false, reads: None });
        self.callbacks.len() - 1
    }

    pub(super) fn new_handle(&mut self, body: &Body) -> usize {
        let id = self.new_callback(body);
        self.handles.push(id);
        id
    }

    fn schedule(&mut self, id: usize) {
        match self.closing {
            true => self.drop_callback(id),
            false => self.wake(Wake::Callback(id)),
        }
    }

    fn chain(&mut self, len: u8, body: &Body) {
        let id = self.new_handle(body);
        self.callbacks[id].chain_left = len;
        self.schedule(id);
    }

    fn call_at(&mut self, deadline: Ms, body: &Body, repeat: Option<(Ms, u8)>) {
        let id = self.new_handle(body);
        self.callbacks[id].repeat = repeat;
        match self.closing {
            true => self.drop_callback(id),
            false => self.callbacks[id].timer = Some(self.arm(deadline, Wake::Callback(id))),
        }
    }

    fn arm(&mut self, deadline: Ms, wake: Wake) -> TimerKey {
        let key = (deadline, self.timers_created);
        self.timers_created += 1;
        self.timers.insert(key, wake);
        self.poll_next |= deadline <= self.now;
        key
    }

    /// O4: a cancelled callback is skipped, and what it owns is dropped at once.
    pub(super) fn drop_callback(&mut self, id: usize) {
        if let Some(timer) = self.callbacks[id].timer.take() {
            self.timers.remove(&timer);
        }
        if !std::mem::replace(&mut self.callbacks[id].over, true) && !self.callbacks[id].running {
            if let Some(source) = self.callbacks[id].reads {
                self.forget_waiter(source, Wake::Callback(id));
                self.release(source);
            }
            self.run_destructor(id);
        }
    }

    /// In which order a closing loop drops callbacks is not promised, so their destructors do nothing then.
    fn run_destructor(&mut self, id: usize) {
        self.say(format!("drop callback {id}"));
        if !self.closing {
            self.acts(&self.callbacks[id].body.on_drop.clone());
        }
    }

    /// Whether there was something to run.
    pub(super) fn run_callback(&mut self, id: usize) -> bool {
        let runs = !self.callbacks[id].over;
        if runs {
            self.call(id);
        }
        runs
    }

    fn call(&mut self, id: usize) {
        let Callback { body, chain_left, reads, repeat, .. } = &self.callbacks[id];
        let (body, chain_left, reads, repeat) = (body.clone(), *chain_left, *reads, *repeat);
        let argument = reads.map(|source| format!(" with {}", self.read(source))).unwrap_or_default();
        self.callbacks[id].over = repeat.is_none();
        self.say(format!("callback {id} at {}{argument}", self.now));
        if chain_left > 0 {
            return self.chain(chain_left - 1, &body);
        }
        let last_run = repeat.is_some_and(|(_, runs)| runs == 1);
        self.callbacks[id].running = repeat.is_some();
        self.acts(&body.acts);
        match body.ending {
            Ending::Fail if !last_run => self.report(format!("report: callback {id} fails")),
            Ending::Panic if !last_run => self.report(format!("report: callback {id} panics")),
            _ => {}
        }
        if let Some((period, runs)) = repeat {
            self.repeat(id, period, runs);
        }
    }

    /// The next deadline is set after the call, on the grid of the first; ticks that were missed are left out.
    fn repeat(&mut self, id: usize, period: Ms, runs: u8) {
        let Callback { over, running, timer, repeat, .. } = &mut self.callbacks[id];
        *running = false;
        match *timer {
            Some((deadline, _)) if !*over && runs > 1 => {
                *repeat = Some((period, runs - 1));
                let missed = (self.now - deadline) / period;
                let next = deadline + (missed + 1) * period;
                self.callbacks[id].timer = Some(self.arm(next, Wake::Callback(id)));
            }
            _ => {
                *over = true;
                self.run_destructor(id);
            }
        }
    }

    pub(super) fn report(&mut self, report: String) {
        self.ready.push_back(Job::Report(report));
    }

    // ---- tasks

    pub(super) fn new_task(&mut self, body: &TaskBody) -> usize {
        self.tasks.push(Task { body: body.clone(), cancelled: self.shutting_down, ..Task::default() });
        self.wake_task(self.tasks.len() - 1);
        self.tasks.len() - 1
    }

    /// O5: queued once, however often it is woken.
    pub(super) fn wake_task(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if task.completion.value.is_none() && !task.queued && !self.closing {
            task.queued = true;
            self.ready.push_back(Job::Task(id));
        }
    }

    /// The future is dropped in the task's own next job (C4).
    pub(super) fn cancel_task(&mut self, id: usize) {
        self.tasks[id].cancelled = true;
        self.wake_task(id);
    }

    /// Whether there was something to run.
    pub(super) fn run_task(&mut self, id: usize) -> bool {
        let Task { queued, cancelled, completion, .. } = &mut self.tasks[id];
        let runs = completion.value.is_none();
        *queued = false;
        match (runs, *cancelled) {
            (true, false) => self.poll_task(id),
            (true, true) => self.finish(id, "cancelled"),
            (false, _) => {}
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
            Inner::Read(source) if self.completion(*source).value.is_some() => Some(self.read(*source)),
            Inner::Read(source) => {
                self.wait_for(*source, Wake::Task(id));
                None
            }
            // O10: so many operations in one poll, then a wake and another round.
            Inner::Receive(left) => {
                let done = (*left).min(*operations_left);
                *left -= done;
                *operations_left -= done;
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

    // ---- what the program can reach

    fn held_task(&self, nth: usize) -> Option<Source> {
        let id = self.spawned[pick(nth, self.spawned.len())?];
        self.tasks[id].completion.held.then_some(Source::Task(id))
    }

    fn held_promise(&self, nth: usize) -> Option<Source> {
        let id = pick(nth, self.promises.len())?;
        self.promises[id].held.then_some(Source::Promise(id))
    }

    fn resolver(&self, nth: usize) -> Option<usize> {
        pick(nth, self.promises.len()).filter(|&id| self.promises[id].value.is_none())
    }

    fn polled_task(&self, nth: usize) -> Option<usize> {
        let id = self.spawned[pick(nth, self.spawned.len())?];
        self.tasks[id].polled.then_some(id)
    }
}

/// `ops_per_poll`.
const OPS_PER_POLL: u16 = 64;
