//! The callback face of a loop: everything that callbacks and tasks may do to the loop that runs them.
//!
//! The handle is a reference to the loop's state and nothing more; it can be cloned, kept, and used after the loop has closed, when it
//! says so. The await face is `task.rs`; the owner, who turns the loop, is `event_loop.rs`.

use std::cell::{Cell, RefCell, RefMut};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::panic::Location;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use crate::driver::{Direction, Discarded, Driver};
use crate::engine::context::{self, Entered};
use crate::engine::core::{Core, ErrorHandler};
use crate::engine::job::{Cause, Job, Repeat};
use crate::engine::record::Origin;
use crate::engine::waker;
use crate::engine::word::Word;
use crate::error::LoopError;
use crate::instant::Instant;
use crate::outcome::Outcome;
use crate::report::Report;

/// A reference to a loop, for the thread that the loop lives on. For other threads there is [`remote`](LoopHandle::remote).
///
/// While the loop is being closed, callbacks given to it are dropped at once and their handles are cancelled ones.
///
/// # Panics
/// Methods that schedule something panic once the loop is closed, and name the caller's line; [`LoopHandle::try_call_soon`] returns an
/// error.
#[derive(Clone)]
pub struct LoopHandle {
    pub(crate) core: Rc<Core>,
}

impl LoopHandle {
    /// The loop that runs on this thread, or was [entered](LoopHandle::enter) last.
    ///
    /// # Panics
    /// When there is none; [`LoopHandle::try_current`] says so politely.
    #[doc(alias = "get_running_loop")]
    #[track_caller]
    pub fn current() -> LoopHandle {
        LoopHandle { core: context::current() }
    }

    /// The loop that runs on this thread, if one does.
    pub fn try_current() -> Option<LoopHandle> {
        context::try_current().map(|core| LoopHandle { core })
    }

    /// Runs `callback` in the next round, after everything that is ready already.
    ///
    /// ```
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let handle = event_loop.handle();
    /// let (hello, stop) = (handle.clone(), handle.clone());
    /// handle.call_soon(move || {
    ///     println!("hello");
    ///     hello.call_soon(move || stop.stop());
    /// });
    /// event_loop.run_forever()?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    #[track_caller]
    pub fn call_soon<O: Outcome>(&self, callback: impl FnOnce() -> O + 'static) -> CallbackHandle {
        self.schedule_once(self.core.must_accept_work(), callback, Location::caller())
    }

    /// The same, for code that may run after the loop was closed.
    ///
    /// # Errors
    /// [`LoopError::Closed`]; the callback is dropped.
    #[track_caller]
    pub fn try_call_soon<O: Outcome>(&self, callback: impl FnOnce() -> O + 'static) -> Result<CallbackHandle, LoopError> {
        Ok(self.schedule_once(self.core.accepts_work()?, callback, Location::caller()))
    }

    /// Runs `callback` once `delay` has passed, never earlier. A zero delay still goes through the timer queue: it runs after the
    /// callbacks and the I/O that are ready by then. [`Duration::MAX`] is never.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let handle = event_loop.handle();
    /// let too_late = handle.call_later(Duration::from_secs(60), || println!("no answer"));
    /// let stop = handle.clone();
    /// handle.call_later(Duration::from_millis(1), move || {
    ///     too_late.cancel();
    ///     stop.stop();
    /// });
    /// event_loop.run_forever()?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    #[track_caller]
    pub fn call_later<O: Outcome>(&self, delay: Duration, callback: impl FnOnce() -> O + 'static) -> TimerHandle {
        self.call_at(self.core.now() + delay, callback)
    }

    /// Runs `callback` at `deadline` of the loop's clock. Equal deadlines run in the order in which they were set.
    #[track_caller]
    pub fn call_at<O: Outcome>(&self, deadline: Instant, callback: impl FnOnce() -> O + 'static) -> TimerHandle {
        let place = Location::caller();
        let word = self.core.admit(self.core.must_accept_work(), place, |_| once(callback, place));
        self.arm(word, deadline)
    }

