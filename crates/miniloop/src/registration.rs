//! An I/O object's place in the driver, and the one way to do I/O: try the system call, wait only when it would block.
//!
//! Everything with a descriptor of its own holds a [`Registration`] and hands it closures that make one system call. It must not know what
//! they do. It asks the task's budget first (O10), and remembers the loop that it belongs to.
//!
//! Cost of an operation that succeeds: its own system call and two looks into the driver's table. Next: `readiness.rs`, and
//! `byte_stream.rs` for the usual use.

use std::io;
use std::os::fd::BorrowedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use crate::driver::{Direction, Driver, Kind, SourceId};
use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::record::WaitsFor;
use crate::handle::cancel_discarded;
use crate::wait_queue::Key;

/// A descriptor that the driver watches until this is dropped. It does not own the descriptor: in its owner it stands before it, so that it
/// is dropped first and the driver forgets the number before somebody else gets it.
pub(crate) struct Registration {
    core: Rc<Core>,
    /// `None` for what cannot be watched.
    id: Option<SourceId>,
    /// What its reads wait for, as dumps say it.
    reads: WaitsFor,
}

/// How a caller waits when there is nothing.
pub(crate) enum Place<'a> {
    /// In the one place per direction that the `poll_*` traits have; the last caller has it.
    Alone,
    /// Behind those who came before, for `&self` methods.
    InLine(&'a mut Option<Key>),
}

impl Registration {
    /// Has the current loop watch a descriptor. `is_ready`: its first system calls are worth trying at once.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub(crate) fn new(fd: BorrowedFd<'_>, kind: Kind, is_ready: bool) -> io::Result<Self> {
        let core = context::current();
        let (id, discarded) = core.driver()?.register(fd, kind, is_ready)?;
        cancel_discarded(&core, discarded);
        Ok(Self { core, id: Some(id), reads: &"a descriptor to become readable" })
    }

    /// The place of what cannot be watched because it never makes anybody wait for an event: a regular file, `/dev/null`. Its every system
    /// call is made at once.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub(crate) fn always_ready() -> Self {
        Self { core: context::current(), id: None, reads: &"" }
    }

    /// Has dumps say what is read here.
    pub(crate) fn reading(mut self, what: WaitsFor) -> Self {
        self.reads = what;
        self
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// Makes a system call that may find nothing, and waits for a better time if it does.
    ///
    /// # Panics
    /// Under another loop than the one it was made under.
    pub(crate) fn poll_io<R>(
        &self,
        direction: Direction,
        place: Place<'_>,
        cx: &mut Context<'_>,
        call: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        context::check_home(self.core.number, "I/O object");
        ready!(context::poll_budget(cx));
        if self.is_ready(direction)? {
            match self.try_io(direction, call) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.id.is_some() => {}
                result => {
                    context::spend_system_call();
                    return Poll::Ready(result);
                }
            }
        }
        context::waits_for(match direction {
            Direction::Read => self.reads,
            Direction::Write => &"a descriptor to become writable",
        });
        let mut waker = cx.waker().clone();
        self.with_driver(|driver, id| match place {
            Place::Alone => driver.wait_alone(id, direction, &mut waker),
            Place::InLine(key) => driver.wait_in_line(id, direction, key, &mut waker),
        })?;
        Poll::Pending
    }

    fn is_ready(&self, direction: Direction) -> io::Result<bool> {
        let driver = self.core.driver()?;
        Ok(self.id.is_none_or(|id| driver.is_ready(id, direction)))
    }

    /// Does nothing for what is not watched.
    fn with_driver<R>(&self, call: impl FnOnce(&mut Driver, SourceId) -> R) -> io::Result<Option<R>> {
        let mut driver = self.core.driver()?;
        Ok(self.id.map(|id| call(&mut driver, id)))
    }

    /// Makes a system call now. That it would block is remembered.
    pub(crate) fn try_io<R>(&self, direction: Direction, mut call: impl FnMut() -> io::Result<R>) -> io::Result<R> {
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.with_driver(|driver, id| driver.found_nothing(id, direction))?;
                    return Err(error);
                }
                result => return result,
            }
        }
    }

    /// To be told by a call that moved `len` bytes of `asked`: a short one saves the call that would find nothing.
    pub(crate) fn moved(&self, direction: Direction, len: usize, asked: usize) {
        if len < asked {
            let _ended_with_the_loop = self.with_driver(|driver, id| driver.moved(id, direction, len, asked));
        }
    }

    /// The same as [`Registration::poll_io`] with a place in line, as a future.
    pub(crate) fn io<R, F: FnMut() -> io::Result<R>>(&self, direction: Direction, call: F) -> Io<'_, F> {
        Io { line: Line::new(self, direction), call: Some(call) }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _discarded_unborrowed = self.with_driver(Driver::deregister);
    }
}

/// A place in the line of those who wait for one direction, given up when dropped. For futures and streams over `&self`.
pub(crate) struct Line<'a> {
    registration: &'a Registration,
    direction: Direction,
    key: Option<Key>,
}

impl<'a> Line<'a> {
    pub(crate) fn new(registration: &'a Registration, direction: Direction) -> Self {
        Self { registration, direction, key: None }
    }

    pub(crate) fn poll_io<R>(&mut self, cx: &mut Context<'_>, call: impl FnMut() -> io::Result<R>) -> Poll<io::Result<R>> {
        self.registration.poll_io(self.direction, Place::InLine(&mut self.key), cx, call)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let _discarded_unborrowed = self.registration.with_driver(|driver, id| driver.leave_line(id, self.direction, key));
        }
    }
}

/// One operation over `&self`.
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct Io<'a, F> {
    line: Line<'a>,
    /// `None` once it is done.
    call: Option<F>,
}

/// The call is only ever called, never pinned.
impl<F> Unpin for Io<'_, F> {}

impl<R, F: FnMut() -> io::Result<R>> Future for Io<'_, F> {
    type Output = io::Result<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let call = this.call.as_mut().expect("an I/O future was polled after it was done");
        let result = ready!(this.line.poll_io(cx, call));
        this.call = None;
        Poll::Ready(result)
    }
}

impl<R, F: FnMut() -> io::Result<R>> FusedFuture for Io<'_, F> {
    fn is_terminated(&self) -> bool {
        self.call.is_none()
    }
}
