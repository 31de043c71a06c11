//! A doorbell made of an eventfd: a counter in the kernel that is readable while it is not zero.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        Ok(Bell(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(super) fn ring(&self) {
        // The only error that can come is EAGAIN, "the counter is full": it has rung 2^64 times unread, so it is readable.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

pub(super) fn drain(bell: BorrowedFd<'_>) {
    let mut count = [0; size_of::<u64>()];
    // EAGAIN says that it was silent already.
    let _ = rustix::io::read(bell, &mut count);
}