    /// Runs `callback` every `period`, for the first time after one period, until it returns [`Break`](std::ops::ControlFlow::Break) or is
    /// cancelled. An error or a panic is reported and the timer goes on.
    ///
    /// Deadlines stay on the grid of the first one. Ticks that the loop was too busy to run are left out: one late call, then on the beat
    /// again. The next deadline is set after the callback has returned. A zero period counts as a nanosecond: once at every poll.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let (mut left, stop) = (3, event_loop.handle());
    /// event_loop.handle().call_every(Duration::from_millis(1), move || {
    ///     left -= 1;
    ///     if left > 0 {
    ///         return ControlFlow::Continue(());
    ///     }
    ///     stop.stop();
    ///     ControlFlow::Break(())
    /// });
    /// event_loop.run_forever()?;
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    #[track_caller]
    pub fn call_every<O: Outcome>(&self, period: Duration, callback: impl FnMut() -> O + 'static) -> TimerHandle {
        let deadline = self.core.now() + period;
        let cause = Cause::Period { period, next: Cell::new(deadline) };
        let place = Location::caller();
        let word = self.core.admit(self.core.must_accept_work(), place, |_| repeat(callback, cause, place));
        self.arm(word, deadline)
    }

    /// Runs `callback` whenever `descriptor` is readable, at every poll while it stays so (level-triggered). It replaces an earlier reader
    /// of that descriptor. The loop does not own the descriptor: call [`remove_reader`](LoopHandle::remove_reader) before closing it. One
    /// that is closed without and has a duplicate, here or in another process, goes on waking the loop until the duplicate is closed, also
    /// after a late `remove_reader`: the kernel watches the file, and nobody has the number any more by which it could be told.
    ///
    /// A callback that returns [`Break`](std::ops::ControlFlow::Break) is removed.
    ///
    /// ```
    /// use std::io::{Read, Write, pipe};
    ///
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let handle = event_loop.handle();
    /// let (mut reader, mut writer) = pipe()?;
    /// let watched = reader.try_clone()?;
    /// let ended = handle.clone();
    /// handle.add_reader(&watched, move || {
    ///     let len = reader.read(&mut [0; 16])?; // one read: what is left makes it call again
    ///     println!("{len} bytes");
    ///     ended.stop();
    ///     Ok::<(), std::io::Error>(())
    /// })?;
    /// writer.write_all(b"hello")?;
    /// event_loop.run_forever()?;
    /// handle.remove_reader(&watched);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What the kernel says, `EPERM` for a regular file for instance; [`AlreadyExists`](io::ErrorKind::AlreadyExists) when the descriptor
    /// belongs to an open miniloop object (duplicate it with `try_clone` of its standard type); an error also when the loop is closed.
    #[track_caller]
    pub fn add_reader<O: Outcome>(&self, descriptor: &(impl AsFd + ?Sized), callback: impl FnMut() -> O + 'static) -> io::Result<()> {
        self.add_callback(descriptor.as_fd(), Direction::Read, callback, Location::caller())
    }

    /// The same for "writable". Reader and writer of a descriptor are independent.
    ///
    /// # Errors
    /// As [`add_reader`](LoopHandle::add_reader).
    #[track_caller]
    pub fn add_writer<O: Outcome>(&self, descriptor: &(impl AsFd + ?Sized), callback: impl FnMut() -> O + 'static) -> io::Result<()> {
        self.add_callback(descriptor.as_fd(), Direction::Write, callback, Location::caller())
    }

    /// Removes a reader, also one whose event is queued already. False when there was none.
    pub fn remove_reader(&self, descriptor: &impl AsRawFd) -> bool {
        self.remove_callback(descriptor.as_raw_fd(), Direction::Read)
    }

