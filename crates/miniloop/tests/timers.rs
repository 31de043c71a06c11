//! Timers on a virtual clock: deadlines in order, never early, cancelled ones gone (C012 to C026).

mod support;

use std::future::pending;
use std::ops::ControlFlow;
use std::time::Duration;

use miniloop::{Elapsed, EventLoop, Instant, LoopError, now, sleep, sleep_until, spawn, timeout, yield_now};
use support::{jumping, manual, ms, run_dry};

#[test]
fn ready_callbacks_run_before_due_timers_c003() {
    let (mut event_loop, _clock, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon(trace.noting("a"));
    handle.call_later(Duration::ZERO, trace.noting("b"));
    handle.call_soon(trace.noting("c"));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["a", "c", "b"]);
}

#[test]
fn timers_run_in_order_of_their_deadlines_c013_c014() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    clock.advance(ms(10));
    for past in [9, 7, 8] {
        handle.call_at(Instant::from_nanos(past), trace.noting(past));
    }
    for delay in [3, 1, 2] {
        handle.call_later(ms(delay), trace.noting(format!("+{delay}")));
    }
    clock.advance(ms(5));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["7", "8", "9", "+1", "+2", "+3"]);
}

#[test]
fn equal_deadlines_fire_in_creation_order_c015() {
    let (mut event_loop, clock, trace) = manual();
    for n in 0..100 {
        event_loop.handle().call_later(ms(1), trace.noting(n));
    }
    clock.advance(ms(1));
    event_loop.run_once().unwrap();
    let expected: Vec<_> = (0..100).map(|n: i32| n.to_string()).collect();
    assert_eq!(trace.take(), expected);
}

#[test]
fn a_timer_never_fires_early_c016_b08() {
    let (mut event_loop, clock, trace) = manual();
    let timer = event_loop.handle().call_later(Duration::from_nanos(1_000), trace.noting("fired"));
    clock.advance(Duration::from_nanos(999));
    event_loop.run_once().unwrap();
    assert!(trace.take().is_empty() && timer.is_pending());
    assert_eq!(event_loop.next_timeout(), Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["fired"]);
}

#[test]
fn a_cancelled_timer_never_wakes_the_loop_c018_c020() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let early = handle.call_later(ms(1), trace.noting("early"));
    handle.call_later(ms(9), trace.noting("late"));
    early.cancel();
    assert_eq!(event_loop.next_timeout(), Some(ms(9)));
    clock.advance(ms(9));
    event_loop.run_once().unwrap();
    early.cancel(); // and once more when it is long gone
    assert_eq!((trace.take(), event_loop.next_timeout()), (vec!["late".to_owned()], None));
}

#[test]
fn delays_of_centuries_are_accepted_and_cancellable_c021() {
    let (mut event_loop, _clock, trace) = manual();
    for seconds in [1 << 31, 1 << 40, 1 << 62, u64::MAX] {
        let timer = event_loop.handle().call_later(Duration::from_secs(seconds), trace.noting("never"));
        event_loop.run_once().unwrap();
        timer.cancel();
    }
    assert_eq!(event_loop.next_timeout(), None);
    assert!(trace.take().is_empty());
}

#[test]
fn a_zero_sleep_yields_one_round_and_makes_no_timer_c025() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let other = spawn({
                let trace = trace.clone();
                async move {
                    for n in 0..3 {
                        trace.note(format_args!("other {n}"));
                        yield_now().await;
                    }
                }
            });
            for n in 0..3 {
                trace.note(format_args!("main {n}"));
                sleep(Duration::ZERO).await;
            }
            other.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["main 0", "other 0", "main 1", "other 1", "main 2", "other 2"]);
}

#[test]
fn dropping_a_sleeper_takes_its_timer_out_c026() {
    let (mut event_loop, ..) = jumping();
    event_loop
        .run_until_complete(async {
            let sleeper = spawn(sleep(ms(5)));
            yield_now().await;
            sleeper.cancel();
            assert!(sleeper.await.unwrap_err().is_cancelled());
        })
        .unwrap();
    assert_eq!(event_loop.next_timeout(), None);
}

