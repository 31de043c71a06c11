//! What this thread knows of loops: the one that runs, the task that is being polled, and the loops that live here.
//!
//! One context per thread, made of plain cells without a destructor, so that it costs a few loads and can be used at any time in the life
//! of the thread. What a cell points to is owned, by the cell or by the entry that set it; that is all there is to the safety of this file.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{self, Poll, ready};

use crate::dump;
use crate::engine::core::Core;
use crate::engine::probes;
use crate::engine::record::{Record, WaitsFor};
use crate::engine::word::{LoopId, Word};
use crate::mutant::{Mutant, is_broken};

struct Context {
    /// The loop that free functions mean: the running one, or the one entered last. The newest entry owns it; null without one.
    current: Cell<*const Core>,
    /// The newest of the entries, each of which owns the one below.
    entries: Cell<*mut Entry>,
    /// The head of the list of open loops of this thread, linked through `Core::next_resident`. Each link owns a reference unless null.
    residents: Cell<*const Core>,
    /// A loop is inside `run_*` on this thread.
    is_running: Cell<bool>,
    /// The task that is being polled.
    task: Cell<Option<Word>>,
    /// What its futures have said that they wait for.
    waits_for: Cell<WaitsFor>,
    /// The member of a group whose value that is, when it is that.
    awaits: Cell<Word>,
}

thread_local! {
    static CONTEXT: Context = const {
        Context {
            current: Cell::new(std::ptr::null()),
            entries: Cell::new(std::ptr::null_mut()),
            residents: Cell::new(std::ptr::null()),
            is_running: Cell::new(false),
            task: Cell::new(None),
            waits_for: Cell::new(&""),
            awaits: Cell::new(Word::STALE),
        }
    };
}

/// The loop that free functions mean.
///
/// # Panics
/// When there is none.
#[track_caller]
pub(crate) fn current() -> Rc<Core> {
    try_current().expect(
        "no event loop is running on this thread: call this inside `miniloop::run` or `EventLoop::run_*`, or keep a `LoopHandle` and use \
         its methods (`LoopHandle::enter` makes its loop the current one)",
    )
}

pub(crate) fn try_current() -> Option<Rc<Core>> {
    let pointer = CONTEXT.with(|context| context.current.get());
    // SAFETY: unless it is null, the newest entry owns a reference.
    unsafe { share(pointer) }
}

/// Looks at a loop of this thread, if it is one. `look` must neither run user code nor enter, leave, add or remove a loop.
pub(crate) fn with_resident<R>(id: LoopId, look: impl FnOnce(&Core) -> R) -> Option<R> {
    // SAFETY: the entry or link that led to it owns a reference, and `look` changes neither.
    unsafe { find(id).as_ref() }.map(look)
}

/// A loop of this thread, if it is one: for a job that must mean the loop that runs it, whichever one its tasks have entered.
pub(crate) fn resident(id: LoopId) -> Option<Rc<Core>> {
    // SAFETY: the entry or link that led to it owns a reference.
    unsafe { share(find(id)) }
}

/// The open loop of this thread with this id, or null.
fn find(id: LoopId) -> *const Core {
    CONTEXT.with(|context| {
        let mut pointer = context.current.get();
        // SAFETY: unless it is null, the newest entry owns a reference, and nothing changes that meanwhile.
        if let Some(core) = unsafe { pointer.as_ref() }
            && core.id == id
            && !core.is_closed()
        {
            return pointer;
        }
        pointer = context.residents.get();
        // SAFETY: each link of the list owns a reference unless it is null, and nothing changes the list meanwhile.
        while let Some(core) = unsafe { pointer.as_ref() }
            && core.id != id
        {
            pointer = core.next_resident.get();
        }
        pointer
    })
}

/// One reference more.
///
/// # Safety
/// The pointer is null, or it came from `Rc::into_raw` or `Rc::as_ptr` and something on this thread owns a reference to its core.
unsafe fn share(pointer: *const Core) -> Option<Rc<Core>> {
    (!pointer.is_null()).then(|| {
        // SAFETY: as above, the core is alive; the new reference is counted before the `Rc` that owns it is made. Both are on the thread of
        // the `Rc`.
        unsafe {
            Rc::increment_strong_count(pointer);
            Rc::from_raw(pointer)
        }
    })
}

