//! All of epoll: descriptors in, events out. Knows tokens and descriptors, not who waits for them.
//!
//! What to know of the kernel here. An entry belongs to an *open file* and a *number*, and lives as long as the open file, which `dup` and
//! `fork` share: closing a number that has a duplicate leaves an entry that nobody can remove any more. So entries are removed before the
//! number is closed. An edge-triggered entry reports once per change and then stays silent; a level-triggered one reports at every wait for
//! as long as there is something. Hang-up and error are always reported, whatever was asked for.
//!
//! Cost: one system call per method, none that a caller could have saved. Next: `poll.rs`, which does the same with less help.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::source::{Interest, Readiness};
use crate::config::EVENTS_PER_WAIT;

pub(super) const IS_AVAILABLE: bool = true;

pub(super) struct Epoll {
    fd: OwnedFd,
    /// What the last wait found.
    events: Vec<epoll::Event>,
}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Self { fd, events: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    /// Watches both directions, edge-triggered.
    pub(super) fn add_edge(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let flags = EventFlags::ET | EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::PRI;
        Ok(epoll::add(&self.fd, fd, EventData::new_u64(token), flags)?)
    }

    /// Watches an eventfd whose every write shall end a wait, though nobody reads it: each write is a new edge.
    pub(super) fn add_doorbell(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, EventData::new_u64(token), EventFlags::ET | EventFlags::IN)?)
    }

    /// Watches what `interest` says, level-triggered. A duplicate can bring back the entry of a closed number: it is taken over.
    pub(super) fn add_level(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let (data, flags) = (EventData::new_u64(token), level_flags(interest));
        match epoll::add(&self.fd, fd, data, flags) {
            Err(Errno::EXIST) => Ok(epoll::modify(&self.fd, fd, data, flags)?),
            result => Ok(result?),
        }
    }

    /// The same for a number that has an entry. False when the entry was of another file, which has been closed: then nothing is watched.
    pub(super) fn modify_level(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        match epoll::modify(&self.fd, fd, EventData::new_u64(token), level_flags(interest)) {
            // Not permitted is what the kernel says first of a file that cannot be watched, so it is not the one that is.
            Err(Errno::NOENT | Errno::PERM) => Ok(false),
            result => Ok(result.map(|()| true)?),
        }
    }

    /// Watches less of a number than before, or nothing. If it has been closed in between there is nothing left to do.
    pub(super) fn narrow(&self, number: RawFd, token: u64, interest: Interest) {
        if number < 0 {
            return;
        }
        // SAFETY: not -1, and the borrow ends with this function, which only hands it to `epoll_ctl`. Whoever registered the number closes
        // it after calling here; a user who closed it too early makes the kernel answer EBADF, or ENOENT for a new file of that number, and
        // nothing else.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let _nothing_to_narrow = if interest.is_none() {
            epoll::delete(&self.fd, fd)
        } else {
            epoll::modify(&self.fd, fd, EventData::new_u64(token), level_flags(interest))
        };
    }

    /// Waits for the first event. With the feature `ns-timeouts` rustix passes nanoseconds on, without it it rounds up to milliseconds.
    ///
    /// # Errors
    /// On a kernel that lacks the system call for nanosecond timeouts, `Unsupported`, and then at every call.
    pub(super) fn wait(&mut self, timeout: Option<&Timespec>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.fd, spare_capacity(&mut self.events), timeout) {
            Ok(_) => Ok(()),
            Err(Errno::NOSYS) => Err(io::Error::new(io::ErrorKind::Unsupported, NO_NANOSECONDS)),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the last wait had no room for more.
    pub(super) fn is_full(&self) -> bool {
        self.events.len() == self.events.capacity()
    }

    pub(super) fn event_count(&self) -> usize {
        self.events.len()
    }

    /// In the kernel's order, which is the order in which it happened.
    pub(super) fn event(&self, index: usize) -> (u64, Readiness) {
        let event = &self.events[index];
        (event.data.u64(), readiness(event.flags))
    }

    /// Readable when an event waits to be collected.
    pub(super) fn pollable(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn level_flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.read);
    flags.set(EventFlags::OUT, interest.write);
    flags
}

/// Hang-up and error concern both directions: the next call of either fails, and must be made to be told so.
fn readiness(flags: EventFlags) -> Readiness {
    let broken = EventFlags::HUP | EventFlags::ERR;
    let exceptional = broken | EventFlags::RDHUP | EventFlags::PRI;
    Readiness {
        read: flags.intersects(exceptional | EventFlags::IN),
        write: flags.intersects(broken | EventFlags::OUT),
        is_exceptional: flags.intersects(exceptional),
    }
}

const NO_NANOSECONDS: &str = "this system has no epoll_pwait2 (Linux 5.11): build miniloop without its default feature `ns-timeouts`, \
                              which rounds timeouts up to milliseconds";
