//! Runs a program on the loop and notes what contradicts the rules.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::panic::resume_unwind;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use futures_util::future::{self, LocalBoxFuture};
use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{
    EventLoop, Instant, LoopHandle, Scope, ScopeOptions, Task, VirtualClock, catch, now, scope, shield, sleep, spawn, timeout, yield_now,
};

use super::program::{Act, Body, Program, Then};
use crate::support::ms;

/// What contradicts the rules when `program` runs.
pub(crate) fn run(program: &Program) -> Vec<String> {
    let clock = VirtualClock::jumping();
    let builder = EventLoop::builder().clock(&clock).grace(ms(program.grace)).jobs_per_poll(program.jobs_per_poll);
    let mut event_loop = builder.build().expect("a loop");
    let handle = event_loop.handle();
    handle.on_error(|_| ());
    let world = World(Rc::new(Watched {
        handle: handle.clone(),
        grace: program.grace,
        tasks: program.tasks.iter().map(|_| TaskState::default()).collect(),
        violations: RefCell::default(),
        bodies_alive: Cell::new(0),
        limits: RefCell::default(),
    }));
    for (number, body) in program.tasks.iter().enumerate() {
        let (body, inside) = (body.clone(), world.clone());
        let task = handle.spawn(async move {
            inside.0.tasks[number].is_started.set(true);
            let _ended = AtEnd(|| {
                let state = &inside.0.tasks[number];
                state.ended_at.set(Some(inside.now()));
            });
            world_run(&body, Place::of_task(number), &inside).await;
            inside.0.tasks[number].is_done.set(true);
        });
        *world.0.tasks[number].task.borrow_mut() = Some(task);
    }
    let mut acts = program.acts.clone();
    acts.sort_by_key(|(at, ..)| *at);
    let acting = world.clone();
    let driven = event_loop.run_until_complete(async move {
        for (at, number, act) in acts {
            acting.watch_until(Instant::from_nanos(at * 1_000_000)).await;
            acting.act(number % acting.0.tasks.len(), act);
        }
        acting.watch_until(Instant::from_nanos(40_000_000)).await;
    });
    if let Err(error) = driven {
        world.violation(format!("the loop failed: {error}"));
    }
    let end = world.now() + ms(program.shutdown_grace);
    world.0.tasks.iter().for_each(|task| task.must_end_by(end));
    if let Err(error) = event_loop.shutdown(ms(program.shutdown_grace)) {
        world.violation(format!("the shutdown failed: {error}"));
    }
    for (number, state) in world.0.tasks.iter().enumerate() {
        world.check_end(&mut event_loop, number, state, program.tasks[number].has_points());
    }
    if world.0.bodies_alive.get() != 0 {
        world.violation(format!("{} bodies have not ended once", world.0.bodies_alive.get()));
    }
    let shown = format!("{event_loop:?}");
    if !shown.contains("cancel_nodes: 0") {
        world.violation(format!("nodes are left: {shown}"));
    }
    world.0.violations.take()
}

#[derive(Clone)]
struct World(Rc<Watched>);

struct Watched {
    handle: LoopHandle,
    grace: u64,
    tasks: Vec<TaskState>,
    violations: RefCell<Vec<String>>,
    bodies_alive: Cell<isize>,
    /// The limits around bodies that are polled: until when, and of which task.
    limits: RefCell<Vec<(Instant, usize)>>,
}

#[derive(Default)]
struct TaskState {
    task: RefCell<Option<Task<()>>>,
    /// When it was asked first.
    asked_at: Cell<Option<Instant>>,
    /// When its grace ends.
    deadline: Cell<Option<Instant>>,
    /// It was aborted or it panics: nobody has to be polite.
    is_forced: Cell<bool>,
    has_absorbed: Cell<bool>,
    /// How many of its guards and shields are up: they may hold a request up.
    held_by: Cell<isize>,
    is_started: Cell<bool>,
    is_done: Cell<bool>,
    ended_at: Cell<Option<Instant>>,
}

impl TaskState {
    fn must_end_by(&self, deadline: Instant) {
        self.deadline.set(Some(self.deadline.get().map_or(deadline, |present| present.min(deadline))));
    }
}

impl World {
    fn now(&self) -> Instant {
        self.0.handle.now()
    }

    /// Waits, and looks every millisecond whether somebody has been asked, and nobody cleans up, and nothing happens.
    async fn watch_until(&self, end: Instant) {
        while self.now() < end {
            sleep(ms(1)).await;
            let is_late = |since: Instant| since + ms(1) <= self.now();
            for (number, state) in self.0.tasks.iter().enumerate() {
                let is_idle = state.is_started.get() && state.ended_at.get().is_none() && state.held_by.get() == 0;
                let limits = self.0.limits.borrow();
                let limit = limits.iter().find(|(limit, task)| *task == number && is_late(*limit));
                let is_asked = state.asked_at.get().is_some_and(is_late) || limit.is_some();
                if is_idle && is_asked && !state.has_absorbed.get() {
                    self.violation(format!("task {number} was asked, nobody cleans up, and it goes on"));
                }
            }
        }
    }

