//! The doorbell of a loop: one descriptor that any thread, and any signal handler, may use to end the loop's sleep.
//!
//! It is an eventfd: a counter in the kernel that is readable while it is not zero. It carries no content; what there is to do is said
//! elsewhere and said first, so a ring too many is harmless. The epoll driver watches it edge-triggered: every write is an event then,
//! whether or not the counter was read, and the loop never has to read it. Ringing costs one system call, so
//! [`Inbox`](crate::engine::inbox::Inbox), to read next, rings at most once per sleep.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Wakes a sleeping loop. Safe to use in a signal handler.
#[derive(Debug)]
pub(crate) struct Doorbell(OwnedFd);

impl Doorbell {
    pub(crate) fn new() -> io::Result<Doorbell> {
        Ok(Doorbell(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(crate) fn ring(&self) {
        // The only error that can come is EAGAIN, "the counter is full": it has rung 2^64 times unread, so it is readable.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it silent again, for those who watch it level-triggered.
    pub(crate) fn drain(&self) {
        let mut count = [0; size_of::<u64>()];
        // EAGAIN says that it was silent already.
        let _ = rustix::io::read(&self.0, &mut count);
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

    fn is_ringing(doorbell: &Doorbell) -> bool {
        poll(&mut [PollFd::new(doorbell, PollFlags::IN)], Some(&NOW)).unwrap() == 1
    }

    #[test]
    fn it_rings_until_it_is_drained() {
        let doorbell = Doorbell::new().unwrap();
        assert!(!is_ringing(&doorbell));
        doorbell.ring();
        doorbell.ring();
        assert!(is_ringing(&doorbell));
        doorbell.drain();
        assert!(!is_ringing(&doorbell));
        doorbell.drain();
    }

    #[test]
    fn a_full_counter_is_not_an_error_c150() {
        let doorbell = Doorbell::new().unwrap();
        rustix::io::write(&doorbell, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        doorbell.ring();
        assert!(is_ringing(&doorbell));
    }

    #[test]
    fn every_ring_is_an_edge_although_nobody_reads() {
        use rustix::event::epoll;
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
}
