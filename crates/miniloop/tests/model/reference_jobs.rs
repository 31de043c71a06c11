//! The reference loop's jobs: what a callback, a task and the host may do to it.
//!
//! Tasks are interpreted: a list of steps and a position. Read with `reference.rs`, which holds the queue and the turn.

use super::program::{Act, Body, Ending, Ms, Nth, Value, pick};
use super::reference::{Callback, Fire, Job, Model, Promise, Reader, TimerKey};

impl Model {
    pub(super) fn act(&mut self, act: &Act) {
        match act {
            Act::Soon(body) => {
                let id = self.new_handle(body, None);
                self.ready.push_back(Job::Callback(id));
            }
            Act::Later(delay, body) => {
                let id = self.new_handle(body, None);
                self.arm_callback(id, self.now + delay);
            }
            Act::At(deadline, body) => {
                let id = self.new_handle(body, None);
                self.arm_callback(id, *deadline);
            }
            Act::Every(period, runs, body) => {
                let id = self.new_handle(body, Some((*period, *runs)));
                self.arm_callback(id, self.now + period);
            }
            Act::Chain(len, body) => self.chain(*len, body),
            Act::CancelHandle(nth) => {
                if let Some(index) = pick(*nth, self.handles.len()) {
                    self.drop_callback(self.handles[index]);
                }
            }
            Act::Remote(body) => {
                let id = self.new_callback(body, None);
                self.inbox.push(id);
            }
            Act::Spawn(body) => {
                let id = self.new_task(body, Reader::Held);
                self.spawned.push(id);
            }
            Act::CancelTask(nth) => {
                if let Some(id) = self.held_task(*nth) {
                    self.cancel_task(id);
                }
            }
            Act::DropTask(nth) => {
                if let Some(id) = self.held_task(*nth) {
                    self.drop_task_handle(id);
                }
            }
            Act::Detach(nth) => {
                if let Some(id) = self.held_task(*nth) {
                    self.tasks[id].reader = Reader::Loop;
                    self.report_unread(id);
                }
            }
            Act::ShareTask(nth) => {
                if let Some(id) = self.held_task(*nth) {
                    self.tasks[id].reader = Reader::Shared;
                }
            }
            Act::OnTaskDone(nth, body) => {
                if let Some(id) = self.held_task(*nth) {
                    self.tasks[id].reader = Reader::Moved;
                    let callback = self.new_callback(body, None);
                    self.tasks[id].waiters.push(Fire::Callback(callback));
                    self.tell_task_waiters(id);
                }
            }
            Act::NewPromise => self.promises.push(Promise { has_resolver: true, value: None, reader: Reader::Held, waiters: Vec::new() }),
            Act::Resolve(nth, value) => {
                if let Some(id) = self.resolver(*nth) {
                    self.say(format!("resolve promise {id}, cancelled: {}", self.promises[id].reader == Reader::Dropped));
                    self.complete_promise(id, result_text(*value));
                }
            }
            Act::DropResolver(nth) => {
                if let Some(id) = self.resolver(*nth) {
                    self.complete_promise(id, "abandoned".to_owned());
                }
            }
            Act::DropPromise(nth) => {
                if let Some(id) = self.held_promise(*nth) {
                    self.promises[id].reader = Reader::Dropped;
                }
            }
            Act::SharePromise(nth) => {
                if let Some(id) = self.held_promise(*nth) {
                    self.promises[id].reader = Reader::Shared;
                }
            }
            Act::OnPromiseDone(nth, body) => {
                if let Some(id) = self.held_promise(*nth) {
                    self.promises[id].reader = Reader::Moved;
                    let callback = self.new_callback(body, None);
                    self.promises[id].waiters.push(Fire::Callback(callback));
                    self.tell_promise_waiters(id);
                }
            }
            Act::Wake(nth) => {
                if let Some(id) = pick(*nth, self.spawned.len()).map(|index| self.spawned[index])
                    && self.tasks[id].polled
                {
                    self.wake(id);
                }
            }
            Act::Advance(ms) => {
                self.now += ms;
                self.poll_next = true;
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

    fn new_callback(&mut self, body: &Body, repeat: Option<(Ms, u8)>) -> usize {
        let body = body.clone();
        self.callbacks.push(Callback { body, over: false, timer: None, repeat, chain_left: 0, argument: None });
        self.callbacks.len() - 1
    }

    fn new_handle(&mut self, body: &Body, repeat: Option<(Ms, u8)>) -> usize {
        let id = self.new_callback(body, repeat);
        self.handles.push(id);
        id
    }

    fn chain(&mut self, len: u8, body: &Body) {
        let id = self.new_handle(body, None);
        self.callbacks[id].chain_left = len;
        self.ready.push_back(Job::Callback(id));
    }

    pub(super) fn arm(&mut self, deadline: Ms, fire: Fire) -> TimerKey {
        let key = (deadline, self.timers_created);
        self.timers_created += 1;
        self.timers.insert(key, fire);
        self.poll_next |= deadline <= self.now;
        key
    }

    fn arm_callback(&mut self, id: usize, deadline: Ms) {
        self.callbacks[id].timer = Some(self.arm(deadline, Fire::Callback(id)));
    }

    /// O4: a cancelled callback is skipped, and what it owns is dropped at once.
    pub(super) fn drop_callback(&mut self, id: usize) {
        if let Some(timer) = self.callbacks[id].timer.take() {
            self.timers.remove(&timer);
        }
        if !std::mem::replace(&mut self.callbacks[id].over, true) {
            self.say(format!("drop callback {id}"));
        }
    }

    pub(super) fn run_callback(&mut self, id: usize) {
        if self.callbacks[id].over {
            return;
        }
        let Callback { body, repeat, chain_left, argument, .. } = &mut self.callbacks[id];
        let (body, chain_left, argument) = (body.clone(), *chain_left, argument.take().unwrap_or_default());
        self.callbacks[id].over = repeat.is_none();
        self.say(format!("callback {id} at {}{argument}", self.now));
        if chain_left > 0 {
            return self.chain(chain_left - 1, &body);
        }
        for act in &body.acts {
            self.act(act);
        }
        match body.ending {
            Ending::Return => {}
            Ending::Fail => self.report(format!("report: callback {id} fails")),
            Ending::Panic => self.report(format!("report: callback {id} panics")),
        }
        self.repeat(id);
    }

    /// A repeating callback goes on until it breaks. The next deadline counts from the last one.
    fn repeat(&mut self, id: usize) {
        let callback = &mut self.callbacks[id];
        let (Some((period, runs)), false) = (&mut callback.repeat, callback.over) else { return };
        *runs -= 1;
        let period = *period;
        if *runs == 0 {
            return self.drop_callback(id);
        }
        let last = callback.timer.map_or(self.now, |(deadline, _)| deadline);
        self.arm_callback(id, last + period);
    }

    pub(super) fn report(&mut self, report: String) {
        self.ready.push_back(Job::Report(report));
    }
}

fn result_text(value: Value) -> String {
    match value {
        Ok(value) => format!("ok {value}"),
        Err(error) => format!("error {error}"),
    }
}
