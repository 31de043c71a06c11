//! Cancellation: catch points, clean-up and grace, rule by rule (C1 to C13 of ARCHITECTURE.md; C4, C9, C10 and C12 also in `tasks.rs`).

mod support;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{self, Either};
use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{
    CancelReason, Cleanup, EventLoop, LoopHandle, Scope, ScopeOptions, Task, TaskError, catch, now, scope, shield, sleep, spawn, timeout,
    yield_now,
};
use support::{Trace, jumping, manual, ms, run_dry, trace_reports};

/// Spawns `body`, cancels it when it waits, and compares what it notes and how it ends. Afterwards nothing may be left in the tree of
/// requests.
#[track_caller]
fn check<F: Future + 'static>(body: impl FnOnce(Trace) -> F, expected: &[&str]) {
    check_with(body, Task::cancel, expected);
}

#[track_caller]
fn check_with<F: Future + 'static>(body: impl FnOnce(Trace) -> F, cancel: impl Fn(&Task<F::Output>) + 'static, expected: &[&str]) {
    let (mut event_loop, _, trace) = jumping();
    let reports = trace_reports(&event_loop.handle());
    let task = event_loop.handle().spawn(body(trace.clone()));
    event_loop
        .run_until_complete(async {
            yield_now().await;
            yield_now().await;
            cancel(&task);
            let ended = task.await;
            trace.note(if ended.is_ok() { "=> value" } else { "=> cancelled" });
            yield_now().await;
            yield_now().await;
        })
        .unwrap();
    reports.take().iter().for_each(|report| trace.note(report));
    assert_eq!(trace.take(), expected);
    assert_no_nodes(&event_loop);
}

#[track_caller]
fn assert_no_nodes(event_loop: &EventLoop) {
    let shown = format!("{event_loop:?}");
    assert!(shown.contains("cancel_nodes: 0"), "{shown}");
}

/// Waits at a catch point; when it is asked it cleans up for a while.
async fn polite(trace: &Trace, name: &str) {
    if let Err(cleanup) = catch(pending::<()>()).await {
        clean_up(trace, name, cleanup).await;
    }
}

async fn clean_up(trace: &Trace, name: &str, cleanup: Cleanup) {
    trace.note(format_args!("{name} begins"));
    sleep(ms(10)).await;
    trace.note(format_args!("{name} is clean"));
    cleanup.finish();
}

#[test]
fn the_innermost_catch_point_comes_first_then_the_one_around_it_c1_c076_c089() {
    let body = |trace: Trace| async move {
        let inside = async {
            polite(&trace, "inner").await;
            pending::<()>().await;
        };
        if let Err(cleanup) = catch(inside).await {
            clean_up(&trace, "outer", cleanup).await;
        }
    };
    check(body, &["inner begins", "inner is clean", "outer begins", "outer is clean", "=> value"]);
}

#[test]
fn catch_points_beside_each_other_clean_up_at_the_same_time_c1() {
    let body = |trace: Trace| async move {
        let branch = async {
            let _dropped = trace.on_drop("branch without a catch point dropped");
            pending::<()>().await;
        };
        let all = catch(future::join3(polite(&trace, "a"), branch, polite(&trace, "b"))).await;
        trace.note(if all.is_err() { "outer" } else { "?" });
    };
    let expected = ["a begins", "b begins", "a is clean", "b is clean", "branch without a catch point dropped", "outer", "=> value"];
    check(body, &expected);
}

#[test]
fn each_target_is_woken_through_its_own_waker_c1() {
    // A set polls only those of its futures whose own wakers were woken.
    let body = |trace: Trace| async move {
        let mut set: FuturesUnordered<_> = ["a", "b", "c"].map(|name| polite(&trace, name)).into_iter().collect();
        while set.next().await.is_some() {}
        "all have ended"
    };
    check(body, &["a begins", "b begins", "c begins", "a is clean", "b is clean", "c is clean", "=> value"]);
}

