//! What the driver knows of one descriptor: who waits for it, and whether it is worth trying.
//!
//! Two kinds. An *owned* source is an I/O object of this crate: registered once, edge-triggered, so the readiness that an edge told of has
//! to be remembered here until a system call finds nothing. A *foreign* source is a number that the user gave: level-triggered, so the
//! kernel remembers, and what has to be kept here is exactly who still wants to hear. Neither knows how the kernel is asked, nor wakes
//! anybody: wakers are handed out.
//!
//! Next: `epoll.rs` and `poll.rs` produce the [`Readiness`], `mod.rs` keeps the table of sources.

use std::mem;
use std::os::fd::RawFd;
use std::task::Waker;

use crate::wait_queue::WaitQueue;

/// Which half of a descriptor is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What one event says of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Readiness {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// Hang-up, error or urgent data: from now on less may be read than is there.
    pub(crate) is_exceptional: bool,
}

impl Readiness {
    pub(crate) fn of(self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.read,
            Direction::Write => self.write,
        }
    }
}

/// Which directions the kernel shall watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) read: bool,
    pub(crate) write: bool,
}

impl Interest {
    pub(crate) fn is_none(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn with(mut self, direction: Direction) -> Self {
        match direction {
            Direction::Read => self.read = true,
            Direction::Write => self.write = true,
        }
        self
    }
}

/// How a source behaves when less is read than asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A plain byte stream: less means that the kernel's buffer is empty, and the system call that would say so is saved.
    Tcp,
    /// Datagrams, terminals, packet pipes, Unix sockets that carry descriptors: less means nothing. Only an empty-handed call is proof.
    Other,
}

/// An I/O object of this crate.
pub(super) struct Owned {
    pub(super) number: RawFd,
    is_short_read_proof: bool,
    read: OwnedSide,
    write: OwnedSide,
}

pub(super) struct OwnedSide {
    /// The next system call may succeed. Set by an event, cleared by the call that found nothing.
    pub(super) is_ready: bool,
    /// The last caller of a `poll_*` function: those traits remember one task per direction.
    pub(super) poller: Option<Waker>,
    /// The callers of `&self` methods.
    pub(super) waiters: WaitQueue,
}

impl Owned {
    /// `is_ready`: try the first system call before the first event has told of anything. Wrong for a socket that still connects.
    pub(super) fn new(number: RawFd, kind: Kind, is_ready: bool) -> Self {
        let side = || OwnedSide { is_ready, poller: None, waiters: WaitQueue::new() };
        Self { number, is_short_read_proof: kind == Kind::Tcp, read: side(), write: side() }
    }

    pub(super) fn side(&self, direction: Direction) -> &OwnedSide {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    pub(super) fn side_mut(&mut self, direction: Direction) -> &mut OwnedSide {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }

    /// The directions of which an event would be news.
    pub(super) fn unready(&self) -> Interest {
        Interest { read: !self.read.is_ready, write: !self.write.is_ready }
    }

    /// Draws the conclusion from a call that moved `len` of at most `asked` bytes. The end of a stream, zero bytes, can be read again and
    /// again.
    pub(super) fn moved(&mut self, direction: Direction, len: usize, asked: usize) {
        let is_proof = match direction {
            Direction::Read => self.is_short_read_proof,
            Direction::Write => true,
        };
        if is_proof && 0 < len && len < asked {
            self.side_mut(direction).is_ready = false;
        }
    }

    pub(super) fn on_event(&mut self, event: Readiness, woken: &mut Vec<Waker>) {
        self.is_short_read_proof &= !event.is_exceptional;
        for direction in DIRECTIONS {
            if event.of(direction) {
                let side = self.side_mut(direction);
                side.is_ready = true;
                woken.extend(side.poller.take());
                side.waiters.take_all(woken);
            }
        }
    }
}

/// A descriptor number of the user's.
pub(super) struct Foreign {
    pub(super) number: RawFd,
    /// What the kernel was last told.
    pub(super) watched: Interest,
    read: ForeignSide,
    write: ForeignSide,
}

pub(super) struct ForeignSide {
    /// Woken at every event until it is removed: `add_reader`, `add_writer`. A waker of this crate, so that cloning it is no foreign code.
    pub(super) callback: Option<Waker>,
    /// Woken once: the `sock_*` functions.
    pub(super) waiters: WaitQueue,
}

impl Foreign {
    pub(super) fn new(number: RawFd) -> Self {
        let side = || ForeignSide { callback: None, waiters: WaitQueue::new() };
        Self { number, watched: Interest::default(), read: side(), write: side() }
    }

    pub(super) fn side(&self, direction: Direction) -> &ForeignSide {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    pub(super) fn side_mut(&mut self, direction: Direction) -> &mut ForeignSide {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
        }
    }

    /// The number is another file's by now: gives back the callbacks, which were for the old one. Who waits inside a `sock_*` call stays,
    /// since he holds the number: his next system call tells him of the new file.
    pub(super) fn start_over(&mut self) -> Foreign {
        let mut old = mem::replace(self, Foreign::new(self.number));
        for direction in DIRECTIONS {
            mem::swap(&mut self.side_mut(direction).waiters, &mut old.side_mut(direction).waiters);
        }
        old
    }

    /// What somebody still wants to hear of.
    pub(super) fn wanted(&self) -> Interest {
        let is_wanted = |side: &ForeignSide| side.callback.is_some() || !side.waiters.is_empty();
        Interest { read: is_wanted(&self.read), write: is_wanted(&self.write) }
    }

    pub(super) fn on_event(&mut self, event: Readiness, woken: &mut Vec<Waker>) {
        for direction in DIRECTIONS {
            if event.of(direction) {
                let side = self.side_mut(direction);
                woken.extend(side.callback.clone());
                side.waiters.take_all(woken);
            }
        }
    }
}

/// A slot of the driver's table.
pub(super) enum Source {
    Owned(Owned),
    Foreign(Foreign),
}

/// In this order one event wakes: a request that has come is seen before there is room for the answer.
pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];