    /// Removes a writer, also one whose event is queued already. False when there was none.
    pub fn remove_writer(&self, descriptor: &impl AsRawFd) -> bool {
        self.remove_callback(descriptor.as_raw_fd(), Direction::Write)
    }

    /// Makes the running [`run_forever`](crate::EventLoop::run_forever) or `run_until_complete` return once the round is over. Without
    /// one, the next one returns after its first turn, which does not wait.
    pub fn stop(&self) {
        self.core.stop();
    }

    /// The time of the loop's clock.
    #[doc(alias = "time")]
    pub fn now(&self) -> Instant {
        self.core.now()
    }

    /// Sends what nobody else hears of to `handler`: errors and panics of callbacks and of tasks that nobody waits for. It replaces the
    /// earlier handler. Without one, reports go to `tracing`, and without a subscriber to standard error.
    ///
    /// The handler runs as a job of its own. If it returns [`Break`](std::ops::ControlFlow::Break), the running `run_*` returns
    /// [`LoopError::Failed`] with the report: the strict handler of tests. If it fails, both failures are logged. A loop that is being
    /// closed keeps the handler that it has, and drops this one.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let handle = event_loop.handle();
    /// handle.on_error(|report| {
    ///     eprintln!("{report}");
    ///     ControlFlow::Break(())
    /// });
    /// handle.call_soon(|| "12x".parse::<i32>().map(|_| ()));
    /// assert!(matches!(event_loop.run_forever(), Err(miniloop::LoopError::Failed(_))));
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    #[doc(alias = "set_exception_handler")]
    pub fn on_error<O: Outcome>(&self, mut handler: impl FnMut(&Report) -> O + 'static) {
        let handler = Rc::new(RefCell::new(move |report: &Report| handler(report).into_flow()));
        let is_wanted = matches!(self.core.accepts_work(), Ok(true));
        let unneeded = if is_wanted { self.core.on_error.replace(Some(handler)) } else { Some(handler as ErrorHandler) };
        self.core.drop_safely(unneeded, "error handler", Location::caller());
    }

    /// Makes this loop the one that free functions such as [`spawn`](crate::spawn) mean, while the guard lives and no other loop has been
    /// entered since: for a host that prepares work between two turns. Guards may be dropped in any order.
    ///
    /// A guard that lives across an `await` enters its loop for all tasks of the running one, too: drop it before.
    ///
    /// ```
    /// let mut event_loop = miniloop::EventLoop::new()?;
    /// let entered = event_loop.handle().enter();
    /// let task = miniloop::spawn(async { 42 });
    /// drop(entered);
    /// assert_eq!(event_loop.run_until_complete(task)?.unwrap(), 42);
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    #[must_use = "the loop is left when the guard is dropped"]
    pub fn enter(&self) -> EnterGuard {
        EnterGuard(context::enter(&self.core))
    }

    /// Whether the loop has been closed.
    pub fn is_closed(&self) -> bool {
        self.core.is_closed()
    }

    fn schedule_once<O: Outcome>(
        &self,
        is_wanted: bool,
        callback: impl FnOnce() -> O + 'static,
        place: &'static Location<'static>,
    ) -> CallbackHandle {
        let word = self.core.admit(is_wanted, place, |_| once(callback, place));
        self.core.schedule(word);
        CallbackHandle { core: self.core.clone(), word }
    }

    fn arm(&self, word: Word, deadline: Instant) -> TimerHandle {
        if word != Word::STALE {
            self.core.arm(word, deadline);
        }
        TimerHandle { callback: CallbackHandle { core: self.core.clone(), word }, deadline }
    }

