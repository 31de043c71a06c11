//! The same programs on the real loop: the only part of the test that knows it.
//!
//! What a program makes is kept in tables, oldest first, so that a program finds the same thing here as in the model. Nothing is borrowed
//! while user code runs or is dropped. Read after `reference`, whose trace this one must equal.

mod jobs;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::Future;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use miniloop::{
    Abandoned, CallbackHandle, EventLoop, Instant, LoopError, LoopHandle, Promise, Remote, Resolver, Shared, Task, TaskError, TimerHandle,
    VirtualClock, promise,
};

use jobs::{Callback, Parked, Player};

use super::program::{Act, Body, ClockKind, End, Ending, Ms, Nth, Program, Step, TaskBody, pick};

/// Plays the program on a loop of its own and returns the trace.
pub(crate) fn play(program: &Program) -> Vec<String> {
    let clock = match program.clock {
        ClockKind::Manual => VirtualClock::manual(),
        ClockKind::Jumping => VirtualClock::jumping(),
    };
    let mut event_loop = EventLoop::builder().clock(&clock).jobs_per_poll(program.jobs_per_poll).build().expect("a loop");
    let world = World::new(event_loop.handle(), clock);
    let reports = world.clone();
    world.handle.on_error(move |report| reports.say(format!("report: {}", report.message())));
    for step in &program.steps {
        world.host(&mut event_loop, step);
    }
    world.end(&mut event_loop, program.end);
    let trace = world.trace.take();
    world.read_all();
    trace
}

/// What the callbacks, tasks and host of one program share.
struct World {
    trace: RefCell<Vec<String>>,
    handle: LoopHandle,
    remote: Remote,
    clock: VirtualClock,
    callbacks_made: Cell<usize>,
    tasks_made: Cell<usize>,
    readers_made: Cell<usize>,
    handles: RefCell<Vec<Rc<Handle>>>,
    spawned: RefCell<Vec<Spawned>>,
    promises: RefCell<Vec<Promised>>,
    /// The near end is watched by the reader, the far end is written to.
    pipe: (UnixStream, UnixStream),
    closing: Cell<bool>,
    /// Holds a byte for every byte that a task wants to receive.
    stream: (UnixStream, UnixStream),
}

enum Handle {
    Callback(CallbackHandle),
    Timer(TimerHandle),
}

struct Spawned {
    id: usize,
    reader: TaskReader,
    /// Of the last poll.
    waker: Rc<RefCell<Option<Waker>>>,
}

struct Promised {
    resolver: Option<Resolver<u8, Broken>>,
    reader: PromiseReader,
}

enum Reader<Sole, T> {
    Sole(Sole),
    Shared(Shared<T>),
    Gone,
}

type TaskReader = Reader<Task<Ended>, Result<Ended, TaskError>>;
type PromiseReader = Reader<Promise<u8, Broken>, Result<u8, Broken>>;
type Ended = Result<(), Failure>;

/// An error whose `Debug` text, which reports carry, is the line of the trace.
struct Failure(String);

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

enum Broken {
    Abandoned,
    Error(u8),
}

impl From<Abandoned> for Broken {
    fn from(_: Abandoned) -> Self {
        Self::Abandoned
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abandoned => write!(f, "abandoned"),
            Self::Error(error) => write!(f, "error {error}"),
        }
    }
}

impl World {
    fn new(handle: LoopHandle, clock: VirtualClock) -> Rc<Self> {
        let [pipe, stream] = [(); 2].map(|()| UnixStream::pair().expect("a socket pair"));
        for near in [&pipe.0, &stream.0] {
            near.set_nonblocking(true).expect("a non-blocking socket");
        }
        Rc::new(Self {
            trace: RefCell::default(),
            remote: handle.remote(),
            handle,
            clock,
            callbacks_made: Cell::new(0),
            tasks_made: Cell::new(0),
            readers_made: Cell::new(0),
            handles: RefCell::default(),
            spawned: RefCell::default(),
            promises: RefCell::default(),
            closing: Cell::new(false),
            pipe,
            stream,
        })
    }

    fn say(&self, line: impl Into<String>) {
        self.trace.borrow_mut().push(line.into());
    }

    fn now(&self) -> Ms {
        self.clock.now().as_nanos() / NANOS_PER_MS
    }

    // ---- the host

