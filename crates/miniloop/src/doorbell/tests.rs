//! Both kinds of doorbell; where the system has eventfds, the pipe is built for this alone.

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::*;

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

fn is_ringing(doorbell: BorrowedFd<'_>) -> bool {
    poll(&mut [PollFd::new(&doorbell, PollFlags::IN)], Some(&NOW)).unwrap() == 1
}

#[test]
fn it_rings_until_it_is_drained() {
    fn check(fd: BorrowedFd<'_>, ring: impl Fn(), drain: impl Fn()) {
        for rings in [1, 2, 60] {
            assert!(!is_ringing(fd));
            (0..rings).for_each(|_| ring());
            assert!(is_ringing(fd));
            drain();
            assert!(!is_ringing(fd));
            drain();
        }
    }
    let doorbell = Doorbell::new().unwrap();
    check(doorbell.as_fd(), || doorbell.ring(), || doorbell.drain());
    let pipe = self_pipe::Bell::new().unwrap();
    check(pipe.as_fd(), || pipe.ring(), || self_pipe::drain(pipe.as_fd()));
}

#[test]
fn a_full_counter_is_not_an_error_c150() {
    let doorbell = Doorbell::new().unwrap();
    rustix::io::write(&doorbell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
    doorbell.ring();
    assert!(is_ringing(doorbell.as_fd()));
}

#[test]
fn a_full_pipe_is_not_an_error_c150() {
    let pipe = self_pipe::Bell::new().unwrap();
    (0..100_000).for_each(|_| pipe.ring());
    assert!(is_ringing(pipe.as_fd()));
}

#[test]
fn every_ring_is_an_edge_although_nobody_reads() {
    let doorbell = Doorbell::new().unwrap();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    epoll::add(&epoll, &doorbell, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET).unwrap();
    let events_now = || {
        let mut events = Vec::with_capacity(2);
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&NOW)).unwrap()
    };
    assert_eq!(events_now(), 0);
    for _ in 0..3 {
        doorbell.ring();
        assert_eq!((events_now(), events_now()), (1, 0));
    }
}
