//! Tasks: from spawn to the result, cancelling (C4, C9, C10, C12), names and identity (C062 to C071).

mod support;

use std::cell::Cell;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::panic::panic_any;
use std::rc::Rc;
use std::task::Poll;

use miniloop::{Abandoned, LoopHandle, Task, TaskError, TaskId, current_task, promise, sleep, spawn, yield_now};
use support::{OnDrop, Trace, jumping, manual, ms, panic_of, run_dry};

#[test]
fn spawning_only_schedules_and_tasks_start_in_creation_order_o1_c062() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            for name in ["a", "b", "c"] {
                let noting = trace.noting(name);
                spawn(async { noting() }).detach();
            }
            trace.note("spawned");
            yield_now().await;
        })
        .unwrap();
    assert_eq!(trace.take(), ["spawned", "a", "b", "c"]);
}

#[test]
fn woken_tasks_resume_in_the_next_round_in_completion_order_c063() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let resolvers: Vec<_> = ["a", "b", "c"]
        .into_iter()
        .map(|name| {
            let (resolver, promise) = promise::<(), Abandoned>();
            let noting = trace.noting(name);
            handle
                .spawn(async move {
                    promise.await.unwrap();
                    noting();
                })
                .detach();
            resolver
        })
        .collect();
    event_loop.run_once().unwrap();
    handle.call_soon({
        let trace = trace.clone();
        move || {
            resolvers.into_iter().rev().for_each(|resolver| resolver.set_result(()));
            trace.note("completed");
        }
    });
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["completed"]);
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["c", "b", "a"]);
}

#[test]
fn the_value_of_a_task_reaches_who_awaits_it_calls_back_or_shares_it() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            assert_eq!(spawn(async { 1 }).await.unwrap(), 1);
            let done = spawn(async { 2 });
            yield_now().await;
            assert!(done.is_finished());
            assert_eq!(done.await.unwrap(), 2);
            let seen = trace.clone();
            spawn(async { 3 }).on_done(move |result| seen.note(result.unwrap()));
            let shared = spawn(async { 4 }).shared();
            assert_eq!(*shared.clone().await.as_ref().as_ref().unwrap(), 4);
            assert_eq!(*shared.await.as_ref().as_ref().unwrap(), 4);
            yield_now().await;
        })
        .unwrap();
    assert_eq!(trace.take(), ["3"]);
}

#[test]
fn a_panic_reaches_the_reader_as_a_value_with_its_payload() {
    let (mut event_loop, ..) = manual();
    let error = event_loop.run_until_complete(async { spawn(async { panic_any("boom 1".to_owned()) }).await }).unwrap();
    let error: TaskError = Result::<(), _>::unwrap_err(error);
    assert!(error.is_panic() && !error.is_cancelled() && error.source().is_none());
    assert_eq!((error.to_string().as_str(), format!("{error:?}").as_str()), ("the task panicked: boom 1", "Panicked(\"boom 1\")"));
    assert_eq!(*error.into_panic().unwrap().downcast::<String>().unwrap(), "boom 1");
}

#[test]
fn a_task_that_awaits_itself_panics_and_says_so_c064() {
    let (mut event_loop, ..) = manual();
    let message = event_loop
        .run_until_complete(async {
            let own = Rc::new(Cell::new(None::<Task<()>>));
            let inside = own.clone();
            let task = spawn(async move {
                let own = inside.take().unwrap();
                own.await.unwrap();
            })
            .named("narcissus");
            let failed = std::rc::Rc::new(std::cell::RefCell::new(String::new()));
            let seen = failed.clone();
            LoopHandle::current().on_error(move |report| *seen.borrow_mut() = report.message().to_owned());
            own.set(Some(task));
            yield_now().await;
            yield_now().await;
            failed.take()
        })
        .unwrap();
    assert_eq!(message, "task `narcissus` awaits itself and would never end");
}

#[test]
fn a_task_first_awaited_under_another_loop_panics_naming_both_c065() {
    let (mut first, ..) = manual();
    let (mut second, ..) = manual();
    let mut task = first.handle().spawn(pending::<()>());
    first.run_until_complete(poll_fn(|cx| Poll::Ready(futures_util::FutureExt::poll_unpin(&mut task, cx).is_pending()))).unwrap();
    let (message, _) = panic_of(|| second.run_until_complete(&mut task));
    let numbers: Vec<_> = message.split(|c: char| !c.is_ascii_digit()).filter(|number| !number.is_empty()).collect();
    assert!(message.contains("task") && numbers.len() == 2 && numbers[0] != numbers[1], "{message}");
    second.run_until_complete(async {}).unwrap();
}

