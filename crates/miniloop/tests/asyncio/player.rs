//! Plays a program on miniloop, as `play.py` does on asyncio.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use miniloop::{
    Abandoned, CallbackHandle, EventLoop, Instant, LoopHandle, Resolver, Shared, Task, TaskError, TimerHandle, VirtualClock, promise,
    spawn, yield_now,
};

use crate::program::{Act, Body, Label, Nth, Program, Step, TaskBody};

/// The trace of a program, with `jobs_per_poll(1)`, which is asyncio's turn.
pub(crate) fn play(program: &Program) -> Vec<String> {
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).jobs_per_poll(1).build().unwrap();
    let handle = event_loop.handle();
    let player = Rc::new(Player::new(handle.clone()));
    let (first, acts) = (player.clone(), program.0.clone());
    handle.call_soon(move || first.act_all(&acts));
    let stop = handle.clone();
    handle.call_at(Instant::from_nanos(1 << 50), move || stop.stop());
    event_loop.run_forever().unwrap();
    let trace = player.trace.take();
    drop(event_loop);
    trace
}

struct Player {
    handle: LoopHandle,
    trace: RefCell<Vec<String>>,
    handles: RefCell<Vec<Handle>>,
    promises: RefCell<Vec<Promised>>,
    tasks: RefCell<Vec<Shared<Result<(), TaskError>>>>,
    hanging: RefCell<Vec<Rc<Task<()>>>>,
    deadlines: RefCell<BTreeSet<Instant>>,
    ours: UnixStream,
    theirs: UnixStream,
}

enum Handle {
    Soon(CallbackHandle),
    Timer(TimerHandle),
}

struct Promised {
    resolver: Cell<Option<Resolver<(), Abandoned>>>,
    promise: Shared<Result<(), Abandoned>>,
}

impl Player {
    fn new(handle: LoopHandle) -> Player {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        Player {
            handle,
            trace: RefCell::default(),
            handles: RefCell::default(),
            promises: RefCell::default(),
            tasks: RefCell::default(),
            hanging: RefCell::default(),
            deadlines: RefCell::default(),
            ours,
            theirs,
        }
    }

    fn note(&self, what: impl std::fmt::Display) {
        self.trace.borrow_mut().push(format!("{what}@{}", self.handle.now().as_nanos()));
    }

    fn deadline(&self, delay: u64) -> Instant {
        let mut deadline = self.handle.now() + Duration::from_nanos(delay);
        while !self.deadlines.borrow_mut().insert(deadline) {
            deadline += Duration::from_nanos(1);
        }
        deadline
    }

    fn callback(self: &Rc<Self>, body: &Body) -> impl Fn() + use<> {
        let (player, body) = (self.clone(), body.clone());
        move || {
            player.note(body.label);
            player.act_all(&body.acts);
        }
    }

    fn act_all(self: &Rc<Self>, acts: &[Act]) {
        acts.iter().for_each(|act| self.act(act));
    }

    fn act(self: &Rc<Self>, act: &Act) {
        match act {
            Act::Soon(body) => {
                let handle = self.handle.call_soon(self.callback(body));
                self.handles.borrow_mut().push(Handle::Soon(handle));
            }
            Act::Later(delay, body) => {
                let handle = self.handle.call_at(self.deadline(*delay), self.callback(body));
                self.handles.borrow_mut().push(Handle::Timer(handle));
            }
            Act::Cancel(nth) => match newest(&self.handles.borrow(), *nth) {
                Some(Handle::Soon(handle)) => handle.cancel(),
                Some(Handle::Timer(handle)) => handle.cancel(),
                None => {}
            },
            Act::Promise => {
                let (resolver, promise) = promise();
                self.promises.borrow_mut().push(Promised { resolver: Cell::new(Some(resolver)), promise: promise.shared() });
            }
            Act::Resolve(nth) => {
                let resolver = newest(&self.promises.borrow(), *nth).and_then(|promised| promised.resolver.take());
                resolver.into_iter().for_each(|resolver| resolver.set_result(()));
            }
            Act::PromiseDone(nth, body) => {
                if let Some(promised) = newest(&self.promises.borrow(), *nth) {
                    let callback = self.callback(body);
                    promised.promise.on_done(move |_| callback());
                }
            }
            Act::TaskDone(nth, body) => {
                if let Some(task) = newest(&self.tasks.borrow(), *nth) {
                    let callback = self.callback(body);
                    task.on_done(move |_| callback());
                }
            }
            Act::Spawn(body) => {
                let task = self.spawn(body);
                self.tasks.borrow_mut().push(task.shared());
            }
            // Dropping a task cancels it.
            Act::SpawnCancelled(body) => drop(self.spawn(body)),
            Act::SpawnHanging(label, delay) => {
                // The timer does not own the task: cancelling the one must not drop, and so cancel, the other.
                let task = Rc::new(spawn(self.clone().hang(*label)));
                self.hanging.borrow_mut().push(task.clone());
                let handle = self.handle.call_at(self.deadline(*delay), move || task.cancel());
                self.handles.borrow_mut().push(Handle::Timer(handle));
            }
            Act::Watch(body) => {
                let (player, label, mut acts) = (self.clone(), body.label, body.acts.clone());
                let readable = move || {
                    let _ = (&player.ours).read(&mut [0; 1 << 16]);
                    player.note(label);
                    // Only once: one that writes would make itself run for ever.
                    player.act_all(&std::mem::take(&mut acts));
                };
                self.handle.add_reader(&self.ours, readable).unwrap();
            }
            Act::Unwatch => {
                self.handle.remove_reader(&self.ours);
            }
            Act::Write => (&self.theirs).write_all(b"x").unwrap(),
        }
    }

    fn spawn(self: &Rc<Self>, body: &TaskBody) -> Task<()> {
        spawn(self.clone().task(self.tasks.borrow().len(), body.clone()))
    }

    async fn task(self: Rc<Self>, older_len: usize, body: TaskBody) {
        for (index, step) in body.steps.iter().enumerate() {
            match step {
                Step::Do(act) => self.act(act),
                Step::Yield => yield_now().await,
                Step::AwaitPromise(nth) => {
                    let promise = newest(&self.promises.borrow(), *nth).map(|promised| promised.promise.clone());
                    if let Some(promise) = promise {
                        let _ = promise.await;
                    }
                }
                Step::AwaitTask(nth) => {
                    let task = newest(&self.tasks.borrow()[..older_len], *nth).cloned();
                    if let Some(task) = task {
                        let _ = task.await;
                    }
                }
            }
            self.note(format_args!("{}.{index}", body.label));
        }
    }

    async fn hang(self: Rc<Self>, label: Label) {
        struct Note(Rc<Player>, Label);
        impl Drop for Note {
            fn drop(&mut self) {
                self.0.note(self.1);
            }
        }
        let _note = Note(self, label);
        std::future::pending().await
    }
}

fn newest<T>(things: &[T], nth: Nth) -> Option<&T> {
    things.len().checked_sub(1).map(|last| &things[last - nth % things.len()])
}
