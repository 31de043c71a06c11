//! In place of `timer_fd.rs` where the system has none: nobody can make one, so nothing of it ever runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::instant::Instant;

pub(crate) enum TimerFd {}

impl TimerFd {
    pub(crate) fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no timerfd: sleep as long as `EventLoop::next_timeout` says"))
    }

    pub(crate) fn set(&self, _deadline: Option<Instant>) -> io::Result<()> {
        match *self {}
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
