//! A loop as a guest: other programs' loops turn it, under the contract in the docs of `EventLoop`.
//!
//! The hosts are written here: one on epoll, which sleeps for `next_timeout` or only watches the descriptor (`timer_fd`), one with frames
//! at fixed times, one that sleeps in virtual time. A host that would sleep for ever fails after a limit that only a defect reaches.

mod support;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use miniloop::{Abandoned, DriverKind, EventLoop, Instant, LoopError, LoopHandle, Promise, Resolver, VirtualClock};
use miniloop::{promise, sleep, sock_recv, yield_now};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use support::{Trace, manual, ms, on_another_thread, panic_of, run_dry};

/// How a host knows when to turn its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosting {
    /// It sleeps for as long as `next_timeout` says, or until the descriptor is readable.
    ByTimeout,
    /// It sleeps until the descriptor is readable.
    ByDescriptor,
}

const EVERY_HOSTING: [Hosting; 2] = [Hosting::ByTimeout, Hosting::ByDescriptor];

/// Nothing here takes so long.
const LIMIT: Duration = Duration::from_secs(20);

/// A program with a loop of its own, on epoll.
struct Host {
    epoll: OwnedFd,
    hosting: Hosting,
}

impl Host {
    fn new(hosting: Hosting) -> Host {
        Host { epoll: epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(), hosting }
    }

    /// A loop to be this one's guest.
    fn guest(&self) -> EventLoop {
        let event_loop = EventLoop::builder().timer_fd(self.hosting == Hosting::ByDescriptor).build().unwrap();
        self.watch(&event_loop);
        event_loop
    }

    fn watch(&self, guest: &EventLoop) {
        epoll::add(&self.epoll, guest, epoll::EventData::new_u64(0), epoll::EventFlags::IN).unwrap();
    }

    /// Whether a descriptor is readable before the time is over.
    fn sleep(&self, timeout: Duration) -> bool {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let mut events = Vec::with_capacity(8);
        epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)).unwrap();
        !events.is_empty()
    }

    /// Turns its guests, each time that one of them may have something to do, until `is_done`.
    #[track_caller]
    fn run(&self, guests: &mut [&mut EventLoop], is_done: impl Fn() -> bool) {
        while !is_done() {
            let timeout = match self.hosting {
                Hosting::ByTimeout => guests.iter().filter_map(|guest| guest.next_timeout()).min(),
                Hosting::ByDescriptor => None,
            };
            assert!(self.sleep(timeout.unwrap_or(LIMIT)) || timeout.is_some(), "the host sleeps and nobody wakes it");
            for guest in &mut *guests {
                guest.run_ready().unwrap();
            }
        }
    }

    /// Whether it would sleep.
    fn is_silent(&self) -> bool {
        !self.sleep(Duration::ZERO)
    }
}

/// Lets `prepare` give work to the guest of each kind of host, from outside, and turns the guest until the work has said `expected` times
/// that it is done.
#[track_caller]
fn check(expected: usize, prepare: impl Fn(&LoopHandle, &Done)) {
    for hosting in EVERY_HOSTING {
        let host = Host::new(hosting);
        let mut guest = host.guest();
        let handle = guest.handle();
        // A new loop, one that has slept, and one that waits for something else.
        for round in 0..3 {
            let done = Done::default();
            prepare(&handle, &done);
            host.run(&mut [&mut guest], || done.count() == expected);
            if round == 1 {
                handle.call_later(HOUR, || ());
            }
        }
        run_dry(&mut guest);
        assert!(host.is_silent(), "{hosting:?}: with nothing to do the host sleeps");
    }
}

/// How much work is done. For any thread.
#[derive(Clone, Default)]
struct Done(Arc<AtomicUsize>);