    fn host(self: &Rc<Self>, event_loop: &mut EventLoop, step: &Step) {
        match step {
            Step::Do(act) => {
                let _entered = self.handle.enter();
                self.act(act);
            }
            Step::RunOnce => self.say(format!("run: {}", end_text(event_loop.run_once()))),
            Step::RunReady => self.say(format!("run: {}", end_text(event_loop.run_ready()))),
            Step::RunForever => {
                let end = match event_loop.run_forever() {
                    Ok(()) => "stopped",
                    Err(error) => end_text(Err(error)),
                };
                self.say(format!("run_forever: {end}"));
            }
            Step::RunUntilComplete(body) => {
                let main = self.player(body, Rc::default());
                let end = match catch_unwind(AssertUnwindSafe(|| event_loop.run_until_complete(main))) {
                    Ok(Ok(Ok(()))) => "ok",
                    Ok(Ok(Err(_))) => "failed",
                    Ok(Err(error)) => end_text(Err(error)),
                    Err(_) => "panicked",
                };
                self.say(format!("run_until_complete: {end}"));
            }
            Step::NextTimeout => {
                let timeout = event_loop.next_timeout().map(|timeout| timeout.as_millis());
                self.say(format!("next_timeout: {timeout:?}"));
            }
        }
    }

    fn end(self: &Rc<Self>, event_loop: &mut EventLoop, end: End) {
        if let End::Shutdown = end
            && let Err(error) = event_loop.shutdown(Duration::from_secs(1))
        {
            self.say(end_text(Err(error)));
        }
        self.say("close");
        self.closing.set(true);
        event_loop.close();
        event_loop.close();
        self.say("closed");
    }

    /// Reads what was left unread, so that nothing is reported to a loop that is gone.
    fn read_all(&self) {
        for spawned in self.spawned.take() {
            spawned.reader.read();
        }
        for promised in self.promises.take() {
            promised.reader.read();
        }
    }

    // ---- acts

