//! Running, stopping and running again (C027 to C035), and who may run which loop where.

mod support;

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::time::Duration;

use miniloop::{EventLoop, LoopError, LoopHandle, VirtualClock, promise, sleep, spawn, yield_now};
use support::{jumping, manual, ms, panic_of, run_dry};

#[test]
fn run_until_complete_returns_the_value_or_the_error_of_the_future_c027() {
    let (mut event_loop, ..) = jumping();
    assert_eq!(
        event_loop
            .run_until_complete(async {
                sleep(ms(1)).await;
                42
            })
            .unwrap(),
        42
    );
    assert_eq!(event_loop.run_until_complete(ready(Err::<(), _>("no"))).unwrap(), Err("no"));
}

#[test]
fn run_until_complete_borrows_locals_and_panics_through_and_runs_again_c027_c035() {
    let (mut event_loop, _, trace) = jumping();
    let mut text = String::from("local");
    event_loop.run_until_complete(async { text.push_str(", borrowed") }).unwrap();
    assert_eq!(text, "local, borrowed");

    let dropped = trace.on_drop("future dropped");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        event_loop.run_until_complete(async {
            let _dropped = dropped;
            yield_now().await;
            panic!("main fails");
        })
    }));
    assert_eq!(*panicked.unwrap_err().downcast::<&str>().unwrap(), "main fails");
    assert_eq!(trace.take(), ["future dropped"]);
    assert!(LoopHandle::try_current().is_none(), "the loop was left");
    assert_eq!(event_loop.run_until_complete(async { 7 }).unwrap(), 7);
}

#[test]
fn a_panic_of_main_leaves_the_rest_of_its_round_for_the_next_run_c035() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let noting = trace.noting("behind main");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        event_loop.run_until_complete(async move {
            handle.call_soon(noting);
            panic!("main fails");
        })
    }));
    assert!(panicked.is_err());
    event_loop.run_until_complete(async {}).unwrap();
    assert_eq!(trace.take(), ["behind main"]);
}

#[test]
fn stopped_before_the_future_is_done_it_says_so_and_the_future_can_go_on_c028() {
    let (mut event_loop, _, trace) = jumping();
    let handle = event_loop.handle();
    handle.call_later(ms(1), {
        let handle = handle.clone();
        move || handle.stop()
    });
    let mut future = pin!(async {
        trace.note("began");
        sleep(ms(5)).await;
        "ended"
    });
    assert!(matches!(event_loop.run_until_complete(&mut future), Err(LoopError::Stopped)));
    assert_eq!(event_loop.run_until_complete(future).unwrap(), "ended");
    assert_eq!(trace.take(), ["began"]);
}

#[test]
fn a_finished_run_leaves_nothing_that_stops_the_next_c029() {
    let (mut event_loop, _, trace) = jumping();
    let handle = event_loop.handle();
    event_loop.run_until_complete(ready(())).unwrap();
    let stopping = handle.clone();
    let noting = trace.noting("stop");
    handle.call_later(ms(1), move || {
        noting();
        stopping.stop();
    });
    event_loop.run_forever().unwrap();
    assert_eq!(trace.take(), ["stop"]);
}

#[test]
fn the_round_in_which_the_future_is_done_runs_to_its_end_c027_o2() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    event_loop
        .run_until_complete(async {
            handle.call_soon({
                let (handle, trace) = (handle.clone(), trace.clone());
                move || {
                    trace.note("same round");
                    handle.call_soon(trace.noting("next round"));
                }
            });
            handle.call_soon(trace.noting("same round too"));
            yield_now().await; // this wake stands behind the two callbacks
        })
        .unwrap();
    assert_eq!(trace.take(), ["same round", "same round too"]);
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["next round"]);
}

#[test]
fn other_tasks_stay_where_they_are_between_two_runs_c029() {
    let (mut event_loop, _, trace) = jumping();
    let noting = trace.noting("background done");
    let task = event_loop.handle().spawn(async move {
        sleep(ms(10)).await;
        noting();
    });
    event_loop.run_until_complete(sleep_in(ms(1))).unwrap();
    assert!(!task.is_finished() && trace.take().is_empty());
    event_loop.run_until_complete(sleep_in(ms(20))).unwrap();
    assert!(task.is_finished());
    assert_eq!(trace.take(), ["background done"]);
}

/// A sleep that is made inside the loop.
async fn sleep_in(duration: Duration) {
    sleep(duration).await;
}

