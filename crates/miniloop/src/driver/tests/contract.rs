//! The contract of a driver, against real descriptors. Everything here speaks to [`Driver`] alone, and is compiled once for each kind.

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

// I/O objects of this crate.

#[test]
fn an_event_wakes_all_waiters_of_its_direction_once_in_order() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    bench.poll(); // the first event may say that there is room to write
    let mut keys = [None; 2];
    for (key, name) in [(0, "a"), (1, "b"), (0, "A")] {
        bench.wait_in_line(id, R, &mut keys[key], name);
    }
    bench.wait_alone(id, R, "p");
    bench.wait_alone(id, R, "P");

    assert_eq!(bench.poll(), "");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "PAb");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "", "a waiter is woken once");
}

#[test]
fn one_event_tells_readers_and_then_writers() {
    let (mut ours, mut theirs) = pair();
    while ours.write(&[0; 4096]).is_ok() {}
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    bench.poll();
    bench.wait_alone(id, W, "w");
    bench.wait_alone(id, R, "r");
    assert_eq!(bench.poll(), "");
    while theirs.read(&mut [0; 4096]).is_ok() {}
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "rw");
}

#[test]
fn an_edge_is_told_again_after_each_call_that_found_nothing_and_only_then() {
    let (mut ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    bench.poll();
    for _ in 0..3 {
        bench.wait_alone(id, R, "r");
        assert_eq!(bench.poll(), "");
        theirs.write_all(b"xy").unwrap();
        assert_eq!(bench.poll(), "r");
        ours.read_exact(&mut [0]).unwrap();
        assert!(bench.is_quiet(), "what is left has been told");
        ours.read_exact(&mut [0]).unwrap();
    }
    // The end of the stream stays so for ever, and is told once.
    bench.wait_alone(id, R, "r");
    drop(theirs);
    assert_eq!(bench.poll(), "r");
    assert!(bench.is_quiet() && bench.driver.is_ready(id, R) && bench.driver.is_ready(id, W));
}

#[test]
fn readiness_lasts_until_a_call_finds_nothing() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    assert!(bench.driver.is_ready(id, R), "the first call is tried before any event");
    bench.driver.found_nothing(id, R);
    assert!(!bench.driver.is_ready(id, R));
    theirs.write_all(b"x").unwrap();
    bench.poll();
    assert!(bench.driver.is_ready(id, R));
    assert!(bench.is_quiet(), "an edge is reported once, though nobody has read");
    assert!(bench.driver.is_ready(id, R));
}

#[test]
fn short_reads_and_writes_are_proof_only_where_they_can_be() {
    const QUIET: Readiness = Readiness { read: true, write: true, is_exceptional: false };
    const HUNG_UP: Readiness = Readiness { read: true, write: true, is_exceptional: true };
    #[track_caller]
    fn check(kind: Kind, event: Readiness, direction: Direction, (len, asked): (usize, usize), is_ready: bool) {
        let mut owned = Owned::new(0, kind, true);
        owned.on_event(event, &mut Vec::new());
        owned.moved(direction, len, asked);
        assert_eq!(owned.side(direction).is_ready, is_ready);
        assert!(owned.side(if direction == R { W } else { R }).is_ready, "the other direction is not concerned");
    }
    check(Kind::Tcp, QUIET, R, (5, 10), false);
    check(Kind::Tcp, QUIET, R, (10, 10), true);
    check(Kind::Tcp, QUIET, R, (0, 10), true); // the end of the stream stays readable
    check(Kind::Tcp, HUNG_UP, R, (5, 10), true); // the end, an error or an urgent mark may stand behind it
    check(Kind::Other, QUIET, R, (5, 10), true);
    check(Kind::Tcp, QUIET, W, (5, 10), false);
    check(Kind::Other, QUIET, W, (5, 10), false);
    check(Kind::Tcp, QUIET, W, (10, 10), true);
}

#[test]
fn a_broken_descriptor_wakes_both_directions() {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
    while rustix::io::write(&writer, &[0; 4096]).is_ok() {} // full, so that the report is of the breakage alone
    let mut bench = Bench::new();
    let id = bench.register(&writer);
    bench.poll();
    bench.wait_alone(id, R, "r");
    bench.wait_alone(id, W, "w");
    drop(reader);
    assert_eq!(bench.poll(), "rw");
}

#[test]
fn a_waiter_that_leaves_the_line_is_not_woken() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    let (mut a, mut b) = (None, None);
    bench.wait_in_line(id, R, &mut a, "a");
    bench.wait_in_line(id, R, &mut b, "b");
    drop(bench.driver.leave_line(id, R, a.unwrap()));
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "b");
}

