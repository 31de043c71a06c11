//! Places at which somebody can be asked to stop, and those below who clean up first: the doors to the tree of `cancel_tree.rs`.
//!
//! A [`Level`] belongs to whoever owns a body that can be asked (a task, a member of a group, a body with a time limit, a branch of a race)
//! and decides about dropping it. The owner's contract:
//!
//! ```text
//! poll     let inside = level.enter(core, cx.waker());  poll the body;  drop(inside);       the guard also leaves on a panic
//! pending  match level.verdict(core) {          `must_drop(true)` asks the same
//!              Undisturbed => Pending           nobody asked, or somebody below is cleaning up: go on polling
//!              Drop => drop the body now        the request has reached this level: nothing below it wants to clean up
//!              Force => the same, at once       aborted, or out of grace; then `report_if_out_of_grace`
//!          }
//! ready    the value counts, whatever was asked for (C10)
//! ask      level.request(core, reason, deadline), then see to it that the owner is polled. Asking again only shortens the deadline (C7).
//!          A job that is asked is queued with `Core::enqueue`, which is no wake: before it is polled the owner asks for the verdict too,
//!          and on `Drop` without a wake of its own drops the body unpolled, else polls it once first (C12): `must_drop(!was_woken)`.
//! end      level.remove(), then drop the body: what it held answers to the level above at once. Dropping the level does the same.
//! ```
//!
//! The level of a job (a task, the main future) is the bottom of the path: `run_job.rs` enters it with [`Level::as_job`]. A level
//! belongs to the loop under which it is polled, and to one only.
//!
//! A [`Point`] is what registers below levels: a catch point or a shield. It may be polled anywhere, moved to another task or loop, and
//! outside any task it is not there at all (C13).
//!
//! Cost: a level is two words. Polling through one without a node is a push and a pop; a job's own level is two stores.

use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::Rc;
use std::task::{self, Waker};

pub(crate) use crate::engine::cancel_tree::{CancelReason, Level};
use crate::engine::cancel_tree::{CancelTree, Force, Kind, NOWHERE, Notes};
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::job::Job;
use crate::engine::word::Word;
use crate::instant::Instant;
use crate::report::{Report, ReportKind};
use crate::slots::Key;

/// The place of a job's own level: below the path.
const BOTTOM: u32 = NOWHERE - 1;

/// What the owner of a level is to do with a body that is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Go on: nobody asked, or somebody below is at it.
    Undisturbed,
    /// Drop the body.
    Drop,
    /// Drop the body whatever it is doing.
    Force,
}

impl Verdict {
    /// Whether the body is to be dropped now: at once, or because it `has_had_its_poll` (C12).
    pub(crate) fn must_drop(self, has_had_its_poll: bool) -> bool {
        match self {
            Verdict::Undisturbed => false,
            Verdict::Drop => has_had_its_poll,
            Verdict::Force => true,
        }
    }
}

