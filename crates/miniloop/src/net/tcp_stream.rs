//! A TCP connection: bytes in both directions.
//!
//! Three ways to use it. The traits of `futures-io`, for the stream and for `&` of it, remember one waiting task per direction. The methods
//! over `&self` let any number wait in line. The `try_*` methods make one system call now, for who writes to many peers and waits for none.
//!
//! Next: `tcp_listener.rs`, and `../sock.rs` for sockets that the user made.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::FusedFuture;
use futures_io::{AsyncRead, AsyncWrite};

use super::delegate::{delegate_read, delegate_write};
use super::system_calls::{self, SLICES_PER_CALL};
use crate::driver::{Direction, Kind};
use crate::registration::{Place, Registration};

/// A TCP connection.
///
/// It belongs to the loop under which it was made. Dropping it closes the connection; what was written is still delivered.
///
/// ```
/// use futures_util::{AsyncReadExt, AsyncWriteExt};
/// use miniloop::net::{TcpListener, TcpStream};
///
/// miniloop::run(async {
///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
///     let mut client = TcpStream::connect(listener.local_addr()?).await?;
///     let (mut server, _) = listener.accept().await?;
///
///     client.write_all(b"hello").await?;
///     client.close().await?;
///     let mut text = String::new();
///     server.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TcpStream {
    inner: Inner,
}

/// Where a stream's bytes go. A simulated network will be the second variant.
enum Inner {
    Os(OsStream),
}

/// A socket of the system. The registration stands first: it is dropped before the descriptor is closed.
struct OsStream {
    registration: Registration,
    socket: std::net::TcpStream,
}

impl TcpStream {
    /// Connects to an address.
    ///
    /// # Errors
    /// What the peer or the network says, `ConnectionRefused` for instance.
    ///
    /// # Cancellation
    /// Dropping the future closes the half-open connection.
    ///
    /// # Panics
    /// Outside a loop.
    #[doc(alias = "open_connection")]
    #[doc(alias = "create_connection")]
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let (socket, is_connected) = system_calls::connect(address)?;
        // Registered only now: a socket that has not begun to connect reports a hang-up.
        let stream = Self::new(socket, is_connected)?;
        stream.writable().await?;
        system_calls::take_error(&stream)?;
        Ok(stream)
    }

    /// Takes over a connection of the standard library and makes it non-blocking.
    ///
    /// # Errors
    /// When the loop already watches its descriptor for a callback, or cannot watch it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(stream.into(), true)
    }

    /// Hands the connection to the standard library. It is still non-blocking.
    pub fn into_std(self) -> std::net::TcpStream {
        let Inner::Os(OsStream { registration, socket }) = self.inner;
        drop(registration);
        socket
    }

    /// A connection from a socket that does not block. `is_connected`: it need not be waited for.
    #[track_caller]
    pub(super) fn new(socket: OwnedFd, is_connected: bool) -> io::Result<Self> {
        let registration = Registration::new(socket.as_fd(), Kind::Tcp, is_connected)?;
        Ok(Self { inner: Inner::Os(OsStream { registration, socket: socket.into() }) })
    }

    fn os(&self) -> &OsStream {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Reads some bytes, at most as many as `buffer` holds. Zero: the peer has ended its direction, or `buffer` is empty.
    ///
    /// Those who read at the same time wait in line; each gets a piece of the stream that the others do not get.
    ///
    /// # Errors
    /// What `recv` says, `ConnectionReset` for instance.
    ///
    /// # Cancellation
    /// Nothing is lost: bytes are taken from the connection only in the poll that returns them.
    pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + 'a {
        let os = self.os();
        os.registration.io(Direction::Read, || os.receive(buffer))
    }

    /// Writes some bytes, possibly not all, and says how many.
    ///
    /// # Errors
    /// What `send` says: `BrokenPipe` or `ConnectionReset` when the peer has gone. There is no signal.
    ///
    /// # Cancellation
    /// Nothing has been written if the future is dropped before it is done.
    pub fn write<'a>(&'a self, bytes: &'a [u8]) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + 'a {
        let os = self.os();
        os.registration.io(Direction::Write, || os.send(bytes))
    }

    /// Waits until [`try_read`](Self::try_read) is worth trying: there are bytes, the end, or an error. It may be wrong once.
    pub fn readable(&self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + '_ {
        self.os().registration.io(Direction::Read, || Ok(()))
    }

    /// Waits until [`try_write`](Self::try_write) is worth trying: there is room, or an error. It may be wrong once.
    ///
    /// ```
    /// # use miniloop::net::{TcpListener, TcpStream};
    /// use std::io::ErrorKind::WouldBlock;
    ///
    /// async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> std::io::Result<()> {
    ///     while !bytes.is_empty() {
    ///         match stream.try_write(bytes) {
    ///             Ok(len) => bytes = &bytes[len..],
    ///             Err(error) if error.kind() == WouldBlock => stream.writable().await?,
    ///             Err(error) => return Err(error),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # miniloop::run(async {
    /// #     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
    /// #     let client = TcpStream::connect(listener.local_addr()?).await?;
    /// #     write_all(&client, b"hello").await
    /// # })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writable(&self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + '_ {
        self.os().registration.io(Direction::Write, || Ok(()))
    }

    /// [`readable`](Self::readable) for hand-written futures. The last caller is woken, and `AsyncRead` counts as one.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.os().registration.poll_io(Direction::Read, Place::Alone, cx, || Ok(()))
    }

    /// [`writable`](Self::writable) for hand-written futures. The last caller is woken, and `AsyncWrite` counts as one.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.os().registration.poll_io(Direction::Write, Place::Alone, cx, || Ok(()))
    }

    /// Reads what is there now, by one system call. Zero: the peer has ended its direction, or `buffer` is empty.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; what `recv` says.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let os = self.os();
        os.registration.try_io(Direction::Read, || os.receive(buffer))
    }

    /// Writes what there is room for now, by one system call, and says how many bytes.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; what `send` says. There is no signal.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let os = self.os();
        os.registration.try_io(Direction::Write, || os.send(bytes))
    }

    /// [`try_write`](Self::try_write) of bytes that lie in several places. Slices beyond the 1,024th wait for the next call.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let os = self.os();
        os.registration.try_io(Direction::Write, || os.send_vectored(slices))
    }

    /// Ends one direction, or both, at once. The peer reads to the end; the other direction goes on.
    ///
    /// # Errors
    /// `NotConnected` when the connection has gone.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.os().socket.shutdown(how)
    }

    /// Our address.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// `NotConnected` when the connection has gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.peer_addr()
    }

    /// How many written bytes the peer's kernel has not acknowledged yet. Closing the connection while there are some, and while the peer
    /// still sends, destroys them: the kernel answers what arrives at a closed connection with a reset.
    ///
    /// # Errors
    /// What `ioctl` says.
    pub fn unacknowledged_len(&self) -> io::Result<usize> {
        system_calls::unacknowledged_len(self)
    }

    /// Sends small pieces at once (true) instead of waiting for more to send with them (false, the default).
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_nodelay(&self, is_nodelay: bool) -> io::Result<()> {
        self.os().socket.set_nodelay(is_nodelay)
    }

    /// What happens to unsent bytes when the stream is dropped. `None`, the default: they are sent. Zero: they are thrown away and the peer
    /// sees a reset. More than zero makes the drop block for up to that long, and the loop with it.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        Ok(rustix::net::sockopt::set_socket_linger(&self.os().socket, linger)?)
    }
}