#[test]
fn one_thread_runs_one_loop_at_a_time_and_the_outer_run_survives_c031() {
    let (mut outer, ..) = jumping();
    let (mut inner, ..) = jumping();
    let value = outer
        .run_until_complete(async {
            assert!(matches!(inner.run_until_complete(ready(())), Err(LoopError::AlreadyRunning)));
            assert!(matches!(inner.run_forever(), Err(LoopError::AlreadyRunning)));
            assert!(matches!(inner.run_once(), Err(LoopError::AlreadyRunning)));
            assert!(matches!(inner.run_ready(), Err(LoopError::AlreadyRunning)));
            assert!(matches!(inner.shutdown(Duration::ZERO), Err(LoopError::AlreadyRunning)));
            assert!(matches!(miniloop::run(ready(())), Err(LoopError::AlreadyRunning)));
            sleep(ms(1)).await;
            "survived"
        })
        .unwrap();
    assert_eq!(value, "survived");
    inner.run_until_complete(ready(())).unwrap();
}

#[test]
fn stop_lets_the_round_finish_and_keeps_what_it_scheduled_c032() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon({
        let (handle, trace) = (handle.clone(), trace.clone());
        move || {
            handle.stop();
            handle.call_soon(trace.noting("scheduled while stopping"));
        }
    });
    handle.call_soon(trace.noting("same round"));
    event_loop.run_forever().unwrap();
    assert_eq!(trace.take(), ["same round"]);
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["scheduled while stopping"]);
}

#[test]
fn stopped_before_it_runs_a_loop_makes_one_turn_without_waiting_c033() {
    let mut event_loop = EventLoop::new().unwrap();
    let (handle, trace) = (event_loop.handle(), support::Trace::default());
    handle.call_later(Duration::from_secs(3_600), trace.noting("waited"));
    handle.call_soon({
        let (handle, trace) = (handle.clone(), trace.clone());
        move || {
            trace.note("one turn");
            handle.call_soon(trace.noting("two turns"));
        }
    });
    handle.stop();
    assert!(event_loop.is_stopping());
    event_loop.run_forever().unwrap();
    assert_eq!((trace.take(), event_loop.is_stopping()), (vec!["one turn".to_owned()], false));
}

#[test]
fn a_turn_by_hand_leaves_a_stop_request_standing_c033() {
    let (mut event_loop, ..) = manual();
    event_loop.handle().stop();
    event_loop.run_once().unwrap();
    event_loop.run_ready().unwrap();
    assert!(event_loop.is_stopping());
    event_loop.run_forever().unwrap();
    assert!(!event_loop.is_stopping());
}

#[test]
fn io_of_the_stopping_turn_is_dispatched_once_c034() {
    use std::os::fd::AsRawFd;
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (peer, descriptor) = std::os::unix::net::UnixStream::pair().unwrap();
    rustix::io::write(&peer, b"x").unwrap();
    let number = descriptor.as_raw_fd();
    handle
        .add_reader(&descriptor, {
            let (handle, noting) = (handle.clone(), trace.clone());
            move || {
                noting.note("readable");
                handle.remove_reader(&number);
            }
        })
        .unwrap();
    handle.stop();
    event_loop.run_forever().unwrap();
    handle.stop();
    event_loop.run_forever().unwrap();
    assert_eq!(trace.take(), ["readable"]);
}

#[test]
fn a_panic_in_a_callback_is_reported_and_the_run_goes_on_c035_c045() {
    let (mut event_loop, ..) = jumping();
    let reports = support::trace_reports(&event_loop.handle());
    event_loop.handle().call_soon(|| panic!("callback fails"));
    event_loop.run_until_complete(sleep_in(ms(1))).unwrap();
    assert_eq!(reports.take(), ["Panic callback: callback fails"]);
}

#[test]
fn free_functions_outside_a_loop_name_both_ways_in() {
    #[track_caller]
    fn check<R>(call: impl FnOnce() -> R) {
        let (message, file) = panic_of(call);
        assert!(message.contains("miniloop::run") && message.contains("LoopHandle"), "{message}");
        assert_eq!(file, file!());
    }
    check(|| spawn(ready(())));
    check(|| sleep(ms(1)));
    check(|| miniloop::now());
    check(|| LoopHandle::current());
    check(|| miniloop::timeout(ms(1), ready(())));
    check(|| {
        let (_resolver, promise) = promise::<(), miniloop::Abandoned>();
        promise.on_done(|_| ())
    });
}

