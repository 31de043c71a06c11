//! What the tests of groups share.

use std::future::{Future, pending};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use miniloop::{GroupError, yield_now};

use crate::support::{Trace, jumping, trace_reports};

/// Runs a test on a virtual clock, with a trace of what happens, and returns what was reported besides.
pub(crate) fn run<T>(main: impl AsyncFnOnce(&Trace) -> T) -> (T, Vec<String>) {
    let (mut event_loop, _, trace) = jumping();
    let reports = trace_reports(&event_loop.handle());
    let value = event_loop.run_until_complete(main(&trace)).unwrap();
    event_loop.run_until_complete(yield_now()).unwrap();
    (value, reports.take())
}

/// The same where nothing may be reported.
#[track_caller]
pub(crate) fn check<T>(main: impl AsyncFnOnce(&Trace) -> T) -> T {
    let (value, reports) = run(main);
    assert!(reports.is_empty(), "{reports:?}");
    value
}

/// Waits for ever, and notes when it is dropped.
pub(crate) async fn stay(trace: &Trace, name: &'static str) {
    let _dropped = trace.on_drop(format!("{name} dropped"));
    pending::<()>().await;
}

/// The same for a member of a group that can fail.
pub(crate) async fn stay_in<E>(trace: &Trace, name: &'static str) -> Result<(), E> {
    stay(trace, name).await;
    Ok(())
}

/// Fails in the second round.
pub(crate) async fn fail(message: &'static str) -> Result<(), &'static str> {
    yield_now().await;
    Err(message)
}

pub(crate) fn failures(error: GroupError<&'static str>) -> Vec<(&'static str, bool)> {
    error.iter().map(|failure| (*failure.error(), failure.was_cancelling())).collect()
}

/// Polls a future once, as a foreign executor that does not care when it is woken.
pub(crate) fn poll_once<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}
