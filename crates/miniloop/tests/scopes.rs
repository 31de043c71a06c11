//! Time limits, scopes and shields (C102 to C114): what ends them, what they return, and who cleans up first.

mod support;

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{future, poll};
use miniloop::{
    CancelReason, Cancelled, Elapsed, LoopHandle, Scope, ScopeOptions, Stopped, catch, now, scope, shield, sleep, sleep_until, spawn,
    timeout, yield_now,
};
use support::{Trace, jumping, manual, ms, on_drop, panic_of, run_dry, trace_reports};

/// Runs `body` on a clock that jumps. Afterwards nothing may be left in the tree of requests, and no timer.
#[track_caller]
fn run<T>(body: impl AsyncFnOnce(&Trace) -> T) -> (T, Vec<String>) {
    let (mut event_loop, _, trace) = jumping();
    let value = event_loop.run_until_complete(body(&trace)).unwrap();
    assert!(format!("{event_loop:?}").contains("cancel_nodes: 0"), "{event_loop:?}");
    assert_eq!(event_loop.next_timeout(), None);
    (value, trace.take())
}

fn now_ms() -> u64 {
    now().as_nanos() / 1_000_000
}

/// Waits at a catch point, and cleans up for 10 ms when it is asked.
async fn polite(trace: &Trace) -> Result<(), Cancelled> {
    match catch(pending::<()>()).await {
        Ok(()) => Ok(()),
        Err(cleanup) => {
            trace.note(format_args!("asked at {}", now_ms()));
            sleep(ms(10)).await;
            trace.note(format_args!("clean at {}", now_ms()));
            Err(cleanup.finish())
        }
    }
}

#[test]
fn elapsed_is_returned_after_the_body_has_cleaned_up_c102() {
    let (ended, trace) = run(async |trace| {
        let body = async {
            let _dropped = trace.on_drop("dropped");
            let _ = polite(trace).await;
            pending::<()>().await;
        };
        let ended = timeout(ms(5), body).await;
        trace.note(format_args!("returned at {}", now_ms()));
        ended
    });
    assert_eq!((ended, trace), (Err(Elapsed), ["asked at 5", "clean at 15", "dropped", "returned at 15"].map(str::to_owned).to_vec()));
}

#[test]
fn a_limit_of_zero_lets_the_body_give_way_once_c103_c113() {
    let (.., trace) = run(async |trace| {
        assert_eq!(timeout(Duration::ZERO, async { 1 }).await, Ok(1));
        assert_eq!(timeout(Duration::ZERO, async { yield_now().await }).await, Ok(()));
        let body = async {
            trace.note("started");
            yield_now().await;
            trace.note("gave way once");
            yield_now().await;
            trace.note("never");
        };
        assert_eq!(timeout(Duration::ZERO, body).await, Err(Elapsed));
        // The past is a deadline that passes at the next poll of the loop.
        let options = ScopeOptions::new().deadline(miniloop::Instant::from_nanos(0));
        assert_eq!(scope(options, async |_| yield_now().await).await, Ok(()));
        assert_eq!(scope(options, async |_| pending::<()>().await).await, Err(Stopped::Elapsed));
    });
    assert_eq!(trace, ["started", "gave way once"]);
}

#[test]
fn a_value_that_comes_with_the_deadline_is_returned() {
    run(async |_| {
        let late = sleep(ms(5));
        assert_eq!(timeout(ms(5), late).await, Ok(()));
        assert_eq!(scope(ScopeOptions::new().timeout(ms(5)), async |_| sleep(ms(5)).await).await, Ok(()));
    });
}

#[test]
fn a_value_that_the_body_returns_while_it_is_asked_to_stop_is_returned_c105() {
    run(async |trace| {
        let cancelled = timeout(ms(5), polite(trace)).await.unwrap().unwrap_err();
        assert_eq!(cancelled.reason(), CancelReason::Deadline);
        let refused = timeout(ms(5), async {
            catch(pending::<()>()).await.unwrap_err().absorb().unwrap();
            sleep(ms(50)).await;
            "refused"
        });
        assert_eq!(refused.await, Ok("refused"));
        let refused = scope(ScopeOptions::new().timeout(ms(5)), async |scope| {
            catch(pending::<()>()).await.unwrap_err().absorb().unwrap();
            sleep(ms(50)).await;
            scope.is_cancel_requested()
        });
        assert_eq!(refused.await, Ok(false));
    });
}

