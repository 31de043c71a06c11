//! What the listeners of TCP and of Unix sockets share: how connections are taken from the kernel.
//!
//! A process that has run out of descriptors cannot accept, and the kernel goes on saying that there is something to accept. So the
//! listener reports that once, rests for [`ACCEPT_BACK_OFF`], tries again, and so on until it succeeds.
//!
//! It must not know whose addresses it hands on. Next: `tcp_listener.rs`, `unix_listener.rs`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::stream::FusedStream;
use futures_core::{FusedFuture, Stream};
use rustix::io::Errno;
use rustix::net::SocketAddrAny;

use super::system_calls;
use crate::config::ACCEPT_BACK_OFF;
use crate::driver::{Direction, Kind};
use crate::engine::context;
use crate::os;
use crate::registration::{Line, Place, Registration};
use crate::report::{Report, ReportKind};
use crate::time::{Sleep, sleep};

/// A listener of this module. The trait is sealed: its module is private.
pub trait Listener: fmt::Debug {
    /// What it accepts.
    type Stream;
    /// Where that comes from.
    type Address;
    #[doc(hidden)]
    type Socket: AsFd;

    #[doc(hidden)]
    fn os(&self) -> &OsListener<Self::Socket>;

    /// A stream of the socket that `accept` gave.
    #[doc(hidden)]
    fn connection(socket: OwnedFd, address: Option<SocketAddrAny>) -> io::Result<(Self::Stream, Self::Address)>;

    /// Its address, for reports.
    #[doc(hidden)]
    fn name(&self) -> Option<String>;
}

/// A socket of the system that listens. The registration stands first: it is dropped before the descriptor is closed.
pub struct OsListener<S> {
    registration: Registration,
    pub(super) socket: S,
    /// It could not accept for want of descriptors or memory, and said so.
    is_starved: Cell<bool>,
    /// The rest of the callers of `poll_accept`.
    rest: RefCell<Option<Sleep>>,
    /// The line that made it, for reports.
    place: &'static Location<'static>,
}

impl<S: AsFd> OsListener<S> {
    #[track_caller]
    pub(super) fn new(socket: S) -> io::Result<Self> {
        let registration = Registration::new(socket.as_fd(), Kind::Other, true)?.reading(&"a connection");
        Ok(Self { registration, socket, is_starved: Cell::new(false), rest: RefCell::new(None), place: Location::caller() })
    }

    /// Ends the watching.
    pub(super) fn into_socket(self) -> S {
        drop(self.registration);
        self.socket
    }
}

/// [`TcpListener::poll_accept`](super::TcpListener::poll_accept).
pub(super) fn poll_accept<L: Listener>(listener: &L, cx: &mut Context<'_>) -> Poll<io::Result<(L::Stream, L::Address)>> {
    let os = listener.os();
    let mut rest = os.rest.take();
    let result = poll_with(listener, &mut rest, cx, |cx| os.registration.poll_io(Direction::Read, Place::Alone, cx, || take(listener)));
    os.rest.replace(rest);
    result
}

/// One attempt after the other until there is a connection, with a rest where one is due.
fn poll_with<L: Listener>(
    listener: &L,
    rest: &mut Option<Sleep>,
    cx: &mut Context<'_>,
    mut attempt: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Option<(L::Stream, L::Address)>>>,
) -> Poll<io::Result<(L::Stream, L::Address)>> {
    loop {
        if let Some(sleep) = rest {
            ready!(Pin::new(sleep).poll(cx));
            *rest = None;
        }
        match ready!(attempt(cx)) {
            Ok(Some(connection)) => {
                listener.os().is_starved.set(false);
                return Poll::Ready(Ok(connection));
            }
            Ok(None) => {}
            Err(error) if is_starvation(&error) => *rest = Some(start_rest(listener, &error)),
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
}

/// [`TcpListener::try_accept`](super::TcpListener::try_accept).
pub(super) fn try_accept<L: Listener>(listener: &L) -> io::Result<(L::Stream, L::Address)> {
    let os = listener.os();
    loop {
        if let Some(connection) = os.registration.try_io(Direction::Read, || take(listener))? {
            os.is_starved.set(false);
            return Ok(connection);
        }
    }
}

/// Takes a connection from the kernel. `None` if it broke before it was taken: an operation like any other, so that a flood of them is
/// counted against the task's budget.
fn take<L: Listener>(listener: &L) -> io::Result<Option<(L::Stream, L::Address)>> {
    match system_calls::accept(&listener.os().socket) {
        Ok((socket, address)) => L::connection(socket, address).map(Some),
        Err(error) if is_of_the_connection(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn start_rest<L: Listener>(listener: &L, error: &io::Error) -> Sleep {
    let os = listener.os();
    let core = os.registration.core();
    if !os.is_starved.replace(true) {
        let subject = listener.name().map_or_else(|| "listener".to_owned(), |address| format!("listener of {address}"));
        let message = format!("cannot accept connections, tries again every {ACCEPT_BACK_OFF:?}: {error}");
        core.report(Report::new(ReportKind::Degraded, subject, os.place, message));
    }
    let _entered = context::enter(core);
    sleep(ACCEPT_BACK_OFF)
}

/// The stream of [`TcpListener::incoming`](super::TcpListener::incoming) and of [`UnixListener`](super::UnixListener)'s.
#[must_use = "streams do nothing unless polled"]
pub struct Incoming<'a, L: Listener> {
    listener: &'a L,
    line: Line<'a>,
    rest: Option<Sleep>,
}

impl<'a, L: Listener> Incoming<'a, L> {
    pub(super) fn new(listener: &'a L) -> Self {
        Self { listener, line: Line::new(&listener.os().registration, Direction::Read), rest: None }
    }

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(L::Stream, L::Address)>> {
        let Self { listener, line, rest } = self;
        poll_with(*listener, rest, cx, |cx| line.poll_io(cx, || take(*listener)))
    }
}

impl<L: Listener> Stream for Incoming<'_, L> {
    type Item = io::Result<L::Stream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_accept(cx).map(|result| Some(result.map(|(stream, _)| stream)))
    }
}

/// It has no end.
impl<L: Listener> FusedStream for Incoming<'_, L> {
    fn is_terminated(&self) -> bool {
        false
    }
}

/// The future of [`TcpListener::accept`](super::TcpListener::accept) and of [`UnixListener`](super::UnixListener)'s.
#[must_use = "futures do nothing unless awaited"]
pub struct Accept<'a, L: Listener> {
    incoming: Incoming<'a, L>,
    is_done: bool,
}

impl<'a, L: Listener> Accept<'a, L> {
    pub(super) fn new(listener: &'a L) -> Self {
        Self { incoming: Incoming::new(listener), is_done: false }
    }
}

impl<L: Listener> Future for Accept<'_, L> {
    type Output = io::Result<(L::Stream, L::Address)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_done, "an `accept` was polled after it was done");
        let result = ready!(self.incoming.poll_accept(cx));
        self.is_done = true;
        Poll::Ready(result)
    }
}

impl<L: Listener> FusedFuture for Accept<'_, L> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl<L: Listener> fmt::Debug for Incoming<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(self.listener).finish()
    }
}

impl<L: Listener> fmt::Debug for Accept<'_, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Accept").field(self.incoming.listener).finish()
    }
}

/// The process, or the system, lacks something that may be there again in a second.
fn is_starvation(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC))
}

/// What happened to a connection before it was accepted: try the next one.
fn is_of_the_connection(error: &io::Error) -> bool {
    Errno::from_io_error(error).is_some_and(os::is_of_the_connection)
}