    fn add_callback<O: Outcome>(
        &self,
        fd: BorrowedFd<'_>,
        direction: Direction,
        callback: impl FnMut() -> O + 'static,
        place: &'static Location<'static>,
    ) -> io::Result<()> {
        let cause = Cause::Readiness { fd: fd.as_raw_fd(), direction };
        let is_wanted = self.core.accepts_work().map_err(io::Error::other)?;
        let word = self.core.admit(is_wanted, place, |_| repeat(callback, cause, place));
        if word == Word::STALE {
            return Ok(());
        }
        let mut discarded = Discarded::default();
        let set = |mut driver: RefMut<'_, Driver>| driver.set_callback(fd, direction, waker::of(word), &mut discarded);
        let registered = self.core.driver().and_then(set);
        cancel_discarded(&self.core, discarded);
        match registered {
            Ok(replaced) => {
                self.cancel_callback(replaced);
                Ok(())
            }
            Err(error) => {
                self.core.cancel(word);
                Err(error)
            }
        }
    }

    fn remove_callback(&self, fd: RawFd, direction: Direction) -> bool {
        let removed = self.core.driver().ok().and_then(|mut driver| driver.clear_callback(fd, direction));
        self.cancel_callback(removed)
    }

    /// The driver keeps callbacks as wakers, whose data is the word.
    fn cancel_callback(&self, waker: Option<Waker>) -> bool {
        waker.is_some_and(|waker| {
            self.core.cancel(waker::word_of(&waker));
            true
        })
    }
}

/// Cancels the callbacks of a closed file whose number has come back as another one.
pub(crate) fn cancel_discarded(core: &Core, discarded: Discarded) {
    discarded.callbacks().for_each(|callback| core.cancel(waker::word_of(callback)));
}

fn once<O: Outcome>(callback: impl FnOnce() -> O + 'static, place: &'static Location<'static>) -> Job {
    Job::once(place, move || callback().into_flow())
}

fn repeat<O: Outcome>(mut callback: impl FnMut() -> O + 'static, cause: Cause, place: &'static Location<'static>) -> Job {
    let callback = RefCell::new(Box::new(move || callback().into_flow()));
    Job::Repeat(Rc::new(Repeat { origin: Origin::new(place), callback, cause }))
}

impl fmt::Debug for LoopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoopHandle").field("loop", &self.core.number).field("phase", &self.core.phase.get()).finish_non_exhaustive()
    }
}

/// Keeps a loop the current one of its thread; see [`LoopHandle::enter`].
#[derive(Debug)]
pub struct EnterGuard(#[expect(dead_code, reason = "held for its destructor")] Entered);

/// A callback that can be cancelled before it runs. Dropping the handle changes nothing.
#[doc(alias = "Handle")]
pub struct CallbackHandle {
    pub(crate) core: Rc<Core>,
    pub(crate) word: Word,
}

impl CallbackHandle {
    /// Keeps the callback from running, also when it is queued in this very round, and drops it with all that it owns at once. Cancelling
    /// again, or after it has run, does nothing.
    pub fn cancel(&self) {
        self.core.cancel(self.word);
    }

    /// Whether it has neither run nor been cancelled.
    pub fn is_pending(&self) -> bool {
        self.core.with_slot(self.word, |_| ()).is_some()
    }
}

impl fmt::Debug for CallbackHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackHandle").field("is_pending", &self.is_pending()).finish_non_exhaustive()
    }
}

/// A timer that can be cancelled before it fires. Dropping the handle changes nothing.
#[derive(Debug)]
pub struct TimerHandle {
    callback: CallbackHandle,
    deadline: Instant,
}

impl TimerHandle {
    /// As [`CallbackHandle::cancel`]. A cancelled timer never wakes the loop.
    pub fn cancel(&self) {
        self.callback.cancel();
    }

    /// When it fires; for a repeating timer, when it fires next.
    pub fn when(&self) -> Instant {
        let next = self.callback.core.with_slot(self.callback.word, |slot| match &slot.job {
            Job::Repeat(repeat) => repeat.cause.next_deadline(),
            _ => None,
        });
        next.flatten().unwrap_or(self.deadline)
    }

    /// Whether it will still fire.
    pub fn is_pending(&self) -> bool {
        self.callback.is_pending()
    }
}
