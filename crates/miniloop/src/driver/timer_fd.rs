//! A descriptor that becomes readable at a deadline, for hosts that can only watch descriptors.
//!
//! It is a timerfd on the clock that the loop reads, the monotonic one, with an absolute deadline: setting it reads no clock, and a change
//! of the wall clock does not move it. Setting it also silences it, so nobody ever reads it. One system call to set it. Next: `mod.rs`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::Timespec;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use crate::instant::Instant;

pub(crate) struct TimerFd(OwnedFd);

impl TimerFd {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?))
    }

    /// Becomes readable at `deadline`, which may have passed, or never.
    pub(crate) fn set(&self, deadline: Option<Instant>) -> io::Result<()> {
        // Zero would mean "never".
        let nanos = deadline.map_or(0, |deadline| deadline.as_nanos().max(1));
        let it_value = Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &Itimerspec { it_interval, it_value })?;
        Ok(())
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
