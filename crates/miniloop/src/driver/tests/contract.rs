//! The contract of a driver, against real descriptors. Everything here speaks to [`Driver`] alone, and is compiled once for each kind.

mod foreign;
mod owned;
mod waits;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::task::Waker;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::pipe::PipeFlags;

use super::DRIVER;
use crate::config::EVENTS_PER_WAIT;
use crate::driver::selector::Selector;
use crate::driver::source::{Owned, Readiness};
use crate::driver::{Direction, Discarded, Driver, DriverKind, Kind, SourceId};
use crate::test_support::WakeLog;
use crate::wait_queue;

use Direction::{Read as R, Write as W};

/// A driver with a log of whom it woke.
struct Bench {
    driver: Driver,
    log: WakeLog,
    /// What the last call was done with.
    discarded: Discarded,
}

impl Bench {
    fn new() -> Self {
        Self { driver: Driver::new(DRIVER).unwrap(), log: WakeLog::default(), discarded: Discarded::default() }
    }

    fn register(&mut self, fd: &impl AsFd) -> SourceId {
        self.driver.register(fd.as_fd(), Kind::Other, true).unwrap().0
    }

    /// What an I/O object does whose system call has found nothing: `name` waits.
    fn wait_alone(&mut self, id: SourceId, direction: Direction, name: &'static str) {
        self.driver.found_nothing(id, direction);
        self.driver.wait_alone(id, direction, &mut self.log.waker(name));
    }

    fn wait_in_line(&mut self, id: SourceId, direction: Direction, key: &mut Option<wait_queue::Key>, name: &'static str) {
        self.driver.found_nothing(id, direction);
        self.driver.wait_in_line(id, direction, key, &mut self.log.waker(name));
    }

    fn callback(&mut self, stream: &UnixStream, direction: Direction, name: &'static str) -> Option<Waker> {
        self.driver.set_callback(stream.as_fd(), direction, self.log.waker(name), &mut self.discarded).unwrap()
    }

    /// Collects what has happened, without waiting for more, and returns who is woken.
    #[track_caller]
    fn poll(&mut self) -> String {
        let mut woken = Vec::new();
        self.driver.wait(Some(Duration::ZERO), &mut woken).unwrap();
        woken.into_iter().for_each(Waker::wake);
        self.log.take()
    }

    /// Whether the kernel has anything to report, whoever may care.
    fn is_quiet(&mut self) -> bool {
        self.driver.wait(Some(Duration::ZERO), &mut Vec::new()).unwrap() == 0
    }

    /// How many entries the kernel keeps for this driver, or the driver itself where the kernel keeps none.
    fn watched(&self) -> usize {
        match &self.driver.selector {
            Selector::Poll(poll) => poll.entry_count(),
            Selector::Epoll(epoll) => {
                let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", epoll.pollable().as_raw_fd())).unwrap();
                info.lines().filter(|line| line.starts_with("tfd:")).count()
            }
        }
    }
}

fn pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    (ours, theirs)
}

/// Puts a file at a chosen number, the way that a busy program reuses one.
fn close_and_reopen_as<T: AsFd + From<OwnedFd>>(old: UnixStream, new: T) -> T {
    let mut place = OwnedFd::from(old);
    rustix::io::dup2(&new, &mut place).unwrap();
    T::from(place)
}
