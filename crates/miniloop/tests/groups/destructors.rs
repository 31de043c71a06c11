//! What the destructors of members and bodies may do: panic, spawn, cancel, wake, and look who they are.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::{Future, pending, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use miniloop::{Child, TaskLocal, current_task, task_group, yield_now};

use crate::helpers::{poll_once, stay};
use crate::support::{manual, on_drop, panic_of, panic_on_drop, trace_reports, wait_once};

#[test]
fn a_destructor_that_panics_is_reported_and_hurts_nobody_else_g5() {
    let (mut event_loop, _, trace) = manual();
    let reports = trace_reports(&event_loop.handle());
    let main = async {
        task_group(async |g| {
            // In a member that ends, in one that is dropped, in a value that nobody reads, in the body.
            let owned = panic_on_drop("ended");
            g.spawn(poll_fn(move |_| {
                let _owned = &owned;
                Poll::Ready(())
            }))
            .named("ended");
            let owned = panic_on_drop("dropped");
            g.spawn_service(async move {
                let _owned = owned;
                pending::<()>().await;
            });
            g.spawn_service(stay(&trace, "service"));
            yield_now().await;
            yield_now().await;
            drop(g.spawn(async { Ok(panic_on_drop("value")) }));
            Ok::<(), ()>(())
        })
        .await
        .unwrap();
        trace.note("group ended");
    };
    event_loop.run_until_complete(main).unwrap();
    event_loop.run_until_complete(yield_now()).unwrap();
    assert_eq!(trace.take(), ["service dropped", "group ended"]);
    let expected =
        ["DropPanic member `ended`: ended", "DropPanic value of member `member-3`: value", "DropPanic member `member-1`: dropped"];
    assert_eq!(reports.take(), expected);
}

#[test]
fn a_value_that_only_the_body_still_sees_is_dropped_with_care_g5() {
    static SEEN: TaskLocal<Box<dyn Any>> = TaskLocal::new();
    let (mut event_loop, _, _) = manual();
    let reports = trace_reports(&event_loop.handle());
    let main = async {
        let mut group = Box::pin(task_group(async |g| {
            g.spawn(async {
                yield_now().await;
                Err::<(), _>("broken")
            });
            pending::<Result<(), &str>>().await
        }));
        let first_poll = poll_fn(|cx| Poll::Ready(group.as_mut().poll(cx).is_pending()));
        assert!(SEEN.scope(Box::new(panic_on_drop("seen")), first_poll).await);
        assert!(group.await.is_err());
    };
    event_loop.run_until_complete(main).unwrap();
    event_loop.run_until_complete(yield_now()).unwrap();
    assert_eq!(reports.take(), ["DropPanic task-local value: seen"]);
}

#[test]
fn a_body_that_panics_when_a_group_is_dropped_leaves_no_member_behind_g7() {
    let (mut event_loop, _, trace) = manual();
    let reports = trace_reports(&event_loop.handle());
    let _entered = event_loop.handle().enter();
    let mut group = Box::pin(task_group(async |g| {
        g.spawn(stay(&trace, "first"));
        let owned = panic_on_drop("second");
        g.spawn(async move {
            let _owned = owned;
            pending::<()>().await;
        });
        g.spawn(stay(&trace, "third"));
        let _owned = panic_on_drop("body");
        pending::<()>().await;
    }));
    assert!(poll_once(&mut group).is_pending());
    assert!(poll_once(&mut group).is_pending());
    drop(group);
    assert_eq!(trace.take(), ["third dropped", "first dropped"]);
    event_loop.run_ready().unwrap();
    let expected = ["DropPanic body of a task group: body", "DropPanic member `member-1`: second"];
    assert_eq!(reports.take(), expected);
}

#[test]
fn a_destructor_that_panics_while_a_panic_drops_its_group_ends_no_process_g5_g7() {
    let (mut event_loop, ..) = manual();
    let reports = trace_reports(&event_loop.handle());
    let entered = event_loop.handle().enter();
    let mut group = Box::pin(task_group(async |g| {
        let owned = panic_on_drop("member");
        g.spawn(async move {
            let _owned = owned;
            pending::<()>().await;
        });
        let _owned = panic_on_drop("body");
        pending::<()>().await;
    }));
    assert!(poll_once(&mut group).is_pending());
    let (message, _) = panic_of(move || {
        let _group = group;
        panic!("outside")
    });
    drop(entered);
    event_loop.run_ready().unwrap();
    let expected = ["DropPanic body of a task group: body", "DropPanic member `member-0`: member"];
    assert_eq!((message.as_str(), reports.take()), ("outside", expected.map(str::to_owned).to_vec()));
}

/// A future that panics when it is polled, and again when it is dropped.
struct PanicsTwice;

impl Future for PanicsTwice {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        panic!("in its poll")
    }
}

impl Drop for PanicsTwice {
    fn drop(&mut self) {
        panic!("in its destructor")
    }
}