impl Done {
    fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A callback that notes it.
    fn noting(&self) -> impl FnOnce() + Send + use<> {
        let done = self.clone();
        move || done.note()
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

const HOUR: Duration = Duration::from_secs(3_600);

// Everything that can happen to a loop between two turns.

#[test]
fn a_host_hears_of_callbacks_that_it_scheduled_itself_c040() {
    check(2, |handle, done| {
        handle.call_soon(done.noting());
        handle.call_soon(done.noting());
    });
}

#[test]
fn a_host_hears_of_timers_that_it_set_itself_c040() {
    check(3, |handle, done| {
        handle.call_later(HOUR / 2, || ());
        handle.call_later(ms(2), done.noting());
        handle.call_later(ms(1), done.noting());
        handle.call_at(Instant::from_nanos(1), done.noting());
    });
}

#[test]
fn a_host_hears_of_tasks_that_sleep_and_yield_c040() {
    check(5, |handle, done| {
        let done = done.clone();
        let task = async move {
            for _ in 0..5 {
                sleep(Duration::from_micros(100)).await;
                yield_now().await;
                done.note();
            }
        };
        handle.spawn(task).detach();
    });
}

#[test]
fn a_host_hears_of_io_c040() {
    check(1, |handle, done| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let done = done.clone();
        let receive = async move {
            assert_eq!(sock_recv(&ours, &mut [0]).await.unwrap(), 1);
            done.note();
        };
        handle.spawn(receive).detach();
        handle.call_later(ms(1), move || theirs.write_all(b"x"));
    });
}

#[test]
fn a_host_hears_of_other_threads_c040() {
    const MORE_THAN_ONE_TURN_TAKES_IN: usize = 3_000;
    check(MORE_THAN_ONE_TURN_TAKES_IN, |handle, done| {
        let remote = handle.remote();
        on_another_thread(|| (0..MORE_THAN_ONE_TURN_TAKES_IN).for_each(|_| remote.call_soon(done.noting()).unwrap()));
    });
}

#[test]
fn a_host_hears_of_a_promise_that_it_completed_itself_c040() {
    for hosting in EVERY_HOSTING {
        let host = Host::new(hosting);
        let mut guest = host.guest();
        let (resolver, promise) = promise::<u32, Abandoned>();
        let task = guest.handle().spawn(promise);
        run_dry(&mut guest);
        assert!(host.is_silent());
        resolver.set_result(7);
        host.run(&mut [&mut guest], || task.is_finished());
        assert_eq!(guest.run_until_complete(task).unwrap().unwrap(), Ok(7));
    }
}

#[test]
fn a_host_hears_of_a_request_to_stop_until_it_is_granted_c004() {
    for hosting in EVERY_HOSTING {
        let host = Host::new(hosting);
        let mut guest = host.guest();
        guest.run_ready().unwrap();
        guest.handle().stop();
        for _ in 0..2 {
            assert_eq!((guest.next_timeout(), guest.is_stopping()), (Some(Duration::ZERO), true));
            assert_eq!(host.is_silent(), hosting == Hosting::ByTimeout);
            guest.run_ready().unwrap();
        }
        guest.run_forever().unwrap();
        assert_eq!((guest.next_timeout(), host.is_silent()), (None, true));
    }
}

#[test]
fn a_cancelled_timer_wakes_its_host_at_most_once_c040() {
    let host = Host::new(Hosting::ByDescriptor);
    let mut guest = host.guest();
    guest.handle().call_later(Duration::ZERO, || panic!("it was cancelled")).cancel();
    guest.run_ready().unwrap();
    assert!(host.is_silent());
}

#[test]
fn two_loops_of_one_thread_complete_each_others_promises() {
    const VOLLEYS: u32 = 100;
    for hosting in EVERY_HOSTING {
        let host = Host::new(hosting);
        let (mut left, mut right) = (host.guest(), host.guest());
        let score = Rc::new(Cell::new(0));
        let (first, last) = volley(&[left.handle(), right.handle()], VOLLEYS, &score);
        run_dry(&mut left);
        run_dry(&mut right);
        assert!(host.is_silent());
        first.set_result(0);
        host.run(&mut [&mut left, &mut right], || score.get() == VOLLEYS);
        assert_eq!(right.run_until_complete(last).unwrap(), Ok(VOLLEYS));
    }
}

/// A chain of tasks, on one loop after the other, of which each waits for the one before.
fn volley(loops: &[LoopHandle; 2], count: u32, score: &Rc<Cell<u32>>) -> (Resolver<u32, Abandoned>, Promise<u32, Abandoned>) {
    let (first, mut before) = promise::<u32, Abandoned>();
    for number in 0..count {
        let (resolver, after) = promise();
        let (ball, score) = (std::mem::replace(&mut before, after), score.clone());
        let player = async move {
            let hits = ball.await.unwrap() + 1;
            score.set(hits);
            resolver.set_result(hits);
        };
        loops[number as usize % 2].spawn(player).detach();
    }
    (first, before)
}

#[test]
fn a_host_can_watch_the_loops_descriptor_c040() {
    let (mut event_loop, _, trace) = manual();
    let host = Host::new(Hosting::ByTimeout);
    host.watch(&event_loop);
    let handle = event_loop.handle();
    let (mut peer, descriptor) = UnixStream::pair().unwrap();
    let (noting, mut reading) = (trace.clone(), descriptor.try_clone().unwrap());
    handle
        .add_reader(&descriptor, move || {
            noting.note(reading.read(&mut [0; 8]).unwrap());
        })
        .unwrap();
    assert!(host.is_silent());
    peer.write_all(b"x").unwrap();
    assert!(!host.is_silent());
    event_loop.run_ready().unwrap();
    assert!(host.is_silent());
    // A message of another thread rings, too, once the loop is out of its turn.
    let (remote, noting) = (handle.remote(), "remote");
    on_another_thread(move || remote.call_soon(move || Err::<(), _>(noting)).unwrap());
    assert!(!host.is_silent());
    let reports = support::trace_reports(&handle);
    event_loop.run_ready().unwrap();
    run_dry(&mut event_loop);
    assert!(host.is_silent());
    assert_eq!((trace.take(), reports.take()), (vec!["1".to_owned()], vec!["Error callback: \"remote\"".to_owned()]));
    handle.remove_reader(&descriptor);
}

// Hosts in virtual time.

#[test]
fn a_host_that_sleeps_for_exactly_next_timeout_is_on_time_for_every_timer_c004() {
    let (mut event_loop, clock, trace) = manual();
    let mut random = 1_u64;
    let mut next_random = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 40
    };
    for _ in 0..200 {
        let delays = [next_random(), next_random() % 3];
        event_loop.handle().call_later(Duration::from_nanos(delays[0]), on_time(event_loop.handle(), delays, trace.clone()));
    }
    let mut turns = 0;
    while let Some(timeout) = event_loop.next_timeout() {
        clock.advance(timeout);
        event_loop.run_ready().unwrap();
        turns += 1;
    }
    assert_eq!(trace.take(), vec!["on time"; 400]);
    assert!(turns <= 800, "{turns} turns: each ran a timer or what it scheduled");
}

