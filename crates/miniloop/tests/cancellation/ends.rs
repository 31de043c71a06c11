//! How it ends: the grace, aborts, values and panics (C7 to C10).

use std::future::pending;
use std::time::Duration;

use crate::support::{Trace, jumping, manual, ms, run_dry, trace_reports};
use crate::{assert_no_nodes, check, check_with, clean_up, polite, poll_once};
use miniloop::{CancelReason, EventLoop, ScopeOptions, Task, catch, now, scope, shield, sleep, spawn, task_group, timeout, yield_now};

#[test]
fn cancelling_again_only_shortens_the_grace_c7() {
    for (graces, ends_at) in [([50, 20], 20), ([20, 50], 20), ([20, 20], 20)] {
        let (mut event_loop, _, trace) = jumping();
        let reports = trace_reports(&event_loop.handle());
        event_loop
            .run_until_complete(async {
                let noting = trace.clone();
                let task = spawn(async move {
                    let _dropped = noting.on_drop("dropped");
                    let _cleanup = catch(pending::<()>()).await.unwrap_err();
                    noting.note("cleans up");
                    pending::<()>().await;
                });
                yield_now().await;
                graces.iter().for_each(|grace| task.cancel_within(ms(*grace)));
                assert!(task.await.unwrap_err().is_cancelled());
                assert_eq!(now().as_nanos(), ms(ends_at).as_nanos() as u64);
                yield_now().await;
                yield_now().await;
            })
            .unwrap();
        assert_eq!(trace.take(), ["cleans up", "dropped"]);
        assert_eq!(reports.take(), ["GraceExceeded task `task-0`: was still cleaning up when its grace ended, and was dropped"]);
        assert_eq!(event_loop.next_timeout(), None, "no timer is left");
    }
}

#[test]
fn at_the_end_of_the_grace_everything_is_dropped_and_reported_once_c8() {
    let body = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        let inside = async {
            let _cleanup = catch(pending::<()>()).await.unwrap_err();
            shield(catch(pending::<()>())).await.unwrap();
        };
        let _ = catch(inside).await;
    };
    let report = "GraceExceeded task `task-0`: was still cleaning up when its grace ended, and was dropped";
    check(body, &["dropped", "=> cancelled", report]);
}

#[test]
fn the_grace_is_that_of_the_loop_unless_another_is_given_c8() {
    for (own, cancel, ends_at_ms) in [
        (None, Task::cancel as fn(&Task<()>), 5_000),
        (Some(ms(70)), Task::cancel, 70),
        (Some(ms(70)), |task: &Task<()>| task.cancel_within(ms(3)), 3),
        (Some(ms(70)), |task: &Task<()>| task.cancel_within(Duration::ZERO), 0),
    ] {
        let clock = miniloop::VirtualClock::jumping();
        let builder = EventLoop::builder().clock(&clock);
        let mut event_loop = own.map_or(builder.clone(), |grace| builder.grace(grace)).build().unwrap();
        event_loop.handle().on_error(|_| ());
        event_loop
            .run_until_complete(async {
                let task = spawn(async {
                    let _cleanup = catch(pending::<()>()).await.unwrap_err();
                    pending::<()>().await;
                });
                yield_now().await;
                cancel(&task);
                assert!(task.await.unwrap_err().is_cancelled());
                assert_eq!(now().as_nanos(), ends_at_ms * 1_000_000);
            })
            .unwrap();
    }
}

#[test]
fn once_the_grace_has_ended_nobody_absorbs_the_request_c8() {
    let (mut event_loop, _, trace) = jumping();
    event_loop.handle().on_error(|_| ());
    event_loop
        .run_until_complete(async {
            let limited = scope(ScopeOptions::new().timeout(ms(1)).grace(ms(2)), async |_| {
                let cleanup = catch(pending::<()>()).await.unwrap_err();
                sleep(ms(2)).await;
                trace.note(cleanup.absorb().is_err());
                pending::<()>().await;
            });
            assert!(limited.await.is_err());
        })
        .unwrap();
    assert_eq!(trace.take(), ["true"]);
}

