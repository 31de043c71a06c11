//! A dump whenever somebody asks from outside, with a signal.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::panic::Location;

use crate::dump::Dump;
use crate::engine::context;
use crate::engine::inspect;
use crate::outcome::Outcome;
use crate::report::Report;
use crate::signal::{Signal, Signals};
use crate::task::{Task, spawn};

/// Prints a [`dump`](crate::diag::dump) of the running loop to standard error whenever the process gets `signal`, until the task is
/// dropped. In one write, which waits if whoever reads standard error does not: a service whose log may stall uses [`dump_on_with`].
///
/// ```
/// use miniloop::diag;
/// use miniloop::signal::Signal;
///
/// miniloop::run(async {
///     diag::dump_on(Signal::USER1)?.detach(); // now: kill -USR1 PID
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`Signals::new`].
///
/// # Panics
/// Outside a loop.
#[doc(alias = "faulthandler")]
#[track_caller]
pub fn dump_on(signal: Signal) -> io::Result<Task<()>> {
    dump_on_with(signal, |dump| {
        // Nobody can be told that standard error is closed.
        let _ = io::stderr().write_all(format!("{dump}\n").as_bytes());
    })
}

/// The same with a function that does what it likes with the dump: `tracing::info!("{dump}")`, a file, a reply. An error or a panic of it
/// is reported to [`LoopHandle::on_error`](crate::LoopHandle::on_error); a panic or a `Break` also ends the task.
///
/// # Errors
/// As [`Signals::new`].
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn dump_on_with<O: Outcome>(signal: Signal, mut write: impl FnMut(&Dump) -> O + 'static) -> io::Result<Task<()>> {
    let mut signals = Signals::new([signal])?;
    let (id, name, place) = (context::current().id, format!("dump on signal {}", signal.as_raw()), Location::caller());
    let subject = format!("task `{name}`");
    let listening = async move {
        while signals.recv().await.is_ok() {
            // The current loop may be another one, which a task has entered.
            let Some(core) = context::resident(id) else { return };
            match write(&inspect::dump(&core)).into_flow() {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(failure) => core.report(Report::of_failure(failure, subject.clone(), place)),
            }
        }
    };
    Ok(spawn(listening).named(name))
}
