//! Timers on a virtual clock: deadlines in order, never early, cancelled ones gone (C012 to C026).

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use miniloop::{EventLoop, Instant, LoopError, VirtualClock, sleep, spawn, yield_now};

type Trace = Rc<RefCell<Vec<String>>>;

fn manual() -> (EventLoop, VirtualClock, Trace) {
    let clock = VirtualClock::manual();
    (EventLoop::builder().clock(&clock).build().unwrap(), clock, Trace::default())
}

fn note(trace: &Trace, what: &str) -> impl FnOnce() + use<> {
    let (trace, what) = (trace.clone(), what.to_owned());
    move || trace.borrow_mut().push(what)
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn ready_callbacks_run_before_due_timers_c003() {
    let (mut event_loop, _clock, trace) = manual();
    let handle = event_loop.handle();
    handle.call_soon(note(&trace, "a"));
    handle.call_later(Duration::ZERO, note(&trace, "b"));
    handle.call_soon(note(&trace, "c"));
    event_loop.run_once().unwrap();
    assert_eq!(*trace.borrow(), ["a", "c", "b"]);
}

#[test]
fn timers_run_in_order_of_their_deadlines_c013_c014() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    clock.advance(ms(10));
    for past in [9, 7, 8] {
        handle.call_at(Instant::from_nanos(past), note(&trace, &past.to_string()));
    }
    for delay in [3, 1, 2] {
        handle.call_later(ms(delay), note(&trace, &format!("+{delay}")));
    }
    clock.advance(ms(5));
    event_loop.run_once().unwrap();
    assert_eq!(*trace.borrow(), ["7", "8", "9", "+1", "+2", "+3"]);
}

#[test]
fn equal_deadlines_fire_in_creation_order_c015() {
    let (mut event_loop, clock, trace) = manual();
    for n in 0..100 {
        event_loop.handle().call_later(ms(1), note(&trace, &n.to_string()));
    }
    clock.advance(ms(1));
    event_loop.run_once().unwrap();
    assert!(trace.borrow().iter().enumerate().all(|(n, text)| *text == n.to_string()));
    assert_eq!(trace.borrow().len(), 100);
}

#[test]
fn a_timer_never_fires_early_c016_b08() {
    let (mut event_loop, clock, trace) = manual();
    let timer = event_loop.handle().call_later(Duration::from_nanos(1_000), note(&trace, "fired"));
    clock.advance(Duration::from_nanos(999));
    event_loop.run_once().unwrap();
    assert!(trace.borrow().is_empty() && timer.is_pending());
    assert_eq!(event_loop.next_timeout(), Some(Duration::from_nanos(1)));
    clock.advance(Duration::from_nanos(1));
    event_loop.run_once().unwrap();
    assert_eq!(*trace.borrow(), ["fired"]);
}

#[test]
fn a_cancelled_timer_never_wakes_the_loop_c018_c020() {
    let (mut event_loop, clock, trace) = manual();
    let handle = event_loop.handle();
    let early = handle.call_later(ms(1), note(&trace, "early"));
    handle.call_later(ms(9), note(&trace, "late"));
    early.cancel();
    assert_eq!(event_loop.next_timeout(), Some(ms(9)));
    clock.advance(ms(9));
    event_loop.run_once().unwrap();
    early.cancel(); // and once more when it is long gone
    assert_eq!((&*trace.borrow(), event_loop.next_timeout()), (&vec!["late".to_owned()], None));
}

#[test]
fn delays_of_centuries_are_accepted_and_cancellable_c021() {
    let (mut event_loop, _clock, trace) = manual();
    for seconds in [1 << 31, 1 << 40, 1 << 62, u64::MAX] {
        let timer = event_loop.handle().call_later(Duration::from_secs(seconds), note(&trace, "never"));
        event_loop.run_once().unwrap();
        timer.cancel();
    }
    assert_eq!(event_loop.next_timeout(), None);
    assert!(trace.borrow().is_empty());
}

#[test]
fn a_zero_sleep_yields_one_round_and_makes_no_timer_c025() {
    let mut event_loop = EventLoop::builder().clock(VirtualClock::manual()).build().unwrap();
    let trace = Trace::default();
    event_loop
        .run_until_complete(async {
            let other = spawn({
                let trace = trace.clone();
                async move {
                    for n in 0..3 {
                        trace.borrow_mut().push(format!("other {n}"));
                        yield_now().await;
                    }
                }
            });
            for n in 0..3 {
                trace.borrow_mut().push(format!("main {n}"));
                sleep(Duration::ZERO).await;
            }
            other.await.unwrap();
        })
        .unwrap();
    assert_eq!(*trace.borrow(), ["main 0", "other 0", "main 1", "other 1", "main 2", "other 2"]);
}

#[test]
fn dropping_a_sleeper_takes_its_timer_out_c026() {
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build().unwrap();
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
        seen.borrow_mut().push((at.now().as_nanos() / 1_000_000).to_string());
        if seen.borrow().len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(timer.when(), Instant::from_nanos(10_000_000));
    for step in [10, 25, 5, 50] {
        clock.advance(ms(step));
        event_loop.run_once().unwrap();
    }
    assert_eq!(*trace.borrow(), ["10", "35", "40"]);
    assert_eq!((timer.is_pending(), event_loop.next_timeout()), (false, None));
}

#[test]
fn a_jumping_clock_jumps_to_exactly_the_next_deadline_and_reports_a_deadlock() {
    let clock = VirtualClock::jumping();
    let mut event_loop = EventLoop::builder().clock(&clock).build().unwrap();
    event_loop.run_until_complete(async { sleep(ms(7)).await }).unwrap();
    assert_eq!(clock.now(), Instant::from_nanos(7_000_000));
    let _stuck = event_loop.handle().spawn(std::future::pending::<()>()).named("stuck");
    let error = event_loop.run_until_complete(async { sleep(Duration::MAX).await }).unwrap_err();
    assert!(matches!(&error, LoopError::Deadlock(dump) if dump.contains("`stuck`")), "{error}");
}