#[test]
fn a_value_that_is_ready_when_the_task_is_cancelled_is_not_lost_c2_c104() {
    let (mut event_loop, ..) = manual();
    let is_ready = Rc::new(Cell::new(false));
    let ready = is_ready.clone();
    let task =
        event_loop.handle().spawn(async move { catch(poll_fn(|_| if ready.get() { Poll::Ready(7) } else { Poll::Pending })).await.ok() });
    run_dry(&mut event_loop);
    is_ready.set(true);
    task.cancel();
    assert_eq!(event_loop.run_until_complete(task).unwrap().unwrap(), Some(7));
}

#[test]
fn an_outer_catch_point_does_not_end_an_inner_one_c2() {
    let body = |trace: Trace| async move {
        // The outer one is polled all the time, and pending, while the inner one cleans up.
        let inside = future::join(polite(&trace, "inner"), async {
            for _ in 0..5 {
                sleep(ms(1)).await;
            }
            trace.note("outer was polled");
        });
        trace.note(if catch(inside).await.is_ok() { "done" } else { "outer" });
    };
    check(body, &["inner begins", "outer was polled", "inner is clean", "done", "=> value"]);
}

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

/// Polls `future` once and leaves it where it is.
async fn poll_once<F: Future + Unpin>(future: &mut F) {
    poll_fn(|cx| Poll::Ready(assert!(Pin::new(&mut *future).poll(cx).is_pending()))).await;
}

#[test]
fn a_parked_catch_point_is_skipped_once_the_task_has_nothing_left_to_do_c6() {
    let body = |trace: Trace| async move {
        let mut parked = Box::pin(polite(&trace, "parked"));
        poll_once(&mut parked).await;
        let around = async {
            poll_once(&mut parked).await;
            pending::<()>().await;
        };
        match catch(around).await {
            Ok(()) => {}
            Err(cleanup) => clean_up(&trace, "outer", cleanup).await,
        }
        drop(parked);
    };
    check(body, &["outer begins", "outer is clean", "=> value"]);
    let nobody_else = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        let mut parked = Box::pin(polite(&trace, "parked"));
        poll_once(&mut parked).await;
        pending::<()>().await;
    };
    check(nobody_else, &["dropped", "=> cancelled"]);
}

#[test]
fn what_was_parked_behind_a_shield_or_guard_is_skipped_when_that_goes_c6() {
    let behind_a_shield = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        let mut parked = Box::pin(polite(&trace, "parked"));
        shield(async {
            poll_once(&mut parked).await;
            sleep(ms(5)).await;
        })
        .await;
        pending::<()>().await;
    };
    check(behind_a_shield, &["dropped", "=> cancelled"]);
    let behind_a_guard = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        let mut parked = Box::pin(polite(&trace, "parked"));
        let outer = catch(async {
            let cleanup = catch(pending::<()>()).await.unwrap_err();
            poll_once(&mut parked).await;
            cleanup
        });
        drop(outer.await.unwrap());
        pending::<()>().await;
    };
    check(behind_a_guard, &["dropped", "=> cancelled"]);
}

#[test]
fn skipping_a_parked_catch_point_ends_at_the_level_that_was_asked_c6() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let outer = catch(async {
                let mut parked = Box::pin(polite(&trace, "parked"));
                let limited = timeout(ms(1), async {
                    poll_once(&mut parked).await;
                    pending::<()>().await;
                });
                assert!(limited.await.is_err());
                // It can be polled again, and nobody asks it any more.
                let Either::Right((_, mut parked)) = future::select(parked, Box::pin(sleep(ms(1)))).await else { panic!("asked") };
                assert!(trace.take().is_empty());
                // Nor is it passed over, when the next request comes while it is polled.
                timeout(ms(1), &mut parked).await
            });
            assert_eq!(outer.await.unwrap(), Ok(()));
        })
        .unwrap();
    assert_eq!(trace.take(), ["parked begins", "parked is clean"]);
    assert_no_nodes(&event_loop);
}

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
fn a_catch_point_that_is_dropped_passes_the_request_on_c11() {
    let body = |trace: Trace| async move {
        let inside = async {
            // Asked, it cleans up; the other side of the select drops it in the middle.
            drop(future::select(Box::pin(polite(&trace, "inner")), Box::pin(sleep(ms(5)))).await);
            pending::<()>().await;
        };
        trace.note(if catch(inside).await.is_err() { "outer" } else { "?" });
    };
    check(body, &["inner begins", "outer", "=> value"]);
}