    /// A guard or shield is up until this is dropped.
    fn hold(&self, number: usize) -> impl Drop + use<> {
        let world = self.clone();
        let hold = move |by| world.0.tasks[number].held_by.set(world.0.tasks[number].held_by.get() + by);
        hold(1);
        AtEnd(move || hold(-1))
    }

    fn violation(&self, what: String) {
        self.0.violations.borrow_mut().push(format!("at {:?}: {what}", self.now()));
    }

    fn act(&self, number: usize, act: Act) {
        let state = &self.0.tasks[number];
        let grace = match act {
            Act::Cancel | Act::DropHandle => self.0.grace,
            Act::CancelWithin(grace) => grace,
            Act::Abort => 0,
        };
        // Who is not there any more cannot be asked.
        if state.task.borrow().as_ref().is_none_or(Task::is_finished) {
            return;
        }
        state.asked_at.set(state.asked_at.get().or(Some(self.now())));
        state.must_end_by(self.now() + ms(grace));
        match act {
            Act::Cancel => state.task.borrow().iter().for_each(Task::cancel),
            Act::CancelWithin(grace) => state.task.borrow().iter().for_each(|task| task.cancel_within(ms(grace))),
            Act::Abort => {
                state.is_forced.set(true);
                state.task.borrow().iter().for_each(Task::abort);
            }
            Act::DropHandle => drop(state.task.take()),
        }
    }

    fn check_end(&self, event_loop: &mut EventLoop, number: usize, state: &TaskState, has_points: bool) {
        match (state.ended_at.get(), state.deadline.get()) {
            // It never ran (C9).
            (None, _) if state.asked_at.get().is_some() => {}
            (None, _) => self.violation(format!("task {number} never ended")),
            (Some(ended), Some(deadline)) if ended > deadline && !state.has_absorbed.get() => {
                self.violation(format!("task {number} ended at {ended:?}, after its grace, which ended at {deadline:?}"));
            }
            (Some(ended), _) if !has_points && state.asked_at.get().is_some_and(|asked| ended > asked) => {
                self.violation(format!("task {number} has nothing to clean up and ended at {ended:?}"));
            }
            _ => {}
        }
        let Some(task) = state.task.take() else { return };
        if !task.is_finished() {
            return self.violation(format!("task {number} is not finished"));
        }
        let is_ok = event_loop.run_until_complete(task).is_ok_and(|ended| ended.is_ok());
        if is_ok != state.is_done.get() {
            self.violation(format!("task {number} has a value: {}; its handle says {is_ok} (C10)", state.is_done.get()));
        }
    }
}

/// Where in its program a body stands.
#[derive(Clone)]
struct Place {
    task: usize,
    /// Somebody besides a request may drop it: a select, or who parked it.
    is_droppable: bool,
    /// When the grace of a limit around it ends at the earliest.
    may_be_forced_from: Option<Instant>,
    /// It runs behind a guard or shield that is up while this says so, with no limit of its own in between.
    protection: Vec<Rc<Cell<bool>>>,
}

impl Place {
    fn of_task(task: usize) -> Place {
        Place { task, is_droppable: false, may_be_forced_from: None, protection: Vec::new() }
    }

    fn droppable(&self) -> Place {
        Place { is_droppable: true, ..self.clone() }
    }

    /// Inside a limit, which may ask on its own.
    fn limited(&self, grace_ends: Option<Instant>) -> Place {
        let may_be_forced_from = self.may_be_forced_from.into_iter().chain(grace_ends).min();
        Place { may_be_forced_from, protection: Vec::new(), ..self.clone() }
    }

    fn protected(&self, guard: &Rc<Cell<bool>>) -> Place {
        let mut protection = self.protection.clone();
        protection.push(guard.clone());
        Place { protection, ..self.clone() }
    }

    fn may_be_cut_short(&self, world: &World) -> bool {
        let state = &world.0.tasks[self.task];
        let is_past = |deadline: Option<Instant>| deadline.is_some_and(|deadline| world.now() >= deadline);
        self.is_droppable || state.is_forced.get() || is_past(state.deadline.get()) || is_past(self.may_be_forced_from)
    }
}

/// Calls when it goes.
struct AtEnd<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn world_run<'a>(body: &'a Body, place: Place, world: &'a World) -> LocalBoxFuture<'a, ()> {
    Box::pin(async move {
        world.0.bodies_alive.set(world.0.bodies_alive.get() + 1);
        let _ended = AtEnd(|| world.0.bodies_alive.set(world.0.bodies_alive.get() - 1));
        run_body(body, place, world).await;
    })
}