impl Level {
    /// What is polled while the guard lives is below this level. `waker` wakes the owner.
    pub(crate) fn enter<'a>(&'a self, core: &'a Core, waker: &'a Waker) -> Inside<'a> {
        let key = key_of(self.node.get());
        if let Some(key) = key {
            // Without a job there is nothing to link it to.
            change(core, |tree, notes| {
                if let Some(parent) = innermost(core, tree) {
                    tree.begin_poll(key, parent, notes);
                }
            });
        }
        self.place.set(core.cancels.borrow_mut().push(key) as u32);
        Inside { core, level: self, waker }
    }

    /// The same for the level of a job, the bottom of the path while the job runs. `act` must not panic.
    #[inline(always)]
    pub(crate) fn as_job<R>(&self, core: &Core, waker: &Waker, act: impl FnOnce() -> R) -> R {
        let node = self.node.get();
        if node != Word::STALE {
            core.cancels.borrow_mut().set_inside(key_of(node), true);
        }
        self.place.set(BOTTOM);
        core.job_level.set(Some(node));
        let acted = act();
        let node = core.job_level.take().unwrap_or(Word::STALE);
        if node != Word::STALE {
            core.cancels.borrow_mut().set_inside(key_of(node), false);
        }
        self.leave(core, node, waker);
        acted
    }

    /// Asks those below to stop, and to clean up until `deadline`, when their grace ends. The caller sees to it that the owner is polled.
    pub(crate) fn request(&self, core: &Core, reason: CancelReason, deadline: Instant) {
        let key = self.key_or_insert(core);
        change(core, |tree, notes| tree.request(key, reason, deadline, notes));
        // For the timer of its deadline.
        self.verdict(core);
    }

    /// Asks for the end at once, without clean-up. The caller sees to it that the owner is polled.
    pub(crate) fn abort(&self, core: &Core, reason: CancelReason) {
        let key = self.key_or_insert(core);
        change(core, |tree, notes| {
            tree.request(key, reason, Instant::FAR_FUTURE, notes);
            tree.force(key, Force::Aborted, notes);
        });
    }

    /// Its poll is over, and this is its node now.
    #[inline]
    fn leave(&self, core: &Core, node: Word, waker: &Waker) {
        self.place.set(NOWHERE);
        self.node.set(node);
        if node != Word::STALE {
            keep_waker(core, node.key(), waker);
        }
    }

    /// It is not being polled and has no node: nothing can stand at it or below.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.place.get() == NOWHERE && self.node.get() == Word::STALE
    }

    /// Whether a request stands at this level.
    #[inline]
    pub(crate) fn is_requested(&self, core: &Core) -> bool {
        !self.is_idle() && self.is_asked(core)
    }

    fn is_asked(&self, core: &Core) -> bool {
        self.key(core).is_some_and(|key| core.cancels.borrow_mut().request_of(key).is_some())
    }

    /// What the owner is to do. Starts the grace of those below who take their time.
    pub(crate) fn verdict(&self, core: &Core) -> Verdict {
        let Some(key) = self.key(core) else { return Verdict::Undisturbed };
        let mut tree = core.cancels.borrow_mut();
        if tree.request_of(key).is_none() {
            return Verdict::Undisturbed;
        }
        let is_busy = tree.is_busy_below(key);
        let Some(request) = tree.request_of(key) else { return Verdict::Undisturbed };
        match request.timer {
            _ if request.force.is_some() => return Verdict::Force,
            _ if !is_busy => return Verdict::Drop,
            Some(_) => {}
            None => {
                let word = core.insert(Job::Grace(key));
                core.arm(word, request.deadline);
                request.timer = Some(word);
            }
        }
        Verdict::Undisturbed
    }

    /// Told by the owner that is about to follow a verdict: says to the error handler who was out of grace. An abort is no news.
    pub(crate) fn report_if_out_of_grace(&self, core: &Core, subject: impl FnOnce() -> String, place: &'static Location<'static>) {
        self.out_of_grace(core, subject, place).into_iter().for_each(|report| core.report(report));
    }

    /// The same for who reports himself.
    pub(crate) fn out_of_grace(&self, core: &Core, subject: impl FnOnce() -> String, place: &'static Location<'static>) -> Option<Report> {
        let key = self.key(core)?;
        let force = core.cancels.borrow_mut().request_of(key)?.force;
        (force == Some(Force::OutOfGrace)).then(|| {
            let message = "was still cleaning up when its grace ended, and was dropped".to_owned();
            Report::new(ReportKind::GraceExceeded, subject(), place, message)
        })
    }

    /// Whether somebody below might have to be [skipped](Level::skip_unreachable).
    #[inline]
    pub(crate) fn has_unpolled(&self, core: &Core) -> bool {
        self.node.get() != Word::STALE && core.cancels.borrow().has_unpolled()
    }

    /// Its job has been polled and has nothing left to do: those below who were to hear of a request in a poll never will (C6).
    pub(crate) fn skip_unreachable(&self, core: &Core) {
        if let Some(key) = self.key(core) {
            change(core, |tree, notes| tree.skip_unreachable(key, notes));
        }
    }

    /// Takes the level away, before its body is dropped: what that held answers to the level above. It can be used again.
    #[inline]
    pub(crate) fn remove(&self) {
        if !self.is_idle() {
            self.take_away();
        }
    }

    fn take_away(&self) {
        // Without its loop there is no tree any more. A level without a node that is being polled is found by the job that polls it.
        let core = match self.node.get() {
            Word::STALE => context::current_task().and_then(|job| context::resident(job.loop_id())),
            node => context::resident(node.loop_id()),
        };
        let Some(core) = core else { return };
        let key = self.key(&core);
        self.set_key(&core, None);
        if let Some(key) = key {
            change(&core, |tree, notes| tree.remove(key, notes));
        }
    }

    fn key(&self, core: &Core) -> Option<Key> {
        match self.place.get() {
            NOWHERE => key_of(self.node.get()),
            BOTTOM => core.job_level.get().and_then(key_of),
            place => core.cancels.borrow().on_path(place as usize),
        }
    }

    fn set_key(&self, core: &Core, key: Option<Key>) {
        self.node.set(word_of(core, key));
        match self.place.get() {
            NOWHERE => {}
            BOTTOM => core.job_level.set(Some(self.node.get())),
            place => core.cancels.borrow_mut().set_on_path(place as usize, key),
        }
    }

    fn key_or_insert(&self, core: &Core) -> Key {
        if self.place.get() != NOWHERE {
            innermost(core, &mut core.cancels.borrow_mut());
        }
        self.key(core).unwrap_or_else(|| {
            let key = core.cancels.borrow_mut().insert(Kind::Level, None);
            self.set_key(core, Some(key));
            key
        })
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The body of a level is being polled.
pub(crate) struct Inside<'a> {
    core: &'a Core,
    level: &'a Level,
    waker: &'a Waker,
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let key = self.core.cancels.borrow_mut().pop();
        self.level.leave(self.core, word_of(self.core, key), self.waker);
    }
}

/// A catch point or a shield: it registers below the levels that are being polled when it is polled.
pub(crate) struct Point {
    node: Cell<Word>,
    kind: Kind,
    _not_send: PhantomData<*const ()>,
}