#[test]
fn a_catch_point_that_is_dropped_by_another_task_passes_the_request_on_c11() {
    let (mut event_loop, _, trace) = manual();
    let shared = Rc::new(RefCell::new(Some(Box::pin(catch(pending::<()>())))));
    let (inside, noting) = (shared.clone(), trace.clone());
    let task = event_loop.handle().spawn(async move {
        let body = poll_fn(|cx| match &mut *inside.borrow_mut() {
            Some(caught) => caught.as_mut().poll(cx).map(drop),
            None => Poll::Pending,
        });
        noting.note(if catch(body).await.is_err() { "outer" } else { "?" });
    });
    run_dry(&mut event_loop);
    task.cancel();
    shared.take();
    assert!(event_loop.run_until_complete(task).unwrap().is_ok());
    assert_eq!(trace.take(), ["outer"]);
}

#[test]
fn a_task_without_a_live_catch_point_is_polled_only_if_it_was_woken_c12() {
    let (mut event_loop, _, trace) = manual();
    let noting = trace.clone();
    let task = event_loop.handle().spawn(async move {
        drop(Box::pin(catch(pending::<()>()))); // never polled: nobody
        let _ = future::select(pin!(catch(pending::<()>())), pin!(yield_now())).await;
        poll_fn(|_| {
            noting.note("polled");
            Poll::<()>::Pending
        })
        .await;
    });
    run_dry(&mut event_loop);
    task.cancel();
    run_dry(&mut event_loop);
    assert_eq!((trace.take(), task.is_finished()), (vec!["polled".to_owned()], true));
}

#[test]
fn a_catch_point_answers_to_the_task_that_polled_it_last_c13() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let mut moved = Box::pin(async move { polite(&noting, "moved").await });
            let first = spawn(async move {
                poll_once(&mut moved).await;
                moved
            });
            let moved = first.await.unwrap();
            let (first, second) = (spawn(pending::<()>()), spawn(moved));
            yield_now().await;
            yield_now().await;
            first.cancel();
            assert!(first.await.is_err());
            assert!(!second.is_finished() && trace.len() == 0);
            second.cancel();
            assert!(second.await.is_ok());
        })
        .unwrap();
    assert_eq!(trace.take(), ["moved begins", "moved is clean"]);
    assert_no_nodes(&event_loop);
}

#[test]
fn a_catch_point_is_woken_through_the_waker_of_its_last_poll_c13() {
    let body = |trace: Trace| async move {
        let mut moved = Box::pin(polite(&trace, "moved"));
        poll_once(&mut moved).await; // with the task's waker
        let mut set = FuturesUnordered::from_iter([moved]);
        while set.next().await.is_some() {}
    };
    check(body, &["moved begins", "moved is clean", "=> value"]);
}

#[test]
fn a_time_limit_that_is_moved_takes_its_catch_points_along_c13() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let mut moved = Box::pin(timeout(ms(500), async move { polite(&noting, "moved").await }));
            let first = spawn(async move {
                poll_once(&mut moved).await;
                moved
            });
            first.cancel_within(ms(1_000)); // never ran: it is dropped with what it was to move
            assert!(first.await.is_err());
            let noting = trace.clone();
            let mut moved = Box::pin(timeout(ms(500), async move { polite(&noting, "moved").await }));
            let first = spawn(async move {
                poll_once(&mut moved).await;
                moved
            });
            let second = spawn(async move { first.await.unwrap().await });
            sleep(ms(1)).await;
            second.cancel();
            assert_eq!(second.await.unwrap(), Ok(()));
        })
        .unwrap();
    assert_eq!(trace.take(), ["moved begins", "moved is clean"]);
    assert_no_nodes(&event_loop);
}

