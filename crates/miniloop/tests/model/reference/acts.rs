//! The reference loop's acts: what callbacks, tasks and the host may do to it, and its callbacks and timers.

use super::completion::{Completion, Source};
use super::{Job, Model, TimerKey, Wake};
use crate::model::program::{Act, Body, Ending, Ms, pick};

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
                if self.closing {
                    self.finish(id, "cancelled");
                }
                self.spawned.push(id);
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

    pub(super) fn acts(&mut self, acts: &[Act]) {
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

    pub(super) fn arm(&mut self, deadline: Ms, wake: Wake) -> TimerKey {
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

    // ---- what the program can reach

    pub(super) fn held_task(&self, nth: usize) -> Option<Source> {
        let id = self.spawned[pick(nth, self.spawned.len())?];
        self.tasks[id].completion.held.then_some(Source::Task(id))
    }

    pub(super) fn held_promise(&self, nth: usize) -> Option<Source> {
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
