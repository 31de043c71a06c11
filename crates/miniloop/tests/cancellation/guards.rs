//! Clean-up is not disturbed, and is no escape (C3, C5).

use std::future::pending;

use crate::support::{Trace, jumping, ms};
use crate::{assert_no_nodes, check, clean_up, polite};
use futures_util::future::{self, Either};
use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{CancelReason, LoopHandle, Scope, ScopeOptions, catch, now, scope, sleep, spawn, timeout, yield_now};

#[test]
fn clean_up_runs_undisturbed_by_a_second_cancel_c3_c083() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let task = spawn(async move {
                let _dropped = noting.on_drop("dropped");
                let cleanup = catch(pending::<()>()).await.unwrap_err();
                // Also at a catch point of its own the clean-up does not hear of it.
                noting.note(catch(clean_up(&noting, "clean-up", cleanup)).await.is_ok());
                pending::<()>().await;
            });
            for _ in 0..3 {
                yield_now().await;
                task.cancel();
            }
            assert!(task.await.unwrap_err().is_cancelled());
        })
        .unwrap();
    assert_eq!(trace.take(), ["clean-up begins", "clean-up is clean", "true", "dropped"]);
}

#[test]
fn a_catch_point_or_timeout_inside_clean_up_does_not_start_cancelled_c3() {
    let body = |trace: Trace| async move {
        if let Err(cleanup) = catch(pending::<()>()).await {
            trace.note(catch(sleep(ms(1))).await.is_ok());
            trace.note(timeout(ms(9), async { catch(sleep(ms(1))).await.is_ok() }).await == Ok(true));
            trace.note(timeout(ms(1), pending::<()>()).await.is_err());
            // Asked by a limit of its own, it is a target.
            let late = timeout(ms(1), async { catch(pending::<()>()).await.unwrap_err().finish().reason() }).await;
            trace.note(late == Ok(CancelReason::Deadline));
            cleanup.finish();
        }
    };
    check(body, &["true", "true", "true", "true", "=> value"]);
}

#[test]
fn when_the_last_guard_of_a_level_goes_those_who_came_meanwhile_are_asked_c3() {
    let body = |trace: Trace| async move {
        let late = async {
            sleep(ms(5)).await; // registers while the other one cleans up
            polite(&trace, "late").await;
        };
        future::join(polite(&trace, "early"), late).await;
    };
    check(body, &["early begins", "early is clean", "late begins", "late is clean", "=> value"]);
}

#[test]
fn who_was_held_back_is_woken_when_the_last_guard_goes_c3() {
    // In a set nobody is polled who was not woken.
    let body = |trace: Trace| async move {
        let late = async {
            sleep(ms(5)).await;
            polite(&trace, "late").await;
        };
        let mut set: FuturesUnordered<_> = [Either::Left(polite(&trace, "early")), Either::Right(late)].into_iter().collect();
        while set.next().await.is_some() {}
    };
    check(body, &["early begins", "early is clean", "late begins", "late is clean", "=> value"]);
    // The request comes while somebody cleans up below, asked by a limit of its own.
    let body = |trace: Trace| async move {
        let limited = scope(ScopeOptions::new(), async |scope: &Scope| {
            scope.cancel();
            let mut set: FuturesUnordered<_> = [future::Either::Left(polite(&trace, "early")), {
                let late = async {
                    sleep(ms(5)).await;
                    polite(&trace, "late").await;
                };
                future::Either::Right(late)
            }]
            .into_iter()
            .collect();
            while set.next().await.is_some() {}
        });
        trace.note(format_args!("{:?}", limited.await));
    };
    check(body, &["early begins", "early is clean", "late begins", "late is clean", "Ok(())", "=> value"]);
}

#[test]
fn a_catch_point_whose_inside_is_clean_still_waits_for_the_guard_beside_it_c3() {
    let body = |trace: Trace| async move {
        let short = async {
            let inside = async {
                polite(&trace, "short").await;
                pending::<()>().await;
            };
            let cleanup = catch(inside).await.unwrap_err();
            trace.note(format_args!("around short, at {} ms", now().as_nanos() / 1_000_000));
            cleanup.finish();
        };
        let long = async {
            let cleanup = catch(pending::<()>()).await.unwrap_err();
            sleep(ms(30)).await;
            cleanup.finish();
        };
        let mut set = FuturesUnordered::from_iter([Either::Left(short), Either::Right(long)]);
        while set.next().await.is_some() {}
    };
    check(body, &["short begins", "short is clean", "around short, at 30 ms", "=> value"]);
}

