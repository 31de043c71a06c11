//! I/O objects of this crate.

use super::*;

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
