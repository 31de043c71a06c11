//! Cancellation: catch points, clean-up and grace, rule by rule (C1 to C13 of ARCHITECTURE.md; C4, C9, C10 and C12 also in `tasks.rs`).

#[path = "../support/mod.rs"]
mod support;
mod order;
mod guards;
mod parked_and_moved;
mod ends;

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use miniloop::{Cleanup, EventLoop, Task, catch, sleep, yield_now};
use support::{Trace, jumping, ms, trace_reports};

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

/// Polls `future` once and leaves it where it is.
async fn poll_once<F: Future + Unpin>(future: &mut F) {
    assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await);
}
