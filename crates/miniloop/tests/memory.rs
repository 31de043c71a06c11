//! What things cost in memory, and that nothing stays: counted by an allocator of our own.
//!
//! The counts are per thread, so that the tests, which run side by side, do not see each other.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::pending;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use miniloop::{Abandoned, DriverKind, EventLoop, LoopHandle, VirtualClock, catch, promise, shield, sleep, spawn, timeout, yield_now};
use support::{jumping, manual, ms, run_dry};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it is. The counters are cells without a destructor: they neither allocate nor panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as isize);
        // SAFETY: the pointer came from `alloc` above, which is the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many allocations `work` makes in a loop whose queues have grown to their size before.
#[track_caller]
fn check_allocations<F: Future<Output = ()>>(work: impl Fn() -> F, expected: usize) {
    for driver in [DriverKind::Epoll, DriverKind::Poll] {
        let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).driver(driver).build().unwrap();
        let made = event_loop
            .run_until_complete(async {
                for _ in 0..10 {
                    work().await;
                }
                let before = ALLOCATIONS.get();
                work().await;
                ALLOCATIONS.get() - before
            })
            .unwrap();
        assert_eq!(made, expected, "{driver:?}");
    }
}

#[test]
fn a_task_is_one_allocation_whatever_becomes_of_it() {
    check_allocations(async || spawn(async {}).await.unwrap(), 1);
    check_allocations(async || assert_eq!(spawn(async { [7_u64; 1_000] }).await.unwrap()[999], 7), 1);
    check_allocations(
        async || {
            spawn(async {}).detach();
            yield_now().await;
        },
        1,
    );
    check_allocations(
        async || {
            spawn(pending::<()>()).cancel();
            yield_now().await;
        },
        1,
    );
}

#[test]
fn what_waits_or_gives_way_allocates_nothing() {
    check_allocations(async || yield_now().await, 0);
    check_allocations(async || sleep(ms(1)).await, 0);
    check_allocations(async || assert!(timeout(ms(1), sleep(ms(5))).await.is_err()), 0);
    check_allocations(
        async || {
            std::future::poll_fn(|cx| {
                let wakers = [cx.waker().clone(), cx.waker().clone()];
                wakers.iter().for_each(std::task::Waker::wake_by_ref);
                std::task::Poll::Ready(())
            })
            .await;
        },
        0,
    );
}

#[test]
fn a_promise_is_one_allocation_and_a_callback_its_box() {
    check_allocations(
        async || {
            let (resolver, promise) = promise::<u64, Abandoned>();
            resolver.set_result(7);
            promise.await.unwrap();
        },
        1,
    );
    let captured = [0_u64; 4];
    check_allocations(
        async || {
            LoopHandle::current().call_soon(move || assert!(captured.is_sorted()));
            yield_now().await;
        },
        1,
    );
    check_allocations(async || LoopHandle::current().call_later(ms(9), move || assert!(captured.is_sorted())).cancel(), 1);
}

/// Repeats `round` and compares the live bytes after 10,000 rounds with those after 1,000.
#[track_caller]
fn check_steady<F: Future<Output = ()>>(round: impl Fn() -> F) {
    let (mut event_loop, ..) = jumping();
    let (early, late) = event_loop
        .run_until_complete(async {
            for _ in 0..1_000 {
                round().await;
            }
            let early = LIVE_BYTES.get();
            for _ in 1_000..10_000 {
                round().await;
            }
            (early, LIVE_BYTES.get())
        })
        .unwrap();
    assert_eq!(late, early);
}

#[test]
fn tasks_leave_nothing_behind() {
    check_steady(async || spawn(async { vec![0_u8; 100] }).await.map(drop).unwrap());
    check_steady(async || {
        spawn(async { Ok::<(), String>(()) }).detach();
        yield_now().await;
    });
    check_steady(async || {
        let task = spawn(pending::<()>()).named("named");
        yield_now().await;
        drop(task);
        yield_now().await;
    });
    check_steady(async || {
        let shared = spawn(async { vec![0_u8; 100] }).shared();
        let again = shared.clone();
        drop((shared.await, again.await));
    });
    check_steady(async || {
        spawn(async { 7 }).on_done(drop);
        yield_now().await;
        yield_now().await;
    });
}

#[test]
fn timers_leave_nothing_behind() {
    check_steady(async || LoopHandle::current().call_later(ms(1_000_000), || ()).cancel());
    check_steady(async || {
        LoopHandle::current().call_later(ms(1), || ());
        sleep(ms(2)).await;
    });
    check_steady(async || assert!(timeout(ms(1), pending::<()>()).await.is_err()));
    check_steady(async || timeout(Duration::MAX, yield_now()).await.unwrap());
    check_steady(async || {
        let timer = LoopHandle::current().call_every(ms(1), || ());
        sleep(ms(3)).await;
        timer.cancel();
    });
}

