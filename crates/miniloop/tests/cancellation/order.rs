//! Who is asked, and in which order (C1, C2, C11, C12), seen as asyncio's tests see it.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use crate::support::{Trace, jumping, manual, ms, run_dry};
use crate::{check, clean_up, polite};
use futures_util::future::{self};
use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{CancelReason, Task, TaskError, catch, sleep, spawn, timeout, yield_now};

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
