//! How a group is used, when it ends (G1), and how the first failure ends it (G2).

use std::cell::Cell;
use std::convert::Infallible;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::num::ParseIntError;
use std::rc::Rc;
use std::task::Poll;

use miniloop::{sleep, spawn, task_group, yield_now};

use crate::helpers::{check, fail, failures, stay, stay_in};
use crate::support::ms;

// What it is like to use.

#[test]
fn a_group_that_can_fail_leads_to_its_value_with_one_question_mark_g1() {
    async fn parse(text: &str) -> Result<usize, ParseIntError> {
        yield_now().await;
        text.parse()
    }
    async fn total(config: String) -> Result<usize, Box<dyn Error>> {
        let mut seen = Vec::new();
        let total = task_group(async |g| {
            let awaited = g.spawn(async { parse(&config).await });
            g.spawn(parse(&config));
            g.spawn(async {
                seen.push(parse(&config).await?);
                Ok(())
            });
            g.spawn(async { /* cannot fail */ });
            Ok(7 + awaited.await.unwrap())
        })
        .await?;
        assert_eq!(seen, [3]);
        Ok(total)
    }
    assert_eq!(check(async |_| total("3".into()).await.unwrap()), 10);
    let failed = check(async |_| total("three".into()).await.unwrap_err());
    assert_eq!(failed.to_string(), "member `member-0` failed: invalid digit found in string (and 2 more)");
}

#[test]
fn a_group_may_fail_with_a_box_of_any_error_g1() {
    async fn run(text: &str) -> Result<(), Box<dyn Error>> {
        task_group(async |g| {
            g.spawn(async {
                text.parse::<i32>()?;
                if text == "4" { Err("it is four".into()) } else { Ok(()) }
            });
            Ok::<_, Box<dyn Error>>(())
        })
        .await?;
        Ok(())
    }
    let told = |text| check(async |_| run(text).await.unwrap_err().to_string());
    assert_eq!(told("4"), "member `member-0` failed: it is four");
    assert_eq!(told("four"), "member `member-0` failed: invalid digit found in string");
}

#[test]
fn a_group_in_which_nobody_can_fail_ends_with_nothing_g1() {
    let (mut a, mut b) = (1, 2);
    check(async |_| {
        task_group(async |g| {
            g.spawn(async { a += 1 });
            g.spawn(async { b += 1 });
        })
        .await;
        let sum: Result<i32, _> = task_group(async |_| Ok::<_, Infallible>(a + b)).await;
        assert_eq!(sum.unwrap(), 5);
        task_group(async |g| {
            loop {
                g.cancel();
                yield_now().await;
            }
        })
        .await;
    });
}

// G1: it ends when everybody has.

#[test]
fn a_group_ends_when_its_body_and_all_members_have_been_dropped_g1_c115() {
    let trace = check(async |trace| {
        task_group(async |g| {
            let _dropped = trace.on_drop("body dropped");
            g.spawn(async {
                let _dropped = trace.on_drop("first dropped");
                sleep(ms(2)).await;
                g.spawn(async {
                    sleep(ms(2)).await;
                    trace.note("a member of a member");
                });
            });
        })
        .await;
        trace.note("group ended");
        trace.take()
    });
    assert_eq!(trace, ["body dropped", "first dropped", "a member of a member", "group ended"]);
}

#[test]
fn members_run_in_the_order_in_which_they_become_ready_each_once_a_round_g1() {
    let trace = check(async |trace| {
        task_group(async |g| {
            for name in ["a", "b", "c"] {
                g.spawn(async move {
                    for step in 1..3 {
                        trace.note(format_args!("{name}{step}"));
                        yield_now().await;
                    }
                });
            }
            trace.note("body");
        })
        .await;
        trace.take()
    });
    assert_eq!(trace, ["body", "a1", "b1", "c1", "a2", "b2", "c2"]);
}

#[test]
fn a_poll_of_a_group_polls_at_most_32_members_and_none_that_was_not_woken_g1() {
    let (per_round, polls) = check(async |_| {
        let polls = Rc::new(Cell::new(0));
        let seen = polls.clone();
        let neighbour = spawn(async move {
            let mut per_round = Vec::new();
            while per_round.len() < 7 {
                per_round.push(seen.get());
                yield_now().await;
            }
            per_round
        });
        task_group(async |g| {
            for _ in 0..100 {
                g.spawn(async {
                    poll_fn(|_| {
                        polls.set(polls.get() + 1);
                        Poll::<()>::Pending
                    })
                    .await;
                });
            }
            // Neither wakes of the body nor those of a neighbour poll them again.
            for _ in 0..8 {
                yield_now().await;
            }
            g.cancel();
        })
        .await;
        (neighbour.await.unwrap(), polls.get())
    });
    assert_eq!(per_round, [0, 32, 64, 96, 100, 100, 100]);
    assert_eq!(polls, 100);
}

// G2: the first failure ends the group.

#[test]
fn the_first_error_drops_the_body_and_the_others_newest_first_g2_g7_c116() {
    let (failed, trace) = check(async |trace| {
        let failed = task_group(async |g| {
            g.spawn(stay_in(trace, "first"));
            g.spawn(fail("boom"));
            g.spawn(stay_in(trace, "second"));
            stay(trace, "body").await;
            Ok(())
        })
        .await;
        (failed.unwrap_err(), trace.take())
    });
    assert_eq!(trace, ["body dropped", "second dropped", "first dropped"]);
    assert_eq!(failed.first(), Some(&"boom"));
    let failure = failed.into_iter().next().unwrap();
    assert_eq!((failure.subject(), failure.was_cancelling()), ("member `member-1`", false));
    assert!(failure.place().file().ends_with("together.rs"));
}