#[test]
fn one_error_type_serves_limits_and_catch_points() {
    async fn both(trace: &Trace, limit: u64) -> Result<(), Stopped> {
        Ok(timeout(ms(limit), catch(sleep(ms(3))).cleanup(async |reason| trace.note(format_args!("{reason:?}")))).await??)
    }
    let (.., trace) = run(async |trace| {
        assert_eq!(both(trace, 5).await, Ok(()));
        let stopped = both(trace, 1).await.unwrap_err();
        assert!(matches!(stopped, Stopped::Cancelled(_)), "{stopped:?}");
        assert_eq!(stopped.to_string(), "it was stopped by a time limit");
        assert_eq!(Stopped::from(Elapsed).to_string(), Elapsed.to_string());
    });
    assert_eq!(trace, ["Deadline"]);
}

#[test]
fn where_errors_are_io_errors_a_time_limit_is_timed_out() {
    async fn read() -> std::io::Result<()> {
        timeout(ms(1), pending::<std::io::Result<()>>()).await?
    }
    run(async |_| assert_eq!(read().await.unwrap_err().kind(), std::io::ErrorKind::TimedOut));
}

#[test]
fn cancelling_a_waiter_leaves_a_task_of_its_own_alone_and_a_shield_makes_it_wait_c107() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            // A task that somebody else holds is stopped by its handle, not by those who wait for it.
            let inner = spawn(async { sleep(ms(20)).await }).shared();
            let waiter = spawn({
                let inner = inner.clone();
                async move { drop(inner.await) }
            });
            sleep(ms(1)).await;
            waiter.cancel();
            assert!(waiter.await.is_err());
            assert!(inner.await.is_ok());
            // What a shield holds is done first, then the waiter ends.
            let noting = trace.clone();
            let waiter = spawn(async move {
                shield(async {
                    sleep(ms(20)).await;
                    noting.note("inner done");
                })
                .await;
                yield_now().await;
                noting.note("never");
            });
            sleep(ms(1)).await;
            waiter.cancel();
            assert!(waiter.await.is_err());
            assert_eq!(trace.take(), ["inner done"]);
        })
        .unwrap();
}

#[test]
fn a_shield_keeps_requests_from_outside_away_and_those_from_inside_work_c107() {
    for with_scope in [false, true] {
        let (mut event_loop, _, trace) = jumping();
        event_loop
            .run_until_complete(async {
                let noting = trace.clone();
                let task = spawn(async move {
                    let body = async {
                        assert_eq!(timeout(ms(5), pending::<()>()).await, Err(Elapsed));
                        // Registered while the task is asked to stop: not for this one.
                        noting.note(catch(sleep(ms(5))).await.is_ok());
                        let own = scope(ScopeOptions::new(), async |scope: &Scope| {
                            scope.cancel();
                            catch(pending::<()>()).await.unwrap_err().finish().reason()
                        });
                        noting.note(format_args!("{:?}", own.await));
                    };
                    if with_scope {
                        scope(ScopeOptions::new().shield(true), async |_| body.await).await.unwrap();
                    } else {
                        shield(body).await;
                    }
                    noting.note(catch(pending::<()>()).await.is_err());
                });
                sleep(ms(1)).await;
                task.cancel();
                assert!(task.await.is_ok());
            })
            .unwrap();
        assert_eq!(trace.take(), ["true", "Ok(Cancelled)", "true"]);
    }
}

#[test]
fn a_shield_does_not_outlast_the_grace_c107() {
    let (mut event_loop, ..) = jumping();
    let reports = trace_reports(&event_loop.handle());
    event_loop
        .run_until_complete(async {
            let task = spawn(shield(pending::<()>()));
            yield_now().await;
            task.cancel_within(ms(7));
            assert!(task.await.is_err());
            assert_eq!(now_ms(), 7);
            let limited = scope(ScopeOptions::new().timeout(ms(1)).grace(ms(2)), async |_| shield(pending::<()>()).await);
            assert_eq!(limited.await, Err(Stopped::Elapsed));
            assert_eq!(now_ms(), 10);
            sleep(ms(1)).await;
        })
        .unwrap();
    let message = "was still cleaning up when its grace ended, and was dropped";
    assert_eq!(reports.take(), [format!("GraceExceeded task `task-0`: {message}"), format!("GraceExceeded scope: {message}")]);
}

