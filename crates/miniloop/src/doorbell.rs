//! The doorbell of a loop: one descriptor that any thread, and any signal handler, may use to end the loop's sleep.
//!
//! It carries no content; what there is to do is said elsewhere and said first, so a ring too many is harmless. Where the system has
//! eventfds it is one: the epoll driver watches it edge-triggered, every write is an event then, whether or not anybody has read, and the
//! loop never has to read it. Elsewhere it is a pipe, which the poll driver empties. Ringing costs one system call, so
//! [`Inbox`](crate::engine::inbox::Inbox), to read next, rings at most once per sleep.

#[cfg(target_os = "linux")]
mod eventfd;
#[cfg(any(test, not(target_os = "linux")))]
mod self_pipe;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

#[cfg(target_os = "linux")]
use self::eventfd as bell;
#[cfg(not(target_os = "linux"))]
use self::self_pipe as bell;

/// Wakes a sleeping loop. Safe to use in a signal handler.
#[derive(Debug)]
pub(crate) struct Doorbell(bell::Bell);

impl Doorbell {
    pub(crate) fn new() -> io::Result<Doorbell> {
        Ok(Doorbell(bell::Bell::new()?))
    }

    pub(crate) fn ring(&self) {
        self.0.ring();
    }

    /// Makes it silent again, for those who watch it level-triggered.
    pub(crate) fn drain(&self) {
        drain(self);
    }
}

/// [`Doorbell::drain`] for who has only the descriptor.
pub(crate) fn drain(doorbell: impl AsFd) {
    bell::drain(doorbell.as_fd());
}

impl AsFd for Doorbell {
    /// Readable while it rings.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests;
