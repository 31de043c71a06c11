//! Groups whose members clean up: who is asked, who is waited for, and for how long.

use std::future::pending;

use miniloop::{CancelReason, catch, now, sleep, spawn, task_group, yield_now};

use crate::helpers::{check, fail, failures, run, stay};
use crate::support::{Trace, ms};

/// Waits for ever; asked to stop it takes `needs` ms for that, and says so.
async fn tidy(trace: &Trace, name: &'static str, needs: u64) -> CancelReason {
    let Err(cleanup) = catch(stay(trace, name)).await else { unreachable!("it stays") };
    sleep(ms(needs)).await;
    trace.note(format_args!("{name} tidied"));
    cleanup.finish().reason()
}

#[test]
fn a_group_waits_for_those_who_clean_up_and_keeps_their_errors_g2_c116() {
    let (failed, trace) = check(async |trace| {
        let start = now();
        let failed = task_group(async |g| {
            g.spawn(fail("boom"));
            g.spawn(async {
                assert_eq!(tidy(trace, "first", 20).await, CancelReason::GroupEnded);
                Err::<(), _>("tidying failed")
            });
            g.spawn(async {
                stay(trace, "second").await;
                Ok(())
            });
            tidy(trace, "body", 10).await;
            Ok(())
        })
        .await;
        trace.note(format_args!("after {:?}", now() - start));
        (failed.unwrap_err(), trace.take())
    });
    assert_eq!(failures(failed), [("boom", false), ("tidying failed", true)]);
    let expected = ["second dropped", "body dropped", "first dropped", "body tidied", "first tidied", "after 20ms"];
    assert_eq!(trace, expected);
}

#[test]
fn who_is_still_cleaning_up_when_the_grace_ends_is_dropped_with_one_report_g2() {
    let ((took, trace), reports) = run(async |trace| {
        let start = now();
        let failed = task_group(async |g| {
            g.spawn(fail("boom"));
            g.spawn(async {
                tidy(trace, "slow", 60_000).await;
                Ok(())
            })
            .named("slow");
            g.spawn_task({
                let trace = trace.clone();
                async move {
                    tidy(&trace, "slow task", 60_000).await;
                    Ok(())
                }
            })
            .named("slow task");
            Ok(())
        })
        .await;
        assert!(failed.is_err());
        let took = now() - start;
        yield_now().await;
        (took, trace.take())
    });
    assert_eq!(took, ms(5_000));
    assert_eq!(trace, ["slow dropped", "slow task dropped"]);
    let message = "was still cleaning up when its grace ended, and was dropped";
    assert_eq!(reports, ["slow task", "slow"].map(|name| format!("GraceExceeded member `{name}`: {message}")));
}

#[test]
fn a_member_that_is_cancelled_alone_cleans_up_alone_g2_c117() {
    let trace = check(async |trace| {
        task_group(async |g| {
            let child = g.spawn(async {
                trace.note(format_args!("{:?}", tidy(trace, "child", 5).await));
            });
            g.spawn(async {
                sleep(ms(9)).await;
                trace.note("other done");
            });
            sleep(ms(1)).await;
            child.cancel();
            child.await.unwrap();
        })
        .await;
        trace.take()
    });
    assert_eq!(trace, ["child dropped", "child tidied", "Cancelled", "other done"]);
}

#[test]
fn services_and_tasks_of_a_group_clean_up_too_g4_g7() {
    let trace = check(async |trace| {
        task_group(async |g| {
            g.spawn_service(async {
                tidy(trace, "service", 7).await;
            });
            let inner = trace.clone();
            let task = g.spawn_task(async move {
                tidy(&inner, "task", 3).await;
            });
            sleep(ms(1)).await;
            task.cancel();
            task.await.unwrap();
        })
        .await;
        trace.note("group ended");
        trace.take()
    });
    assert_eq!(trace, ["task dropped", "task tidied", "service dropped", "service tidied", "group ended"]);
}