#[test]
fn a_time_limit_leaves_nothing_of_its_request_behind_c108_c110() {
    run(async |trace| {
        assert_eq!(timeout(ms(5), pending::<()>()).await, Err(Elapsed));
        assert!(catch(sleep(ms(5))).await.is_ok());
        // A request that was swallowed inside does not reach the next limit.
        let swallowed = timeout(ms(5), async { drop(catch(pending::<()>()).await) }).await;
        assert_eq!(swallowed, Ok(()));
        assert_eq!(timeout(ms(5), async { polite(trace).await.is_err() }).await, Ok(true));
        assert_eq!(timeout(ms(5), async { catch(sleep(ms(1))).await.is_ok() }).await, Ok(true));
    });
}

#[test]
fn a_cancel_from_outside_is_none_of_the_limits_c109_c110() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            // Before the deadline: the body is told why, and the limit says nothing.
            let noting = trace.clone();
            let task = spawn(async move { timeout(ms(50), polite(&noting)).await.unwrap().unwrap_err().reason() });
            sleep(ms(1)).await;
            task.cancel();
            assert_eq!(task.await.unwrap(), CancelReason::Cancelled);
            // Both at once, with nobody to clean up: the task ends.
            let task = spawn(async {
                let _ = timeout(ms(5), pending::<()>()).await;
                yield_now().await;
            });
            sleep(ms(5)).await;
            task.cancel();
            assert!(task.await.unwrap_err().is_cancelled());
        })
        .unwrap();
}

#[test]
fn an_error_or_panic_of_the_body_is_not_replaced_c111() {
    run(async |_| {
        let late = async {
            let _cleanup = catch(pending::<()>()).await.unwrap_err();
            Err::<(), _>("own error")
        };
        assert_eq!(timeout(ms(1), late).await, Ok(Err("own error")));
        let panics = spawn(timeout(ms(1), async {
            let _cleanup = catch(pending::<()>()).await.unwrap_err();
            panic!("own panic");
        }));
        assert_eq!(panics.await.unwrap_err().to_string(), "the task panicked: own panic");
    });
}

#[test]
fn of_nested_limits_the_one_that_expired_says_so_c112() {
    run(async |_| {
        let inner = async { timeout(ms(5), pending::<()>()).await };
        assert_eq!(timeout(ms(50), inner).await, Ok(Err(Elapsed)));
        let inner = async { timeout(ms(50), pending::<()>()).await };
        assert_eq!(timeout(ms(5), inner).await, Err(Elapsed));
    });
    // Both are overdue, because the loop was busy: the inner one is first.
    let (mut event_loop, clock, _) = manual();
    let task = event_loop.handle().spawn(async { timeout(ms(5), async { timeout(ms(1), pending::<()>()).await }).await });
    run_dry(&mut event_loop);
    clock.advance(ms(10));
    assert_eq!(event_loop.run_until_complete(task).unwrap().unwrap(), Ok(Err(Elapsed)));
}

#[test]
fn a_limit_inside_a_catch_point_and_one_around_it_ask_in_order_c112() {
    let (.., trace) = run(async |trace| {
        let ended = timeout(ms(5), async {
            let inner = timeout(ms(1), async {
                let _ = polite(trace).await;
                trace.note("inner carries on");
                pending::<()>().await;
            });
            let inner = catch(inner).await;
            trace.note(if inner.is_ok() { "inner elapsed" } else { "outer asked" });
            pending::<()>().await;
        });
        assert_eq!(ended.await, Err(Elapsed));
    });
    // The outer deadline passes while the inner clean-up runs, and is heard when that is done. Then both limits are over: the inner one
    // answers first.
    assert_eq!(trace, ["asked at 1", "clean at 11", "inner carries on", "inner elapsed"]);
}

#[test]
fn a_deadline_can_be_moved_and_removed_c114() {
    run(async |_| {
        for (deadline, ends_at_ms) in [(Some(30), Some(30)), (Some(10), Some(10)), (None, None)] {
            let begin = now();
            let ended = scope(ScopeOptions::new().timeout(ms(20)), async |scope: &Scope| {
                assert_eq!(scope.deadline(), Some(begin + ms(20)));
                sleep(ms(5)).await;
                scope.set_deadline(deadline.map(|at| begin + ms(at)));
                sleep(ms(100)).await;
            });
            let ended = ended.await;
            assert_eq!((ended.is_err(), now() - begin), (ends_at_ms.is_some(), ms(ends_at_ms.unwrap_or(105))));
        }
    });
}

