//! Places at which somebody can be asked to stop: a task, a member of a group, a body with a time limit, a branch of a race.
//!
//! A [`Level`] belongs to whoever owns such a body and decides about dropping it. The owner's contract:
//!
//! ```text
//! poll     let inside = level.enter(core, cx.waker());  poll the body;  drop(inside);       the guard also leaves on a panic
//! pending  match level.verdict(core) {
//!              Undisturbed => Pending           nobody asked, or somebody below is cleaning up: go on polling
//!              Drop => drop the body now        the request has reached this level: nothing below it wants to clean up
//!              Force => the same, at once       aborted, or out of grace; then `report_if_out_of_grace`
//!          }
//! ready    the value counts, whatever was asked for (C10)
//! ask      level.request(core, reason, deadline), then see to it that the owner is polled. Asking again only shortens the deadline (C7).
//!          A job that is asked is queued with `Core::enqueue`, which is no wake: before it is polled the owner asks for the verdict too,
//!          and on `Drop` without a wake of its own drops the body unpolled, else polls it once first (C12).
//! end      level.remove(), then drop the body: what it held goes first to the level above. Dropping the level does the same.
//! ```
//!
//! A task's level is entered by `run_job.rs`. One level belongs to one loop.
//!
//! Cost: one word and a depth; polling through a level without a catch point below it is a push and a pop.

#![allow(dead_code, reason = "its owners come next")]

use std::cell::Cell;
use std::panic::Location;
use std::task::Waker;

use crate::engine::core::Core;
use crate::instant::Instant;

/// Why somebody is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// Its task, group or scope was cancelled.
    Cancelled,
    /// The time limit of an enclosing `timeout` or scope was reached.
    Deadline,
    /// Its group ends: another member failed, or only services are left.
    GroupEnded,
    /// Another branch of its race was first.
    RaceLost,
    /// The loop is shutting down.
    Shutdown,
}

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

/// A place at which a request to stop can be made; see the head of this file.
pub(crate) struct Level {
    request: Cell<Option<(CancelReason, Instant)>>,
}

impl Level {
    pub(crate) const fn new() -> Level {
        Level { request: Cell::new(None) }
    }

    /// What is polled while the guard lives is below this level. `waker` wakes the owner.
    pub(crate) fn enter<'a>(&'a self, _core: &'a Core, _waker: &'a Waker) -> Inside<'a> {
        Inside(self)
    }

    /// Asks those below to stop and clean up until `deadline`, when their grace ends. The caller sees to it that the owner is polled.
    pub(crate) fn request(&self, _core: &Core, reason: CancelReason, deadline: Instant) {
        self.request.set(Some((reason, deadline)));
    }

    /// Asks for the end at once, without clean-up. The caller sees to it that the owner is polled.
    pub(crate) fn abort(&self, _core: &Core) {
        self.request.set(Some((CancelReason::Cancelled, Instant::from_nanos(0))));
    }

    /// Whether a request stands at this level.
    pub(crate) fn is_requested(&self, _core: &Core) -> bool {
        self.request.get().is_some()
    }

    /// What the owner is to do.
    pub(crate) fn verdict(&self, _core: &Core) -> Verdict {
        if self.request.get().is_some() { Verdict::Drop } else { Verdict::Undisturbed }
    }

    /// Told by the owner that is about to follow [`Verdict::Force`]: says so to the error handler, unless it was an abort.
    pub(crate) fn report_if_out_of_grace(&self, _core: &Core, _subject: impl FnOnce() -> String, _place: &'static Location<'static>) {}

    /// Takes the level away, before its body is dropped: what it held answers to the level above from now on. It can be used again.
    pub(crate) fn remove(&self) {
        self.request.set(None);
    }
}

/// The body of a level is being polled.
pub(crate) struct Inside<'a>(&'a Level);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let _ = self.0;
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        self.remove();
    }
}