#[test]
fn the_current_task_is_right_across_interleaving_and_empty_in_callbacks_c068() {
    let (mut event_loop, _, trace) = manual();
    assert!(current_task().is_none());
    event_loop
        .run_until_complete(async {
            let main = current_task().unwrap();
            let ids: Vec<Task<Vec<TaskId>>> = (0..2)
                .map(|_| {
                    spawn(async {
                        let mut seen = Vec::new();
                        for _ in 0..3 {
                            seen.push(current_task().unwrap());
                            yield_now().await;
                        }
                        seen
                    })
                })
                .collect();
            let seen = trace.clone();
            LoopHandle::current().call_soon(move || seen.note(format_args!("callback: {:?}", current_task())));
            for task in ids {
                let id = task.id();
                assert_ne!(id, main);
                assert_eq!(task.await.unwrap(), [id; 3]);
            }
            assert_eq!(current_task(), Some(main));
        })
        .unwrap();
    assert_eq!(trace.take(), ["callback: None"]);
    assert!(current_task().is_none());
}

#[test]
fn the_identity_of_a_task_is_not_given_to_the_next_one_in_its_place_c071() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            let mut ids = Vec::new();
            for _ in 0..100 {
                let task = spawn(async {});
                ids.push(task.id());
                task.await.unwrap();
            }
            let repeated = ids.iter().enumerate().any(|(n, id)| ids[n + 1..].contains(id));
            assert!(!repeated);
        })
        .unwrap();
}

#[test]
fn names_are_automatic_unique_and_settable_and_printed_c071() {
    let (event_loop, ..) = manual();
    let handle = event_loop.handle();
    let (first, second) = (handle.spawn(async {}), handle.spawn(async {}));
    assert_eq!((first.name(), second.name()), ("task-0".to_owned(), "task-1".to_owned()));
    let named = first.named("pump");
    assert_eq!(named.name(), "pump");
    assert!(format!("{named:?}").contains("pump"));
}

/// Spawns a task that notes its polls and its end, and waits for ever.
fn spawn_waiting(handle: &LoopHandle, trace: &Trace) -> Task<()> {
    let (trace, dropped) = (trace.clone(), trace.on_drop("dropped"));
    handle.spawn(async move {
        let _dropped = dropped;
        trace.note("polled");
        pending::<()>().await;
    })
}

#[test]
fn cancelling_drops_the_future_in_the_tasks_own_next_job_c4_c076() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let task = spawn_waiting(&handle, &trace);
    event_loop.run_once().unwrap();
    handle.call_soon(trace.noting("ready before"));
    task.cancel();
    handle.call_soon(trace.noting("ready after"));
    trace.note("cancel returned");
    task.cancel(); // again: nothing more
    assert!(!task.is_finished());
    assert_eq!(run_dry(&mut event_loop), 1);
    assert_eq!(trace.take(), ["polled", "cancel returned", "ready before", "dropped", "ready after"]);
    let ended = event_loop.run_until_complete(task).unwrap().unwrap_err();
    assert!(ended.is_cancelled() && !ended.is_panic());
    assert_eq!((ended.to_string().as_str(), ended.into_panic().is_none()), ("the task was cancelled", true));
}

#[test]
fn dropping_the_handle_cancels_in_the_tasks_own_job_and_detaching_does_not() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let task = spawn_waiting(&handle, &trace);
    spawn_waiting(&handle, &trace).detach();
    event_loop.run_once().unwrap();
    drop(task);
    trace.note("handle dropped");
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["polled", "polled", "handle dropped", "dropped"]);
    event_loop.close();
    assert_eq!(trace.take(), ["dropped"]);
}

#[test]
fn a_task_cancelled_before_its_first_poll_never_runs_c9_c077() {
    let (mut event_loop, _, trace) = manual();
    let task = spawn_waiting(&event_loop.handle(), &trace);
    task.cancel();
    event_loop.run_once().unwrap();
    assert_eq!((trace.take(), task.is_finished()), (vec!["dropped".to_owned()], true));
}

#[test]
fn a_task_that_has_its_value_ends_with_it_although_it_was_cancelled_c10_c082() {
    let (mut event_loop, ..) = manual();
    event_loop
        .run_until_complete(async {
            // Cancelled after it had ended.
            let task = spawn(async { 1 });
            yield_now().await;
            task.cancel();
            assert_eq!(task.await.unwrap(), 1);
            // Cancelled by itself in the poll that gives the value.
            let own = Rc::new(Cell::new(None::<Task<i32>>));
            let (inside, (resolver, kept)) = (own.clone(), promise::<Task<i32>, Abandoned>());
            own.set(Some(spawn(async move {
                let own = inside.take().unwrap();
                own.cancel();
                resolver.set_result(own);
                2
            })));
            assert_eq!(kept.await.unwrap().await.unwrap(), 2);
        })
        .unwrap();
}