#[test]
fn outside_any_task_catch_points_and_shields_are_not_there_c13() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut caught = pin!(catch(shield(poll_fn(|_| Poll::Ready(3)))));
    assert!(matches!(caught.as_mut().poll(&mut cx), Poll::Ready(Ok(3))));
    let (mut event_loop, ..) = manual();
    // First polled in a task, which is cancelled, then outside any.
    let mut caught = Box::pin(catch(pending::<()>()));
    let task = event_loop.handle().spawn(async move {
        poll_once(&mut caught).await;
        caught
    });
    let mut caught = event_loop.run_until_complete(task).unwrap().unwrap();
    assert!(caught.as_mut().poll(&mut cx).is_pending());
    assert_no_nodes(&event_loop);
}

#[test]
fn a_catch_point_may_move_to_another_loop_c13() {
    let (mut first, ..) = manual();
    let (mut second, _, trace) = manual();
    let mut caught = Box::pin(catch(pending::<()>()));
    let task = first.handle().spawn(async move {
        poll_once(&mut caught).await;
        caught
    });
    let caught = first.run_until_complete(task).unwrap().unwrap();
    let noting = trace.clone();
    let task = second.handle().spawn(async move { noting.note(caught.await.is_err()) });
    run_dry(&mut second);
    assert_no_nodes(&first);
    task.cancel();
    run_dry(&mut second);
    assert_eq!(trace.take(), ["true"]);
    assert_no_nodes(&second);
}

#[test]
fn a_task_that_cancels_itself_is_stopped_at_its_next_await_c079_c080() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let own = Rc::new(RefCell::new(None::<Rc<Task<()>>>));
            let (inside, noting) = (own.clone(), trace.clone());
            let task = Rc::new(spawn(async move {
                let caught = catch(async {
                    inside.take().unwrap().cancel();
                    noting.note("asked");
                    sleep(ms(1)).await;
                    noting.note("never");
                });
                if let Err(cleanup) = caught.await {
                    clean_up(&noting, "itself", cleanup).await;
                }
                sleep(ms(1)).await;
                noting.note("never");
            }));
            *own.borrow_mut() = Some(task.clone());
            yield_now().await;
            let ended: Result<(), TaskError> = Rc::into_inner(task).unwrap().await;
            assert!(ended.unwrap_err().is_cancelled());
        })
        .unwrap();
    assert_eq!(trace.take(), ["asked", "itself begins", "itself is clean"]);
}

#[test]
fn a_task_that_only_gives_way_is_stopped_at_its_next_poll_c090() {
    let body = |trace: Trace| async move {
        let _dropped = trace.on_drop("dropped");
        loop {
            yield_now().await;
        }
    };
    check(body, &["dropped", "=> cancelled"]);
}

#[test]
fn who_cleans_up_is_told_why_and_passes_it_on_as_a_value_c087() {
    let (mut event_loop, ..) = jumping();
    let waiting = || catch(pending::<()>()).cleanup(async |_| yield_now().await);
    event_loop
        .run_until_complete(async {
            let task = spawn(waiting());
            yield_now().await;
            task.cancel();
            let cancelled = task.await.unwrap().unwrap_err();
            assert_eq!((cancelled.reason(), cancelled.to_string().as_str()), (CancelReason::Cancelled, "it was cancelled"));
            let cancelled = timeout(ms(1), waiting()).await.unwrap().unwrap_err();
            assert_eq!(cancelled.reason(), CancelReason::Deadline);
        })
        .unwrap();
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
