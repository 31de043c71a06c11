//! Plays the scene of a facility once for each poll of its future, and for each way to end it there.
//!
//! ```text
//! play     counts the polls of the future under test; then for each k up to that number
//!            after the k-th poll                     inside that poll
//!            when it is woken for the next one       inside that wake: what it was woken for is on its way
//!          it is dropped; or its task is cancelled, and there is a catch point around it; or its time limit passes, its scope is
//!          cancelled, its race is won by another, its group cancels it
//! ```

use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use miniloop::diag::{self, Stats};
use miniloop::{
    Abandoned, Child, DriverKind, EventLoop, Hold, LoopHandle, ScopeOptions, Task, VirtualClock, catch, promise, race, scope, sleep, spawn,
    task_group, timeout, yield_now,
};

use crate::counting::{count_this_thread, live_allocations};
use crate::support::trace_reports;

pub(crate) type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

/// Something that waits, with a scene in which it does.
pub(crate) struct Facility {
    name: &'static str,
    scene: Box<dyn Fn(Probe) -> Boxed<()>>,
}

pub(crate) fn facility<F: Future<Output = ()> + 'static>(name: &'static str, scene: impl Fn(Probe) -> F + 'static) -> Facility {
    Facility { name, scene: Box::new(move |probe| Box::pin(scene(probe))) }
}

/// How the future under test is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// The others are graceful.
    Drop,
    Task,
    Timeout,
    Scope,
    Race,
    Member,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Polled,
    Woken,
}

/// When and how.
#[derive(Clone, Copy, Debug)]
struct Plan {
    how: How,
    when: When,
    polls: usize,
}

/// Plays every facility of a table in every way.
#[track_caller]
pub(crate) fn check(facilities: &[Facility]) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut failed = Vec::new();
    for facility in facilities {
        if catch_unwind(AssertUnwindSafe(|| check_one(facility))).is_err() {
            failed.push(facility.name);
        }
    }
    assert!(failed.is_empty(), "these lose or leave something: {failed:?}");
}

fn check_one(facility: &Facility) {
    let mut driver = DriverKind::Epoll;
    // What is made once in the life of a process or thread is made now.
    let polls = play(facility, None, driver, false);
    assert!(polls > 1, "`{}` is polled {polls} times, which shows little", facility.name);
    for how in [How::Drop, How::Task, How::Timeout, How::Scope, How::Race, How::Member] {
        for when in [When::Polled, When::Woken] {
            for polls in usize::from(when == When::Woken)..polls {
                play(facility, Some(Plan { how, when, polls }), driver, true);
                driver = if driver == DriverKind::Epoll { DriverKind::Poll } else { DriverKind::Epoll };
            }
        }
    }
}

/// One play. Returns how often the future under test was polled.
fn play(facility: &Facility, plan: Option<Plan>, driver: DriverKind, is_strict: bool) -> usize {
    let before = (live_allocations(), descriptors());
    count_this_thread(true);
    let played = catch_unwind(AssertUnwindSafe(|| play_on_a_loop(facility, plan, driver)));
    count_this_thread(false);
    let polls = played.unwrap_or_else(|payload| {
        eprintln!("in `{}`, {plan:?}, {driver:?}", facility.name);
        resume_unwind(payload)
    });
    if is_strict {
        assert_eq!((live_allocations(), descriptors()), before, "allocations and descriptors: `{}`, {plan:?}, {driver:?}", facility.name);
    }
    polls
}

fn play_on_a_loop(facility: &Facility, plan: Option<Plan>, driver: DriverKind) -> usize {
    let clock = VirtualClock::jumping();
    let mut event_loop = EventLoop::builder().clock(&clock).driver(driver).build().unwrap();
    let reports = trace_reports(&event_loop.handle());
    let state = Rc::new(State { plan, clock, polls: Cell::new(0), task: RefCell::new(None), taps: RefCell::default() });
    event_loop.run_until_complete(run(facility, &state)).unwrap_or_else(|error| panic!("{error}"));
    event_loop.shutdown(Duration::from_secs(1)).unwrap();
    drop(event_loop);
    assert!(reports.take().is_empty(), "nothing fails");
    assert!(state.taps.take().iter().all(|tap| Arc::strong_count(tap) == 1), "a waker stays behind");
    state.polls.get()
}