/// A callback that notes whether it runs at its deadline, and sets another such timer.
fn on_time(handle: LoopHandle, [delay, next_delay]: [u64; 2], trace: Trace) -> impl FnOnce() {
    let deadline = handle.now() + Duration::from_nanos(delay);
    move || {
        trace.note(if handle.now() == deadline { "on time" } else { "late or early" });
        let (after, noting, inner) = (handle.now() + Duration::from_nanos(next_delay), trace.clone(), handle.clone());
        handle.call_at(after, move || noting.note(if inner.now() == after { "on time" } else { "late or early" }));
    }
}

#[test]
fn a_host_with_frames_runs_what_is_due_in_the_next_frame_and_what_that_adds_in_the_one_after() {
    const FRAME: Duration = Duration::from_millis(16);
    for driver in [DriverKind::Epoll, DriverKind::Poll] {
        let clock = VirtualClock::manual();
        let mut event_loop = EventLoop::builder().clock(&clock).driver(driver).build().unwrap();
        let (handle, trace, frame) = (event_loop.handle(), Trace::default(), Rc::new(Cell::new(0)));
        let noting = |what: &str| {
            let (trace, frame, what) = (trace.clone(), frame.clone(), what.to_owned());
            move || trace.note(format_args!("{}: {what}", frame.get()))
        };
        for due in [1, 16, 17, 48] {
            handle.call_later(ms(due), noting(&format!("timer of {due} ms")));
        }
        let (inner, chained) = (handle.clone(), noting("what a callback scheduled"));
        handle.call_soon(move || drop(inner.call_soon(chained)));
        let (first, second) = (noting("a task"), noting("the task, after 16 ms"));
        let task = async move {
            first();
            sleep(ms(16)).await;
            second();
        };
        handle.spawn(task).detach();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (received, mut reading) = (noting("a byte"), ours.try_clone().unwrap());
        let received = RefCell::new(received);
        handle
            .add_reader(&ours, move || {
                reading.read_exact(&mut [0]).unwrap();
                received.borrow()();
            })
            .unwrap();
        let sent = Done::default();
        for number in 0..5 {
            frame.set(number);
            event_loop.run_ready().unwrap();
            assert_eq!(sent.count(), usize::from(number > 1), "what another thread sent runs in the next frame");
            if number == 1 {
                theirs.write_all(b"x").unwrap();
                let remote = handle.remote();
                on_another_thread(|| remote.call_soon(sent.noting()).unwrap());
            }
            clock.advance(FRAME);
        }
        let expected = [
            "0: a task",
            "1: what a callback scheduled",
            "1: timer of 1 ms",
            "1: timer of 16 ms",
            "1: the task, after 16 ms",
            "2: a byte",
            "2: timer of 17 ms",
            "3: timer of 48 ms",
        ];
        assert_eq!(trace.take(), expected, "{driver:?}");
        assert!(handle.remove_reader(&ours));
    }
}