#[test]
fn a_repeating_timer_keeps_its_beat_and_leaves_out_what_was_missed() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let (at, seen) = (handle.clone(), trace.clone());
    let timer = handle.call_every(ms(10), move || {
        seen.note(at.now().as_nanos() / 1_000_000);
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(timer.when(), Instant::from_nanos(10_000_000));
    for step in [10, 25, 5, 50] {
        clock.advance(ms(step));
        run_dry(&mut event_loop);
    }
    assert_eq!(trace.take(), ["10", "35", "40"]);
    assert_eq!((timer.is_pending(), event_loop.next_timeout()), (false, None));
}

#[test]
fn a_jumping_clock_jumps_to_exactly_the_next_deadline_and_reports_a_deadlock() {
    let (mut event_loop, clock, _) = jumping();
    event_loop.run_until_complete(async { sleep(ms(7)).await }).unwrap();
    assert_eq!(clock.now(), Instant::from_nanos(7_000_000));
    let _stuck = event_loop.handle().spawn(pending::<()>()).named("stuck");
    let error = event_loop.run_until_complete(async { sleep(Duration::MAX).await }).unwrap_err();
    assert!(matches!(&error, LoopError::Deadlock(dump) if dump.task("stuck").is_some()), "{error}");
}

#[test]
fn call_later_is_call_at_from_now_and_both_tell_when_c012() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    clock.advance(ms(7));
    let later = handle.call_later(ms(3), trace.noting("later"));
    let at = handle.call_at(handle.now() + ms(3), trace.noting("at"));
    assert_eq!((later.when(), at.when()), (Instant::from_nanos(10_000_000), Instant::from_nanos(10_000_000)));
    clock.advance(ms(3));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["later", "at"]);
    assert_eq!(later.when(), Instant::from_nanos(10_000_000), "also after it has fired");
}

#[test]
fn a_timer_armed_after_a_long_job_counts_from_the_end_of_the_job_c023_b11() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon({
        let (handle, clock, trace) = (handle.clone(), clock.clone(), trace.clone());
        move || {
            clock.advance(ms(1_000)); // the job blocks for a second
            let timer = handle.call_later(ms(1_000), trace.noting("fired"));
            trace.note(timer.when().as_nanos());
        }
    });
    event_loop.run_once().unwrap();
    clock.advance(ms(999));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["2000000000"]);
    clock.advance(ms(1));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["fired"]);
}

#[test]
fn the_systems_clock_never_goes_back_c023() {
    let handle = EventLoop::new().unwrap().handle();
    let readings: Vec<_> = (0..1_000).map(|_| handle.now()).collect();
    assert!(readings.is_sorted());
    assert!(readings[0] > Instant::from_nanos(0));
}

#[test]
fn many_cancelled_timers_do_not_pile_up_and_the_others_fire_in_order_c019_c020_o7() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let timers: Vec<_> = (0..1_000).map(|n| handle.call_later(ms(1_000 - n), trace.noting(n))).collect();
    timers.iter().enumerate().filter(|(n, _)| n % 100 != 0).for_each(|(_, timer)| timer.cancel());
    timers.iter().for_each(|timer| assert!(timer.when() > Instant::from_nanos(0)));
    clock.advance(ms(500));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["900", "800", "700", "600", "500"]);
    timers.iter().for_each(|timer| timer.cancel()); // fired ones, cancelled ones, live ones
    assert_eq!(event_loop.next_timeout(), None);
}

#[test]
fn a_timer_cancelled_in_the_round_in_which_it_is_due_does_not_run_o4_o7() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let second = handle.call_later(ms(2), trace.noting("second"));
    let noting = trace.noting("first");
    handle.call_later(ms(1), move || {
        noting();
        second.cancel();
    });
    clock.advance(ms(5));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["first"]);
}

#[test]
fn one_timer_of_years_does_not_keep_the_others_from_firing_b14() {
    let (mut event_loop, clock, trace) = jumping();
    const DAY: Duration = Duration::from_secs(24 * 3_600);
    event_loop.handle().call_later(2 * 365 * DAY, trace.noting("two years"));
    event_loop
        .run_until_complete(async {
            sleep(13 * DAY).await;
            for _ in 0..100 {
                sleep(Duration::from_secs(1)).await;
            }
        })
        .unwrap();
    assert_eq!(clock.now(), Instant::from_nanos(0) + 13 * DAY + Duration::from_secs(100));
    assert!(trace.take().is_empty());
}

