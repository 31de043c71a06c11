//! Ticks and recurring jobs, in virtual time.

mod support;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::StreamExt;
use miniloop::schedule::{JobStatistics, Scheduler};
use miniloop::{Instant, Interval, MissedTicks, interval, interval_at, now, sleep, sleep_until, timeout};
use support::{Trace, jumping, ms, trace_reports};

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn millis(instant: Instant) -> u64 {
    instant.as_nanos() / 1_000_000
}

/// Takes ticks with work of the given lengths after each. Returns for each tick when it was planned and when it came.
#[track_caller]
fn check(make: impl FnOnce() -> Interval, work: &[u64], expected: &[(u64, u64)]) {
    let (mut event_loop, _clock, _trace) = jumping();
    let ticks = event_loop.run_until_complete(async {
        let (mut ticks, mut seen) = (make(), Vec::new());
        for length in work {
            let planned = ticks.tick().await;
            seen.push((millis(planned), millis(now())));
            sleep(ms(*length)).await;
        }
        seen
    });
    assert_eq!(ticks.unwrap(), expected);
}

#[test]
fn a_fixed_rate_keeps_its_beat_whatever_the_work_takes() {
    check(|| interval(ms(10)), &[1, 9, 3, 0], &[(0, 0), (10, 10), (20, 20), (30, 30)]);
    check(|| interval_at(at(5), ms(10)), &[1, 1], &[(5, 5), (15, 15)]);
}

#[test]
fn missed_ticks_are_skipped_caught_up_with_or_delay_the_beat() {
    let make = |policy| move || interval(ms(10)).missed_ticks(policy);
    check(make(MissedTicks::Skip), &[25, 1, 1], &[(0, 0), (10, 25), (30, 30)]);
    check(make(MissedTicks::Burst), &[25, 1, 1, 1], &[(0, 0), (10, 25), (20, 26), (30, 30)]);
    check(make(MissedTicks::Delay), &[25, 1, 1], &[(0, 0), (10, 25), (35, 35)]);
}

#[test]
fn a_period_may_be_as_long_as_time_and_as_short_as_nothing() {
    for policy in [MissedTicks::Skip, MissedTicks::Burst, MissedTicks::Delay] {
        check(|| interval(Duration::MAX).missed_ticks(policy), &[1], &[(0, 0)]);
        check(|| Interval::fixed_delay(Duration::ZERO).missed_ticks(policy), &[1], &[(0, 0)]);
    }
}

#[test]
fn a_fixed_delay_is_never_shortened_by_the_work() {
    check(|| Interval::fixed_delay(ms(10)), &[25, 3, 0], &[(10, 10), (45, 45), (58, 58)]);
}

#[test]
fn skipped_ticks_are_counted() {
    let (mut event_loop, _clock, _trace) = jumping();
    let missed = event_loop.run_until_complete(async {
        let mut ticks = interval(ms(10));
        ticks.tick().await;
        sleep(ms(45)).await;
        ticks.tick().await; // that of 10, late: 20, 30 and 40 are left out
        ticks.missed()
    });
    assert_eq!(missed.unwrap(), 3);
}

#[test]
fn a_tick_that_nobody_waits_for_any_more_is_not_lost() {
    let (mut event_loop, _clock, _trace) = jumping();
    event_loop
        .run_until_complete(async {
            let mut ticks = interval(ms(10));
            assert_eq!(ticks.tick().await, at(0));
            for _ in 0..3 {
                assert!(timeout(ms(3), ticks.tick()).await.is_err());
            }
            assert_eq!((ticks.tick().await, now()), (at(10), at(10)));
            ticks.reset();
            assert_eq!(ticks.tick().await, at(20));
            sleep(ms(4)).await;
            ticks.reset();
            assert_eq!(ticks.tick().await, at(34));
        })
        .unwrap();
}

#[test]
fn an_interval_is_a_stream_and_a_period_of_nothing_ticks_at_every_poll() {
    let (mut event_loop, _clock, _trace) = jumping();
    event_loop
        .run_until_complete(async {
            let planned: Vec<_> = interval(ms(10)).take(3).map(millis).collect().await;
            assert_eq!(planned, [0, 10, 20]);
            let mut nothing = interval(Duration::ZERO);
            for _ in 0..1_000 {
                nothing.tick().await;
            }
            assert!(now() < at(21));
        })
        .unwrap();
}

