//! What miniloop does most often. Each program is a loop around one thing and a few lines long: what they cost is the crate's.
//!
//! Sockets are pairs, and what is waited for is there, so that the kernel, whose instructions nobody counts, decides nothing.
//! Read next: `in_the_hub.rs`.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use miniloop::net::UnixStream;
use miniloop::{EventLoop, LoopHandle, VirtualClock, sleep, spawn, task_group, yield_now};

/// One task gives way and is polled again.
pub(crate) fn yield_to_itself(times: usize) {
    run(async {
        for _ in 0..times {
            yield_now().await;
        }
    });
}

/// Two tasks: each wakes the other and waits until it is woken.
pub(crate) fn ping_pong(times: usize) {
    let [ours, theirs] = [(); 2].map(|()| Rc::new(Half::default()));
    run(async {
        let (here, there) = (ours.clone(), theirs.clone());
        let other = spawn(async move {
            for _ in 0..times {
                there.ball().await;
                here.hit();
            }
        });
        for _ in 0..times {
            theirs.hit();
            ours.ball().await;
        }
        other.await.expect("it does not panic");
    });
}

/// One half of the table, with the ball or with somebody who waits for it.
#[derive(Default)]
struct Half {
    has_ball: Cell<bool>,
    waiting: Cell<Option<Waker>>,
}

impl Half {
    fn hit(&self) {
        self.has_ball.set(true);
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    fn ball(&self) -> impl Future<Output = ()> {
        poll_fn(|context| {
            if self.has_ball.take() {
                return Poll::Ready(());
            }
            self.waiting.set(Some(context.waker().clone()));
            Poll::Pending
        })
    }
}

/// A task that is there to be awaited.
pub(crate) fn spawn_and_await(times: usize) {
    run(async {
        for number in 0..times {
            assert_eq!(spawn(async move { number }).await.ok(), Some(number));
        }
    });
}

/// The same with a member of a group.
pub(crate) fn spawn_in_group(times: usize) {
    run(task_group(async |group| {
        for number in 0..times {
            assert_eq!(group.spawn(async move { Ok::<_, Infallible>(number) }).await.ok(), Some(number));
        }
    }));
}

/// A deadline that never comes: set, then dropped, as one does with each answer that arrives in time.
pub(crate) fn timer_cancel(times: usize) {
    run(async {
        for _ in 0..times {
            let mut deadline = pin!(sleep(Duration::from_secs(60)));
            assert!(deadline.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
    });
}

/// Many deadlines, set in no order, that come at once.
pub(crate) fn timer_fire(times: usize) {
    let clock = VirtualClock::manual();
    let mut event_loop = EventLoop::builder().clock(&clock).build().expect("the kernel gives descriptors");
    let all = event_loop.run_until_complete(async {
        let handle = LoopHandle::current();
        let fired = Rc::new(Cell::new(0));
        for _ in 0..times / TIMERS {
            for number in 0..TIMERS {
                let fired = fired.clone();
                // The factor has no divisor in common with `TIMERS`, so each delay comes once.
                let delay = Duration::from_millis((number * 617 % TIMERS) as u64);
                handle.call_later(delay, move || fired.set(fired.get() + 1));
            }
            let last = sleep(Duration::from_millis(TIMERS as u64));
            clock.advance(Duration::from_millis(TIMERS as u64));
            last.await;
        }
        fired.get()
    });
    assert_eq!(all.expect("it ends"), times / TIMERS * TIMERS);
}

/// How many deadlines wait at a time.
const TIMERS: usize = 1_000;

/// A write and a read, none of which has to wait.
pub(crate) fn read_write(times: usize) {
    run(async {
        let (ours, theirs) = UnixStream::pair().expect("the kernel gives descriptors");
        // A read that fills its buffer leaves open whether there is more, so the next one asks the kernel before it waits.
        let mut buffer = [0; MESSAGE.len()];
        for _ in 0..times {
            assert_eq!(ours.write(MESSAGE).await.ok(), Some(MESSAGE.len()));
            assert_eq!(theirs.read(&mut buffer).await.ok(), Some(MESSAGE.len()));
        }
    });
}

/// There and back between two tasks, each of which waits for the other: two writes, two reads, two waits.
pub(crate) fn echo(times: usize) {
    run(async {
        let (ours, theirs) = UnixStream::pair().expect("the kernel gives descriptors");
        let server = spawn(async move {
            let mut buffer = [0; 2 * MESSAGE.len()];
            while let Ok(len @ 1..) = theirs.read(&mut buffer).await {
                theirs.write(&buffer[..len]).await.expect("the other end is open");
            }
        });
        let mut buffer = [0; 2 * MESSAGE.len()];
        for _ in 0..times {
            assert_eq!(ours.write(MESSAGE).await.ok(), Some(MESSAGE.len()));
            assert_eq!(ours.read(&mut buffer).await.ok(), Some(MESSAGE.len()));
        }
        drop(ours);
        server.await.expect("it does not panic");
    });
}

const MESSAGE: &[u8] = &[b'x'; 64];

fn run(main: impl Future) {
    miniloop::run(main).expect("the kernel gives descriptors");
}