#[test]
fn an_error_of_the_body_ends_the_members_g2() {
    let (failed, trace) = check(async |trace| {
        let failed = task_group(async |g| {
            g.spawn(stay_in(trace, "member"));
            yield_now().await;
            Err::<(), _>("body")
        })
        .await;
        (failed.unwrap_err(), trace.take())
    });
    assert_eq!(trace, ["member dropped"]);
    assert_eq!(failed.to_string(), "body of a task group failed: body");
}

#[test]
fn errors_of_those_who_are_being_cancelled_are_kept_and_marked_g2_c116() {
    let failed = check(async |_| {
        task_group(async |g| {
            g.spawn(fail("first"));
            // Woken in the same round: each gets the poll that it is owed (C12), and fails in it.
            g.spawn(fail("second"));
            g.spawn(async { Ok(()) });
            fail("body").await
        })
        .await
    });
    assert_eq!(failures(failed.unwrap_err()), [("body", false), ("first", true), ("second", true)]);
}

#[test]
fn who_was_woken_is_polled_once_and_who_never_ran_is_not_g2() {
    let trace = check(async |trace| {
        let failed = task_group(async |g| {
            g.spawn(fail("boom"));
            g.spawn(async {
                yield_now().await;
                trace.note("owed a poll");
                yield_now().await;
                trace.note("and no more");
                Ok(())
            });
            yield_now().await;
            g.spawn(async {
                trace.note("never");
                Ok(())
            });
            pending::<Result<(), _>>().await
        })
        .await;
        trace.note(failed.unwrap_err());
        trace.take()
    });
    assert_eq!(trace, ["owed a poll", "member `member-0` failed: boom"]);
}

#[test]
fn a_member_that_is_cancelled_is_no_error_and_ends_nobody_else_g2_c117() {
    let trace = check(async |trace| {
        let seven = task_group(async |g| {
            let stopped = g.spawn(stay_in(trace, "stopped"));
            let done = g.spawn(async { Ok(7) });
            yield_now().await;
            stopped.cancel();
            stopped.cancel();
            assert!(stopped.await.unwrap_err().is_cancelled());
            done.cancel();
            Ok::<_, &str>(done.await.unwrap())
        })
        .await;
        trace.note(seven.unwrap());
        trace.take()
    });
    assert_eq!(trace, ["stopped dropped", "7"]);
}

#[test]
fn who_awaits_a_member_that_fails_is_cancelled_before_it_can_trip_over_that_g2() {
    let failed = check(async |_| {
        task_group(async |g| {
            let failing = g.spawn(fail("boom"));
            failing.await.unwrap();
            Ok(())
        })
        .await
    });
    assert_eq!(failures(failed.unwrap_err()), [("boom", false)]);
}

// Cancelling from inside and from outside.

#[test]
fn cancel_ends_a_group_without_an_error_however_often_it_is_called_g2_c121() {
    check(async |trace| {
        task_group(async |g| {
            g.spawn(stay(trace, "member"));
            g.spawn(async {
                g.cancel();
                g.cancel();
            });
            stay(trace, "body").await;
        })
        .await;
        assert_eq!(trace.take(), ["body dropped", "member dropped"]);

        let value = task_group(async |g| {
            g.cancel();
            g.spawn(async { Err::<(), _>("never ran") });
            Ok(7)
        });
        assert_eq!(value.await.unwrap(), 7, "a body that has its value by then keeps it");

        let cut_short = task_group(async |g| {
            g.spawn(async { g.cancel() });
            pending::<Result<(), &str>>().await
        });
        let error = cut_short.await.unwrap_err();
        assert!(error.is_cancelled() && error.first().is_none());
        assert_eq!(error.to_string(), "the task group was cancelled");
    });
}

#[test]
fn cancelling_the_task_drops_its_group_c118() {
    let trace = check(async |trace| {
        let inner = trace.clone();
        let task = spawn(async move {
            task_group(async |g| {
                g.spawn(stay(&inner, "first"));
                g.spawn(stay(&inner, "second"));
                stay(&inner, "body").await;
            })
            .await;
            inner.note("swallowed");
        });
        yield_now().await;
        yield_now().await;
        task.cancel();
        assert!(task.await.unwrap_err().is_cancelled());
        trace.take()
    });
    assert_eq!(trace, ["body dropped", "second dropped", "first dropped"]);
}

#[test]
fn a_group_that_is_cancelled_with_its_outer_group_goes_no_further_c119_b02() {
    let trace = check(async |trace| {
        let failed = task_group(async |outer| {
            outer.spawn(fail("outer"));
            let inner = task_group(async |inner| {
                inner.spawn(fail("inner"));
                pending::<Result<(), &str>>().await
            })
            .await;
            // Both failed in one round. The body is owed this poll, and gets no other.
            trace.note(inner.unwrap_err());
            yield_now().await;
            trace.note("swallowed");
            Ok(())
        })
        .await;
        trace.note(failed.unwrap_err());
        trace.take()
    });
    assert!(!trace.contains(&"swallowed".to_owned()), "{trace:?}");
    assert_eq!(trace.last().unwrap(), "member `member-0` failed: outer");
}

#[test]
fn a_group_leaves_no_cancel_behind_b04() {
    check(async |trace| {
        let main = spawn({
            let trace = trace.clone();
            async move {
                let failed = task_group(async |g| {
                    g.spawn(fail("boom"));
                    pending::<Result<(), &str>>().await
                });
                assert!(failed.await.is_err());
                sleep(ms(1)).await;
                task_group(async |g| {
                    g.spawn(sleep(ms(1)));
                })
                .await;
                trace.note("undisturbed");
            }
        });
        main.await.unwrap();
        assert_eq!(trace.take(), ["undisturbed"]);
    });
}