#[test]
fn an_interval_of_centuries_can_be_made_and_dropped() {
    let (event_loop, _clock, _trace) = jumping();
    let _entered = event_loop.handle().enter();
    let mut ticks = interval_at(Instant::FAR_FUTURE, Duration::MAX);
    assert!(pin!(ticks.tick()).poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// A job that notes when it runs, and takes as long as `length` says.
fn noting(trace: &Trace, length: u64) -> impl Fn() -> std::pin::Pin<Box<dyn Future<Output = ()>>> + use<> {
    let trace = trace.clone();
    move || {
        let trace = trace.clone();
        Box::pin(async move {
            trace.note(millis(now()));
            sleep(ms(length)).await;
        })
    }
}

#[test]
fn a_recurring_job_runs_on_its_beat_and_never_twice_at_a_time() {
    let (mut event_loop, _clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let job = scheduler.every("quick", ms(10), noting(&trace, 1));
            sleep_until(at(35)).await;
            assert_eq!(trace.take(), ["10", "20", "30"]);
            job.cancel();
            let slow = scheduler.every("slow", ms(10), noting(&trace, 25)); // from 35 on
            sleep_until(at(102)).await;
            assert_eq!(trace.take(), ["45", "70", "95"]);
            let JobStatistics { runs, skipped, is_running, last_started, last_took, .. } = slow.statistics();
            assert_eq!((runs, skipped, is_running, last_started, last_took), (3, 3, true, Some(at(95)), Some(ms(25))));
            assert_eq!(job.statistics().runs, 3);
        })
        .unwrap();
}

#[test]
fn a_job_with_a_pause_waits_that_long_after_each_run() {
    let (mut event_loop, _clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let job = scheduler.after_each("calm", ms(10), noting(&trace, 25));
            sleep_until(at(100)).await;
            assert_eq!((trace.take().join(" "), job.statistics().skipped), ("10 45 80".to_owned(), 0));
        })
        .unwrap();
}

#[test]
fn a_run_that_fails_is_reported_by_name_and_the_job_goes_on() {
    let (mut event_loop, _clock, _trace) = jumping();
    let reports = trace_reports(&event_loop.handle());
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let count = Rc::new(Cell::new(0));
            let job = scheduler.every("flaky", ms(10), move || {
                count.set(count.get() + 1);
                assert!(count.get() != 2, "before its future");
                let n = count.get();
                async move {
                    match n {
                        1 => Err("out of paper"),
                        3 => panic!("in its future"),
                        5 => Ok(ControlFlow::Break(())),
                        _ => Ok(ControlFlow::Continue(())),
                    }
                }
            });
            sleep_until(at(200)).await;
            assert_eq!((job.statistics().runs, job.statistics().failures), (5, 3));
        })
        .unwrap();
    let reports = reports.take().join("\n");
    for (count, text) in [(3, "recurring job `flaky`"), (1, "out of paper"), (1, "before its future"), (1, "in its future")] {
        assert_eq!(reports.matches(text).count(), count, "{text} in {reports}");
    }
}

#[test]
fn a_job_can_be_asked_to_run_besides_its_ticks() {
    let (mut event_loop, _clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let job = scheduler.every("sweep", ms(100), noting(&trace, 10));
            sleep_until(at(3)).await;
            job.run_now();
            sleep_until(at(5)).await;
            job.run_now(); // while it runs: one more, however often
            job.run_now();
            sleep_until(at(150)).await;
            assert_eq!(trace.take(), ["3", "13", "100"]);
            job.cancel();
            // The pause begins at the end of whatever run was the last.
            let job = scheduler.after_each("calm", ms(100), noting(&trace, 10));
            sleep_until(at(200)).await;
            job.run_now();
            sleep_until(at(320)).await;
            assert_eq!(trace.take(), ["200", "310"]);
        })
        .unwrap();
}

#[test]
fn stopping_waits_for_the_run_under_way_and_cancelling_does_not_let_it_end() {
    let (mut event_loop, _clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let note = trace.clone();
            let long = move |end: &'static str| {
                let trace = note.clone();
                move || {
                    let (trace, dropped) = (trace.clone(), trace.on_drop(format!("{end} gone")));
                    async move {
                        sleep(ms(50)).await;
                        trace.note(end);
                        drop(dropped);
                    }
                }
            };
            let cancelled = scheduler.every("cancelled", ms(10), long("cancelled"));
            scheduler.every("stopped", ms(10), long("stopped"));
            sleep_until(at(20)).await;
            cancelled.cancel();
            scheduler.stop().await;
            assert_eq!((trace.take(), now()), (["cancelled gone", "stopped", "stopped gone"].map(String::from).to_vec(), at(60)));
        })
        .unwrap();
}

#[test]
fn jobs_that_have_ended_do_not_pile_up_in_the_scheduler() {
    let (mut event_loop, _clock, _trace) = jumping();
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let _stays = scheduler.every("stays", ms(10), async || {});
            for _ in 0..1_000 {
                scheduler.every("goes", ms(10), async || {}).cancel();
                sleep(ms(1)).await;
            }
            let kept = format!("{scheduler:?}");
            assert!(kept.contains("stays") && kept.matches("goes").count() < 4, "{kept}");
        })
        .unwrap();
}

#[test]
fn dropping_the_scheduler_ends_its_jobs() {
    let (mut event_loop, _clock, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let scheduler = Scheduler::new();
            let job = scheduler.every("job", ms(10), noting(&trace, 7));
            sleep_until(at(25)).await;
            assert!(job.statistics().is_running);
            drop(scheduler);
            sleep_until(at(100)).await;
            assert!(!job.statistics().is_running);
        })
        .unwrap();
    assert_eq!(trace.take(), ["10", "20"]);
}
