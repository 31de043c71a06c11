//! Which of the two drivers below waits, and the contract that both keep.
//!
//! ```text
//! add_edge      tell each change once, of both directions, until it is narrowed to nothing
//! add_level     tell at every wait what is so, of the directions that are wanted
//! modify_level  other directions; says when the number is another file's by now
//! narrow        fewer directions, or none; never fails
//! wait, event   what happened since the last wait, each with the token under which it was added
//! ```
//!
//! epoll keeps this list in the kernel, and poll(2) in a map of its own: that is all the difference. The choice is one comparison at each
//! wait, registration and event; reads and writes do not come here. Next: `mod.rs`, which knows who waits.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

use rustix::event::Timespec;

use super::epoll::{self, Epoll};
use super::poll::Poll;
use super::source::{Interest, Readiness};

/// How a loop waits for its descriptors, given to [`Builder::driver`](crate::Builder::driver).
///
/// Programs behave alike on both. What differs is the cost of a wait, that [`EventLoop::try_as_fd`](crate::EventLoop::try_as_fd) has an
/// answer only on one, and what happens to callbacks of a descriptor that was closed before they were removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DriverKind {
    /// `epoll(7)`, the default on Linux, and only there: a wait costs as much as has happened, however many descriptors are open.
    Epoll,
    /// `poll(2)`, the default elsewhere: each wait costs time in proportion to the number of open descriptors. It has no descriptor that
    /// stands for all of them, so only a loop that waits by itself can be built on it.
    ///
    /// It watches numbers, not files. If a watched number is closed and opened again as something that the system cannot tell from the
    /// first (two eventfds on Linux, two sockets on some systems), the old callbacks are called for the new file until they are replaced or
    /// removed. Out-of-band data alone makes nothing readable. Devices that are always ready, such as `/dev/null`, are watched as such,
    /// which epoll refuses.
    Poll,
}

impl Default for DriverKind {
    /// The best one that this system has.
    fn default() -> Self {
        if epoll::IS_AVAILABLE { Self::Epoll } else { Self::Poll }
    }
}

pub(super) enum Selector {
    Epoll(Epoll),
    Poll(Poll),
}

impl Selector {
    /// # Errors
    /// `Unsupported` for a kind that this system lacks; no descriptor is left.
    pub(super) fn new(kind: DriverKind) -> io::Result<Self> {
        Ok(match kind {
            DriverKind::Epoll => Self::Epoll(Epoll::new()?),
            DriverKind::Poll => Self::Poll(Poll::new()),
        })
    }

    /// Watches a descriptor whose every write shall end a wait, though nobody reads it.
    pub(super) fn add_doorbell(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.add_doorbell(fd, token),
            Self::Poll(poll) => poll.add_doorbell(fd, token),
        }
    }

    /// Watches both directions and tells each change once.
    ///
    /// # Errors
    /// `AlreadyExists` when this very file has an entry.
    pub(super) fn add_edge(&mut self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.add_edge(fd, token),
            Self::Poll(poll) => poll.add_edge(fd, token),
        }
    }

    /// Tells at every wait what `interest` asks for. A lost entry of this number is taken over.
    ///
    /// # Errors
    /// `EPERM` for what is always ready, a regular file for instance.
    pub(super) fn add_level(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            Self::Epoll(epoll) => epoll.add_level(fd, token, interest),
            Self::Poll(poll) => poll.add_level(fd, token, interest),
        }
    }

    /// The same for a number that has an entry. False when the entry was of another file, which has been closed: then nothing is watched.
    pub(super) fn modify_level(&mut self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<bool> {
        match self {
            Self::Epoll(epoll) => epoll.modify_level(fd, token, interest),
            Self::Poll(poll) => poll.modify_level(fd, token, interest),
        }
    }

    /// Watches less of a number than before, or nothing. If it has been closed in between there is nothing left to do.
    pub(super) fn narrow(&mut self, number: RawFd, token: u64, interest: Interest) {
        match self {
            Self::Epoll(epoll) => epoll.narrow(number, token, interest),
            Self::Poll(poll) => poll.narrow(number, token, interest),
        }
    }

    /// Waits for the first event, at most as long as `timeout` says, for ever without one. It may find nothing after [`TIMEOUT_MAX`], or
    /// for no reason. `unready` says of the token of an edge in which directions a change would be news: those that nobody takes for ready.
    ///
    /// # Errors
    /// `Interrupted` by a signal.
    pub(super) fn wait(&mut self, timeout: Option<Duration>, unready: impl Fn(u64) -> Interest) -> io::Result<()> {
        let timeout = timeout.map(|timeout| timeout.min(TIMEOUT_MAX));
        let timeout = timeout.map(|timeout| Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() });
        match self {
            Self::Epoll(epoll) => epoll.wait(timeout.as_ref()),
            Self::Poll(poll) => poll.wait(timeout.as_ref(), unready),
        }
    }

    /// Whether the last wait had no room for more.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Epoll(epoll) => epoll.is_full(),
            Self::Poll(_) => false,
        }
    }

    /// How many events the last wait found.
    pub(super) fn event_count(&self) -> usize {
        match self {
            Self::Epoll(epoll) => epoll.event_count(),
            Self::Poll(poll) => poll.event_count(),
        }
    }

    /// One of them: whose it is, and what happened.
    pub(super) fn event(&self, index: usize) -> (u64, Readiness) {
        match self {
            Self::Epoll(epoll) => epoll.event(index),
            Self::Poll(poll) => poll.event(index),
        }
    }

    /// A descriptor that is readable when a wait would find something.
    pub(super) fn pollable(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Epoll(epoll) => Some(epoll.pollable()),
            Self::Poll(_) => None,
        }
    }
}

/// What every kernel's call can say, 24 days. Calls that count in milliseconds round up: a wait never ends early, and never becomes a row
/// of waits of no time at all.
const TIMEOUT_MAX: Duration = Duration::from_millis(i32::MAX as u64);
