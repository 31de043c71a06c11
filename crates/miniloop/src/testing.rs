//! What an asynchronous test runs on: virtual time, and no failure overlooked. `#[miniloop::test]` calls this.

use std::cell::RefCell;
use std::future::Future;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::clock::{Clock, VirtualClock};
use crate::config::GRACE;
use crate::error::LoopError;
use crate::event_loop::EventLoop;

/// Runs a test on a loop of its own, with a clock that [jumps](VirtualClock::jumping).
///
/// ```
/// use miniloop::{now, sleep, testing};
/// use std::time::Duration;
///
/// testing::run(async {
///     let start = now();
///     sleep(Duration::from_secs(3_600)).await; // microseconds
///     assert_eq!(now() - start, Duration::from_secs(3_600));
/// });
/// ```
///
/// With the feature `macros` it is an attribute:
///
/// ```
/// # #[cfg(feature = "macros")]
/// #[miniloop::test]
/// async fn an_hour_passes() {
///     miniloop::sleep(std::time::Duration::from_secs(3_600)).await;
/// }
/// ```
///
/// A test that sets an [error handler](crate::LoopHandle::on_error) of its own judges itself what comes there.
///
/// # Panics
/// When the test does; when something failed that nobody has read (a callback, a detached task, a dropped one that panicked), also after
/// the test's end, while what it left is being cancelled; when nothing can happen any more, with a [dump](crate::diag::dump) of who waits
/// for what.
#[track_caller]
pub fn run<F: Future>(test: F) -> F::Output {
    run_with(VirtualClock::jumping().into(), test)
}

/// The same on the system's clock: for a test of another process, whose time is real.
///
/// ```
/// miniloop::testing::run_on_system_clock(async { assert!(miniloop::now().as_nanos() > 0) });
/// ```
///
/// # Panics
/// As [`run`].
#[track_caller]
pub fn run_on_system_clock<F: Future>(test: F) -> F::Output {
    run_with(Clock::SYSTEM, test)
}

#[track_caller]
fn run_with<F: Future>(clock: Clock, test: F) -> F::Output {
    let mut event_loop = match EventLoop::builder().clock(clock).build() {
        Ok(event_loop) => event_loop,
        Err(error) => panic!("{error}"),
    };
    let unread = Rc::new(RefCell::new(Vec::new()));
    let seen = unread.clone();
    event_loop.handle().on_error(move |report| {
        seen.borrow_mut().push(report.to_string());
        ControlFlow::Break(())
    });
    let result = event_loop.run_until_complete(test).and_then(|value| event_loop.shutdown(GRACE).map(|()| value));
    event_loop.close();
    match result {
        Err(error @ LoopError::Deadlock(_)) => panic!("{error}\n{OUTSIDE}"),
        Err(error) if !matches!(error, LoopError::Failed(_)) => panic!("{error}"),
        Ok(value) if unread.borrow().is_empty() => value,
        _ => panic!("{}", unread.borrow().join("\n")),
    }
}

/// What a deadlock may be besides: virtual time waits for nobody outside.
const OUTSIDE: &str = "if a process or a thread outside the loop was to act, test it in real time: `#[miniloop::test(system_clock)]`";
