//! Records what a loop does, as a file for `chrome://tracing` or <https://ui.perfetto.dev>.
//!
//! The loop only records, in memory and up to a bound (`engine/timeline.rs`). When the recording ends, a thread of its own makes text of
//! the records and writes it, so a slow disk or a reader of a pipe cannot hold the loop: [`TraceGuard::finish`] is awaited, and dropping
//! the guard waits no longer than `TRACE_WRITE_GRACE`. The text itself is `diag/chrome.rs`.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::{Errno, ioctl_fionbio};

use crate::config::{TRACE_EVENTS_MAX, TRACE_WRITE_GRACE};
use crate::diag::chrome;
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::in_flight::poll_counted;
use crate::engine::probes::TIMELINE;
use crate::engine::timeline::{Records, Timeline};
use crate::handle::LoopHandle;
use crate::panic_payload::PanicPayload;
use crate::primitives::{Arc, Condvar, Mutex, lock, wait_while};
use crate::reply::{Receiver, reply};
use crate::report::{log_error, log_warning};
use crate::thread::start::start;

/// Records what the running loop does from now on; the file is made at once and written when the guard ends.
///
/// ```
/// use miniloop::diag;
///
/// let path = std::env::temp_dir().join(format!("trace-{}.json", std::process::id()));
/// miniloop::run(async {
///     let trace = diag::trace(&path)?;
///     miniloop::spawn(async { miniloop::yield_now().await }).named("worker").await.unwrap();
///     let summary = trace.finish().await?;
///     assert_eq!(summary.dropped, 0);
///     Ok::<(), std::io::Error>(())
/// })??;
/// assert!(std::fs::read_to_string(&path)?.contains("\"worker\""));
/// std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The file cannot be made; [`BrokenPipe`](io::ErrorKind::BrokenPipe) for a named pipe that nobody reads;
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when a trace of this loop is being recorded: then the file is left as it is.
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn trace(path: impl AsRef<Path>) -> io::Result<TraceGuard> {
    let handle = LoopHandle::current();
    // First: what the file holds is not lost for a trace that is refused.
    handle.check_untraced()?;
    handle.trace(create(path.as_ref())?)
}

/// A pipe that nobody reads would hold the loop until somebody does. So opening it must not block, and writing may.
fn create(path: &Path) -> io::Result<File> {
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().write(true).create(true).truncate(true).custom_flags(nonblocking).open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::NXIO) => {
            let text = format!("nobody reads the pipe {}: start its reader first, or name a file", path.display());
            io::Error::new(io::ErrorKind::BrokenPipe, text)
        }
        _ => error,
    })?;
    ioctl_fionbio(&file, false)?;
    Ok(file)
}

impl LoopHandle {
    /// Records what this loop does until the guard ends, and writes it to `writer`: turns, polls of the driver, rounds, jobs by the names
    /// of their tasks, and an arrow from what woke a task to its next poll. As JSON in the trace event format.
    ///
    /// Times are those of the loop's clock, each at least a nanosecond after the one before: on a virtual clock that is all that passes
    /// inside a turn. While it is recorded, a job costs some 100 ns more.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when a trace of this loop is being recorded.
    pub fn trace(&self, writer: impl Write + Send + 'static) -> io::Result<TraceGuard> {
        self.check_untraced()?;
        let core = &self.core;
        // The job that runs now is not recorded as one, its wakes are, as those of the turn.
        let timeline = Timeline::new(TRACE_EVENTS_MAX, core.clock.now(), context::current_task_of(core.id).is_some());
        *core.probes.timeline.borrow_mut() = Some(timeline);
        core.probes.set(TIMELINE, true);
        Ok(TraceGuard { core: core.clone(), writer: Some(Box::new(writer)) })
    }

    fn check_untraced(&self) -> io::Result<()> {
        if self.core.probes.has(TIMELINE) {
            let text = "a trace of this event loop is being recorded: finish that one first";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(())
    }
}

/// A trace that is being recorded, see [`trace`].
///
/// [`finish`](TraceGuard::finish) is the normal end. Dropping the guard ends the recording, too, and waits for at most 5 s until it is
/// written; a failure is logged then.
#[must_use = "the recording ends when the guard is dropped"]
pub struct TraceGuard {
    core: Rc<Core>,
    /// `None` once it has ended.
    writer: Option<Box<dyn Write + Send>>,
}

/// What became of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceSummary {
    /// How many stretches of time and wakes were recorded.
    pub recorded: u64,
    /// How many there was no room for.
    pub dropped: u64,
}

impl TraceGuard {
    /// Changes how many events are recorded at most; 200,000 by default, some 10 MB. What comes when they are there is only counted.
    pub fn events_max(self, events_max: usize) -> TraceGuard {
        if let Some(timeline) = &mut *self.core.probes.timeline.borrow_mut() {
            timeline.set_records_max(events_max);
        }
        self
    }

    /// Ends the recording, now, and has a thread write it, which the future waits for.
    ///
    /// # Errors
    /// Those of the writer, and that the system has no thread left.
    ///
    /// # Cancellation
    /// Dropping the future leaves the thread to write on by itself; a failure is logged.
    pub fn finish(mut self) -> Finish {
        let (sender, written) = reply();
        let told = move |result: io::Result<TraceSummary>| {
            if let Err(Err(unread)) = sender.send(result) {
                log_unwritten(&unread);
            }
        };
        Finish { refused: self.end(told).err(), written, is_over: false }
    }

