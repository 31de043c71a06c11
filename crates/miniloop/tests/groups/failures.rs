//! Who owns a failure (G3, G5, G8), who is waited for (G4), who is refused (G6), and how members appear to others.

use std::cell::Cell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, panic_any};

use futures_util::FutureExt;
use miniloop::{Child, TaskLocal, current_task, sleep, spawn, task_group, yield_now};

use crate::helpers::{check, fail, failures, run, stay, stay_in};
use crate::support::{Trace, jumping, ms};

// G3: each failure has one owner.

#[test]
fn the_failure_of_a_member_is_its_groups_and_the_child_only_tells_of_it_g3() {
    let child = Cell::new(None::<Child<()>>);
    let failed = check(async |_| {
        task_group(async |g| {
            child.set(Some(g.spawn(fail("boom"))));
            Ok(())
        })
        .await
    });
    assert_eq!(failures(failed.unwrap_err()), [("boom", false)]);
    let child = child.take().unwrap();
    assert!(child.is_finished());
    let told = child.now_or_never().unwrap().unwrap_err();
    assert!(told.is_failure() && !told.is_cancelled() && !told.is_panic(), "{told:?}");
    assert_eq!(told.to_string(), "the member failed, and its task group has the failure");
}

#[test]
fn a_caught_failure_is_the_childs_g3() {
    check(async |_| {
        task_group(async |g| {
            let error = g.spawn_caught(fail("boom"));
            let panic = g.spawn_caught(async { panic_any("bang") });
            assert_eq!(error.await.unwrap(), Err("boom"));
            assert_eq!(*panic.await.unwrap_err().into_panic().unwrap().downcast::<&str>().unwrap(), "bang");
            Ok(())
        })
        .await
        .unwrap();
    });
}

#[test]
fn a_caught_failure_that_nobody_has_read_goes_to_the_group_g3() {
    let failed = check(async |_| {
        task_group(async |g| {
            drop(g.spawn_caught(fail("dropped before")));
            sleep(ms(1)).await;
            Ok(())
        })
        .await
        .unwrap_err()
    });
    assert_eq!(failures(failed), [("dropped before", false)]);

    let failed = check(async |trace| {
        task_group(async |g| {
            let unread = g.spawn_caught(fail("dropped after"));
            g.spawn(stay_in(trace, "member"));
            sleep(ms(1)).await;
            drop(unread);
            pending::<Result<(), _>>().await
        })
        .await
        .unwrap_err()
    });
    assert_eq!(failures(failed), [("dropped after", false)]);

    // When the group has gone it is reported.
    let (_, reports) = run(async |_| {
        let unread = task_group(async |g| Ok::<_, &str>(g.spawn_caught(fail("too late")).named("speller"))).await;
        drop(unread);
    });
    assert_eq!(reports, ["Error member `speller`: \"too late\""]);
}

#[test]
fn dropping_a_child_does_nothing_g3() {
    let trace = check(async |trace| {
        task_group(async |g| {
            drop(g.spawn(async {
                sleep(ms(1)).await;
                trace.note("done");
            }));
        })
        .await;
        trace.take()
    });
    assert_eq!(trace, ["done"]);
}

// G4: waiting for members, not for services.

#[test]
fn a_body_that_ends_well_waits_for_members_and_cancels_services_then_g4() {
    let trace = check(async |trace| {
        task_group(async |g| {
            g.spawn_service(stay(trace, "service"));
            g.spawn_service(async { trace.note("a service may end by itself") });
            g.spawn(async {
                sleep(ms(5)).await;
                trace.note("member done");
            });
            trace.note("body done");
        })
        .await;
        trace.take()
    });
    assert_eq!(trace, ["body done", "a service may end by itself", "member done", "service dropped"]);
}