#[test]
fn cancelling_the_task_asks_those_who_clean_up_and_drops_the_rest_after_them_c118() {
    let trace = check(async |trace| {
        let inner = trace.clone();
        let task = spawn(async move {
            task_group(async |g| {
                g.spawn(async {
                    tidy(&inner, "first", 5).await;
                });
                g.spawn(async {
                    tidy(&inner, "second", 3).await;
                });
                stay(&inner, "body").await;
            })
            .await;
            inner.note("swallowed");
        });
        sleep(ms(1)).await;
        task.cancel();
        assert!(task.await.unwrap_err().is_cancelled());
        trace.take()
    });
    assert_eq!(trace, ["first dropped", "second dropped", "second tidied", "first tidied", "body dropped"]);
}

#[test]
fn a_body_may_absorb_the_end_of_its_group_and_the_task_goes_on_undisturbed_b04() {
    check(async |trace| {
        let inner = trace.clone();
        let task = spawn(async move {
            let failed = task_group(async |g| {
                g.spawn(fail("boom"));
                let Err(cleanup) = catch(pending::<()>()).await else { unreachable!() };
                cleanup.absorb().expect("the request was made at the level of the body");
                sleep(ms(3)).await;
                assert!(g.spawn(async { Ok(()) }).await.unwrap_err().is_cancelled());
                inner.note("body done");
                Ok(())
            });
            assert!(failed.await.is_err());
            assert!(catch(sleep(ms(3))).await.is_ok());
        });
        sleep(ms(5)).await;
        assert!(!task.is_cancel_requested());
        task.await.unwrap();
        assert_eq!(trace.take(), ["body done"]);
    });
}

#[test]
fn an_outer_cancel_reaches_a_member_of_an_inner_group_that_ends_already_c119_b02() {
    let trace = check(async |trace| {
        let outer = task_group(async |outer| {
            outer.spawn(async {
                sleep(ms(2)).await;
                Err::<(), _>("outer")
            });
            let inner: Result<(), _> = task_group(async |inner| {
                inner.spawn(fail("inner"));
                tidy(trace, "inner body", 10).await;
                Ok(())
            })
            .await;
            trace.note(inner.unwrap_err());
            yield_now().await;
            trace.note("swallowed");
            Ok(())
        })
        .await;
        trace.note(outer.unwrap_err());
        trace.take()
    });
    let expected = ["inner body dropped", "inner body tidied", "member `member-0` failed: inner", "member `member-0` failed: outer"];
    assert_eq!(trace, expected);
}

#[test]
fn what_a_dropped_group_has_told_nobody_is_reported_g3_c118() {
    let (_, reports) = run(async |trace| {
        let inner = trace.clone();
        let task = spawn(async move {
            task_group(async |g| {
                g.spawn(fail("boom")).named("speller");
                g.spawn(async {
                    yield_now().await;
                    panic!("bang");
                });
                tidy(&inner, "body", 60_000).await;
                Ok(())
            })
            .await
        });
        sleep(ms(1)).await;
        task.named("main").abort();
        yield_now().await;
        assert_eq!(trace.take(), ["body dropped"]);
    });
    assert_eq!(reports, ["Panic member `member-1`: bang", "Error member `speller`: \"boom\""]);
}

#[test]
fn outside_any_task_a_group_ends_all_the_same_g2() {
    let (event_loop, _, trace) = crate::support::manual();
    let _entered = event_loop.handle().enter();
    let mut group = Box::pin(task_group(async |g| {
        g.spawn(async {
            tidy(&trace, "member", 5).await;
        });
        yield_now().await;
        yield_now().await;
        g.cancel();
    }));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let polls = (0..9).take_while(|_| group.as_mut().poll(&mut cx).is_pending()).count();
    assert!(polls < 9, "without a task there is no catch point");
    assert_eq!(trace.take(), ["member dropped"]);
}