#[test]
fn an_entered_loop_is_the_one_that_free_functions_mean_until_the_guard_is_dropped() {
    let (mut outer, _, trace) = manual();
    let (mut inner, ..) = manual();
    {
        let _outer = outer.handle().enter();
        {
            let _inner = inner.handle().enter();
            LoopHandle::current().call_soon(trace.noting("inner"));
        }
        LoopHandle::current().call_soon(trace.noting("outer"));
    }
    assert!(LoopHandle::try_current().is_none());
    outer.run_once().unwrap();
    inner.run_once().unwrap();
    assert_eq!(trace.take(), ["outer", "inner"]);
}

#[test]
fn guards_dropped_in_any_order_leave_the_newest_that_is_left_and_in_the_end_none() {
    let loops = [manual().0, manual().0, manual().0];
    // A handle is shown with the number of its loop.
    let shown = |handle: LoopHandle| format!("{handle:?}");
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut guards = loops.each_ref().map(|event_loop| Some(event_loop.handle().enter()));
        for dropped in order {
            guards[dropped] = None;
            let newest = guards.iter().rposition(Option::is_some).map(|index| loops[index].handle());
            assert_eq!(LoopHandle::try_current().map(shown), newest.map(shown), "{order:?}, after {dropped}");
        }
    }
}

#[test]
fn on_a_virtual_clock_a_wait_without_end_is_a_deadlock_that_lists_who_waits() {
    let (mut event_loop, ..) = jumping();
    let _task = event_loop.handle().spawn(pending::<()>()).named("stuck");
    let error = event_loop.run_forever().unwrap_err();
    assert!(matches!(error, LoopError::Deadlock(_)));
    assert!(error.to_string().contains(&format!("task `stuck`, spawned at {}", file!())), "{error}");
}

#[test]
fn a_deadlock_says_who_waits_and_how_to_go_on() {
    #[track_caller]
    fn check(error: LoopError, expected: &str) {
        let text = error.to_string();
        // Whatever the numbers of the lines.
        let without_lines: String =
            text.split(&format!("{}:", file!())).map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':')).collect();
        assert_eq!(without_lines, format!("nothing is left that could happen on the virtual clock{expected}"), "{text}");
    }
    let main = "waiting:\n  the future given to `run_until_complete` at ";
    let (mut event_loop, ..) = jumping();
    check(event_loop.run_forever().unwrap_err(), "; no task waits");
    check(event_loop.run_until_complete(pending::<()>()).unwrap_err(), &format!("; {main} waits, polled once"));
    let _task = event_loop.handle().spawn(pending::<()>()).named("stuck");
    let stuck = "\n  task `stuck`, spawned at  waits, polled once";
    check(event_loop.run_until_complete(pending::<()>()).unwrap_err(), &format!("; {main} waits, polled once{stuck}"));
    let (mut event_loop, ..) = manual();
    let advice = " until it is moved: the next deadline is 5ms away, `VirtualClock::advance` leads there; ";
    check(
        event_loop.run_until_complete(async { sleep(ms(5)).await }).unwrap_err(),
        &format!("{advice}{main} waits for a deadline, polled once"),
    );
}

#[test]
fn a_manual_clock_is_not_waited_for_by_a_turn_by_hand() {
    let clock = VirtualClock::manual();
    let mut event_loop = EventLoop::builder().clock(&clock).build().unwrap();
    event_loop.handle().call_later(ms(1), || ());
    event_loop.run_once().unwrap(); // returns, although the timer is not due
    assert!(matches!(event_loop.run_forever(), Err(LoopError::Deadlock(_))));
}

#[test]
fn a_loop_lives_on_each_thread_that_wants_one() {
    let numbers: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|n| scope.spawn(move || miniloop::run(async move { spawn(async move { n }).await.unwrap() }).unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(numbers, [0, 1, 2, 3]);
}

#[test]
fn run_cancels_what_main_has_left_behind_and_reports_its_failures_c042() {
    let trace = support::Trace::default();
    miniloop::run(async {
        LoopHandle::current().on_error({
            let trace = trace.clone();
            move |report: &miniloop::Report| trace.note(report.message())
        });
        let (dropped, failing) = (trace.on_drop("left behind"), support::panic_on_drop("fails while being cancelled"));
        spawn(async move {
            let _owned = (dropped, failing);
            pending::<()>().await;
        })
        .detach();
        yield_now().await;
    })
    .unwrap();
    assert_eq!(trace.take(), ["left behind", "fails while being cancelled"]);
}