#[test]
fn a_service_outlives_the_members_while_the_body_goes_on_and_its_failure_counts_g4() {
    let trace = check(async |trace| {
        let failed = task_group(async |g| {
            let service = g.spawn_service(async {
                sleep(ms(9)).await;
                Err::<(), _>("service failed")
            });
            g.spawn(sleep(ms(1)).map(Ok));
            sleep(ms(5)).await;
            trace.note(format_args!("service finished: {}", service.is_finished()));
            pending::<Result<(), _>>().await
        });
        trace.note(failed.await.unwrap_err());
        trace.take()
    });
    assert_eq!(trace, ["service finished: false", "member `member-0` failed: service failed"]);
}

#[test]
fn a_group_of_services_alone_ends_at_once_g4() {
    let trace = check(async |trace| {
        task_group(async |g| {
            g.spawn_service(stay(trace, "never ran"));
        })
        .await;
        trace.take()
    });
    assert!(trace.is_empty());
}

// G5: panics.

#[test]
fn a_panic_waits_for_the_others_and_leaves_as_itself_g5_c122() {
    let (trace, reports) = run(async |trace| {
        let panicking = task_group(async |g| {
            g.spawn(stay_in::<&str>(trace, "member"));
            g.spawn(fail("an error too")).named("speller");
            g.spawn(async {
                yield_now().await;
                panic_any(7)
            })
            .named("bomb");
            g.spawn(async {
                yield_now().await;
                panic_any("another")
            });
            pending::<Result<(), _>>().await
        });
        let payload = AssertUnwindSafe(panicking).catch_unwind().await.unwrap_err();
        trace.note(payload.downcast::<i32>().unwrap());
        trace.take()
    });
    assert_eq!(trace, ["member dropped", "7"]);
    assert_eq!(reports, ["Panic member `member-3`: another", "Error member `speller`: \"an error too\""]);
}

#[test]
fn a_panic_of_the_body_waits_for_the_members_g5() {
    let trace = check(async |trace| {
        let panicking = task_group(async |g| {
            g.spawn(stay(trace, "member"));
            yield_now().await;
            panic_any("body");
        });
        let payload = AssertUnwindSafe(panicking).catch_unwind().await.unwrap_err();
        trace.note(payload.downcast::<&str>().unwrap());
        trace.take()
    });
    assert_eq!(trace, ["member dropped", "body"]);
}

// G6: spawning into a group that ends.

#[test]
fn a_group_that_ends_refuses_members_g6_c120_b06() {
    let trace = check(async |trace| {
        let failed = task_group(async |g| {
            g.cancel();
            for name in ["member", "service", "caught", "task"] {
                let dropped = trace.on_drop(format!("{name} disposed of"));
                let future = async move {
                    let _dropped = dropped;
                    unreachable!("it was refused")
                };
                let child: Child<()> = match name {
                    "member" => g.spawn(future),
                    "service" => g.spawn_service(future),
                    "caught" => g.spawn_caught(future),
                    _ => g.spawn_task(future),
                };
                assert!(child.is_finished());
                assert!(child.named("refused").isolate().await.unwrap_err().is_cancelled());
            }
            Err::<(), _>("body")
        })
        .await;
        trace.note(failed.unwrap_err());
        trace.take()
    });
    assert_eq!(
        trace,
        ["member disposed of", "service disposed of", "caught disposed of", "task disposed of", "body of a task group failed: body"]
    );
}

// G7: tasks of a group. How a dropped group goes: `lives.rs`.

#[test]
fn who_spawns_again_and_again_into_a_group_that_ends_gives_way_g6_o10() {
    let refused = Cell::new(0);
    check(async |_| {
        task_group(async |g| {
            g.cancel();
            while refused.get() < 1_000 && g.spawn(async {}).await.is_err() {
                refused.set(refused.get() + 1);
            }
        })
        .await;
    });
    // Having given way it is asked to stop, and as one that is awake it is polled once more.
    assert_eq!(refused.get(), 128);
}