#[test]
fn an_event_of_a_forgotten_source_does_not_reach_its_successor() {
    let (old, mut old_peer) = pair();
    let survivor = old.try_clone().unwrap(); // keeps the kernel's entry alive when the number is closed too early
    let mut bench = Bench::new();
    let id = bench.register(&old);
    let (new, _new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    drop(bench.driver.deregister(id));
    let successor = bench.register(&new);
    assert_ne!(id, successor);
    bench.poll();
    bench.wait_alone(successor, R, "new");
    old_peer.write_all(b"x").unwrap();
    // epoll still reports the old file; poll(2) has no means to.
    assert_eq!(bench.is_quiet(), DRIVER == DriverKind::Poll);
    assert_eq!(bench.log.take(), "");
    drop(survivor);
}

#[test]
fn an_io_object_that_was_closed_too_early_does_not_keep_the_loop_busy() {
    let (ours, _theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    bench.poll();
    bench.wait_alone(id, R, "r");
    drop(ours);
    bench.poll();
    assert_eq!((bench.watched(), bench.is_quiet()), (0, true));
    drop(bench.driver.deregister(id));
}

#[test]
fn deregistering_leaves_nothing_in_the_kernel_although_a_duplicate_lives() {
    let (ours, mut theirs) = pair();
    let _duplicate = ours.try_clone().unwrap();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    bench.poll();
    drop(bench.driver.deregister(id));
    drop(bench.driver.deregister(id));
    drop(ours);
    theirs.write_all(b"x").unwrap();
    assert_eq!((bench.watched(), bench.is_quiet()), (0, true));
}

// Waiting.

#[test]
fn one_wait_collects_more_than_its_buffer_holds() {
    let mut bench = Bench::new();
    let pairs: Vec<_> = (0..2 * EVENTS_PER_WAIT + 10).map(|_| pair()).collect();
    for (ours, theirs) in &pairs {
        let id = bench.register(ours);
        bench.driver.found_nothing(id, R);
        bench.driver.wait_alone(id, R, &mut Waker::noop().clone());
        (&*theirs).write_all(b"x").unwrap();
    }
    let mut woken = Vec::new();
    bench.driver.wait(None, &mut woken).unwrap();
    assert_eq!(woken.len(), pairs.len());
}

#[test]
fn descriptors_that_are_always_ready_cannot_hold_a_wait() {
    let mut bench = Bench::new();
    let pairs: Vec<_> = (0..EVENTS_PER_WAIT + 10).map(|_| pair()).collect();
    for (ours, _) in &pairs {
        bench.driver.set_callback(ours.as_fd(), W, Waker::noop().clone(), &mut bench.discarded).unwrap();
    }
    let count = bench.driver.wait(None, &mut Vec::new()).unwrap();
    assert!((pairs.len()..=2 * EVENTS_PER_WAIT).contains(&count), "{count}");
}

#[test]
fn every_ring_of_the_doorbell_ends_one_wait_though_nobody_reads_it() {
    let mut bench = Bench::new();
    let doorbell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
    bench.driver.add_doorbell(doorbell.as_fd()).unwrap();
    for _ in 0..3 {
        assert!(bench.is_quiet());
        rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
        assert_eq!(bench.driver.wait(None, &mut Vec::new()).unwrap(), 1);
    }
    // Two rings before a wait are one.
    rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
    rustix::io::write(&doorbell, &1u64.to_ne_bytes()).unwrap();
    assert_eq!(bench.driver.wait(None, &mut Vec::new()).unwrap(), 1);
    assert!(bench.is_quiet());
}

#[test]
fn timeouts_from_a_nanosecond_to_for_ever_are_understood() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    for nanos in [0, 1, 999_999] {
        assert_eq!(bench.driver.wait(Some(Duration::from_nanos(nanos)), &mut Vec::new()).unwrap(), 0);
    }
    bench.callback(&ours, R, "r");
    theirs.write_all(b"x").unwrap();
    for timeout in [Some(Duration::from_secs(1 << 40)), Some(Duration::MAX), None] {
        assert_eq!(bench.driver.wait(timeout, &mut Vec::new()).unwrap(), 1);
    }
}

#[test]
fn the_drivers_own_descriptor_tells_a_host_that_something_waits() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    let is_readable = |bench: &Bench| {
        let pollable = bench.driver.pollable()?;
        Some(poll(&mut [PollFd::new(&pollable, PollFlags::IN)], Some(&Timespec::default())).unwrap() == 1)
    };
    let has_one = DRIVER == DriverKind::Epoll;
    assert_eq!(is_readable(&bench), has_one.then_some(false));
    theirs.write_all(b"x").unwrap();
    assert_eq!(is_readable(&bench), has_one.then_some(true));
}

// Descriptors of the user's: add_reader and add_writer.

