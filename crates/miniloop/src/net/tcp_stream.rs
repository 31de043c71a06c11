//! A TCP connection: bytes in both directions.
//!
//! Three ways to use it. The traits of `futures-io`, for the stream and for `&` of it, remember one waiting task per direction. The methods
//! over `&self` let any number wait in line. The `try_*` methods make one system call now, for who writes to many peers and waits for none.
//! All of them come from `byte_stream_methods.rs`; here is what is TCP's own.
//!
//! Next: `unix_stream.rs`, `split.rs`, and `../sock.rs` for sockets that the user made.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt;

use super::socket::{Stream, socket_methods};
use super::system_calls;
use crate::byte_stream::{ByteStream, WriteCalls};
use crate::byte_stream_methods::{delegate_write, descriptor_traits, read_methods, write_methods};
use crate::driver::Kind;

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

/// Where a stream's bytes go. A simulated network will be the second variant (decision 0007).
enum Inner {
    Os(ByteStream<std::net::TcpStream>),
}

impl TcpStream {
    /// Connects to one address. Dropping the future closes the half-open connection.
    pub(super) async fn connect_to(address: SocketAddr) -> io::Result<Self> {
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
        let Inner::Os(os) = self.inner;
        os.into_bytes()
    }

    /// A connection from a socket that does not block. `is_connected`: it need not be waited for.
    #[track_caller]
    pub(super) fn new(socket: OwnedFd, is_connected: bool) -> io::Result<Self> {
        Ok(Self { inner: Inner::Os(ByteStream::new(socket.into(), Kind::Tcp, is_connected)?) })
    }

    pub(super) fn os(&self) -> &ByteStream<std::net::TcpStream> {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Our address.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().bytes.local_addr()
    }

    /// The peer's address.
    ///
    /// # Errors
    /// `NotConnected` when the connection has gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.os().bytes.peer_addr()
    }

    /// How many written bytes the peer's kernel has not acknowledged yet. Closing the connection while there are some, and while the peer
    /// still sends, destroys them: the kernel answers what arrives at a closed connection with a reset.
    ///
    /// # Errors
    /// What `ioctl` says.
    pub fn unacknowledged_len(&self) -> io::Result<usize> {
        system_calls::unacknowledged_len(self)
    }

    /// Sends small pieces at once (true) or lets them wait for more to send with them (false), until the peer has acknowledged the piece
    /// before, which it may put off for 40 ms. Connections made by [`connect`](Self::connect) and those of a bound
    /// [`TcpListener`](super::TcpListener) begin with true, as in asyncio; the standard library's keep what they have.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_nodelay(&self, is_nodelay: bool) -> io::Result<()> {
        self.os().bytes.set_nodelay(is_nodelay)
    }

    /// Whether small pieces are sent at once.
    ///
    /// # Errors
    /// What `getsockopt` says.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.os().bytes.nodelay()
    }

    /// What happens to unsent bytes when the stream is dropped. `None`, the default: they are sent. Zero: they are thrown away and the peer
    /// sees a reset. More than zero makes the drop block for up to that long, and the loop with it.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_linger(&self, linger: Option<Duration>) -> io::Result<()> {
        Ok(sockopt::set_socket_linger(self, linger)?)
    }
}

read_methods!(
    TcpStream,
    "",
    "# use miniloop::net::{TcpListener, TcpStream};
# let listener = TcpListener::bind(\"127.0.0.1:0\".parse().unwrap())?;
# let writer = TcpStream::connect(listener.local_addr()?).await?;
# let (reader, _) = listener.accept().await?;"
);
write_methods!(
    TcpStream,
    "",
    "# use miniloop::net::{TcpListener, TcpStream};
# let listener = TcpListener::bind(\"127.0.0.1:0\".parse().unwrap())?;
# let writer = TcpStream::connect(listener.local_addr()?).await?;"
);
socket_methods!(TcpStream);
delegate_write!([] TcpStream, |stream| stream.os());
delegate_write!([] & TcpStream, |stream| stream.os());
descriptor_traits!(TcpStream, |stream| stream.os().bytes);

impl TryFrom<std::net::TcpStream> for TcpStream {
    type Error = io::Error;

    /// [`from_std`](Self::from_std), which panics outside a loop.
    #[track_caller]
    fn try_from(stream: std::net::TcpStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

impl From<TcpStream> for std::net::TcpStream {
    fn from(stream: TcpStream) -> Self {
        stream.into_std()
    }
}

impl Stream for TcpStream {
    fn end(&self) -> io::Result<()> {
        self.os().bytes.end()
    }
}