async fn run_body(body: &Body, place: Place, world: &World) {
    let run = |body, place| world_run(body, place, world);
    match body {
        Body::Sleep(time) => sleep(ms(*time)).await,
        Body::Yield => yield_now().await,
        Body::Forever => pending().await,
        Body::Panic => {
            world.0.tasks[place.task].is_forced.set(true);
            resume_unwind(Box::new("on purpose"));
        }
        Body::CancelSelf => world.act(place.task, Act::Cancel),
        Body::Sequence(all) => {
            for body in all {
                run(body, place.clone()).await;
            }
        }
        Body::Join(all) => drop(future::join_all(all.iter().map(|body| run(body, place.clone()))).await),
        Body::Unordered(all) => {
            let mut set: FuturesUnordered<_> = all.iter().map(|body| run(body, place.clone())).collect();
            while set.next().await.is_some() {}
        }
        Body::Select(one, other) => drop(future::select(run(one, place.droppable()), run(other, place.droppable())).await),
        Body::Park { parked, meanwhile, is_awaited } => {
            let mut parked = run(parked, place.droppable());
            let is_done = poll_fn(|cx| Poll::Ready(parked.as_mut().poll(cx).is_ready())).await;
            run(meanwhile, place.clone()).await;
            if *is_awaited && !is_done {
                parked.await;
            }
        }
        Body::Move(moved) => run_moved(moved.as_ref().clone(), place, world).await,
        Body::Timeout(limit, body) => run_timeout(*limit, body, place, world).await,
        Body::Scope { deadline, cancel_after, grace, is_shielded, body } => {
            let ends = deadline.iter().chain(cancel_after).min().map(|first| now() + ms(first + grace));
            let options = ScopeOptions::new().grace(ms(*grace)).shield(*is_shielded);
            let options = deadline.map_or(options, |limit| options.timeout(ms(limit)));
            let _held = is_shielded.then(|| world.hold(place.task));
            let scoped = scope(options, async |scope: &Scope| {
                let scope = scope.clone();
                let timer = cancel_after.map(|after| world.0.handle.call_later(ms(after), move || scope.cancel()));
                let _ended = AtEnd(|| timer.iter().for_each(|timer| timer.cancel()));
                run(body, place.limited(ends)).await;
            });
            let _ = scoped.await;
        }
        Body::Shield(body) => {
            let _held = world.hold(place.task);
            shield(run(body, place.protected(&Rc::new(Cell::new(true))))).await;
        }
        Body::Catch { body, clean_up, then } => run_catch(body, clean_up, *then, place, world).await,
    }
}

async fn run_timeout(limit: u64, body: &Body, place: Place, world: &World) {
    let begin = now();
    // One that is parked cannot end.
    let watched = (begin + ms(limit), if place.is_droppable { usize::MAX } else { place.task });
    world.0.limits.borrow_mut().push(watched);
    let _ended = AtEnd(|| {
        let mut limits = world.0.limits.borrow_mut();
        let at = limits.iter().position(|present| *present == watched).expect("it was put in");
        limits.swap_remove(at);
    });
    let ended = timeout(ms(limit), world_run(body, place.limited(Some(begin + ms(limit + world.0.grace))), world)).await;
    let lasted = now() - begin;
    if ended.is_err() && (lasted < ms(limit) || lasted > ms(limit) && !body.has_points() && !place.is_droppable) {
        world.violation(format!("a limit of {limit} ms ended after {lasted:?}"));
    }
}

/// C13: parent and waker are those of the last poll.
async fn run_moved(body: Body, place: Place, world: &World) {
    let inside = world.clone();
    let mut moved: LocalBoxFuture<'static, ()> = Box::pin(async move { world_run(&body, place.droppable(), &inside).await });
    let elsewhere = spawn(async move {
        let is_done = poll_fn(|cx| Poll::Ready(moved.as_mut().poll(cx).is_ready())).await;
        (moved, is_done)
    });
    if let Ok((moved, false)) = elsewhere.await {
        moved.await;
    }
}

async fn run_catch(body: &Body, clean_up: &Body, then: Then, place: Place, world: &World) {
    let (is_polled, is_over) = (Cell::new(false), Cell::new(false));
    let caught = {
        let _ended = AtEnd(|| {
            if is_polled.get() && !is_over.get() && !place.may_be_cut_short(world) {
                world.violation("a catch point was dropped instead of being asked".to_owned());
            }
        });
        let mut caught = pin!(catch(world_run(body, place.clone(), world)));
        let caught = poll_fn(|cx| {
            let polled = caught.as_mut().poll(cx);
            is_polled.set(true);
            polled
        })
        .await;
        is_over.set(true);
        caught
    };
    let Err(cleanup) = caught else { return };
    if place.protection.iter().any(|guard| guard.get()) {
        world.violation("a catch point behind a guard or shield was asked".to_owned());
    }
    let guard = Rc::new(Cell::new(true));
    let held = world.hold(place.task);
    {
        let is_clean = Cell::new(false);
        let _ended = AtEnd(|| {
            if !is_clean.get() && !place.may_be_cut_short(world) {
                world.violation("a clean-up was cut short".to_owned());
            }
        });
        world_run(clean_up, place.protected(&guard), world).await;
        is_clean.set(true);
    }
    guard.set(false);
    drop(held);
    match then {
        Then::Finish => drop(cleanup.finish()),
        Then::Drop => drop(cleanup),
        Then::Absorb => {
            if cleanup.absorb().is_ok() {
                world.0.tasks[place.task].has_absorbed.set(true);
            }
        }
    }
}