#[test]
fn a_callback_is_woken_for_as_long_as_something_is_unread() {
    let (mut ours, mut theirs) = pair();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    assert_eq!(bench.poll(), "");
    theirs.write_all(b"xy").unwrap();
    assert_eq!(bench.poll(), "r");
    ours.read_exact(&mut [0]).unwrap();
    assert_eq!(bench.poll(), "r");
    ours.read_exact(&mut [0]).unwrap();
    assert_eq!(bench.poll(), "");
}

#[test]
fn a_second_reader_replaces_the_first_and_the_writer_is_independent() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    assert!(bench.callback(&ours, R, "1").is_none());
    assert!(bench.callback(&ours, W, "w").is_none());
    bench.callback(&ours, R, "2").expect("the first reader is handed back").wake();
    assert_eq!(bench.log.take(), "1");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "2w");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    assert_eq!(bench.poll(), "w");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), W).is_some());
    assert_eq!((bench.watched(), bench.is_quiet()), (0, true), "with the last interest the descriptor goes");
}

#[test]
fn removing_an_unknown_callback_is_not_an_error() {
    let (ours, _theirs) = pair();
    let mut bench = Bench::new();
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_none());
    bench.callback(&ours, R, "r");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), W).is_none());
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_none());
    assert!(bench.driver.clear_callback(-1, R).is_none());
}

/// B28: uvloop #61, libuv PR 1468.
#[test]
fn after_removal_and_close_a_duplicate_does_not_keep_the_loop_busy() {
    let (ours, mut theirs) = pair();
    let _duplicate = ours.try_clone().unwrap();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    drop(ours);
    theirs.write_all(b"x").unwrap();
    assert!(bench.is_quiet());
}

/// B29: every one of asyncio, uvloop and rloop misses it.
#[test]
fn a_number_that_is_reused_after_a_careless_close_works() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    assert!(bench.callback(&new, R, "new").is_none());
    bench.discarded.callbacks().for_each(Waker::wake_by_ref);
    assert_eq!(bench.log.take(), "old", "the careless callback is handed back");
    new_peer.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "new");
}

#[test]
fn a_number_that_is_reused_brings_no_callback_of_the_old_file_along() {
    #[track_caller]
    fn check(old_directions: &[Direction], use_again: fn(&mut Bench, &UnixStream), woken: &str) {
        let (old, _old_peer) = pair();
        let mut bench = Bench::new();
        for direction in old_directions {
            bench.callback(&old, *direction, "old");
        }
        let (new, mut new_peer) = pair();
        let new = close_and_reopen_as(old, new);
        use_again(&mut bench, &new);
        assert_eq!(bench.discarded.callbacks().count(), old_directions.len());
        new_peer.write_all(b"x").unwrap();
        assert_eq!(bench.poll(), woken);
    }
    let read = |bench: &mut Bench, new: &UnixStream| drop(bench.callback(new, R, "r"));
    let receive = |bench: &mut Bench, new: &UnixStream| {
        let mut waker = bench.log.waker("s");
        bench.driver.wait_foreign(new.as_fd(), R, &mut None, &mut waker, &mut bench.discarded).unwrap();
    };
    check(&[], read, "r");
    check(&[R], read, "r");
    check(&[W], read, "r");
    check(&[R, W], read, "r");
    check(&[R, W], receive, "s");
}

#[test]
fn who_waits_for_a_number_that_becomes_another_file_is_woken_by_that() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    let mut wait = None;
    bench.driver.wait_foreign(old.as_fd(), R, &mut wait, &mut bench.log.waker("s"), &mut bench.discarded).unwrap();
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    bench.callback(&new, R, "r");
    new_peer.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "rs");
}

#[test]
fn a_number_that_comes_back_as_a_file_that_cannot_be_watched_gives_its_callbacks_back() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let file = close_and_reopen_as(old, fs::File::open("/proc/self/exe").unwrap());
    assert!(bench.driver.set_callback(file.as_fd(), W, Waker::noop().clone(), &mut bench.discarded).is_err());
    assert_eq!((bench.discarded.callbacks().count(), bench.driver.sources.len(), bench.driver.numbers.len()), (1, 0, 0));
}

#[test]
fn a_number_that_is_reused_without_a_word_calls_nobody_and_can_be_watched_again() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    new_peer.write_all(b"x").unwrap();
    assert_eq!((bench.poll().as_str(), bench.watched(), bench.is_quiet()), ("", 0, true));
    bench.callback(&new, R, "new");
    assert_eq!((bench.discarded.callbacks().count(), bench.poll().as_str()), (1, "new"));
}

