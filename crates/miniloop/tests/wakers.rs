//! Wakers are numbers: stale ones, those of other threads and other loops, and those that foreign code puts between.

mod support;

use std::cell::RefCell;
use std::future::{Future, pending};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{Abandoned, EventLoop, LoopError, LoopHandle, promise, sleep, spawn, yield_now};
use support::{jumping, manual, ms, on_another_thread, panic_of, run_dry, wait_once};

/// A task of this loop that waits for ever, and a waker of it.
fn waker_of_a_task(event_loop: &mut EventLoop) -> (miniloop::Task<()>, Waker) {
    let (send, receive) = mpsc::channel();
    let task = event_loop.handle().spawn(wait_once(move |waker| send.send(waker).unwrap()));
    event_loop.run_ready().unwrap();
    (task, receive.recv().unwrap())
}

#[test]
fn a_stale_waker_does_not_wake_the_next_task_in_its_place() {
    let (mut event_loop, _, trace) = manual();
    let (task, stale) = waker_of_a_task(&mut event_loop);
    stale.wake_by_ref();
    run_dry(&mut event_loop);
    assert!(task.is_finished());
    let seen = trace.clone();
    let _next = event_loop.handle().spawn(std::future::poll_fn(move |_| {
        seen.note("polled");
        Poll::<()>::Pending
    }));
    run_dry(&mut event_loop);
    stale.wake_by_ref();
    on_another_thread(|| stale.wake_by_ref());
    event_loop.run_ready().unwrap();
    assert_eq!(trace.take(), ["polled"]);
}

#[test]
fn a_task_that_wakes_itself_and_ends_does_not_lend_its_place_in_the_queue_o5() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (inner, seen) = (handle.clone(), trace.clone());
    handle
        .spawn(std::future::poll_fn(move |cx| {
            cx.waker().wake_by_ref();
            let seen = seen.clone();
            inner.call_soon(move || seen.note("behind"));
            Poll::Ready(())
        }))
        .detach();
    event_loop.run_once().unwrap();
    handle.call_soon(trace.noting("last"));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["behind", "last"]);
}

#[test]
fn a_waker_outlives_its_loop_and_its_thread() {
    let (mut event_loop, ..) = manual();
    let (_task, kept) = waker_of_a_task(&mut event_loop);
    drop(event_loop);
    kept.wake_by_ref();
    let of_a_dead_thread = on_another_thread(|| {
        let (mut event_loop, ..) = manual();
        waker_of_a_task(&mut event_loop).1
    });
    of_a_dead_thread.wake_by_ref();
    on_another_thread(move || kept.wake());
    // Loops that come after, perhaps with the same id, do not feel it.
    let (mut next, _, trace) = manual();
    let seen = trace.clone();
    let _task = next.handle().spawn(std::future::poll_fn(move |_| {
        seen.note("polled");
        Poll::<()>::Pending
    }));
    run_dry(&mut next);
    of_a_dead_thread.wake();
    next.run_ready().unwrap();
    assert_eq!(trace.take(), ["polled"]);
}

#[test]
fn equal_wakers_know_that_they_are_and_cost_nothing_to_clone() {
    let (mut event_loop, ..) = manual();
    let (_one, first) = waker_of_a_task(&mut event_loop);
    let (_two, second) = waker_of_a_task(&mut event_loop);
    assert!(first.will_wake(&first.clone()) && !first.will_wake(&second));
}

#[test]
fn two_loops_on_one_thread_turned_by_turns_wake_each_other() {
    let (mut ping, _, trace) = manual();
    let (mut pong, ..) = manual();
    let (to_pong, from_ping) = promise::<&str, Abandoned>();
    let (to_ping, from_pong) = promise::<&str, Abandoned>();
    let notes = trace.clone();
    let first = ping.handle().spawn(async move {
        to_pong.set_result("ping");
        notes.note(from_pong.await.unwrap());
    });
    let notes = trace.clone();
    let second = pong.handle().spawn(async move {
        notes.note(from_ping.await.unwrap());
        to_ping.set_result("pong");
    });
    // pong waits first, so ping, while it runs, wakes a loop that lives on this thread and does not run.
    pong.run_once().unwrap();
    assert_eq!(pong.next_timeout(), None);
    ping.run_once().unwrap();
    assert_eq!(pong.next_timeout(), Some(Duration::ZERO));
    pong.run_once().unwrap();
    assert_eq!(ping.next_timeout(), Some(Duration::ZERO));
    ping.run_once().unwrap();
    assert_eq!(trace.take(), ["ping", "pong"]);
    assert!(first.is_finished() && second.is_finished());
}

#[test]
fn a_host_completes_a_promise_between_two_turns() {
    let (mut event_loop, _, trace) = manual();
    let (resolver, promise) = promise::<u32, Abandoned>();
    let notes = trace.clone();
    event_loop.handle().spawn(async move { notes.note(promise.await.unwrap()) }).detach();
    event_loop.run_ready().unwrap();
    resolver.set_result(7);
    event_loop.run_ready().unwrap();
    assert_eq!(trace.take(), ["7"]);
}

