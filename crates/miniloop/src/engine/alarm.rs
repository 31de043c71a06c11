//! The alarm of a host that can only watch descriptors: one of them becomes readable when the loop must be turned (`timer_fd(true)`).
//!
//! ```text
//! inside run_*     the loop waits by itself; the alarm is not touched, and an old deadline ends at most one wait too early
//! leaving          set to what `next_timeout` says: at once, at the next deadline, or never
//! outside          only ever moved nearer: by a callback, a wake, a timer or a stop request of the host's
//! ```
//!
//! Its owner has the driver watch the descriptor, so that the one that stands for all stands for this one, too. Cost: one system call on
//! leaving when the next deadline is another one, none without the setting. Next: `core.rs`, which calls it.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::driver::TimerFd;
use crate::instant::Instant;

pub(crate) struct Alarm {
    timer: TimerFd,
    /// The deadline that the timer was last given.
    deadline: Cell<Option<Instant>>,
    is_host_inside: Cell<bool>,
}

impl Alarm {
    /// # Errors
    /// The system has no such thing, or no descriptor left.
    pub(crate) fn new() -> io::Result<Alarm> {
        Ok(Alarm { timer: TimerFd::new()?, deadline: Cell::new(None), is_host_inside: Cell::new(false) })
    }

    pub(crate) fn host_enters(&self) {
        self.is_host_inside.set(true);
    }

    /// `deadline`: when the loop must be turned again.
    pub(crate) fn host_leaves(&self, deadline: Option<Instant>, now: impl Fn() -> Instant) {
        self.is_host_inside.set(false);
        // A deadline that has passed may have been told already, and is told once.
        let still_stands = deadline == self.deadline.get() && deadline.is_none_or(|deadline| deadline > now());
        if !still_stands {
            self.set(deadline);
        }
    }

    /// There will be something to do at `deadline`.
    pub(crate) fn announce(&self, deadline: Instant) {
        if !self.is_host_inside.get() && self.deadline.get().is_none_or(|earlier| deadline < earlier) {
            self.set(Some(deadline));
        }
    }

    fn set(&self, deadline: Option<Instant>) {
        self.deadline.set(deadline);
        let is_set = self.timer.set(deadline);
        debug_assert!(is_set.is_ok(), "the kernel takes every deadline: {is_set:?}");
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// The deadline of what is ready already: long ago.
pub(crate) const AT_ONCE: Instant = Instant::from_nanos(0);