    fn act(self: &Rc<Self>, act: &Act) {
        match act {
            Act::Soon(body) => {
                let callback = self.callback(body, 0);
                self.keep(Handle::Callback(self.handle.call_soon(move || callback.run(""))));
            }
            Act::Chain(len, body) => self.chain(*len, body),
            Act::Later(delay, body) => {
                let callback = self.callback(body, 0);
                self.keep(Handle::Timer(self.handle.call_later(ms(*delay), move || callback.run(""))));
            }
            Act::At(deadline, body) => {
                let callback = self.callback(body, 0);
                let deadline = Instant::from_nanos(deadline * NANOS_PER_MS);
                self.keep(Handle::Timer(self.handle.call_at(deadline, move || callback.run(""))));
            }
            Act::Every(period, runs, body) => {
                let (mut callback, mut runs_left) = (self.callback(body, 0), *runs);
                callback.repeats = true;
                self.keep(Handle::Timer(self.handle.call_every(ms(*period), move || {
                    runs_left -= 1;
                    if runs_left == 0 {
                        callback.body.ending = Ending::Return;
                        return callback.run("").map(|()| ControlFlow::Break(()));
                    }
                    callback.run("").map(|()| ControlFlow::Continue(()))
                })));
            }
            Act::CancelHandle(nth) => match self.nth_handle(*nth).as_deref() {
                Some(Handle::Callback(handle)) => handle.cancel(),
                Some(Handle::Timer(handle)) => handle.cancel(),
                None => {}
            },
            Act::Spawn(body) => {
                let waker = Rc::default();
                let player = self.player(body, Rc::clone(&waker));
                let (id, task) = (player.id, self.handle.spawn(player));
                self.spawned.borrow_mut().push(Spawned { id, reader: Reader::Sole(task), waker });
            }
            Act::CancelTask(nth) => {
                if let Some(Spawned { reader: Reader::Sole(task), .. }) = nth_of(&self.spawned.borrow(), *nth) {
                    task.cancel();
                }
            }
            Act::Detach(nth) => {
                if let Some((_, Reader::Sole(task))) = self.take_task(*nth, |reader| matches!(reader, Reader::Sole(_))) {
                    task.detach();
                }
            }
            Act::DropTask(nth) => drop(self.take_task(*nth, |_| true)),
            Act::ShareTask(nth) => {
                if let Some(spawned) = nth_of_mut(&mut self.spawned.borrow_mut(), *nth) {
                    spawned.reader.share(Task::shared);
                }
            }
            Act::OnTaskDone(nth, body) => match self.task_to_read(*nth, None) {
                Some((id, Reader::Sole(task))) => {
                    let callback = self.callback(body, 0);
                    self.keep(Handle::Callback(task.on_done(move |result| callback.run(&format!(" with {}", task_line(id, &result))))));
                }
                Some((id, Reader::Shared(shared))) => {
                    let callback = self.callback(body, 0);
                    self.keep(Handle::Callback(shared.on_done(move |result| callback.run(&format!(" with {}", task_line(id, &result))))));
                }
                _ => {}
            },
            Act::NewPromise => {
                let (resolver, promise) = promise();
                self.promises.borrow_mut().push(Promised { resolver: Some(resolver), reader: Reader::Sole(promise) });
            }
            Act::DropPromise(nth) => drop(self.take_promise(*nth)),
            Act::SharePromise(nth) => {
                if let Some(promised) = nth_of_mut(&mut self.promises.borrow_mut(), *nth) {
                    promised.reader.share(Promise::shared);
                }
            }
            Act::OnPromiseDone(nth, body) => match self.promise_to_read(*nth) {
                Some((id, Reader::Sole(promise))) => {
                    let callback = self.callback(body, 0);
                    self.keep(Handle::Callback(
                        promise.on_done(move |result| callback.run(&format!(" with {}", promise_line(id, &result)))),
                    ));
                }
                Some((id, Reader::Shared(shared))) => {
                    let callback = self.callback(body, 0);
                    self.keep(Handle::Callback(
                        shared.on_done(move |result| callback.run(&format!(" with {}", promise_line(id, &result)))),
                    ));
                }
                _ => {}
            },
            Act::Resolve(nth, value) => {
                if let Some((id, resolver)) = self.take_resolver(*nth) {
                    self.say(format!("resolve promise {id}, cancelled: {}", resolver.is_cancelled()));
                    match *value {
                        Ok(value) => resolver.set_result(value),
                        Err(error) => resolver.set_error(Broken::Error(error)),
                    }
                }
            }
            Act::DropResolver(nth) => drop(self.take_resolver(*nth)),
            Act::Wake(nth) => {
                if let Some(waker) = self.waker(*nth) {
                    waker.wake();
                }
            }
            Act::WakeFromThread(nth) => {
                if let Some(waker) = self.waker(*nth) {
                    std::thread::scope(|scope| drop(scope.spawn(|| waker.wake())));
                }
            }
            Act::Remote(body) => {
                let callback = Parked::new(self.callback(body, 0));
                drop(self.remote.call_soon(move || callback.run()));
            }
            Act::Advance(by) => self.clock.advance(ms(*by)),
            Act::Stop => self.handle.stop(),
            Act::AddReader => {
                let (world, id) = (self.clone(), next(&self.readers_made));
                let reader = move || {
                    while (&world.pipe.0).read(&mut [0; 64]).is_ok_and(|len| len > 0) {}
                    world.say(format!("reader {id} at {}", world.now()));
                };
                drop(self.handle.add_reader(&self.pipe.0, reader));
            }
            Act::RemoveReader => drop(self.handle.remove_reader(&self.pipe.0)),
            Act::WritePipe => (&self.pipe.1).write_all(b"x").expect("room in the pipe"),
        }
    }

    fn acts(self: &Rc<Self>, acts: &[Act]) {
        for act in acts {
            self.act(act);
        }
    }

    fn callback(self: &Rc<Self>, body: &Body, chain_left: u8) -> Callback {
        let id = next(&self.callbacks_made);
        Callback { world: self.clone(), id, body: body.clone(), chain_left, repeats: false, started: Cell::new(false) }
    }

    fn chain(self: &Rc<Self>, len: u8, body: &Body) {
        let callback = self.callback(body, len);
        self.keep(Handle::Callback(self.handle.call_soon(move || callback.run(""))));
    }

    fn player(self: &Rc<Self>, body: &TaskBody, waker: Rc<RefCell<Option<Waker>>>) -> Player {
        let id = next(&self.tasks_made);
        Player { world: self.clone(), id, body: body.clone(), next_step: 0, waiting: None, waker }
    }

    // ---- the tables