#[test]
fn sleepers_go_on_in_order_of_deadline_and_of_arming_c013_c015_c026() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let tasks: Vec<_> = [3, 1, 2, 1]
                .into_iter()
                .enumerate()
                .map(|(n, delay)| {
                    let noting = trace.noting(format!("{delay} ms, task {n}"));
                    spawn(async move {
                        sleep(ms(delay)).await;
                        noting();
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
        })
        .unwrap();
    assert_eq!(trace.take(), ["1 ms, task 1", "1 ms, task 3", "2 ms, task 2", "3 ms, task 0"]);
}

#[test]
fn a_sleep_counts_from_its_call_and_one_in_the_past_still_gives_way_c012() {
    let (mut event_loop, clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let early = sleep(ms(5));
            sleep(ms(3)).await;
            early.await;
            assert_eq!(now(), Instant::from_nanos(5_000_000));
            spawn(async move { trace.note("other") }).detach();
            sleep_until(Instant::from_nanos(1)).await;
            assert_eq!(now(), Instant::from_nanos(5_000_000));
        })
        .unwrap();
    assert_eq!(clock.now(), Instant::from_nanos(5_000_000));
}

#[test]
fn a_sleep_that_is_polled_without_need_keeps_its_deadline_c016() {
    let (mut event_loop, clock, _) = jumping();
    event_loop
        .run_until_complete(async {
            let mut long = sleep(ms(10));
            for _ in 0..3 {
                let polled = futures_util::poll!(&mut long);
                assert!(polled.is_pending());
                sleep(ms(1)).await;
            }
            long.await;
        })
        .unwrap();
    assert_eq!(clock.now(), Instant::from_nanos(10_000_000));
    assert_eq!(event_loop.next_timeout(), None);
}

#[test]
fn a_timeout_returns_the_value_or_that_the_time_was_up_and_leaves_no_timer() {
    let (mut event_loop, clock, _) = jumping();
    event_loop
        .run_until_complete(async {
            assert_eq!(timeout(ms(5), async { 42 }).await, Ok(42));
            assert_eq!(timeout(ms(5), pending::<()>()).await, Err(Elapsed));
            assert_eq!(now(), Instant::from_nanos(5_000_000));
            assert_eq!(timeout(ms(5), sleep(ms(5))).await, Ok(()), "ready in the same poll as the deadline");
            assert_eq!(timeout(ms(1), sleep(ms(5))).await, Err(Elapsed));
            assert_eq!(timeout(Duration::ZERO, pending::<()>()).await, Err(Elapsed));
            assert_eq!(timeout(Duration::ZERO, async { 42 }).await, Ok(42));
            assert_eq!(timeout(Duration::ZERO, yield_now()).await, Ok(()));
            assert_eq!(timeout(Duration::MAX, sleep(ms(1))).await, Ok(()));
        })
        .unwrap();
    assert_eq!((clock.now(), event_loop.next_timeout()), (Instant::from_nanos(12_000_000), None));
}

#[test]
fn a_repeating_timer_can_be_cancelled_from_outside_and_by_itself() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let outside = handle.call_every(ms(1), trace.noting_each("outside"));
    let own = std::rc::Rc::new(std::cell::OnceCell::<miniloop::TimerHandle>::new());
    let (inner, seen) = (own.clone(), trace.clone());
    let owned = trace.on_drop("dropped after it returned");
    own.set(handle.call_every(ms(1), move || {
        let _owned = &owned;
        inner.get().unwrap().cancel();
        seen.note("by itself");
    }))
    .unwrap();
    for _ in 0..2 {
        clock.advance(ms(1));
        run_dry(&mut event_loop);
        outside.cancel();
    }
    assert_eq!(trace.take(), ["outside", "by itself", "dropped after it returned"]);
    assert_eq!(event_loop.next_timeout(), None);
}