/// Makes a loop findable for wakes on this thread, until [`remove_resident`].
pub(crate) fn add_resident(core: &Rc<Core>) {
    CONTEXT.with(|context| core.next_resident.set(context.residents.replace(Rc::into_raw(core.clone()))));
}

pub(crate) fn remove_resident(core: &Rc<Core>) {
    CONTEXT.with(|context| {
        let mut link = &context.residents;
        // SAFETY: each link owns a reference to the core that it points to, and nothing is dropped before the loop is left.
        while let Some(resident) = unsafe { link.get().as_ref() } {
            if std::ptr::eq(resident, Rc::as_ptr(core)) {
                let owned = link.replace(resident.next_resident.replace(std::ptr::null()));
                // SAFETY: the pointer came from `Rc::into_raw` in `add_resident`, and the link that owned its reference has just given it
                // up.
                drop(unsafe { Rc::from_raw(owned) });
                return;
            }
            link = &resident.next_resident;
        }
    });
}

/// Makes a loop the current one of this thread while the guard lives, but for the time of those entered later. Guards may be dropped in any
/// order: an entry that has been left goes when nothing stands above it any more.
#[derive(Debug)]
pub(crate) struct Entered(*const Entry);

struct Entry {
    core: Rc<Core>,
    is_left: Cell<bool>,
    below: *mut Entry,
}

pub(crate) fn enter(core: &Rc<Core>) -> Entered {
    CONTEXT.with(|context| {
        let entry = Box::into_raw(Box::new(Entry { core: core.clone(), is_left: Cell::new(false), below: context.entries.get() }));
        context.entries.set(entry);
        context.current.set(Rc::as_ptr(core));
        Entered(entry)
    })
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: an entry is freed once it has been left, and this is its only guard.
        unsafe { (*self.0).is_left.set(true) };
        while let Some(left) = take_left() {
            drop(left);
        }
    }
}

/// Takes the newest entry off, if its guard has been dropped.
fn take_left() -> Option<Box<Entry>> {
    CONTEXT.with(|context| {
        let newest = context.entries.get();
        // SAFETY: the cell owns the entry unless it is null.
        let entry = unsafe { newest.as_ref() }.filter(|entry| entry.is_left.get())?;
        context.entries.set(entry.below);
        // SAFETY: each entry owns the one below unless it is null.
        let below = unsafe { entry.below.as_ref() };
        context.current.set(below.map_or(std::ptr::null(), |below| Rc::as_ptr(&below.core)));
        // SAFETY: it came from `Box::into_raw` in `enter`, the cell has just given it up, and its guard is gone.
        Some(unsafe { Box::from_raw(newest) })
    })
}

/// Marks this thread as running a loop. False when it does so already.
pub(crate) fn start_running() -> bool {
    CONTEXT.with(|context| !context.is_running.replace(true))
}

pub(crate) fn stop_running() {
    CONTEXT.with(|context| {
        context.is_running.set(false);
        context.task.set(None);
    });
}

/// The task that is being polled on this thread; none in a plain callback.
pub(crate) fn current_task() -> Option<Word> {
    CONTEXT.with(|context| context.task.get())
}

/// The same if it is one of this loop: a word of another means nothing there.
pub(crate) fn current_task_of(id: LoopId) -> Option<Word> {
    current_task().filter(|task| task.loop_id() == id)
}

#[inline]
pub(crate) fn set_current_task(task: Option<Word>) {
    CONTEXT.with(|context| context.task.set(task));
}

/// A task is about to be polled. It has yet to say what it waits for.
#[inline]
pub(crate) fn begin_task(task: Option<Word>) {
    CONTEXT.with(|context| {
        context.task.set(task);
        context.waits_for.set(&"");
    });
}

/// The poll is over: remembers what the task has said that it waits for.
#[inline]
pub(crate) fn note_told(record: &Record) {
    CONTEXT.with(|context| {
        let what = context.waits_for.get();
        record.waits_for.set(what);
        if std::ptr::eq(what, &dump::MEMBER) {
            record.awaits.set(context.awaits.get());
        }
    });
}