impl Point {
    pub(crate) const fn catch() -> Point {
        Point::new(Kind::Catch)
    }

    pub(crate) const fn shield() -> Point {
        Point::new(Kind::Shield)
    }

    const fn new(kind: Kind) -> Point {
        Point { node: Cell::new(Word::STALE), kind, _not_send: PhantomData }
    }

    /// What is polled while the guard lives is below this point. `None` outside any task, where the point is not there.
    pub(crate) fn enter(&self, waker: &Waker) -> Option<PointInside> {
        let core = context::current_task().and_then(|job| context::resident(job.loop_id()));
        let Some(core) = core.filter(|core| core.job_level.get().is_some()) else {
            self.remove();
            return None;
        };
        if self.node.get() != Word::STALE && self.node.get().loop_id() != core.id {
            self.remove();
        }
        let key = change(&core, |tree, notes| {
            let parent = innermost(&core, tree)?;
            let present = key_of(self.node.get()).filter(|key| tree.contains(*key));
            let key = present.unwrap_or_else(|| tree.insert(self.kind, Some(parent)));
            tree.begin_poll(key, parent, notes);
            tree.push(Some(key));
            Some(key)
        })?;
        self.node.set(Word::new(core.id, key));
        let inside = PointInside { core, key };
        keep_waker(&inside.core, key, waker);
        Some(inside)
    }

    /// Takes the point away, before its body is dropped: what that held answers to the level above. It can be used again.
    pub(crate) fn remove(&self) {
        remove_node(self.node.replace(Word::STALE));
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The body of a point is being polled.
pub(crate) struct PointInside {
    core: Rc<Core>,
    key: Key,
}

impl PointInside {
    /// The body of a catch point is pending: whether it is the catch point's turn to end it. Then what follows is under the guard.
    ///
    /// It counts as an operation (O10): who catches again and again and carries on must give way, or its grace never ends.
    pub(crate) fn fire(self, cx: &mut task::Context<'_>) -> Option<Guard> {
        let reason = self.core.cancels.borrow_mut().fires(self.key)?;
        if context::poll_budget(cx).is_pending() {
            return None;
        }
        context::spend_operation();
        let guard = self.core.cancels.borrow_mut().insert_guard_beside(self.key);
        Some(Guard { word: Word::new(self.core.id, guard), reason, _not_send: PhantomData })
    }
}

impl Drop for PointInside {
    fn drop(&mut self) {
        self.core.cancels.borrow_mut().pop();
    }
}

/// A clean-up is going on. Nothing below the node at which it stands is asked meanwhile, unless from inside.
pub(crate) struct Guard {
    word: Word,
    reason: CancelReason,
    /// It belongs to the loop of this thread.
    _not_send: PhantomData<*const ()>,
}

impl Guard {
    pub(crate) fn reason(&self) -> CancelReason {
        self.reason
    }

    /// Takes back the request, if it was made at the very level at which this guard stands.
    pub(crate) fn absorb(&self) -> bool {
        let Some(core) = context::resident(self.word.loop_id()) else { return true };
        change(&core, |tree, notes| tree.absorb(self.word.key(), notes))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        remove_node(self.word);
    }
}

/// The grace of a level is over.
pub(crate) fn end_grace(core: &Core, level: Key) {
    change(core, |tree, notes| tree.force(level, Force::OutOfGrace, notes));
}

/// The innermost node of the path; levels without one get theirs. `None` outside any job.
fn innermost(core: &Core, tree: &mut CancelTree) -> Option<Key> {
    let mut bottom = key_of(core.job_level.get()?);
    let innermost = tree.innermost(&mut bottom);
    core.job_level.set(Some(word_of(core, bottom)));
    Some(innermost)
}

fn key_of(node: Word) -> Option<Key> {
    (node != Word::STALE).then(|| node.key())
}

fn word_of(core: &Core, node: Option<Key>) -> Word {
    node.map_or(Word::STALE, |key| Word::new(core.id, key))
}

fn remove_node(node: Word) {
    if node != Word::STALE
        && let Some(core) = context::resident(node.loop_id())
    {
        change(&core, |tree, notes| tree.remove(node.key(), notes));
    }
}

/// Changes the tree, then wakes and drops with nothing borrowed.
fn change<R>(core: &Core, change: impl FnOnce(&mut CancelTree, &mut Notes) -> R) -> R {
    let mut notes = Notes::default();
    let result = change(&mut core.cancels.borrow_mut(), &mut notes);
    drop(notes.timer.and_then(|timer| core.remove(timer)));
    notes.woken.into_iter().for_each(|waker| core.wake_safely(waker));
    if let Some(waker) = notes.dropped {
        core.drop_safely(waker, "waker", Location::caller());
    }
    result
}

/// Remembers the waker of the last poll (C13). Cloned before the tree is borrowed, and what it displaces is dropped after.
fn keep_waker(core: &Core, key: Key, waker: &Waker) {
    if !core.cancels.borrow().will_wake(key, waker) {
        let mut waker = waker.clone();
        core.cancels.borrow_mut().exchange_waker(key, &mut waker);
    }
}