// What there is not.

#[test]
fn a_loop_without_a_descriptor_for_all_says_so() {
    let event_loop = EventLoop::builder().driver(DriverKind::Poll).build().unwrap();
    let Err(LoopError::Io(error)) = event_loop.try_as_fd() else { panic!("poll(2) has no such thing") };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let (message, _) = panic_of(|| event_loop.as_fd());
    assert!(message.contains("needs `DriverKind::Epoll`"), "{message}");
    let Err(LoopError::Io(error)) = EventLoop::builder().driver(DriverKind::Poll).timer_fd(true).build() else { panic!("nor this") };
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn a_closed_loop_has_no_descriptor() {
    for driver in [DriverKind::Epoll, DriverKind::Poll] {
        let mut event_loop = EventLoop::builder().driver(driver).build().unwrap();
        event_loop.close();
        assert!(matches!(event_loop.try_as_fd(), Err(LoopError::Closed)));
    }
}

#[test]
fn a_timer_descriptor_does_not_follow_a_virtual_clock_and_says_so() {
    let Err(LoopError::Io(error)) = EventLoop::builder().clock(VirtualClock::jumping()).timer_fd(true).build() else {
        panic!("the kernel does not know this clock")
    };
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_change_of_the_wall_clock_moves_no_deadline() {
    const MONOTONIC: &str = "clockid: 1\n";
    let _event_loop = EventLoop::builder().timer_fd(true).build().unwrap();
    let is_timer = |number: &str| fs::read_link(format!("/proc/self/fd/{number}")).is_ok_and(|file| file.ends_with("anon_inode:[timerfd]"));
    let numbers = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let timers: Vec<_> = numbers.filter(|number| is_timer(number)).collect();
    assert!(!timers.is_empty());
    for number in timers {
        // Other tests of this process may have closed theirs meanwhile.
        if let Ok(info) = fs::read_to_string(format!("/proc/self/fdinfo/{number}")) {
            assert!(!info.contains("clockid") || info.contains(MONOTONIC), "{info}");
        }
    }
}
