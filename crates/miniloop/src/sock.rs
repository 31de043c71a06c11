//! asyncio's `sock_*` functions: one operation on a socket that the user made and keeps.
//!
//! The socket can be anything with a descriptor, of any family, also one that other code uses as well. So nothing is remembered of it
//! between two operations: each tries its system call at once and has the descriptor watched only while it waits. That costs two system
//! calls more for each wait than a [`TcpStream`](crate::net::TcpStream), which is what to take if there is a choice.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;

use crate::driver::{Direction, Discarded, ForeignWait};
use crate::engine::context::{self, Home};
use crate::engine::core::Core;
use crate::handle::cancel_discarded;
use crate::net::system_calls;

/// Receives some bytes, at most as many as `buffer` holds. Zero: the peer has ended its direction, or `buffer` is empty.
/// Into an empty one, too, it waits until there is something to receive, as the system does.
///
/// ```
/// use std::os::unix::net::UnixStream;
///
/// miniloop::run(async {
///     let (ours, theirs) = UnixStream::pair()?;
///     miniloop::sock_sendall(&theirs, b"hello").await?;
///     let mut buffer = [0; 16];
///     let len = miniloop::sock_recv(&ours, &mut buffer).await?;
///     assert_eq!(&buffer[..len], b"hello");
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What `recv` says. If it has to wait, [`AlreadyExists`](io::ErrorKind::AlreadyExists) for an I/O object of this crate, which has methods
/// of its own.
///
/// # Cancellation
/// Nothing is lost: bytes are taken from the socket only in the poll that returns them. Whoever receives next gets them.
///
/// # Panics
/// If it has to wait outside a loop, and under another loop than the one under which it was first polled.
#[doc(alias = "sock_recv_into")]
pub fn sock_recv<'a>(socket: &'a (impl AsFd + ?Sized), buffer: &'a mut [u8]) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + 'a {
    let fd = socket.as_fd();
    SockFuture::new(fd, Direction::Read, move || system_calls::receive(fd, buffer).map(Some))
}

/// Sends all bytes.
///
/// # Errors
/// What `send` says: `BrokenPipe` or `ConnectionReset` when the peer has gone, without a signal. It is not said how many bytes were sent
/// before. Else as [`sock_recv`].
///
/// # Cancellation
/// Some bytes may have been sent, and it is not said how many: after that only closing the socket makes sense.
///
/// # Panics
/// As [`sock_recv`].
pub fn sock_sendall<'a>(socket: &'a (impl AsFd + ?Sized), bytes: &'a [u8]) -> impl FusedFuture<Output = io::Result<()>> + Unpin + 'a {
    let fd = socket.as_fd();
    let mut unsent = bytes;
    SockFuture::new(fd, Direction::Write, move || {
        if !unsent.is_empty() {
            unsent = &unsent[system_calls::send(fd, unsent)?..];
        }
        Ok(unsent.is_empty().then_some(()))
    })
}

/// Accepts a connection on a listening socket, which must not block. The new socket does not block either. Its address is said if it is one
/// of IP.
///
/// ```
/// use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
///
/// miniloop::run(async {
///     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
///     listener.set_nonblocking(true)?;
///     let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
///     let ours = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
///     miniloop::sock_connect(&ours, listener.local_addr()?).await?;
///     let (theirs, address) = miniloop::sock_accept(&listener).await?;
///     miniloop::sock_sendall(&theirs, b"hello").await?;
///     println!("said hello to {address:?}");
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What `accept` says, out-of-descriptors errors and those of broken connections included: [`TcpListener`](crate::net::TcpListener) handles
/// them itself. Else as [`sock_recv`].
///
/// # Cancellation
/// No connection is lost: it is taken from the kernel only in the poll that returns it. The listener is no longer watched.
///
/// # Panics
/// As [`sock_recv`].
pub fn sock_accept(socket: &(impl AsFd + ?Sized)) -> impl FusedFuture<Output = io::Result<(OwnedFd, Option<SocketAddr>)>> + Unpin + '_ {
    let fd = socket.as_fd();
    SockFuture::new(fd, Direction::Read, move || {
        let (socket, address) = system_calls::accept(fd)?;
        Ok(Some((socket, address.and_then(|address| address.try_into().ok()))))
    })
}

