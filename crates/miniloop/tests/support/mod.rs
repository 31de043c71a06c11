//! What the tests of the public API share: loops on a virtual clock, and traces of what happened in which order.
//!
//! Nothing here sleeps or reads the machine's clock. Read next: `callbacks.rs`, the simplest user.

#![allow(dead_code, reason = "every test program uses a part of it")]

use std::cell::RefCell;
use std::fmt::Display;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::rc::Rc;
use std::sync::Once;
use std::task::{Poll, Waker};
use std::time::Duration;

use miniloop::{EventLoop, LoopHandle, VirtualClock, yield_now};

/// What happened, in order. Clones write into the same list.
#[derive(Clone, Default)]
pub(crate) struct Trace(Rc<RefCell<Vec<String>>>);

impl Trace {
    pub(crate) fn note(&self, what: impl Display) {
        self.0.borrow_mut().push(what.to_string());
    }

    /// A callback that notes `what`.
    pub(crate) fn noting<W: Display>(&self, what: W) -> impl FnOnce() + use<W> {
        let (trace, what) = (self.clone(), what.to_string());
        move || trace.note(what)
    }

    /// The same for a callback that runs again and again.
    pub(crate) fn noting_each<W: Display>(&self, what: W) -> impl FnMut() + use<W> {
        let (trace, what) = (self.clone(), what.to_string());
        move || trace.note(&what)
    }

    /// A value that notes `what` when it is dropped.
    pub(crate) fn on_drop(&self, what: impl Display + 'static) -> OnDrop {
        on_drop(self.noting(what))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// What was noted since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }
}

/// A value whose destructor does anything.
pub(crate) struct OnDrop(Option<Box<dyn FnOnce()>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(|call| call());
    }
}

pub(crate) fn on_drop(call: impl FnOnce() + 'static) -> OnDrop {
    OnDrop(Some(Box::new(call)))
}

/// A value whose destructor panics with `message`.
pub(crate) fn panic_on_drop(message: &'static str) -> OnDrop {
    on_drop(move || panic!("{message}"))
}

/// What `call` panics with, and the file that it blames.
#[track_caller]
pub(crate) fn panic_of<R>(call: impl FnOnce() -> R) -> (String, String) {
    thread_local!(static BLAMED: RefCell<String> = const { RefCell::new(String::new()) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            BLAMED.set(info.location().map_or_else(String::new, |location| location.file().to_owned()));
            previous(info);
        }));
    });
    let payload = catch_unwind(AssertUnwindSafe(|| drop(call()))).expect_err("it should have panicked");
    let message = payload.downcast::<String>().map_or_else(|payload| (*payload.downcast::<&str>().unwrap()).to_owned(), |message| *message);
    (message, BLAMED.take())
}

/// A loop whose clock moves by hand.
pub(crate) fn manual() -> (EventLoop, VirtualClock, Trace) {
    on(VirtualClock::manual())
}

/// A loop whose clock jumps to the next deadline when nothing is left to do before it.
pub(crate) fn jumping() -> (EventLoop, VirtualClock, Trace) {
    on(VirtualClock::jumping())
}

fn on(clock: VirtualClock) -> (EventLoop, VirtualClock, Trace) {
    (EventLoop::builder().clock(&clock).build().unwrap(), clock, Trace::default())
}

/// Turns the loop by hand until nothing is ready, and returns the number of rounds.
pub(crate) fn run_dry(event_loop: &mut EventLoop) -> usize {
    let mut rounds = 0;
    while event_loop.next_timeout() == Some(Duration::ZERO) {
        event_loop.run_ready().unwrap();
        rounds += 1;
    }
    rounds
}

/// Notes every report as `Kind subject: message`.
pub(crate) fn trace_reports(handle: &LoopHandle) -> Trace {
    let trace = Trace::default();
    let reports = trace.clone();
    handle.on_error(move |report| reports.note(format_args!("{:?} {}: {}", report.kind(), report.subject(), report.message())));
    trace
}

/// Runs `fail` as a callback, then everything that follows from it, and compares the reports.
#[track_caller]
pub(crate) fn check_reports(fail: impl FnOnce(LoopHandle) + 'static, expected: &[&str]) {
    let (mut event_loop, ..) = manual();
    let handle = event_loop.handle();
    let reports = trace_reports(&handle);
    handle.clone().call_soon(move || fail(handle));
    run_dry(&mut event_loop);
    assert_eq!(reports.take(), expected);
    event_loop.run_until_complete(yield_now()).expect("the loop goes on");
    assert!(reports.take().is_empty(), "each failure is reported once");
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A future that is pending once: it gives its waker to `keep` and is done when it is polled again.
pub(crate) fn wait_once(keep: impl FnOnce(Waker)) -> impl Future<Output = ()> {
    let mut keep = Some(keep);
    poll_fn(move |cx| match keep.take() {
        Some(keep) => {
            keep(cx.waker().clone());
            Poll::Pending
        }
        None => Poll::Ready(()),
    })
}

/// Runs `work` on another thread, to its end.
pub(crate) fn on_another_thread<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Runs `body`, the rest of the test with this name, in a process of its own, and returns what that wrote to standard error.
#[track_caller]
pub(crate) fn in_a_process_of_its_own(test: &str, body: impl FnOnce()) -> String {
    const CHILD: &str = "MINILOOP_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        body();
        std::process::exit(0);
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([test, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("running 0 tests"), "there is no test `{test}`");
    stderr
}
