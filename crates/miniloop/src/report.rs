//! A failure that nobody else will hear of, on its way to the error handler.
//!
//! The loop carries on after every failure of user code, so it must say so somewhere: each one becomes a [`Report`], a job of the ready
//! queue, and goes to the handler of [`LoopHandle::on_error`](crate::LoopHandle::on_error). Without a handler it is logged with `tracing`;
//! without a subscriber it is one line on standard error. This file is also the end of that line: what is printed here cannot fail any
//! further.

use std::any::Any;
use std::fmt;
use std::io::Write;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};

use crate::one_line::OneLine;
use crate::outcome::Failure;
use crate::panic_payload::PanicPayload;

/// What failed, where it was made, and how.
///
/// ```
/// use miniloop::{EventLoop, ReportKind};
/// use std::{cell::RefCell, rc::Rc};
///
/// let mut event_loop = EventLoop::new()?;
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// event_loop.handle().on_error({
///     let seen = seen.clone();
///     move |report| seen.borrow_mut().push((report.kind(), report.message().to_owned()))
/// });
/// event_loop.handle().call_soon(|| Err::<(), _>("no such room"));
/// event_loop.run_once()?; // runs the callback
/// event_loop.run_once()?; // runs the handler
/// assert_eq!(*seen.borrow(), [(ReportKind::Error, "\"no such room\"".to_owned())]);
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[derive(Debug)]
pub struct Report {
    kind: ReportKind,
    subject: String,
    place: &'static Location<'static>,
    parents: Vec<String>,
    message: String,
    payload: Option<PanicPayload>,
}

/// The kinds of failure that are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportKind {
    /// A callback or a detached task returned an error.
    Error,
    /// A callback, or a task that nobody waits for, panicked.
    Panic,
    /// A destructor panicked while the loop dropped a value for its owner.
    DropPanic,
    /// Somebody was asked to stop and was still cleaning up when the grace for that ended: the rest was dropped.
    GraceExceeded,
    /// The loop itself is in trouble and works around it: a listener rests because the process is out of descriptors.
    Degraded,
    /// A callback or a poll took longer than [`Builder::slow_callback`](crate::Builder::slow_callback) allows.
    Slow,
    /// In debug mode: a task was dropped, and so cancelled, that nobody has ever awaited.
    Unawaited,
}

impl Report {
    pub(crate) fn new(kind: ReportKind, subject: String, place: &'static Location<'static>, message: String) -> Report {
        Report { kind, subject: OneLine(&subject).to_string(), place, parents: Vec::new(), message, payload: None }
    }

    pub(crate) fn of_failure(failure: Failure, subject: String, place: &'static Location<'static>) -> Report {
        match failure {
            Failure::Error(message) => Report::new(ReportKind::Error, subject, place, message),
            Failure::Panic(payload) => Report::of_panic(ReportKind::Panic, payload, subject, place),
        }
    }

    pub(crate) fn of_panic(kind: ReportKind, payload: Box<dyn Any + Send>, subject: String, place: &'static Location<'static>) -> Report {
        let payload = PanicPayload::new(payload);
        Report { payload: Some(payload), ..Report::new(kind, subject, place, String::new()) }
    }

    pub(crate) fn with_parents(self, parents: Vec<String>) -> Report {
        Report { parents: parents.iter().map(|parent| OneLine(parent).to_string()).collect(), ..self }
    }

    /// Logs it, for want of anybody who wants to hear it.
    pub(crate) fn log(&self) {
        match self.kind {
            ReportKind::Error | ReportKind::Panic | ReportKind::DropPanic | ReportKind::GraceExceeded | ReportKind::Degraded => {
                log_error(&self.to_string());
            }
            ReportKind::Slow | ReportKind::Unawaited => log_warning(&self.to_string()),
        }
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ReportKind {
        self.kind
    }

    /// Who failed: ``task `archive` ``, `callback`, `reader of descriptor 7`. Within one line, whatever the name, and a long one is
    /// cut off.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The line that made the failed task or callback.
    pub fn place(&self) -> &'static Location<'static> {
        self.place
    }

    /// The tasks that spawned the failed one and were still alive, its own parent first; the nearest 16.
    pub fn parents(&self) -> &[String] {
        &self.parents
    }

    /// The error as it prints with `{:?}`, or the text of the panic.
    pub fn message(&self) -> &str {
        self.payload.as_ref().map_or(&self.message, PanicPayload::message)
    }

    /// Takes what was panicked with, to be examined or [resumed](std::panic::resume_unwind). `None` when it was no panic, or for the second
    /// who asks.
    pub fn take_panic_payload(&self) -> Option<Box<dyn Any + Send>> {
        self.payload.as_ref()?.take()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.kind {
            ReportKind::Error => "failed",
            ReportKind::Panic => "panicked",
            ReportKind::DropPanic => "panicked while being dropped",
            ReportKind::GraceExceeded => "was dropped",
            ReportKind::Degraded => "is in trouble",
            ReportKind::Slow => "blocked the loop",
            ReportKind::Unawaited => "was dropped",
        };
        write!(f, "{} (made at {}) {verb}: {}", self.subject, self.place, self.message())?;
        if !self.parents.is_empty() {
            write!(f, "; spawned by {}", self.parents.join(", by "))?;
        }
        Ok(())
    }
}

/// Says it where somebody may read it: to `tracing`, or on standard error when nobody subscribed or the subscriber fails.
pub(crate) fn log_error(message: &str) {
    log(message, || {
        let enabled = tracing::enabled!(tracing::Level::ERROR);
        if enabled {
            tracing::error!("{message}");
        }
        enabled
    });
}

/// The same for what has hurt nobody yet.
pub(crate) fn log_warning(message: &str) {
    log(message, || {
        let enabled = tracing::enabled!(tracing::Level::WARN);
        if enabled {
            tracing::warn!("{message}");
        }
        enabled
    });
}

fn log(message: &str, subscribed: impl FnOnce() -> bool) {
    if !catch_unwind(AssertUnwindSafe(subscribed)).unwrap_or(false) {
        // Nobody can be told that standard error is closed.
        let _ = writeln!(std::io::stderr(), "miniloop: {message}");
    }
}
