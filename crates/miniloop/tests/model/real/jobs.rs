//! What the real loop runs: callbacks and futures that play their part of a program and tell when they are dropped.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io::Write;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use miniloop::{Elapsed, sleep, sock_recv, timeout, yield_now};

use super::{Ended, Failure, Reader, World, ms, promise_line, task_line};
use crate::model::program::{Body, Ending, Ms, TaskBody, TaskStep, Wait};

/// A callback; it tells when it is dropped without having run.
pub(super) struct Callback {
    pub(super) world: Rc<World>,
    pub(super) id: usize,
    pub(super) body: Body,
    pub(super) chain_left: u8,
    pub(super) repeats: bool,
    pub(super) started: Cell<bool>,
}

impl Callback {
    pub(super) fn run(&self, argument: &str) -> Ended {
        self.started.set(true);
        self.world.say(format!("callback {} at {}{argument}", self.id, self.world.now()));
        if self.chain_left > 0 {
            self.world.chain(self.chain_left - 1, &self.body);
            return Ok(());
        }
        self.world.acts(&self.body.acts);
        end(self.body.ending, &format!("callback {}", self.id))
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if self.repeats || !self.started.get() {
            self.world.say(format!("drop callback {}", self.id));
            if !self.world.closing.get() {
                self.world.acts(&self.body.on_drop);
            }
        }
    }
}

/// The number of a callback that waits on this thread, for a closure that must be `Send`.
pub(super) struct Parked(usize);

thread_local! {
    static PARKED: RefCell<BTreeMap<usize, Callback>> = const { RefCell::new(BTreeMap::new()) };
}

impl Parked {
    pub(super) fn new(callback: Callback) -> Self {
        let id = callback.id;
        PARKED.with_borrow_mut(|parked| parked.insert(id, callback));
        Self(id)
    }

    pub(super) fn run(&self) -> Ended {
        let callback = PARKED.with_borrow_mut(|parked| parked.remove(&self.0));
        callback.map_or(Ok(()), |callback| callback.run(""))
    }
}

impl Drop for Parked {
    fn drop(&mut self) {
        drop(PARKED.with_borrow_mut(|parked| parked.remove(&self.0)));
    }
}

/// A task that plays its steps.
pub(super) struct Player {
    pub(super) world: Rc<World>,
    pub(super) id: usize,
    pub(super) body: TaskBody,
    pub(super) next_step: usize,
    pub(super) waiting: Option<Pin<Box<dyn Future<Output = String>>>>,
    pub(super) waker: Rc<RefCell<Option<Waker>>>,
}

impl Future for Player {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        self.world.say(format!("poll task {} at {}", self.id, self.world.now()));
        self.waker.replace(Some(context.waker().clone()));
        loop {
            if let Some(waiting) = &mut self.waiting {
                let Poll::Ready(line) = waiting.as_mut().poll(context) else { return Poll::Pending };
                self.waiting = None;
                self.world.say(format!("task {}: {line}", self.id));
            }
            let step = self.body.steps.get(self.next_step).cloned();
            self.next_step += 1;
            match step {
                Some(TaskStep::Do(act)) => self.world.act(&act),
                Some(TaskStep::Await(wait)) => self.waiting = self.wait(&wait),
                Some(TaskStep::Timeout(limit, wait)) => self.waiting = self.wait(&wait).map(|wait| limited(limit, wait)),
                None => return Poll::Ready(end(self.body.ending, &format!("task {}", self.id))),
            }
        }
    }
}

impl Player {
    fn wait(&self, wait: &Wait) -> Option<Pin<Box<dyn Future<Output = String>>>> {
        match *wait {
            Wait::Yield => {
                let yielded = yield_now();
                Some(Box::pin(async move {
                    yielded.await;
                    "yielded".to_owned()
                }))
            }
            Wait::Sleep(delay) => {
                let slept = sleep(ms(delay));
                Some(Box::pin(async move {
                    slept.await;
                    if delay == 0 { "yielded".to_owned() } else { "slept".to_owned() }
                }))
            }
            Wait::Promise(nth) => match self.world.promise_to_read(nth)? {
                (id, Reader::Sole(promise)) => Some(Box::pin(async move { promise_line(id, &promise.await) })),
                (id, Reader::Shared(shared)) => Some(Box::pin(async move { promise_line(id, &*shared.await) })),
                (_, Reader::Gone) => None,
            },
            Wait::Task(nth) => match self.world.task_to_read(nth, Some(self.id))? {
                (id, Reader::Sole(task)) => Some(Box::pin(async move { task_line(id, &task.await) })),
                (id, Reader::Shared(shared)) => Some(Box::pin(async move { task_line(id, &*shared.await) })),
                (_, Reader::Gone) => None,
            },
            Wait::Receive(count) => {
                let world = self.world.clone();
                (&world.stream.1).write_all(&vec![0; usize::from(count)]).expect("room in the stream");
                Some(Box::pin(async move {
                    for _ in 0..count {
                        sock_recv(&world.stream.0, &mut [0]).await.expect("a byte");
                    }
                    "received".to_owned()
                }))
            }
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.world.say(format!("drop task {}", self.id));
        self.world.acts(&self.body.on_drop);
    }
}

fn limited(limit: Ms, wait: Pin<Box<dyn Future<Output = String>>>) -> Pin<Box<dyn Future<Output = String>>> {
    let limited = timeout(ms(limit), wait);
    Box::pin(async move { limited.await.unwrap_or_else(|Elapsed| "elapsed".to_owned()) })
}

fn end(ending: Ending, who: &str) -> Ended {
    match ending {
        Ending::Return => Ok(()),
        Ending::Fail => Err(Failure(format!("{who} fails"))),
        // Without the panic hook's message on standard error.
        Ending::Panic => resume_unwind(Box::new(format!("{who} panics"))),
    }
}