#[test]
fn an_abort_drops_the_body_whatever_it_does_and_is_no_report_c8() {
    let body = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        let _ = catch(async {
            if let Err(cleanup) = catch(pending::<()>()).await {
                clean_up(&trace, "inner", cleanup).await;
            }
        })
        .await;
    };
    check_with(body, Task::abort, &["dropped", "=> cancelled"]);
    let after_cancel = |task: &Task<()>| {
        task.cancel();
        task.abort();
    };
    check_with(body, after_cancel, &["dropped", "=> cancelled"]);
}

#[test]
fn a_task_that_never_ran_is_dropped_without_running_c9() {
    for end in [Task::cancel, Task::abort] {
        let (mut event_loop, _, trace) = manual();
        let noting = trace.clone();
        let dropped = trace.on_drop("dropped");
        let task = event_loop.handle().spawn(async move {
            let _dropped = dropped;
            noting.note("ran");
            let _ = catch(pending::<()>()).await;
        });
        end(&task);
        run_dry(&mut event_loop);
        assert_eq!((trace.take(), task.is_finished()), (vec!["dropped".to_owned()], true));
        assert_no_nodes(&event_loop);
    }
}

#[test]
fn a_task_that_cleans_up_and_returns_a_value_ends_with_that_c10_c081_c105() {
    let body = |_| async {
        let reason = catch(pending::<()>()).await.unwrap_err().finish().reason();
        assert_eq!(reason, CancelReason::Cancelled);
    };
    check(body, &["=> value"]);
}

#[test]
fn clean_up_that_panics_ends_the_task_with_its_panic() {
    let (mut event_loop, ..) = manual();
    let task = event_loop.handle().spawn(async {
        let _cleanup = catch(pending::<()>()).await.unwrap_err();
        panic!("no clean end");
    });
    run_dry(&mut event_loop);
    task.cancel();
    let error = event_loop.run_until_complete(task).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the task panicked: no clean end");
    assert_no_nodes(&event_loop);
}

#[test]
fn who_carries_on_without_ever_giving_way_is_dropped_at_the_end_of_the_grace_c5_c8() {
    let deaf = async || {
        loop {
            drop(catch(pending::<()>()).await);
        }
    };
    let (mut event_loop, clock, _) = manual();
    let reports = trace_reports(&event_loop.handle());
    let handle = event_loop.handle();
    let task = handle.spawn(deaf());
    let limited = handle.spawn(async move { timeout(Duration::ZERO, deaf()).await });
    let grouped = handle.spawn(task_group(async move |g| {
        g.spawn(deaf());
        yield_now().await;
        g.cancel();
    }));
    (0..5).for_each(|_| event_loop.run_ready().unwrap());
    task.cancel();
    (0..5).for_each(|_| event_loop.run_ready().unwrap());
    assert!(!task.is_finished() && !limited.is_finished() && !grouped.is_finished(), "the loop turns");
    clock.advance(ms(5_000));
    (0..5).for_each(|_| event_loop.run_ready().unwrap());
    assert!(task.is_finished() && limited.is_finished() && grouped.is_finished());
    assert_eq!(reports.take().iter().filter(|report| report.starts_with("GraceExceeded")).count(), 3);
    assert_no_nodes(&event_loop);
}

#[test]
fn dropping_the_handle_lets_the_task_clean_up() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let task = spawn(async move { polite(&noting, "alone").await });
            yield_now().await;
            drop(task);
            sleep(ms(50)).await;
        })
        .unwrap();
    assert_eq!(trace.take(), ["alone begins", "alone is clean"]);
}

#[test]
fn the_future_of_run_until_complete_is_a_root_as_well() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let limited = timeout(ms(1), async {
                let mut parked = Box::pin(catch(pending::<()>()));
                poll_once(&mut parked).await;
                polite(&trace, "main").await;
                pending::<()>().await;
            });
            assert!(limited.await.is_err());
            assert_eq!(now().as_nanos(), 11_000_000);
        })
        .unwrap();
    assert_eq!(trace.take(), ["main begins", "main is clean"]);
    assert_no_nodes(&event_loop);
}
