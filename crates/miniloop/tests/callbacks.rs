//! Callbacks and the order of one turn (O1 to O6, C001 to C011).

mod support;

use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use miniloop::{EventLoop, LoopHandle, spawn, yield_now};
use support::{Trace, manual, ms, on_another_thread, on_drop, run_dry, wait_once};

#[test]
fn callbacks_and_tasks_share_one_queue_first_in_first_out_o1_c001() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon(trace.noting("a"));
    let noting = trace.noting("b");
    handle.spawn(async { noting() }).detach();
    handle.call_soon(trace.noting("c"));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["a", "b", "c"]);
    run_dry(&mut event_loop);
    assert!(trace.take().is_empty(), "each runs exactly once");
}

#[test]
fn what_a_round_adds_waits_for_the_next_one_o2_c002() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon({
        let (handle, trace) = (handle.clone(), trace.clone());
        move || {
            trace.note("a");
            handle.call_soon(trace.noting("from a"));
        }
    });
    handle.call_soon(trace.noting("b"));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["a", "b"]);
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["from a"]);
}

#[test]
fn a_poll_appends_io_then_other_threads_then_timers_o3_c003() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (peer, descriptor) = UnixStream::pair().unwrap();
    // A task that another thread wakes while the loop is away.
    let (send_waker, waker) = mpsc::channel();
    let noting = trace.noting("other thread");
    handle
        .spawn(async move {
            wait_once(|waker| send_waker.send(waker).unwrap()).await;
            noting();
        })
        .detach();
    event_loop.run_once().unwrap();
    on_another_thread(move || waker.recv().unwrap().wake());

    handle.call_later(Duration::ZERO, trace.noting("timer"));
    handle.add_reader(&descriptor, trace.noting_each("io")).unwrap();
    rustix::io::write(&peer, b"x").unwrap();
    handle.call_soon(trace.noting("ready"));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["ready", "io", "other thread", "timer"]);
    handle.remove_reader(&descriptor);
}

#[test]
fn the_next_timeout_is_zero_when_something_is_ready_else_the_time_to_the_next_timer_c004() {
    let (mut event_loop, clock, _) = manual();
    let handle = event_loop.handle();
    assert_eq!(event_loop.next_timeout(), None);
    let timer = handle.call_later(ms(5), || ());
    clock.advance(ms(2));
    assert_eq!(event_loop.next_timeout(), Some(ms(3)));
    clock.advance(ms(9));
    assert_eq!(event_loop.next_timeout(), Some(Duration::ZERO), "never negative");
    timer.cancel();
    handle.call_soon(|| ());
    assert_eq!(event_loop.next_timeout(), Some(Duration::ZERO));
    event_loop.run_once().unwrap();
    assert_eq!(event_loop.next_timeout(), None);
    handle.stop();
    assert_eq!(event_loop.next_timeout(), Some(Duration::ZERO));
}

/// How many more jobs a busy chain runs after a descriptor has become readable, until its reader runs.
fn jobs_before_io(jobs_per_poll: usize) -> usize {
    fn chain(handle: LoopHandle, trace: Trace, peer: UnixStream) {
        trace.note("job");
        if trace.len() == 3 {
            rustix::io::write(&peer, b"x").unwrap();
        }
        handle.clone().call_soon(move || chain(handle, trace, peer));
    }
    let mut event_loop = EventLoop::builder().jobs_per_poll(jobs_per_poll).build().unwrap();
    let handle = event_loop.handle();
    let (peer, descriptor) = UnixStream::pair().unwrap();
    let (stopping, trace) = (handle.clone(), Trace::default());
    handle.add_reader(&descriptor, move || stopping.stop()).unwrap();
    chain(handle.clone(), trace.clone(), peer);
    event_loop.run_forever().unwrap();
    handle.remove_reader(&descriptor);
    trace.len() - 3
}

#[test]
fn a_callback_that_reschedules_itself_for_ever_does_not_starve_io_c005() {
    assert_eq!(jobs_before_io(1), 1);
    assert_eq!(jobs_before_io(64), 63);
}

#[test]
fn a_task_that_yields_for_ever_does_not_starve_timers_o2() {
    let (mut event_loop, clock, _) = manual();
    let handle = event_loop.handle();
    handle.call_later(ms(1), {
        let handle = handle.clone();
        move || handle.stop()
    });
    handle
        .spawn(async move {
            loop {
                clock.advance(Duration::from_micros(1));
                yield_now().await;
            }
        })
        .detach();
    event_loop.run_forever().unwrap();
    assert_eq!(handle.now().as_nanos(), 1_001_000, "the round after the one in which it came due");
}