#[test]
fn closing_a_watched_number_is_harmless_and_its_callback_can_still_be_removed() {
    let (ours, _theirs) = pair();
    let number = ours.as_raw_fd();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    bench.callback(&ours, W, "w");
    drop(ours);
    assert!(bench.is_quiet());
    assert!(bench.driver.clear_callback(number, R).is_some());
    assert!(bench.driver.clear_callback(number, W).is_some());
}

#[test]
fn a_lost_entry_that_a_duplicate_brings_back_is_taken_over() {
    let (ours, mut theirs) = pair();
    let duplicate = ours.try_clone().unwrap();
    let number = ours.as_raw_fd();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "old");
    let (other, _other_peer) = pair();
    let other = close_and_reopen_as(ours, other); // the kernel's entry is for (old file, number), and now out of reach
    bench.driver.clear_callback(number, R);
    let ours = close_and_reopen_as(other, duplicate); // and now within reach again
    bench.callback(&ours, R, "new");
    theirs.write_all(b"x").unwrap();
    assert_eq!((bench.poll().as_str(), bench.watched()), ("new", 1));
}

#[test]
fn what_is_refused_leaves_no_trace() {
    let file = fs::File::open("/proc/self/exe").unwrap();
    let mut bench = Bench::new();
    for _ in 0..2 {
        let error = bench.driver.set_callback(file.as_fd(), R, Waker::noop().clone(), &mut bench.discarded).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }
    assert!(bench.driver.numbers.is_empty() && bench.driver.sources.len() == 0);
}

// Whose a number is.

#[test]
fn a_descriptor_of_an_io_object_takes_no_callback_but_its_duplicate_does() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    let error = bench.driver.set_callback(ours.as_fd(), R, bench.log.waker("r"), &mut bench.discarded).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("duplicate the descriptor"), "{error}");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_none());
    assert!(bench.driver.is_ready(id, R), "the object is as it was");

    let duplicate = ours.try_clone().unwrap();
    bench.callback(&duplicate, R, "r");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "r");
    drop(bench.driver.deregister(id));
    bench.callback(&ours, R, "r");
}

#[test]
fn an_io_object_does_not_take_over_a_number_that_has_a_live_callback() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    let error = bench.driver.register(ours.as_fd(), Kind::Other, true).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "r");
}

#[test]
fn an_io_object_displaces_the_callback_of_a_closed_file() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    let (_, displaced) = bench.driver.register(new.as_fd(), Kind::Other, true).unwrap();
    assert!(matches!(displaced, Discarded(Some(_))));
    new_peer.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "");
    assert_eq!(bench.driver.sources.len(), 1);
}

// Descriptors of the user's: one event for a `sock_*` call.

#[test]
fn a_foreign_waiter_is_woken_once_and_then_nothing_is_watched() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let mut waits = [None; 2];
    for (wait, name) in [(0, "a"), (1, "b"), (0, "A")] {
        bench.driver.wait_foreign(ours.as_fd(), R, &mut waits[wait], &mut bench.log.waker(name), &mut bench.discarded).unwrap();
    }
    assert!(bench.driver.is_waiting(waits[0].unwrap()) && bench.watched() == 1);
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "Ab");
    assert!(!bench.driver.is_waiting(waits[0].unwrap()));
    assert_eq!((bench.watched(), bench.is_quiet()), (0, true), "the byte is unread, but nobody asks for it");
}

/// B26, C147, C148.
#[test]
fn a_cancelled_foreign_waiter_is_unregistered_and_the_next_one_is_served() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let (mut first, mut second) = (None, None);
    bench.driver.wait_foreign(ours.as_fd(), R, &mut first, &mut bench.log.waker("1"), &mut bench.discarded).unwrap();
    drop(bench.driver.cancel_foreign(first.unwrap()));
    assert_eq!(bench.watched(), 0);
    bench.driver.wait_foreign(ours.as_fd(), R, &mut second, &mut bench.log.waker("2"), &mut bench.discarded).unwrap();
    drop(bench.driver.cancel_foreign(first.unwrap()));
    assert!(bench.driver.is_waiting(second.unwrap()), "the first one's clean-up is not the second one's");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "2");
}

#[test]
fn callbacks_and_waiters_of_one_descriptor_do_not_disturb_each_other() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let mut wait = None;
    bench.callback(&ours, R, "r");
    bench.driver.wait_foreign(ours.as_fd(), R, &mut wait, &mut bench.log.waker("s"), &mut bench.discarded).unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "rs");
    assert_eq!(bench.poll(), "r");
    bench.driver.wait_foreign(ours.as_fd(), W, &mut wait, &mut bench.log.waker("s"), &mut bench.discarded).unwrap();
    assert_eq!(bench.poll(), "rs");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    assert_eq!(bench.watched(), 0);
}
