//! What can go wrong with a loop itself, as opposed to the code that it runs.

use std::fmt;
use std::io;

use crate::dump::{Dump, TaskLines};
use crate::report::Report;

/// Why a loop could not be made or turned.
///
/// It prints the same with `{:?}` as with `{}`: a `main` that returns it, and `unwrap`, show the whole sentence.
#[non_exhaustive]
pub enum LoopError {
    /// The loop has been closed.
    Closed,
    /// A loop runs on this thread already, this one or another: one thread runs one loop at a time.
    AlreadyRunning,
    /// [`LoopHandle::stop`](crate::LoopHandle::stop) was called before the future given to `run_until_complete` was done.
    Stopped,
    /// On a virtual clock: nothing is left that could happen, unless somebody moves the clock. The dump says who waits, and on a manual
    /// clock with timers how far away the next deadline is.
    Deadlock(Box<Dump>),
    /// The error handler returned `Break` for this report.
    Failed(Box<Report>),
    /// The system refused a call without which no loop can work.
    Io(io::Error),
}

impl fmt::Display for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoopError::Closed => f.write_str("the event loop is closed"),
            LoopError::AlreadyRunning => f.write_str(
                "an event loop is already running on this thread; await the future, or spawn it, instead of running a loop inside a loop",
            ),
            LoopError::Stopped => f.write_str("the event loop was stopped before the future was done"),
            LoopError::Deadlock(dump) => write_deadlock(f, dump),
            LoopError::Failed(report) => write!(f, "the error handler stopped the event loop: {report}"),
            LoopError::Io(error) => write!(f, "the event loop cannot wait for events: {error}"),
        }
    }
}

/// What a user needs to know of a loop in which nothing can happen any more: how to go on, and a line for everybody who waits.
fn write_deadlock(f: &mut fmt::Formatter<'_>, dump: &Dump) -> fmt::Result {
    f.write_str("nothing is left that could happen on the virtual clock")?;
    if let Some(delay) = dump.next_timer {
        write!(f, " until it is moved: the next deadline is {delay:?} away, `VirtualClock::advance` leads there")?;
    }
    if dump.tasks.is_empty() { f.write_str("; no task waits") } else { write!(f, "; waiting:{}", TaskLines(dump)) }
}

impl fmt::Debug for LoopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for LoopError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoopError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for LoopError {
    fn from(error: io::Error) -> LoopError {
        LoopError::Io(error)
    }
}