    fn keep(&self, handle: Handle) {
        self.handles.borrow_mut().push(Rc::new(handle));
    }

    fn nth_handle(&self, nth: Nth) -> Option<Rc<Handle>> {
        nth_of(&self.handles.borrow(), nth).cloned()
    }

    fn waker(&self, nth: Nth) -> Option<Waker> {
        nth_of(&self.spawned.borrow(), nth)?.waker.borrow().clone()
    }

    fn take_task(&self, nth: Nth, wanted: impl Fn(&TaskReader) -> bool) -> Option<(usize, TaskReader)> {
        let mut spawned = self.spawned.borrow_mut();
        let spawned = nth_of_mut(&mut spawned, nth).filter(|spawned| wanted(&spawned.reader))?;
        Some((spawned.id, std::mem::replace(&mut spawned.reader, Reader::Gone)))
    }

    /// A shared handle stays where it is.
    fn task_to_read(&self, nth: Nth, by: Option<usize>) -> Option<(usize, TaskReader)> {
        let mut spawned = self.spawned.borrow_mut();
        let spawned = nth_of_mut(&mut spawned, nth).filter(|spawned| Some(spawned.id) != by)?;
        Some((spawned.id, spawned.reader.take_or_clone()))
    }

    fn take_promise(&self, nth: Nth) -> Option<PromiseReader> {
        let mut promises = self.promises.borrow_mut();
        Some(std::mem::replace(&mut nth_of_mut(&mut promises, nth)?.reader, Reader::Gone))
    }

    fn promise_to_read(&self, nth: Nth) -> Option<(usize, PromiseReader)> {
        let mut promises = self.promises.borrow_mut();
        let id = pick(nth, promises.len())?;
        Some((id, promises[id].reader.take_or_clone()))
    }

    fn take_resolver(&self, nth: Nth) -> Option<(usize, Resolver<u8, Broken>)> {
        let mut promises = self.promises.borrow_mut();
        let id = pick(nth, promises.len())?;
        Some((id, promises[id].resolver.take()?))
    }
}

impl<Sole: Future + Unpin, T: 'static> Reader<Sole, T> {
    fn read(self) {
        let mut context = Context::from_waker(Waker::noop());
        match self {
            Self::Sole(mut sole) => drop(Pin::new(&mut sole).poll(&mut context)),
            Self::Shared(mut shared) => drop(Pin::new(&mut shared).poll(&mut context)),
            Self::Gone => {}
        }
    }

    fn share(&mut self, shared: impl FnOnce(Sole) -> Shared<T>) {
        *self = match std::mem::replace(self, Self::Gone) {
            Self::Sole(sole) => Self::Shared(shared(sole)),
            other => other,
        };
    }

    fn take_or_clone(&mut self) -> Self {
        match self {
            Self::Shared(shared) => Self::Shared(shared.clone()),
            _ => std::mem::replace(self, Self::Gone),
        }
    }
}

fn task_line(id: usize, result: &Result<Ended, TaskError>) -> String {
    let outcome = match result {
        Ok(Ok(())) => "ok",
        Ok(Err(_)) => "failed",
        Err(error) if error.is_panic() => "panicked",
        Err(_) => "cancelled",
    };
    format!("task {id} is {outcome}")
}

fn promise_line(id: usize, result: &Result<u8, Broken>) -> String {
    match result {
        Ok(value) => format!("promise {id} is ok {value}"),
        Err(error) => format!("promise {id} is {error:?}"),
    }
}

fn end_text(end: Result<(), LoopError>) -> &'static str {
    match end {
        Ok(()) => "ok",
        Err(LoopError::Stopped) => "stopped",
        Err(LoopError::Deadlock(_)) => "deadlock",
        Err(error) => panic!("{error}"),
    }
}

fn ms(duration: Ms) -> Duration {
    Duration::from_millis(duration)
}

fn next(counter: &Cell<usize>) -> usize {
    counter.replace(counter.get() + 1)
}

fn nth_of<T>(items: &[T], nth: Nth) -> Option<&T> {
    pick(nth, items.len()).map(|index| &items[index])
}

fn nth_of_mut<T>(items: &mut [T], nth: Nth) -> Option<&mut T> {
    pick(nth, items.len()).map(|index| &mut items[index])
}

const NANOS_PER_MS: u64 = 1_000_000;