impl OsStream {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = system_calls::receive(&self.socket, buffer)?;
        self.registration.moved(Direction::Read, len, buffer.len());
        Ok(len)
    }

    fn receive_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let clipped_len = buffers.len().min(SLICES_PER_CALL);
        let buffers = &mut buffers[..clipped_len];
        let len = system_calls::receive_vectored(&self.socket, buffers)?;
        self.registration.moved(Direction::Read, len, buffers.iter().map(|buffer| buffer.len()).sum());
        Ok(len)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let len = system_calls::send(&self.socket, bytes)?;
        self.registration.moved(Direction::Write, len, bytes.len());
        Ok(len)
    }

    fn send_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let slices = &slices[..slices.len().min(SLICES_PER_CALL)];
        let len = system_calls::send_vectored(&self.socket, slices)?;
        self.registration.moved(Direction::Write, len, slices.iter().map(|slice| slice.len()).sum());
        Ok(len)
    }
}

impl AsyncRead for &TcpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let os = self.os();
        os.registration.poll_io(Direction::Read, Place::Alone, cx, || os.receive(buffer))
    }

    fn poll_read_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        let os = self.os();
        os.registration.poll_io(Direction::Read, Place::Alone, cx, || os.receive_vectored(buffers))
    }
}

impl AsyncWrite for &TcpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let os = self.os();
        os.registration.poll_io(Direction::Write, Place::Alone, cx, || os.send(bytes))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let os = self.os();
        os.registration.poll_io(Direction::Write, Place::Alone, cx, || os.send_vectored(slices))
    }

    /// Does nothing: the kernel has every byte that was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends our direction; the peer's goes on. That the connection has gone already is no error.
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        })
    }
}

delegate_read!(TcpStream, |stream| stream);
delegate_write!(TcpStream, |stream| stream);

impl AsRawFd for TcpStream {
    fn as_raw_fd(&self) -> RawFd {
        self.os().socket.as_raw_fd()
    }
}

impl AsFd for TcpStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.os().socket.as_fd()
    }
}

impl fmt::Debug for TcpStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.os().socket.fmt(f)
    }
}