#[test]
fn a_guard_that_stands_before_the_request_comes_holds_it_back_c3() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let task = spawn(async move {
                // The guard of a limit that is over.
                let cleanup = timeout(ms(1), catch(pending::<()>())).await.unwrap().unwrap_err();
                let other = async {
                    sleep(ms(20)).await;
                    noting.note("guard goes");
                    drop(cleanup);
                };
                let mut set = FuturesUnordered::from_iter([Either::Left(polite(&noting, "held back")), Either::Right(other)]);
                while set.next().await.is_some() {}
            });
            sleep(ms(5)).await;
            task.cancel();
            assert!(task.await.is_ok());
        })
        .unwrap();
    assert_eq!(trace.take(), ["guard goes", "held back begins", "held back is clean"]);
}

#[test]
fn a_guard_that_goes_elsewhere_wakes_who_is_next_c3_c5() {
    for has_outer in [false, true] {
        let body = |trace: Trace| async move {
            let _dropped = trace.on_drop("dropped");
            let inside = async {
                let cleanup = catch(pending::<()>()).await.unwrap_err();
                LoopHandle::current().call_later(ms(7), move || drop(cleanup));
                pending::<()>().await;
            };
            if has_outer {
                let _ = catch(inside).await;
                trace.note("outer");
            } else {
                inside.await;
            }
            trace.note(format_args!("at {} ms", now().as_nanos() / 1_000_000));
        };
        let noted_at_7: &[&str] = &["outer", "at 7 ms", "dropped", "=> value"];
        check(body, if has_outer { noted_at_7 } else { &["dropped", "=> cancelled"] });
    }
}

#[test]
fn a_guard_that_outlives_its_level_protects_the_one_above_c3() {
    let body = |trace: Trace| async move {
        // The inner catch point's guard leaves the outer one as its value.
        let guard = catch(async { catch(pending::<()>()).await }).await.unwrap().unwrap_err();
        trace.note(catch(sleep(ms(1))).await.is_ok());
        drop(guard);
        trace.note(catch(sleep(ms(1))).await.is_err());
    };
    check(body, &["true", "true", "=> value"]);
}

#[test]
fn dropping_the_guard_and_carrying_on_is_no_escape_c5() {
    let outer = |trace: Trace| async move {
        let inside = async {
            drop(catch(pending::<()>()).await);
            trace.note("carries on");
            pending::<()>().await;
        };
        trace.note(if catch(inside).await.is_err() { "outer" } else { "?" });
    };
    check(outer, &["carries on", "outer", "=> value"]);
    // At the level of the task itself: the next await ends it.
    let swallows = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        for _ in 0..3 {
            drop(catch(pending::<()>()).await);
            trace.note("swallowed");
        }
        sleep(ms(1)).await;
    };
    check(swallows, &["swallowed", "swallowed", "swallowed", "dropped", "=> cancelled"]);
}

#[test]
fn absorbing_keeps_alive_and_the_next_cancel_is_a_new_one_c5_c081_c084() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let task = spawn(async move {
                for _ in 0..2 {
                    let cleanup = catch(pending::<()>()).await.unwrap_err();
                    cleanup.absorb().unwrap();
                    sleep(ms(1)).await;
                    noting.note("alive");
                }
                pending::<()>().await;
            });
            yield_now().await;
            for _ in 0..2 {
                task.cancel();
                assert!(task.is_cancel_requested());
                sleep(ms(5)).await;
                assert!(!task.is_cancel_requested() && !task.is_finished());
            }
            task.cancel();
            assert!(task.await.unwrap_err().is_cancelled());
        })
        .unwrap();
    assert_eq!(trace.take(), ["alive", "alive"]);
    assert_no_nodes(&event_loop);
}

#[test]
fn only_the_level_that_was_asked_can_absorb_c5_c086() {
    let body = |trace: Trace| async move {
        // The task was cancelled, not the time limit: refused, and the guard is still one.
        let inner = timeout(ms(50), async {
            let cleanup = catch(pending::<()>()).await.unwrap_err();
            let cleanup = cleanup.absorb().unwrap_err();
            sleep(ms(1)).await;
            cleanup.finish().reason()
        });
        trace.note(format_args!("{:?}", inner.await));
        // Behind another catch point: refused.
        let inner = catch(async { catch(pending::<()>()).await.unwrap_err().absorb().is_err() });
        trace.note(inner.await.unwrap());
    };
    check(body, &["Ok(Cancelled)", "true", "=> value"]);
}

#[test]
fn a_limit_absorbs_its_own_request_and_lets_that_of_the_task_through_c5_c086() {
    let (mut event_loop, ..) = jumping();
    event_loop
        .run_until_complete(async {
            let task = spawn(async {
                let value = timeout(ms(1), async {
                    catch(pending::<()>()).await.unwrap_err().absorb().unwrap();
                    sleep(ms(20)).await;
                    "refused"
                });
                let value = value.await;
                pending::<()>().await;
                value
            });
            sleep(ms(5)).await;
            task.cancel();
            assert!(task.await.is_err());
            assert_eq!(now().as_nanos(), 5_000_000);
        })
        .unwrap();
}