async fn run(facility: &Facility, state: &Rc<State>) {
    let before = diag::stats();
    *state.task.borrow_mut() = Some(spawn((facility.scene)(Probe(state.clone()))));
    poll_fn(|cx| Pin::new(state.task.borrow_mut().as_mut().unwrap()).poll(cx)).await.unwrap();
    state.task.take();
    // What the scene has set in motion comes to its end.
    for _ in 0..20 {
        if kept(&diag::stats()) == kept(&before) {
            return;
        }
        sleep(Duration::from_secs(60)).await;
    }
    panic!("tasks, timers, descriptors, messages: {:?} instead of {:?}", kept(&diag::stats()), kept(&before));
}

/// What a loop holds. The inbox may have stale wakes.
fn kept(stats: &Stats) -> [usize; 3] {
    [stats.tasks_alive, stats.timers, stats.descriptors]
}

/// The descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

struct State {
    plan: Option<Plan>,
    clock: VirtualClock,
    polls: Cell<usize>,
    /// The scene.
    task: RefCell<Option<Task<()>>>,
    taps: RefCell<Vec<Arc<Tap>>>,
}

/// What a scene has of the play it is in.
pub(crate) struct Probe(Rc<State>);

impl Probe {
    /// The value of the future under test, or `None` where it was ended. No waker of it is left then.
    pub(crate) async fn take<T: 'static>(&self, future: impl Future<Output = T>) -> Option<T> {
        let value = self.take_from(future).await;
        assert!(self.0.taps.borrow().iter().all(|tap| Arc::strong_count(tap) == 1), "a waker stays behind");
        value
    }

    /// The same where the waker may stay for a while: with something that the future only borrows, or in the hands of another thread that
    /// is just about to wake it. It is gone when the loop is.
    pub(crate) async fn take_from<T: 'static>(&self, future: impl Future<Output = T>) -> Option<T> {
        let state = &self.0;
        let Some(Plan { how, .. }) = state.plan else { return state.tapped(future, || ()).await };
        match how {
            How::Drop => state.tapped(future, || ()).await,
            How::Task => {
                let task = state.clone();
                let cancel = move || task.task.borrow().as_ref().unwrap().cancel();
                let value = match catch(state.tapped(future, cancel)).await {
                    Ok(value) => value,
                    Err(cleanup) => {
                        yield_now().await;
                        cleanup.absorb().expect("a future under test stands at the level of its scene");
                        return None;
                    }
                };
                // The future came first. The scene has yet to look at what became of it.
                if state.task.borrow().as_ref().unwrap().is_cancel_requested() {
                    catch(pending::<()>()).await.unwrap_err().absorb().unwrap();
                }
                value
            }
            How::Timeout => {
                let clock = state.clock.clone();
                timeout(FAR, state.tapped(future, move || clock.advance(FAR))).await.ok().flatten()
            }
            How::Scope => {
                let (resolver, promise) = promise::<(), Abandoned>();
                let tapped = state.tapped(future, move || drop(resolver));
                scope(ScopeOptions::new(), async |scope| {
                    let mut watch = pin!(async {
                        promise.await.ok();
                        scope.cancel();
                        pending::<()>().await;
                    });
                    let mut tapped = tapped;
                    poll_fn(|cx| {
                        let _ = watch.as_mut().poll(cx);
                        Pin::new(&mut tapped).poll(cx)
                    })
                    .await
                })
                .await
                .ok()
                .flatten()
            }
            How::Race => {
                let (resolver, promise) = promise::<(), Abandoned>();
                let other = async {
                    promise.await.ok();
                    None
                };
                let tapped = state.tapped(future, move || drop(resolver));
                let futures: [Pin<Box<dyn Future<Output = Option<T>> + '_>>; 2] = [Box::pin(tapped), Box::pin(other)];
                let raced = race(futures).await;
                let mut values = std::iter::once((raced.index, raced.value)).chain(raced.late);
                values.find_map(|(index, value)| value.filter(|_| index == 0))
            }
            How::Member => {
                let (child, value) = (Rc::new(RefCell::new(None::<Child<()>>)), Cell::new(None));
                let cancelled = child.clone();
                let tapped = state.tapped(future, move || cancelled.borrow().as_ref().unwrap().cancel());
                task_group(async |group| {
                    child.replace(Some(group.spawn_caught(async { value.set(tapped.await) })));
                    // The end of a member that was cancelled is no value.
                    poll_fn(|cx| Pin::new(child.borrow_mut().as_mut().unwrap()).poll(cx)).await.ok();
                })
                .await;
                value.take()
            }
        }
    }

    /// How the future under test is ended in this play.
    pub(crate) fn how(&self) -> Option<How> {
        self.0.plan.map(|plan| plan.how)
    }

    /// Something outside of the loop is about to act: its time does not jump meanwhile.
    pub(crate) fn hold(&self) -> Hold {
        self.0.clock.hold()
    }

    /// How often it was polled.
    pub(crate) fn polls(&self) -> usize {
        self.0.polls.get()
    }
}