/// Asked before an I/O or channel operation: pending, with the task woken, once this poll has had its share of them (O10). Who is no task,
/// a callback or a host between two turns, has no next poll to wait for.
pub(crate) fn poll_budget(cx: &mut task::Context<'_>) -> Poll<()> {
    match with_current(|core| core.ops_left.get()) {
        Some(0) if current_task().is_some() => {
            with_current(|core| probes::count(&core.probes.counters.spent_budgets));
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        _ => Poll::Ready(()),
    }
}

/// Told after each operation that did not have to wait. One that failed is one, too: who tries again and again must not hold the loop.
pub(crate) fn spend_operation() {
    if !is_broken(Mutant::NoOperationBudget) {
        with_current(|core| core.ops_left.set(core.ops_left.get().saturating_sub(1)));
    }
}

/// The same for one that was a system call: so many of them make a poll due.
pub(crate) fn spend_system_call() {
    spend_operation();
    with_current(|core| core.calls_since_poll.set(core.calls_since_poll.get().saturating_add(1)));
}

/// An operation that may consist of others, or of none: on somebody's stream, say. Those of this crate count themselves, the rest may never
/// be pending: either way it counts.
pub(crate) fn poll_operation<R>(cx: &mut task::Context<'_>, operation: impl FnOnce(&mut task::Context<'_>) -> Poll<R>) -> Poll<R> {
    ready!(poll_budget(cx));
    let left = with_current(|core| core.ops_left.get());
    let polled = operation(cx);
    if polled.is_ready() && with_current(|core| core.ops_left.get()) == left {
        spend_operation();
    }
    polled
}

/// The operation of whoever sees at once that there is nothing to wait for.
pub(crate) fn poll_at_once(cx: &mut task::Context<'_>) -> Poll<()> {
    ready!(poll_budget(cx));
    spend_operation();
    Poll::Ready(())
}

/// The same as a future.
pub(crate) async fn at_once() {
    poll_fn(poll_at_once).await;
}

/// Told after a call that takes as long as all the operations of a poll: the start of a process.
#[cfg(target_os = "linux")]
pub(crate) fn spend_all_operations() {
    with_current(|core| {
        core.ops_left.set(0);
        core.calls_since_poll.set(crate::config::CALLS_PER_POLL);
    });
}

/// Counts what has failed, perhaps without having waited for anything, and gives way if the task has had its share. What succeeds keeps the
/// order in which it was begun.
pub(crate) async fn after_failure() {
    spend_system_call();
    poll_fn(poll_budget).await;
}

/// Told by a leaf future that is about to return `Pending`: what its task waits for, in a few words ("a permit of a semaphore"), for those
/// who look inside the loop.
pub(crate) fn waits_for(what: WaitsFor) {
    CONTEXT.with(|context| context.waits_for.set(what));
}

/// The same, told of what has been polled if that is pending.
pub(crate) fn waiting_for<T>(what: WaitsFor, polled: Poll<T>) -> Poll<T> {
    if polled.is_pending() {
        waits_for(what);
    }
    polled
}

/// Told by who waits for a member of a group: which one, whom a dump names.
pub(crate) fn awaits(whom: Word) {
    CONTEXT.with(|context| context.awaits.set(whom));
}

fn with_current<R>(look: impl FnOnce(&Core) -> R) -> Option<R> {
    let pointer = CONTEXT.with(|context| context.current.get());
    // SAFETY: as in `with_resident`; `look` is private to this file and touches only cells of the core.
    unsafe { pointer.as_ref() }.map(look)
}

/// The loop under which a future first waited. Waiting under a second one would leave it with a waker of the first.
#[derive(Debug, Default)]
pub(crate) struct Home {
    /// 0 before the first time.
    number: Cell<u64>,
}

impl Home {
    /// # Panics
    /// Under another loop than the first time.
    pub(crate) fn check(&self, what: &str) {
        match self.number.get() {
            0 => self.number.set(with_current(|core| core.number).unwrap_or(0)),
            home => check_home(home, what),
        }
    }
}

/// # Panics
/// Under another loop than the one with the number `home`.
pub(crate) fn check_home(home: u64, what: &str) {
    if let Some(here) = with_current(|core| core.number)
        && here != home
    {
        panic!("this {what} belongs to event loop {home} and was polled under event loop {here}: await it where it belongs");
    }
}