#[test]
fn a_member_that_panics_in_its_poll_and_in_its_destructor_is_two_failures_g5_g8() {
    let (mut event_loop, ..) = manual();
    let reports = trace_reports(&event_loop.handle());
    let group = task_group(async |g| {
        g.spawn(PanicsTwice).isolate();
        yield_now().await;
        yield_now().await;
        g.spawn(PanicsTwice);
        pending::<()>().await;
    });
    let (message, _) = panic_of(|| event_loop.run_until_complete(group));
    event_loop.run_ready().unwrap();
    let expected = [
        "DropPanic member `member-0`: in its destructor",
        "Panic member `member-0`: in its poll",
        "DropPanic member `member-1`: in its destructor",
    ];
    assert_eq!((message.as_str(), reports.take()), ("in its poll", expected.map(str::to_owned).to_vec()));
}

#[test]
fn what_a_dropped_group_drops_acts_as_who_held_it_g7() {
    let (mut event_loop, ..) = manual();
    static CITY: TaskLocal<&str> = TaskLocal::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let owned = |name| {
        let (seen, inside) = (seen.clone(), current_task());
        on_drop(move || seen.borrow_mut().push((name, current_task() == inside, CITY.get())))
    };
    let main = async {
        let mut group = Box::pin(CITY.scope(
            "Bern",
            task_group(async |g| {
                g.spawn(async {
                    let _owned = owned("member");
                    pending::<()>().await;
                });
                let _owned = owned("body");
                pending::<()>().await;
            }),
        ));
        assert!(poll_fn(|cx| Poll::Ready(group.as_mut().poll(cx).is_pending())).await);
        yield_now().await;
        assert!(poll_fn(|cx| Poll::Ready(group.as_mut().poll(cx).is_pending())).await);
        drop(group);
    };
    event_loop.run_until_complete(main).unwrap();
    assert_eq!(*seen.borrow(), [("body", true, Some("Bern")), ("member", true, Some("Bern"))]);
}

#[test]
fn destructors_may_spawn_while_the_group_is_open_and_are_refused_when_it_goes_g6() {
    struct Spawns<'a, F: Fn()>(&'a F);
    impl<F: Fn()> Drop for Spawns<'_, F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let (mut event_loop, _, trace) = manual();
    let late = Cell::new(None::<Child<()>>);
    let main = async {
        task_group(async |g| {
            g.spawn(async {
                let spawn = || drop(g.spawn(async { trace.note("spawned by a destructor") }));
                let _spawns = Spawns(&spawn);
                yield_now().await;
            });
            yield_now().await;
            g.spawn_service(async {
                let spawn = || late.set(Some(g.spawn(async { trace.note("it was refused") })));
                let _spawns = Spawns(&spawn);
                pending::<()>().await;
            });
        })
        .await;
    };
    event_loop.run_until_complete(main).unwrap();
    assert_eq!(trace.take(), ["spawned by a destructor"]);
    assert!(late.take().unwrap().is_finished());

    let _entered = event_loop.handle().enter();
    let mut group = Box::pin(task_group(async |g| {
        for _ in 0..2 {
            g.spawn(async {
                let spawn = || late.set(Some(g.spawn(async { trace.note("it was refused") })));
                let _spawns = Spawns(&spawn);
                pending::<()>().await;
            });
        }
        let spawn = || drop(g.spawn(async { unreachable!("it was refused") }));
        let _spawns = Spawns(&spawn);
        pending::<()>().await;
    }));
    assert!(poll_once(&mut group).is_pending());
    assert!(poll_once(&mut group).is_pending());
    drop(group);
    assert!(late.take().unwrap().is_finished());
}

#[test]
fn destructors_may_cancel_wake_and_drop_whatever_belongs_to_the_group_g7() {
    let (mut event_loop, _, trace) = manual();
    let reports = trace_reports(&event_loop.handle());
    let (children, wakers) = (Rc::new(RefCell::new(Vec::<Child<()>>::new())), Rc::new(RefCell::new(Vec::<Waker>::new())));
    let main = async {
        task_group(async |g| {
            for name in ["first", "second", "third"] {
                let (all, kept, wakers) = (children.clone(), trace.on_drop(name), wakers.clone());
                let touch = on_drop({
                    let (all, wakers) = (all.clone(), wakers.clone());
                    move || {
                        let taken = all.take();
                        taken.iter().for_each(Child::cancel);
                        drop(taken);
                        wakers.take().into_iter().for_each(Waker::wake);
                    }
                });
                let child = g.spawn_caught(async move {
                    let _owned = (kept, touch);
                    wait_once(|waker| wakers.borrow_mut().push(waker)).await;
                    pending::<Result<(), ()>>().await.unwrap();
                });
                all.borrow_mut().push(child);
            }
            yield_now().await;
            yield_now().await;
            Err::<(), _>("boom")
        })
        .await
    };
    assert!(event_loop.run_until_complete(main).unwrap().is_err());
    // The first to go has woken the others, who are owed a poll, in the order of their wakes.
    assert_eq!(trace.take(), ["third", "first", "second"]);
    assert!(reports.take().is_empty());
}
