//! Waiting, and what ends it.

use super::*;

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