    /// Ends the recording and starts a thread that writes it and tells how that went.
    fn end(&mut self, told: impl FnOnce(io::Result<TraceSummary>) + Send + 'static) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let probes = &self.core.probes;
        probes.set(TIMELINE, false);
        let timeline = probes.timeline.take();
        let mut records = timeline.map(|timeline| timeline.finish(self.core.clock.now())).unwrap_or_default();
        records.loop_number = self.core.number;
        start("trace", move || told(write(records, writer))).map(drop)
    }
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        if self.writer.is_some() && !self.is_written_within(TRACE_WRITE_GRACE) {
            log_warning(&format!("a trace is still being written after {TRACE_WRITE_GRACE:?}, and is left to itself"));
        }
    }
}

impl TraceGuard {
    /// Ends the recording, and waits until it is written or has failed, which is logged, but not for longer than the limit.
    fn is_written_within(&mut self, limit: Duration) -> bool {
        let written = Arc::new((Mutex::new(false), Condvar::new()));
        let telling = written.clone();
        let started = self.end(move |result| {
            if let Err(error) = &result {
                log_unwritten(error);
            }
            *lock(&telling.0) = true;
            telling.1.notify_all();
        });
        if let Err(error) = started {
            log_unwritten(&error);
            return true;
        }
        !wait_while(&written.1, lock(&written.0), limit, |is_written| !is_written).1
    }
}

impl fmt::Debug for TraceGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceGuard").finish_non_exhaustive()
    }
}

/// The future of [`TraceGuard::finish`].
///
/// # Panics
/// When polled again after it has given its result.
#[must_use = "awaiting it says whether the trace was written"]
pub struct Finish {
    /// No thread could be started.
    refused: Option<io::Error>,
    written: Receiver<io::Result<TraceSummary>>,
    is_over: bool,
}

impl Future for Finish {
    type Output = io::Result<TraceSummary>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over, "this trace was polled after it had been written");
        if let Some(error) = self.refused.take() {
            self.is_over = true;
            return Poll::Ready(Err(error));
        }
        let polled = poll_counted(cx, |_| false, |cx| self.written.poll(cx));
        let result = ready!(context::waiting_for(&"a trace to be written", polled));
        self.is_over = true;
        Poll::Ready(result.unwrap_or_else(|| Err(io::Error::other("the thread that writes a trace has vanished"))))
    }
}

impl fmt::Debug for Finish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Finish").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

/// On a thread of its own.
fn write(records: Records, writer: Box<dyn Write + Send>) -> io::Result<TraceSummary> {
    let summary = TraceSummary { recorded: records.len() as u64, dropped: records.dropped };
    let written = catch_unwind(AssertUnwindSafe(move || {
        let mut writer = BufWriter::new(writer);
        let written = chrome::write(records, &mut writer).and_then(|()| writer.flush());
        // Its destructor would write again what could not be written.
        drop(writer.into_parts());
        written
    }));
    match written {
        Ok(result) => result.map(|()| summary),
        Err(payload) => Err(io::Error::other(format!("the writer panicked: {}", PanicPayload::into_message(payload)))),
    }
}

fn log_unwritten(error: &io::Error) {
    log_error(&format!("a trace could not be written: {error}"));
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::mpsc::{Receiver, channel};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;
    use crate::EventLoop;

    /// A disk that takes what it is given once it is told to.
    struct Stuck(Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map(|()| bytes.len()).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_is_stuck_holds_who_drops_a_trace_for_a_limited_time() {
        let event_loop = EventLoop::new().unwrap();
        let (release, stuck) = channel();
        let mut trace = event_loop.handle().trace(Stuck(stuck)).unwrap();
        assert!(!trace.is_written_within(Duration::from_millis(1)));
        drop(release);
        drop(trace);
        // The next one is written.
        assert!(event_loop.handle().trace(io::sink()).unwrap().is_written_within(TRACE_WRITE_GRACE));
    }

    #[test]
    fn a_named_pipe_holds_nobody_while_it_has_no_reader_and_gets_the_trace_when_it_has_one() {
        let mut event_loop = EventLoop::new().unwrap();
        let path = std::env::temp_dir().join(format!("miniloop-trace-{}", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let _loop_is_current = event_loop.handle().enter();
        let error = trace(&path).unwrap_err();
        assert_eq!(error.to_string(), format!("nobody reads the pipe {}: start its reader first, or name a file", path.display()));
        let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
        let mut reader = File::options().read(true).custom_flags(nonblocking).open(&path).unwrap();
        let trace = trace(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        ioctl_fionbio(&reader, false).unwrap();
        event_loop.run_until_complete(trace.finish()).unwrap().unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.contains("thread_name"), "{text}");
    }

    #[test]
    fn a_trace_records_so_many_events_unless_told_otherwise() {
        let mut event_loop = EventLoop::new().unwrap();
        let trace = event_loop.handle().trace(io::sink()).unwrap();
        event_loop
            .run_until_complete(async {
                for _ in 0..100_000 {
                    crate::yield_now().await;
                }
            })
            .unwrap();
        let summary = event_loop.run_until_complete(trace.finish()).unwrap().unwrap();
        assert_eq!(summary.recorded, 200_000);
        assert!(summary.dropped > 0);
    }
}