#[test]
fn a_deadline_can_be_moved_from_outside_and_not_once_it_has_passed_c114() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let handle = Rc::new(RefCell::new(None::<Scope>));
            let (inside, noting) = (handle.clone(), trace.clone());
            let task = spawn(scope(ScopeOptions::new(), async move |scope: &Scope| {
                *inside.borrow_mut() = Some(scope.clone());
                let _ = polite(&noting).await;
                pending::<()>().await;
            }));
            sleep(ms(1)).await;
            let handle = handle.take().unwrap();
            handle.set_deadline(Some(now() + ms(3)));
            sleep(ms(5)).await;
            assert!(handle.is_cancel_requested());
            handle.set_deadline(None); // too late: it cleans up
            assert_eq!(task.await.unwrap(), Err(Stopped::Elapsed));
            assert_eq!(now_ms(), 14);
            // Over: nothing more happens.
            handle.cancel();
            handle.set_deadline(Some(now()));
            assert!(!handle.is_cancel_requested());
            sleep(ms(1)).await;
        })
        .unwrap();
    assert_eq!(trace.take(), ["asked at 4", "clean at 14"]);
    assert!(format!("{event_loop:?}").contains("cancel_nodes: 0"), "{event_loop:?}");
}

#[test]
fn a_scope_is_cancelled_from_inside_and_outside_c108() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let inside = scope(ScopeOptions::new(), async |scope: &Scope| {
                scope.cancel();
                scope.cancel();
                trace.note("until the next await");
                sleep(ms(1)).await;
                trace.note("never");
            });
            let stopped = inside.await.unwrap_err();
            assert_eq!((stopped.to_string().as_str(), now_ms()), ("it was cancelled", 0));
            // By a callback, while the task that runs it waits.
            let noting = trace.clone();
            let task = spawn(scope(ScopeOptions::new(), async move |scope: &Scope| {
                let handle = scope.clone();
                LoopHandle::current().call_later(ms(3), move || handle.cancel());
                let _ = polite(&noting).await;
                pending::<()>().await;
            }));
            assert!(matches!(task.await.unwrap(), Err(Stopped::Cancelled(_))));
            sleep(ms(1)).await;
        })
        .unwrap();
    assert_eq!(trace.take(), ["until the next await", "asked at 3", "clean at 13"]);
}

#[test]
fn a_scope_has_a_grace_of_its_own_and_what_came_first_counts() {
    let (mut event_loop, ..) = jumping();
    let reports = trace_reports(&event_loop.handle());
    event_loop
        .run_until_complete(async {
            let options = ScopeOptions::new().timeout(ms(5)).grace(ms(2));
            let ended = scope(options, async |scope: &Scope| {
                let _cleanup = catch(pending::<()>()).await.unwrap_err();
                scope.cancel();
                pending::<()>().await;
            });
            assert_eq!((ended.await, now_ms()), (Err(Stopped::Elapsed), 7));
            sleep(ms(1)).await;
        })
        .unwrap();
    assert_eq!(reports.len(), 1);
}

#[test]
fn a_limit_works_outside_any_task_too() {
    let (mut event_loop, clock, _) = manual();
    let entered = event_loop.handle().enter();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut limited = pin!(timeout(ms(5), catch(pending::<()>())));
    assert!(limited.as_mut().poll(&mut cx).is_pending());
    clock.advance(ms(5));
    event_loop.run_ready().unwrap();
    // The catch point is not there: nobody cleans up.
    assert!(matches!(limited.as_mut().poll(&mut cx), Poll::Ready(Err(Elapsed))));
    drop(entered);
}

