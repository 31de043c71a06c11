//! Destructors that panic: reported, and nobody else is hurt. While a loop closes: `closing.rs`.

mod support;

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::panic::panic_any;
use std::rc::Rc;
use std::task::Poll;

use miniloop::thread::Worker;
use miniloop::{CallbackHandle, EventLoop, LoopHandle, Task, spawn_blocking, yield_now};
use support::{OnDrop, check_reports as check, manual, ms, on_drop, panic_on_drop, run_dry, trace_reports};

fn boom() -> OnDrop {
    panic_on_drop("boom")
}

#[test]
fn a_callback_drops_what_it_owns_within_its_call_and_a_cancelled_one_in_cancel() {
    check(|l| drop(l.call_soon(move || drop(boom()))), &["Panic callback: boom"]);
    check(
        |l| {
            let owned = boom();
            l.call_soon(move || drop(owned)).cancel();
        },
        &["DropPanic callback: boom"],
    );
    check(
        |l| {
            let owned = boom();
            l.call_later(ms(1), move || drop(owned)).cancel();
        },
        &["DropPanic callback: boom"],
    );
    check(
        |l| {
            let owned = boom();
            l.call_every(ms(0), move || {
                let _owned = &owned;
                ControlFlow::Break(())
            });
        },
        &["DropPanic callback: boom"],
    );
}

#[test]
fn a_future_that_panics_when_dropped_is_told_apart_from_one_that_panics_when_polled() {
    check(
        |l| {
            let local = boom();
            l.spawn(async move {
                yield_now().await;
                drop(local);
            })
            .detach();
        },
        &["Panic task `task-0`: boom"],
    );
    check(
        |l| {
            // No local of the body, so it is dropped with the future, after that has ended.
            let owned = boom();
            l.spawn(poll_fn(move |_| {
                let _owned = &owned;
                Poll::Ready(())
            }))
            .detach();
        },
        &["DropPanic task `task-0`: boom"],
    );
}

#[test]
fn a_value_that_nobody_reads_goes_with_who_was_to_read_it() {
    check(|l| drop(l.spawn(async { boom() })), &[]); // cancelled before it made one
    check(
        |l| {
            let task = l.spawn(async { boom() });
            l.call_soon(move || drop(task));
        },
        &["Panic callback: boom"],
    );
    check(
        |l| {
            // The handle goes in the very poll that makes the value: nobody is left to read it.
            let own = Rc::new(Cell::new(None::<Task<OnDrop>>));
            let inside = own.clone();
            own.set(Some(l.spawn(async move {
                drop(inside.take());
                boom()
            })));
        },
        &["DropPanic value of a task: boom"],
    );
}

/// What somebody panics with.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        panic!("the payload");
    }
}

#[test]
fn what_was_panicked_with_may_panic_when_dropped() {
    check(
        |l| drop(l.call_soon(|| panic_any(Payload))),
        &["Panic callback: (a panic without a text)", "DropPanic error handler: the payload"],
    );
}

#[test]
fn what_another_thread_has_panicked_with_does_not_panic_in_who_drops_the_unread_result() {
    let mut event_loop = EventLoop::builder().blocking_threads(1).build().unwrap();
    event_loop
        .run_until_complete(async {
            let unread = spawn_blocking(|| panic_any(Payload));
            spawn_blocking(|| ()).await.unwrap(); // the one thread has come so far
            drop(unread);
            let worker = Worker::new("worker", || ()).unwrap();
            let unread = worker.call(|()| panic_any(Payload));
            worker.call(|()| ()).await.unwrap_err();
            drop(unread);
            let unread = LoopHandle::current().remote().spawn(async || panic_any(Payload)).unwrap();
            while !unread.is_finished() {
                yield_now().await;
            }
            drop(unread);
        })
        .unwrap();
}

#[test]
fn an_error_handler_may_be_replaced_also_by_itself_and_panic_when_dropped_c046() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let owned = boom();
    handle.on_error(move |_| {
        let _owned = &owned;
    });
    let reports = trace_reports(&handle);
    run_dry(&mut event_loop);
    assert_eq!(reports.take(), ["DropPanic error handler: boom"]);

    let (inner, seen, owned) = (handle.clone(), trace.clone(), panic_on_drop("first handler"));
    handle.on_error(move |report| {
        let _owned = &owned;
        seen.note(format_args!("first: {}", report.message()));
        let seen = seen.clone();
        inner.on_error(move |report| seen.note(format_args!("second: {}", report.message())));
    });
    handle.call_soon(|| Err::<(), _>(1));
    handle.call_soon(|| Err::<(), _>(2));
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["first: 1", "second: 2", "second: first handler"]);
}

#[test]
fn a_callback_whose_destructor_cancels_it_is_dropped_once_c007() {
    let (mut event_loop, _, trace) = manual();
    let own = Rc::new(OnceCell::<CallbackHandle>::new());
    let (inner, seen) = (own.clone(), trace.clone());
    let owned = on_drop(move || {
        seen.note("dropped");
        inner.get().unwrap().cancel();
    });
    own.set(event_loop.handle().call_soon(move || drop(owned))).unwrap();
    own.get().unwrap().cancel();
    run_dry(&mut event_loop);
    assert_eq!(trace.take(), ["dropped"]);
}