#[test]
fn cancelling_leaves_nothing_behind_and_a_catch_point_allocates_nothing() {
    check_allocations(async || assert!(catch(sleep(ms(1))).await.is_ok()), 0);
    check_allocations(async || timeout(ms(5), catch(sleep(ms(1)))).await.unwrap().unwrap(), 0);
    check_allocations(async || shield(sleep(ms(1))).await, 0);
    check_steady(async || {
        let task = spawn(timeout(ms(5), async { catch(pending::<()>()).await.unwrap_err().finish() }));
        yield_now().await;
        task.cancel();
        assert!(task.await.unwrap().is_ok());
    });
    check_steady(async || {
        let task = spawn(async {
            let mut parked = Box::pin(catch(pending::<()>()));
            assert!(futures_util::poll!(&mut parked).is_pending());
            let _cleanup = catch(pending::<()>()).await.unwrap_err();
            pending::<()>().await;
        });
        yield_now().await;
        task.cancel();
        yield_now().await;
        task.abort();
        assert!(task.await.is_err());
    });
}

#[test]
fn promises_leave_nothing_behind() {
    check_steady(async || {
        let (resolver, promise) = promise::<Vec<u8>, Abandoned>();
        LoopHandle::current().call_soon(move || resolver.set_result(vec![0; 100]));
        drop(promise.await);
    });
    check_steady(async || {
        let (resolver, promise) = promise::<(), Abandoned>();
        promise.on_done(|_| ()).cancel();
        drop(resolver);
        let (resolver, promise) = self::promise::<(), Abandoned>();
        drop(resolver);
        let shared = promise.shared();
        shared.on_done(|_| ()).cancel();
        drop(shared.await);
        yield_now().await; // the round ends, and with it the places in the queue of what was cancelled
    });
}

#[test]
fn callbacks_and_their_failures_leave_nothing_behind() {
    check_steady(async || {
        let owned = vec![0_u8; 100];
        let handle = LoopHandle::current();
        handle.call_soon(move || drop(owned)).cancel();
        handle.call_soon(|| ());
        yield_now().await;
    });
    check_steady(async || {
        LoopHandle::current().on_error(|_| ());
        LoopHandle::current().call_soon(|| Err::<(), _>("failed"));
        spawn(async { Err::<(), _>("failed") }).named("named").detach();
        yield_now().await;
        yield_now().await;
    });
    check_steady(async || {
        let (_peer, descriptor) = UnixStream::pair().unwrap();
        let handle = LoopHandle::current();
        handle.add_writer(&descriptor, || std::ops::ControlFlow::Break(())).unwrap();
        yield_now().await;
        assert!(timeout(ms(1), miniloop::sock_recv(&descriptor, &mut [0])).await.is_err());
    });
}

#[test]
fn readers_that_give_up_do_not_stay_in_line() {
    let (_resolver, promise) = promise::<(), Abandoned>();
    let shared = promise.shared();
    check_steady(async || assert!(timeout(ms(1), shared.clone()).await.is_err()));
    let mut event_loop = EventLoop::new().unwrap();
    let mut run = |rounds: usize| {
        for _ in 0..rounds {
            event_loop.run_until_complete(yield_now()).unwrap();
        }
        LIVE_BYTES.get()
    };
    let early = run(1_000);
    assert_eq!(run(9_000), early, "nor the futures that were run");
}

#[test]
fn turning_a_loop_by_hand_leaves_nothing_behind() {
    let (mut event_loop, clock, _) = manual();
    let handle = event_loop.handle();
    handle.call_every(ms(3), || ());
    let mut turn = |rounds: usize| {
        for _ in 0..rounds {
            handle.call_soon(|| ());
            handle.spawn(async { sleep(ms(1)).await }).detach();
            clock.advance(ms(1));
            event_loop.run_once().unwrap();
            event_loop.run_ready().unwrap();
            event_loop.next_timeout();
        }
        LIVE_BYTES.get()
    };
    let early = turn(1_000);
    assert_eq!(turn(9_000), early);
}

#[test]
fn a_closed_loop_gives_back_all_memory() {
    fn live_and_die() {
        let clock = VirtualClock::manual();
        let mut event_loop = EventLoop::builder().clock(&clock).build().unwrap();
        let handle = event_loop.handle();
        let _entered = handle.enter();
        // Everything holds the loop, and the loop holds everything.
        let held = Rc::new(handle.clone());
        let hold = || {
            let held = held.clone();
            move || drop(held)
        };
        handle.call_soon(hold());
        handle.call_later(ms(1), hold());
        handle.call_at(miniloop::Instant::FAR_FUTURE, hold());
        let (kept, inner) = (held.clone(), hold());
        handle.call_every(ms(1), move || drop(kept.clone()));
        handle.on_error(move |_| {
            let _held = &inner;
        });
        let task = handle.spawn(pending::<()>());
        let (own, callback) = (hold(), hold());
        handle
            .spawn(async move {
                let _own = (own, task, sleep(ms(1)).await);
            })
            .detach();
        handle.spawn(pending::<()>()).on_done(move |_| callback());
        let (resolver, promise) = promise::<(), Abandoned>();
        let shared = promise.shared();
        let (set, again) = (hold(), shared.clone());
        shared.on_done(move |_| drop((set, again)));
        let (_peer, descriptor) = UnixStream::pair().unwrap();
        let read = hold();
        handle
            .add_reader(&descriptor, move || {
                let _held = &read;
            })
            .unwrap();
        run_dry(&mut event_loop);
        event_loop.close();
        drop(resolver);
    }
    // The registry remembers ids that were given back until it has all 4,096; then its memory grows no more.
    (0..4_100).for_each(|_| drop(EventLoop::new().unwrap()));
    live_and_die();
    let before = LIVE_BYTES.get();
    for _ in 0..100 {
        live_and_die();
    }
    assert_eq!(LIVE_BYTES.get(), before);
}