#[test]
fn limits_as_long_as_time_do_not_overflow_nor_come_early_and_can_be_cancelled() {
    let (mut event_loop, clock, _) = manual();
    clock.advance(ms(1));
    let limits = [Duration::from_nanos(i64::MAX as u64), Duration::from_nanos(u64::MAX) - ms(1) - ms(1), Duration::MAX];
    let handles = Rc::new(RefCell::new(Vec::new()));
    let kept = handles.clone();
    let main = async move {
        let endless = limits.map(|limit| {
            let kept = kept.clone();
            let grace = ScopeOptions::new().timeout(limit).grace(limit);
            async move {
                let limited = timeout(limit, async {
                    let polite = catch(sleep_until(now() + limit)).cleanup(async |_| sleep(ms(1)).await);
                    scope(grace, async |scope| {
                        kept.borrow_mut().push(scope.clone());
                        polite.await
                    })
                    .await
                });
                limited.await
            }
        });
        future::join_all(endless).await
    };
    let task = event_loop.handle().spawn(main);
    for step in [ms(0), Duration::from_secs(1 << 32)] {
        clock.advance(step);
        run_dry(&mut event_loop);
        assert!(!task.is_finished());
    }
    handles.take().iter().for_each(Scope::cancel);
    run_dry(&mut event_loop);
    clock.advance(ms(1));
    run_dry(&mut event_loop);
    let ended = event_loop.run_until_complete(task).unwrap().unwrap();
    for ended in ended {
        // The body had its say: it was cancelled, and has cleaned up.
        assert_eq!(ended.unwrap().unwrap().unwrap_err().reason(), CancelReason::Cancelled);
    }
    assert_eq!(event_loop.next_timeout(), None);
}

#[test]
fn a_scope_may_be_touched_by_what_it_drops() {
    let (ended, seen) = run(async |trace| {
        let touching = |scope: &Scope| {
            let (scope, trace) = (scope.clone(), trace.clone());
            on_drop(move || {
                scope.cancel();
                scope.set_deadline(Some(now()));
                trace.note(format_args!("asked: {}", scope.is_cancel_requested()));
            })
        };
        let late = scope(ScopeOptions::new().timeout(ms(1)), async |scope| {
            let _touching = touching(scope);
            pending::<()>().await;
        });
        let cancelled = scope(ScopeOptions::new(), async |scope| {
            let _first = touching(scope);
            drop(touching(scope));
            catch(pending::<()>()).await.map_err(|cleanup| cleanup.finish().reason())
        });
        let mut dropped = Box::pin(scope(ScopeOptions::new(), async |scope| {
            let _touching = touching(scope);
            pending::<()>().await;
        }));
        assert!(poll!(dropped.as_mut()).is_pending());
        drop(dropped);
        let ended = (late.await, cancelled.await);
        // The body was woken by what it dropped itself.
        yield_now().await;
        ended
    });
    assert_eq!(seen, ["asked: false", "asked: false", "asked: true", "asked: true"]);
    assert_eq!(ended, (Err(Stopped::Elapsed), Ok(Err(CancelReason::Cancelled))));
}

#[test]
fn a_limit_polled_under_another_loop_panics_naming_both_before_its_body_runs_there() {
    let (mut first, ..) = manual();
    let (mut second, ..) = manual();
    let entered = first.handle().enter();
    let limited = timeout(ms(5), async { unreachable!("it belongs elsewhere") });
    let made_elsewhere = scope(ScopeOptions::new(), async |_| unreachable!("it belongs elsewhere"));
    let mut moved = Box::pin(scope(ScopeOptions::new(), async |_| pending::<()>().await));
    drop(entered);
    let is_pending = first.run_until_complete(poll_fn(|cx| Poll::Ready(moved.as_mut().poll(cx).is_pending())));
    assert!(is_pending.unwrap());
    let (message, _) = panic_of(|| second.run_until_complete(made_elsewhere));
    assert!(message.contains("this scope belongs to event loop"), "{message}");
    let (message, _) = panic_of(|| second.run_until_complete(moved));
    assert!(message.contains("this scope belongs to event loop"), "{message}");
    let (message, _) = panic_of(|| second.run_until_complete(limited));
    assert!(message.contains("this time limit belongs to event loop"), "{message}");
}

#[test]
fn who_is_polled_after_it_has_given_its_value_says_so() {
    #[track_caller]
    fn check<F: Future>(what: &str, make: impl FnOnce() -> F) {
        let twice = async {
            let mut future = pin!(make());
            future.as_mut().await;
            future.await;
        };
        let (message, _) = panic_of(|| miniloop::run(twice));
        assert_eq!(message, format!("this {what} was polled after it had given its value"));
    }
    check("`catch`", || catch(async {}));
    check("shield", || shield(async {}));
    check("`timeout`", || timeout(ms(1), async {}));
}

#[test]
fn limits_inside_a_join_do_not_disturb_each_other() {
    run(async |trace| {
        let one = timeout(ms(5), polite(trace));
        let other = timeout(ms(5), async {
            sleep(ms(3)).await;
            "in time"
        });
        let (one, other) = future::join(one, other).await;
        assert_eq!((one.unwrap().is_err(), other), (true, Ok("in time")));
    });
}