/// A callback in so many milliseconds.
pub(crate) fn at<T>(ms: u64, call: impl FnOnce() -> T + 'static) {
    LoopHandle::current().call_later(Duration::from_millis(ms), move || drop(call()));
}

const FAR: Duration = Duration::from_secs(1_000_000);

impl State {
    /// The future under test, with a waker of its own. `end` is called where the play ends it.
    fn tapped<F: Future>(self: &Rc<Self>, future: F, end: impl FnOnce() + 'static) -> Tapped<F> {
        let tap = Arc::new(Tap::default());
        self.taps.borrow_mut().push(tap.clone());
        Tapped { future: Some(Box::pin(future)), tap, end: Some(Box::new(end)), state: self.clone() }
    }
}

struct Tapped<F> {
    /// `None` once it has ended.
    future: Option<Pin<Box<F>>>,
    tap: Arc<Tap>,
    end: Option<Box<dyn FnOnce()>>,
    state: Rc<State>,
}

impl<F> Tapped<F> {
    /// Whether the play ends the future at this moment.
    fn is_cut(&self, when: When) -> bool {
        self.state.plan.is_some_and(|plan| plan.when == when && plan.polls == self.state.polls.get())
    }

    /// Ends it. True if it is to be dropped here.
    fn cut(&mut self) -> bool {
        if self.state.plan.is_some_and(|plan| plan.how == How::Drop) {
            self.future = None;
            return true;
        }
        if let Some(end) = self.end.take() {
            end();
        }
        false
    }
}

impl<F: Future> Future for Tapped<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.get_mut();
        *this.tap.outer.lock().unwrap() = Some(cx.waker().clone());
        // What the tap could not end on another thread is ended here.
        this.end = ON_WAKE.take().or(this.end.take());
        let is_cut = this.is_cut(When::Woken) || (this.state.polls.get() == 0 && this.is_cut(When::Polled));
        if is_cut && this.cut() {
            return Poll::Ready(None);
        }
        this.state.polls.set(this.state.polls.get() + 1);
        if this.is_cut(When::Woken) && this.state.plan.is_some_and(|plan| plan.how != How::Drop) {
            ON_WAKE.set(this.end.take());
        }
        let waker = Waker::from(this.tap.clone());
        let Some(future) = &mut this.future else { return Poll::Pending };
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            this.future = None;
            return Poll::Ready(Some(value));
        }
        if this.is_cut(When::Polled) && this.cut() {
            return Poll::Ready(None);
        }
        Poll::Pending
    }
}

impl<F> Drop for Tapped<F> {
    fn drop(&mut self) {
        drop(ON_WAKE.take());
        drop(self.tap.outer.lock().unwrap().take());
    }
}

thread_local! {
    /// What ends the future under test when its tap is woken, before whoever polls it hears of that.
    static ON_WAKE: Cell<Option<Box<dyn FnOnce()>>> = const { Cell::new(None) };
}

/// The waker of the future under test: it passes wakes on, and shows whether anybody keeps it.
#[derive(Default)]
struct Tap {
    outer: Mutex<Option<Waker>>,
}

impl Wake for Tap {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        ON_WAKE.take().into_iter().for_each(|end| end());
        let outer = self.outer.lock().unwrap().clone();
        outer.into_iter().for_each(|waker| waker.wake());
    }
}