#[test]
fn what_waits_under_one_loop_panics_under_another_and_names_both_c065() {
    #[track_caller]
    fn check<F: Future + 'static>(make: impl Fn() -> F) {
        let (mut first, ..) = manual();
        let (mut second, ..) = manual();
        let entered = first.handle().enter();
        let mut future = Box::pin(make());
        drop(entered);
        let polled = first.run_until_complete(async { futures_util::poll!(&mut future).is_pending() }).unwrap();
        assert!(polled);
        let (message, _) = panic_of(|| second.run_until_complete(&mut future));
        let numbers: Vec<_> = message.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).collect();
        assert!(message.contains("event loop") && numbers.len() == 2 && numbers[0] != numbers[1], "{message}");
        // Nothing is broken: it can go on where it belongs.
        let polled = first.run_until_complete(async { futures_util::poll!(&mut future).is_pending() }).unwrap();
        assert!(polled);
    }
    check(|| spawn(pending::<()>()));
    check(|| sleep(ms(1)));
    let resolvers = Rc::new(RefCell::new(Vec::new()));
    let kept = resolvers.clone();
    check(move || {
        let (resolver, promise) = promise::<(), Abandoned>();
        kept.borrow_mut().push(resolver);
        promise
    });
    check(move || {
        let (resolver, promise) = promise::<(), Abandoned>();
        resolvers.borrow_mut().push(resolver);
        promise.shared()
    });
}

#[test]
fn a_sleep_of_a_closed_loop_does_not_end_early_under_another_c016() {
    let (mut first, ..) = manual();
    let entered = first.handle().enter();
    let mut future = sleep(ms(1));
    drop(entered);
    first.run_until_complete(async { assert!(futures_util::poll!(&mut future).is_pending()) }).unwrap();
    drop(first);
    let (mut second, ..) = manual();
    let (message, _) = panic_of(|| second.run_until_complete(&mut future));
    assert!(message.contains("event loop"), "{message}");
}

#[test]
fn foreign_wakers_between_a_task_and_what_it_waits_for_work() {
    let (mut event_loop, clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let mut children: FuturesUnordered<_> = [3, 1, 2]
                .into_iter()
                .map(|n| {
                    let task = spawn(async move {
                        sleep(ms(n)).await;
                        n
                    });
                    async move { task.await.unwrap() }
                })
                .collect();
            while let Some(n) = children.next().await {
                trace.note(n);
            }
            let (resolver, promise) = promise::<u32, Abandoned>();
            LoopHandle::current().call_later(ms(1), move || resolver.set_result(7));
            let (one, two, three) = futures_util::join!(promise, sleep(ms(2)), spawn(async { 1 }));
            assert_eq!((one, two, three.unwrap()), (Ok(7), (), 1));
        })
        .unwrap();
    assert_eq!(trace.take(), ["1", "2", "3"]);
    assert_eq!(clock.now().as_nanos(), 5_000_000);
}

/// A waker that is no number: it runs foreign code wherever it is woken, cloned or dropped, and that code calls the loop.
struct CallingWaker(fn());

impl Wake for CallingWaker {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

impl Drop for CallingWaker {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_foreign_waker_may_call_the_loop_wherever_it_is_woken_or_dropped() {
    fn call_the_loop() {
        if let Some(handle) = LoopHandle::try_current() {
            let _accepted = handle.try_call_soon(|| ());
            handle.call_later(ms(1), || ()).cancel();
            handle.now();
        }
    }
    let (mut event_loop, ..) = manual();
    let (_peer, descriptor) = UnixStream::pair().unwrap();
    event_loop
        .run_until_complete(async {
            let waker = || Waker::from(Arc::new(CallingWaker(call_the_loop)));
            let poll = |future: Pin<&mut dyn Future<Output = ()>>| assert!(future.poll(&mut Context::from_waker(&waker())).is_pending());
            let (resolver, promise) = promise::<(), Abandoned>();
            let (set_shared, shared) = self::promise::<(), Abandoned>();
            let shared = shared.shared();
            let task = spawn(yield_now());
            let mut buffer = [0];
            let mut waiting: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = vec![
                Box::pin(sleep(ms(5))),
                Box::pin(async { promise.await.unwrap() }),
                Box::pin(async { drop(shared.clone().await) }),
                Box::pin(async { task.await.unwrap() }),
                Box::pin(async { drop(miniloop::sock_recv(&descriptor, &mut buffer).await) }),
            ];
            // Each poll replaces the waker of the one before: registered, replaced, woken, dropped with its future.
            waiting.iter_mut().for_each(|future| poll(future.as_mut()));
            waiting.iter_mut().for_each(|future| poll(future.as_mut()));
            resolver.set_result(());
            set_shared.set_result(());
            yield_now().await;
            waiting.clear();
            yield_now().await;
        })
        .unwrap();
    event_loop.close();
}

#[test]
fn a_task_polled_by_a_waker_of_nobody_is_still_found_by_its_own() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let mut nap = Box::pin(yield_now());
            assert!(nap.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            nap.await;
        })
        .unwrap();
}

#[test]
fn a_wake_from_another_thread_for_a_loop_that_closes_meanwhile_is_nothing_c177() {
    for _ in 0..100 {
        let (mut event_loop, ..) = manual();
        let (task, waker) = waker_of_a_task(&mut event_loop);
        std::thread::scope(|scope| {
            scope.spawn(move || waker.wake());
            event_loop.close();
        });
        assert!(matches!(event_loop.run_ready(), Err(LoopError::Closed)));
        assert!(task.is_finished());
    }
}
