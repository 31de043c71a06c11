//! Where TCP connections come in.
//!
//! A process that has run out of descriptors cannot accept, and the kernel goes on saying that there is something to accept. So the
//! listener reports that once, rests for [`ACCEPT_BACK_OFF`], tries again, and so on until it succeeds.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedFuture, Stream};
use rustix::io::Errno;

use super::system_calls;
use super::tcp_stream::TcpStream;
use crate::config::ACCEPT_BACK_OFF;
use crate::driver::{Direction, Kind};
use crate::engine::context;
use crate::registration::{Line, Place, Registration};
use crate::report::{Report, ReportKind};
use crate::time::{Sleep, sleep};

/// A socket that accepts TCP connections.
///
/// It belongs to the loop under which it was made.
#[doc(alias = "start_server")]
#[doc(alias = "create_server")]
pub struct TcpListener {
    inner: Inner,
    /// It could not accept for want of descriptors or memory, and said so.
    is_starved: Cell<bool>,
    /// The rest of the callers of `poll_accept`.
    rest: RefCell<Option<Sleep>>,
    /// The line that made it, for reports.
    place: &'static Location<'static>,
}

/// Where connections come from. A simulated network will be the second variant.
enum Inner {
    Os(OsListener),
}

/// A socket of the system. The registration stands first: it is dropped before the descriptor is closed.
struct OsListener {
    registration: Registration,
    socket: std::net::TcpListener,
}

impl TcpListener {
    /// Listens on an address. Port 0 takes a free one, which [`local_addr`](Self::local_addr) tells.
    ///
    /// Names are not looked up, since that blocks: a [`Worker`](crate::thread::Worker) can do it with `std::net::ToSocketAddrs`.
    ///
    /// The address can be taken again at once after an earlier listener has closed (`SO_REUSEADDR`).
    ///
    /// # Errors
    /// `AddrInUse`, `PermissionDenied` and what else `bind` says.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(system_calls::listen(address)?)
    }

    /// Takes over a listener of the standard library and makes it non-blocking.
    ///
    /// # Errors
    /// When the loop already watches its descriptor for a callback, or cannot watch it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::new(listener.into())
    }

    #[track_caller]
    fn new(socket: OwnedFd) -> io::Result<Self> {
        let registration = Registration::new(socket.as_fd(), Kind::Other, true)?;
        let inner = Inner::Os(OsListener { registration, socket: socket.into() });
        Ok(Self { inner, is_starved: Cell::new(false), rest: RefCell::new(None), place: Location::caller() })
    }

    fn os(&self) -> &OsListener {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Waits for the next connection.
    ///
    /// Out of descriptors or memory it reports that once (`on_error`), and tries again every second until it succeeds.
    ///
    /// # Errors
    /// What `accept` says of the listener itself. A connection that broke before it was accepted is not an error.
    ///
    /// # Cancellation
    /// No connection is lost: it is taken from the kernel only in the poll that returns it.
    pub fn accept(&self) -> Accept<'_> {
        Accept { incoming: self.incoming(), is_done: false }
    }

    /// [`accept`](Self::accept) for hand-written futures. The last caller is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let mut rest = self.rest.take();
        let result =
            self.poll_with(&mut rest, cx, |cx| self.os().registration.poll_io(Direction::Read, Place::Alone, cx, || self.try_accept()));
        self.rest.replace(rest);
        result
    }

    /// The connections, one after the other, without an end.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming { listener: self, line: Line::new(&self.os().registration, Direction::Read), rest: None }
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.local_addr()
    }

    /// One attempt after the other until there is a connection, with a rest where one is due.
    fn poll_with(
        &self,
        rest: &mut Option<Sleep>,
        cx: &mut Context<'_>,
        mut attempt: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Option<(TcpStream, SocketAddr)>>>,
    ) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        loop {
            if let Some(sleep) = rest {
                ready!(Pin::new(sleep).poll(cx));
                *rest = None;
            }
            match ready!(attempt(cx)) {
                Ok(Some(connection)) => {
                    self.is_starved.set(false);
                    return Poll::Ready(Ok(connection));
                }
                Ok(None) => {}
                Err(error) if is_starvation(&error) => *rest = Some(self.rest(&error)),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Takes a connection from the kernel. `None` if it broke before it was taken: an operation like any other, so that a flood of them is
    /// counted against the task's budget.
    fn try_accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        match system_calls::accept(&self.os().socket) {
            Ok((socket, Some(address))) => Ok(Some((TcpStream::new(socket, true)?, address))),
            Ok((_, None)) => Err(io::Error::new(io::ErrorKind::InvalidInput, "this listener accepts connections without an IP address")),
            Err(error) if is_of_the_connection(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rest(&self, error: &io::Error) -> Sleep {
        let core = self.os().registration.core();
        if !self.is_starved.replace(true) {
            let subject = self.local_addr().map_or_else(|_| "listener".to_owned(), |address| format!("listener of {address}"));
            let message = format!("cannot accept connections, tries again every {ACCEPT_BACK_OFF:?}: {error}");
            core.report(Report::new(ReportKind::Degraded, subject, self.place, message));
        }
        let _entered = context::enter(core);
        sleep(ACCEPT_BACK_OFF)
    }
}

/// The stream of [`TcpListener::incoming`].
#[must_use = "streams do nothing unless polled"]
pub struct Incoming<'a> {
    listener: &'a TcpListener,
    line: Line<'a>,
    rest: Option<Sleep>,
}

impl Incoming<'_> {
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let Self { listener, line, rest } = self;
        listener.poll_with(rest, cx, |cx| line.poll_io(cx, || listener.try_accept()))
    }
}

impl Stream for Incoming<'_> {
    type Item = io::Result<TcpStream>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_accept(cx).map(|result| Some(result.map(|(stream, _)| stream)))
    }
}

/// The future of [`TcpListener::accept`].
#[must_use = "futures do nothing unless awaited"]
pub struct Accept<'a> {
    incoming: Incoming<'a>,
    is_done: bool,
}

impl Future for Accept<'_> {
    type Output = io::Result<(TcpStream, SocketAddr)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.incoming.poll_accept(cx));
        self.is_done = true;
        Poll::Ready(result)
    }
}

impl FusedFuture for Accept<'_> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl AsRawFd for TcpListener {
    fn as_raw_fd(&self) -> RawFd {
        self.os().socket.as_raw_fd()
    }
}

impl AsFd for TcpListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.os().socket.as_fd()
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.os().socket.fmt(f)
    }
}

impl fmt::Debug for Incoming<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(self.listener).finish()
    }
}

impl fmt::Debug for Accept<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Accept").field(self.incoming.listener).finish()
    }
}

/// The process, or the system, lacks something that may be there again in a second.
fn is_starvation(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM | Errno::NOSPC))
}

/// Linux passes on what happened to a connection before it was accepted. accept(2) lists what to take for "try the next one".
fn is_of_the_connection(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::CONNABORTED
                | Errno::PERM
                | Errno::PROTO
                | Errno::NOPROTOOPT
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::NONET
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::OPNOTSUPP
        )
    )
}