#[test]
fn a_task_cancelled_after_a_wake_is_polled_once_more_and_only_then_dropped_c12_c078() {
    for waits_again in [false, true] {
        let (mut event_loop, _, trace) = manual();
        let (resolver, promise) = promise::<i32, Abandoned>();
        let (noting, dropped) = (trace.noting("has its value"), trace.on_drop("dropped"));
        let task = event_loop.handle().spawn(async move {
            let _dropped = dropped;
            let value = promise.await.unwrap();
            noting();
            if waits_again {
                yield_now().await;
            }
            value
        });
        event_loop.run_once().unwrap();
        resolver.set_result(7);
        task.cancel();
        run_dry(&mut event_loop);
        assert_eq!(trace.take(), ["has its value", "dropped"]);
        assert_eq!(event_loop.run_until_complete(task).unwrap().ok(), (!waits_again).then_some(7));
    }
}

#[test]
fn cancelling_reaches_through_awaited_tasks_because_their_handles_are_dropped_c089() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let dropped = ["inner", "middle", "outer"].map(|name| trace.on_drop(name));
    let [inner, middle, outer] = dropped;
    let task = handle.spawn(async move {
        let _outer = outer;
        let middle = spawn(async move {
            let _middle = middle;
            let inner = spawn(async move {
                let _inner = inner;
                pending::<()>().await;
            });
            let _ = inner.await;
        });
        let _ = middle.await;
    });
    run_dry(&mut event_loop);
    task.cancel();
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["outer", "middle", "inner"]);
}

#[test]
fn who_awaits_a_cancelled_task_is_told_and_goes_on_c088() {
    let (mut event_loop, ..) = jumping();
    event_loop
        .run_until_complete(async {
            let task = spawn(pending::<()>());
            yield_now().await;
            task.cancel();
            assert!(task.await.unwrap_err().is_cancelled());
            sleep(ms(1)).await;
        })
        .unwrap();
}

#[test]
fn shutdown_cancels_newest_first_and_also_what_is_spawned_meanwhile_c042() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    for name in ["first", "second", "third"] {
        let owned = trace.on_drop(name);
        handle.spawn(holding(owned)).detach();
    }
    let (inner, late) = (handle.clone(), trace.on_drop("spawned by a destructor"));
    handle.spawn(holding(support::on_drop(move || inner.spawn(holding(late)).detach()))).detach();
    run_dry(&mut event_loop);
    let timer = handle.call_later(ms(1), || ());
    handle.call_soon(trace.noting("a callback runs"));
    event_loop.shutdown(ms(5)).unwrap();
    assert_eq!(trace.take(), ["a callback runs", "third", "second", "first", "spawned by a destructor"]);
    assert!(timer.is_pending(), "a timer stays");
}

async fn holding(owned: OnDrop) {
    let _owned = owned;
    pending::<()>().await;
}

#[test]
fn a_future_and_its_value_are_dropped_exactly_once_whatever_happens() {
    type Ending = fn(&LoopHandle, Task<OnDrop>);
    let endings: [(&str, Ending); 7] = [
        ("read", |handle, task| handle.spawn(async { drop(task.await) }).detach()),
        ("dropped", |_, task| drop(task)),
        ("cancelled", |handle, task| {
            task.cancel();
            handle.call_soon(move || drop(task));
        }),
        ("called back", |_, task| drop(task.on_done(drop))),
        ("shared", |handle, task| {
            let shared = task.shared();
            let again = shared.clone();
            handle.spawn(async { drop((shared.await, again.await)) }).detach();
        }),
        ("callback cancelled", |_, task| task.on_done(drop).cancel()),
        ("kept until the loop closes", |handle, task| {
            handle.call_at(miniloop::Instant::FAR_FUTURE, move || drop(task));
        }),
    ];
    for rounds in 0..3 {
        for (name, end) in &endings {
            let (mut event_loop, _, trace) = manual();
            let handle = event_loop.handle();
            let (future, value) = (trace.on_drop("future"), trace.on_drop("value"));
            let task = handle.spawn(async move {
                let _future = future;
                yield_now().await;
                value
            });
            (0..rounds).for_each(|_| event_loop.run_once().unwrap());
            end(&handle, task);
            run_dry(&mut event_loop);
            event_loop.close();
            let mut dropped = trace.take();
            dropped.sort();
            assert_eq!(dropped, ["future", "value"], "{name} after {rounds} rounds");
        }
    }
}

#[test]
fn a_future_is_dropped_before_its_result_is_handed_over() {
    let (mut event_loop, _, trace) = manual();
    let owned = trace.on_drop("future dropped");
    let task = event_loop.handle().spawn(poll_fn(move |_| {
        let _owned = &owned;
        Poll::Ready(7)
    }));
    let seen = trace.clone();
    let value = event_loop.run_until_complete(async move {
        let value = task.await.unwrap();
        seen.note("value read");
        value
    });
    assert_eq!((value.unwrap(), trace.take()), (7, vec!["future dropped".to_owned(), "value read".to_owned()]));
}