#[test]
fn a_handle_that_an_earlier_job_of_the_same_round_cancels_is_skipped_o4_c006() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let victims: Rc<std::cell::RefCell<Vec<miniloop::CallbackHandle>>> = Rc::default();
    handle.call_soon({
        let (victims, trace) = (victims.clone(), trace.clone());
        move || {
            trace.note("a");
            victims.take().iter().for_each(|victim| victim.cancel());
        }
    });
    victims.borrow_mut().push(handle.call_soon(trace.noting("b")));
    handle.call_soon(trace.noting("c"));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["a", "c"]);
}

#[test]
fn cancelling_drops_the_callback_at_once_and_twice_is_once_c007_b13() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let owned = trace.on_drop("dropped");
    let callback = handle.call_soon(move || drop(owned));
    assert!(callback.is_pending());
    callback.cancel();
    assert_eq!((trace.take(), callback.is_pending()), (vec!["dropped".to_owned()], false));
    callback.cancel();
    event_loop.run_once().unwrap();
    assert!(trace.take().is_empty());
}

#[test]
fn cancelling_after_it_ran_does_not_hit_the_callback_that_took_its_place_c007() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let old = handle.call_soon(trace.noting("old"));
    event_loop.run_once().unwrap();
    let new = handle.call_soon(trace.noting("new"));
    old.cancel();
    assert!(new.is_pending());
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["old", "new"]);
}

#[test]
fn two_wakes_before_a_poll_are_one_and_a_wake_during_it_is_one_more_o5() {
    let (mut event_loop, _, trace) = manual();
    let seen = trace.clone();
    let mut polls = 0;
    let task = std::future::poll_fn(move |cx| {
        polls += 1;
        seen.note(polls);
        cx.waker().wake_by_ref();
        cx.waker().wake_by_ref();
        if polls == 3 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    });
    event_loop.handle().spawn(task).detach();
    for round in 1..=3 {
        event_loop.run_once().unwrap();
        assert_eq!(trace.take(), [round.to_string()], "one poll in each round");
    }
    assert_eq!(run_dry(&mut event_loop), 1, "the wake of the last poll is stale");
    assert!(trace.take().is_empty());
}

#[test]
fn a_wake_from_another_thread_ends_the_sleep_of_an_idle_loop_c010() {
    let mut event_loop = EventLoop::new().unwrap();
    let (send_waker, waker) = mpsc::channel::<std::task::Waker>();
    std::thread::scope(|scope| {
        scope.spawn(move || waker.recv().unwrap().wake());
        event_loop.run_until_complete(wait_once(|waker| send_waker.send(waker).unwrap())).unwrap();
    });
}

#[test]
fn wakes_from_other_threads_join_a_busy_loop_in_arrival_order_o6() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (send_waker, wakers) = mpsc::channel();
            let tasks: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .map(|name| {
                    let (noting, send_waker) = (trace.noting(name), send_waker.clone());
                    spawn(async move {
                        wait_once(|waker| send_waker.send(waker).unwrap()).await;
                        noting();
                    })
                })
                .collect();
            yield_now().await;
            on_another_thread(move || {
                let wakers: Vec<std::task::Waker> = wakers.try_iter().collect();
                [1, 0, 2].into_iter().for_each(|index| wakers[index].wake_by_ref());
            });
            for task in tasks {
                task.await.unwrap();
            }
        })
        .unwrap();
    assert_eq!(trace.take(), ["b", "a", "c"]);
}

#[test]
fn an_idle_loop_waits_for_its_timer_instead_of_spinning_c011_c017_b09() {
    let mut event_loop = EventLoop::new().unwrap();
    let timer = event_loop.handle().call_later(Duration::from_micros(1_300), || ());
    let mut turns = 0;
    while timer.is_pending() {
        event_loop.run_once().unwrap();
        turns += 1;
    }
    assert!(turns <= 4, "{turns} turns for one timer");
}

#[test]
fn a_job_that_reads_a_clock_past_no_deadline_does_not_make_every_round_poll() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    handle.call_later(ms(1), || ());
    clock.advance(ms(1));
    event_loop.run_once().unwrap(); // the timer has fired; no other is armed

    let (peer, descriptor) = UnixStream::pair().unwrap();
    rustix::io::write(&peer, b"x").unwrap();
    handle.add_reader(&descriptor, trace.noting_each("poll")).unwrap();
    event_loop
        .run_until_complete(async {
            for _ in 0..30 {
                miniloop::now();
                yield_now().await;
            }
        })
        .unwrap();
    assert_eq!(trace.take().len(), 1, "30 rounds of one job are fewer jobs than one poll serves");
    handle.remove_reader(&descriptor);
}

#[test]
fn a_callback_may_own_what_calls_the_loop_when_it_is_dropped() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let callback = handle.call_soon({
        let (handle, noting) = (handle.clone(), trace.noting("from the destructor"));
        let owned = on_drop(move || drop(handle.call_soon(noting)));
        move || drop(owned)
    });
    callback.cancel();
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["from the destructor"]);
}
