//! Futures that are not polled any more, and those that are polled elsewhere (C6, C13).

use std::cell::RefCell;
use std::future::{Pending, pending, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::support::{Trace, jumping, manual, ms, run_dry};
use crate::{assert_no_nodes, check, clean_up, polite, poll_once};
use futures_util::future::{self, Either};
use futures_util::stream::{FuturesUnordered, StreamExt};
use miniloop::{Catch, EventLoop, catch, now, shield, sleep, spawn, timeout, yield_now};

type Answer = Pin<Box<dyn Future<Output = bool>>>;

/// A future that has been polled once, on its way out of the task that did it.
struct Polled<F>(F);

async fn polled_once<F: Future + Unpin>(mut future: F) -> Polled<F> {
    poll_once(&mut future).await;
    Polled(future)
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
fn a_catch_point_answers_to_the_task_that_polled_it_last_c13() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let noting = trace.clone();
            let moved = Box::pin(async move { polite(&noting, "moved").await });
            let first = spawn(polled_once(moved));
            let moved = first.await.unwrap().0;
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
            let moved = Box::pin(timeout(ms(500), async move { polite(&noting, "moved").await }));
            let first = spawn(polled_once(moved));
            first.cancel_within(ms(1_000)); // never ran: it is dropped with what it was to move
            assert!(first.await.is_err());
            let noting = trace.clone();
            let moved = Box::pin(timeout(ms(500), async move { polite(&noting, "moved").await }));
            let first = spawn(polled_once(moved));
            let second = spawn(async move { first.await.unwrap().0.await });
            sleep(ms(1)).await;
            second.cancel();
            assert_eq!(second.await.unwrap(), Ok(()));
        })
        .unwrap();
    assert_eq!(trace.take(), ["moved begins", "moved is clean"]);
    assert_no_nodes(&event_loop);
}

#[test]
fn what_moves_to_another_task_holds_nobody_up_and_hears_of_no_old_request_c13() {
    let (mut event_loop, _, trace) = jumping();
    event_loop
        .run_until_complete(async {
            let poll_shared = |shared: &Rc<RefCell<Option<Answer>>>| {
                let shared = shared.clone();
                poll_fn(move |cx| shared.borrow_mut().as_mut().map_or(Poll::Pending, |moved| moved.as_mut().poll(cx)))
            };
            // The first task waits for the shield, until that is polled by the second.
            let shielded: Answer = Box::pin(async { catch(shield(sleep(ms(50)))).await.is_ok() });
            let shared = Rc::new(RefCell::new(Some(shielded)));
            let first = spawn(poll_shared(&shared));
            yield_now().await;
            first.cancel();
            sleep(ms(5)).await;
            assert!(!first.is_finished());
            let moved = shared.take().unwrap();
            let second = spawn(moved);
            assert!(first.await.is_err());
            assert_eq!(now().as_nanos(), 5_000_000);
            assert!(second.await.unwrap());
            // It was chosen and parked when its task ended. Who cleans up elsewhere awaits it undisturbed.
            let asked: Answer = Box::pin(async { catch(sleep(ms(200))).await.is_ok() });
            let shared = Rc::new(RefCell::new(Some(asked)));
            let parking = shared.clone();
            let first = spawn(async move {
                let mut asked = parking.take().unwrap();
                poll_once(&mut asked).await;
                parking.replace(Some(asked));
                pending::<()>().await;
            });
            yield_now().await;
            first.cancel();
            assert!(first.await.is_err());
            let noting = trace.clone();
            let second = spawn(async move {
                let cleanup = catch(pending::<()>()).await.unwrap_err();
                noting.note(shared.take().unwrap().await);
                cleanup.finish();
            });
            yield_now().await;
            second.cancel();
            assert!(second.await.is_ok());
        })
        .unwrap();
    assert_eq!(trace.take(), ["true"]);
    assert_no_nodes(&event_loop);
}

#[test]
fn outside_any_task_catch_points_and_shields_are_not_there_c13() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut caught = pin!(catch(shield(poll_fn(|_| Poll::Ready(3)))));
    assert!(matches!(caught.as_mut().poll(&mut cx), Poll::Ready(Ok(3))));
    let (mut event_loop, ..) = manual();
    // First polled in a task, which is cancelled, then outside any.
    let caught = Box::pin(catch(pending::<()>()));
    let task = event_loop.handle().spawn(polled_once(caught));
    let mut caught = event_loop.run_until_complete(task).unwrap().unwrap().0;
    assert!(caught.as_mut().poll(&mut cx).is_pending());
    assert_no_nodes(&event_loop);
}

#[test]
fn a_catch_point_may_move_to_another_loop_c13() {
    let (mut first, ..) = manual();
    let (mut second, _, trace) = manual();
    let caught = Box::pin(catch(pending::<()>()));
    let task = first.handle().spawn(polled_once(caught));
    let caught = first.run_until_complete(task).unwrap().unwrap().0;
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
fn what_outlived_its_loop_is_new_to_a_loop_that_has_the_number_of_that_one_c13() {
    let poll_in = |event_loop: &mut EventLoop, futures: &mut [Catch<Pending<()>>]| {
        let poll = async |future| poll_once(future).await;
        event_loop
            .run_until_complete(async {
                for future in futures {
                    poll(future).await
                }
            })
            .unwrap();
    };
    // As many loops as have numbers: one of them has the number of the first.
    let mut futures: Vec<_> = (0..4_096).map(|_| catch(pending())).collect();
    poll_in(&mut EventLoop::new().unwrap(), &mut futures);
    for future in &mut futures {
        poll_in(&mut EventLoop::new().unwrap(), std::slice::from_mut(future));
    }
}