#[test]
fn a_group_waits_for_its_tasks_and_has_their_failures_g7() {
    let trace = check(async |trace| {
        let seven = task_group(async |g| {
            let inner = trace.clone();
            let task = g.spawn_task(async move {
                sleep(ms(5)).await;
                inner.note("task done");
                Ok(7)
            });
            assert_eq!(task.await.unwrap(), 7);
            g.spawn_task(async { Err::<(), _>("boom") });
            Ok(())
        });
        trace.note(seven.await.unwrap_err());

        let panicking = task_group(async |g| {
            g.spawn_task(async { panic_any("bang") });
        });
        let payload = AssertUnwindSafe(panicking).catch_unwind().await.unwrap_err();
        trace.note(payload.downcast::<&str>().unwrap());
        trace.take()
    });
    assert_eq!(trace, ["task done", "member `member-1` failed: boom", "bang"]);
}

// G8: isolated members.

#[test]
fn what_fails_in_an_isolated_member_is_reported_and_ends_that_member_alone_g8() {
    let (trace, reports) = run(async |trace| {
        let served = task_group(async |g| {
            let child = g.spawn(fail("reset by peer")).named("connection").isolate();
            g.spawn(async { panic_any("bang") }).isolate();
            drop(g.spawn_caught(fail("unread")).isolate());
            g.spawn(sleep(ms(5)).map(Ok));
            assert!(child.await.unwrap_err().is_failure());
            Ok(1)
        });
        trace.note(served.await.unwrap());
        trace.take()
    });
    assert_eq!(trace, ["1"]);
    assert_eq!(
        reports,
        ["Panic member `member-1`: bang", "Error member `connection`: \"reset by peer\"", "Error member `member-2`: \"unread\""]
    );
}

// Names, parents, task-locals.

#[test]
fn a_member_is_the_current_task_and_a_parent_g3() {
    let (mut event_loop, _, trace) = jumping();
    let parents = trace.clone();
    event_loop.handle().on_error(move |report| parents.note(format_args!("{}: {:?}", report.subject(), report.parents())));
    let main = async {
        let outer = spawn(async {
            let (me, seen) = (current_task(), Cell::new(None));
            task_group(async |g| {
                let body = current_task();
                let child = g.spawn(async {
                    seen.set(current_task());
                    spawn(async { panic_any("bang") }).detach();
                    g.spawn(async { panic_any("bong") }).isolate().named("isolated");
                    yield_now().await;
                });
                let child = child.named("reader");
                let id = child.id();
                child.await.unwrap();
                assert!(seen.get() == Some(id) && body != me && body != Some(id));
                assert_eq!(current_task(), body);
            })
            .await;
            assert_eq!(current_task(), me);
        });
        outer.named("outer").await.unwrap();
        yield_now().await;
    };
    event_loop.run_until_complete(main).unwrap();
    let expected = ["member `isolated`: [\"task `outer`\"]", "task `task-1`: [\"member `reader`\", \"task `outer`\"]"];
    let mut told = trace.take();
    told.sort();
    assert_eq!(told, expected);
}

#[test]
fn members_inherit_the_task_locals_of_who_spawned_them_g3() {
    static REQUEST: TaskLocal<u32> = TaskLocal::new();
    check(async |trace| {
        let note = || trace.note(format_args!("{:?}", REQUEST.get()));
        task_group(async |g| {
            REQUEST
                .scope(7, async {
                    g.spawn(async {
                        yield_now().await;
                        note();
                    });
                })
                .await;
            note();
        })
        .await;
        assert_eq!(trace.take(), ["None", "Some(7)"]);
    });
}

#[test]
fn a_member_that_awaits_itself_panics_instead_of_hanging_g3() {
    let own = Cell::new(None::<Child<()>>);
    let waiting = async |_: &Trace| {
        task_group(async |g| {
            own.set(Some(g.spawn(async {
                let own = own.take().unwrap();
                let _ = own.await;
            })));
        })
        .await;
    };
    let payload = check(async |trace| AssertUnwindSafe(waiting(trace)).catch_unwind().await.unwrap_err());
    assert_eq!(*payload.downcast::<String>().unwrap(), "member `member-0` awaits itself and would never end");
}