/// Connects a socket, which must not block. [`sock_accept`] has an example.
///
/// # Errors
/// What the peer or the network says, `ConnectionRefused` for instance. Else as [`sock_recv`].
///
/// # Cancellation
/// The socket goes on connecting, and is no longer watched. Close it, or wait until it is writable.
///
/// # Panics
/// As [`sock_recv`].
pub fn sock_connect(socket: &(impl AsFd + ?Sized), address: SocketAddr) -> impl FusedFuture<Output = io::Result<()>> + Unpin + '_ {
    let fd = socket.as_fd();
    let mut has_begun = false;
    // The second call is made after an event only, and the first event is the end of the attempt.
    SockFuture::new(fd, Direction::Write, move || match std::mem::replace(&mut has_begun, true) {
        false if system_calls::start_connect(fd, address)? => Ok(Some(())),
        false => Err(io::ErrorKind::WouldBlock.into()),
        true => system_calls::take_error(fd).map(Some),
    })
}

/// One operation: system calls until one returns the value, and one wait whenever one would block.
struct SockFuture<'a, F> {
    fd: BorrowedFd<'a>,
    direction: Direction,
    home: Home,
    wait: Option<Wait>,
    /// `Ok(None)`: done in part, to be called again. The whole is `None` once the operation is done.
    call: Option<F>,
}

/// A place in line in the driver, given up when dropped.
struct Wait {
    core: Rc<Core>,
    /// `None` until it has been in line once.
    place: Option<ForeignWait>,
}

impl<'a, R, F: FnMut() -> io::Result<Option<R>>> SockFuture<'a, F> {
    fn new(fd: BorrowedFd<'a>, direction: Direction, call: F) -> Self {
        Self { fd, direction, home: Home::default(), wait: None, call: Some(call) }
    }

    fn poll_value(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        // Nothing has happened since the last call: it would find nothing again.
        if self.wait.as_ref().is_some_and(Wait::is_in_line) {
            return self.wait(cx);
        }
        let call = self.call.as_mut().expect("a `sock_*` future was polled after it was done");
        loop {
            ready!(context::poll_budget(cx));
            match call() {
                Ok(value) => {
                    context::spend_system_call();
                    if let Some(value) = value {
                        return Poll::Ready(Ok(value));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.wait(cx),
                Err(error) => {
                    context::spend_system_call();
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    fn wait(&mut self, cx: &Context<'_>) -> Poll<io::Result<R>> {
        let wait = self.wait.get_or_insert_with(|| Wait { core: context::current(), place: None });
        let mut waker = cx.waker().clone();
        let mut discarded = Discarded::default();
        let waits = wait.core.driver()?.wait_foreign(self.fd, self.direction, &mut wait.place, &mut waker, &mut discarded);
        cancel_discarded(&wait.core, discarded);
        waits?;
        Poll::Pending
    }
}

/// The call is only ever called, never pinned.
impl<F> Unpin for SockFuture<'_, F> {}

impl<R, F: FnMut() -> io::Result<Option<R>>> Future for SockFuture<'_, F> {
    type Output = io::Result<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.home.check("socket operation");
        let result = ready!(self.poll_value(cx));
        self.wait = None;
        self.call = None;
        Poll::Ready(result)
    }
}

impl<R, F: FnMut() -> io::Result<Option<R>>> FusedFuture for SockFuture<'_, F> {
    fn is_terminated(&self) -> bool {
        self.call.is_none()
    }
}

impl Wait {
    fn is_in_line(&self) -> bool {
        self.place.is_some_and(|place| self.core.driver().is_ok_and(|driver| driver.is_waiting(place)))
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let _discarded_unborrowed = self.core.driver().map(|mut driver| driver.cancel_foreign(place));
        }
    }
}
