//! A connection between two processes of one machine: bytes in both directions.
//!
//! All reading and writing comes from `byte_stream_methods.rs`; here is what is the Unix socket's own. A connection can carry descriptors
//! beside its bytes, and the kernel ends a read behind those: so a short read does not mean that nothing is left.
//!
//! Next: `split.rs`, `unix_listener.rs`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::SocketAddr;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use super::socket::{Stream, socket_methods};
use super::{system_calls, unix_address};
use crate::byte_stream::{ByteStream, WriteCalls};
use crate::byte_stream_methods::{delegate_write, descriptor_traits, read_methods, write_methods};
use crate::config::UNIX_CONNECT_RETRY;
use crate::driver::Kind;
use crate::engine::context;
use crate::os;
use crate::time::sleep;

/// A connection over a Unix socket.
///
/// It belongs to the loop under which it was made. Dropping it closes the connection; what was written is still delivered.
///
/// ```
/// use futures_util::{AsyncReadExt, AsyncWriteExt};
/// use miniloop::net::UnixStream;
///
/// miniloop::run(async {
///     let (mut ours, mut theirs) = UnixStream::pair()?;
///     ours.write_all(b"hello").await?;
///     ours.close().await?;
///     let mut text = String::new();
///     theirs.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UnixStream {
    inner: Inner,
}

/// Where a stream's bytes go. A simulated network will be the second variant (decision 0007).
enum Inner {
    Os(ByteStream<std::os::unix::net::UnixStream>),
}

/// The process at the other end of a Unix socket, as it was when the connection was made. The kernel vouches for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// The id of the process. It may have ended, and the number may be another's by now.
    pub pid: i32,
    /// Its effective user.
    pub uid: u32,
    /// Its effective group.
    pub gid: u32,
}

impl UnixStream {
    /// Connects to the listener at a path.
    ///
    /// While too many connections wait for the listener to accept them, the kernel refuses and tells nobody when there is room again. So
    /// this tries every 10 ms until it is let in; limit it with a timeout.
    ///
    /// ```
    /// use miniloop::net::{UnixListener, UnixStream};
    ///
    /// # let path = std::env::temp_dir().join(format!("miniloop-connect-{}", std::process::id()));
    /// # miniloop::run(async {
    /// let listener = UnixListener::bind(&path)?;
    /// let client = UnixStream::connect(&path).await?;
    /// let (server, _) = listener.accept().await?;
    /// assert_eq!(server.peer_cred()?.uid, client.peer_cred()?.uid);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound` without a socket of that name, `ConnectionRefused` when nobody listens there any more, `InvalidInput` for a path of more
    /// than 107 bytes.
    ///
    /// # Cancellation
    /// No connection has been made if the future is dropped before it is done.
    ///
    /// # Panics
    /// Outside a loop.
    #[doc(alias = "open_unix_connection")]
    #[doc(alias = "create_unix_connection")]
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::connect_to(unix_address::of_path(path.as_ref())).await
    }

    /// [`connect`](Self::connect) to any name, an abstract one for instance.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    ///
    /// # Cancellation
    /// As [`connect`](Self::connect).
    ///
    /// # Panics
    /// Outside a loop.
    pub async fn connect_addr(address: &SocketAddr) -> io::Result<Self> {
        Self::connect_to(unix_address::to_kernel(address)).await
    }

    async fn connect_to(address: io::Result<SocketAddrUnix>) -> io::Result<Self> {
        let result = match address {
            Ok(address) => Self::connect_patiently(address).await,
            Err(error) => Err(error),
        };
        if result.is_err() {
            context::after_failure().await;
        }
        result
    }

    async fn connect_patiently(address: SocketAddrUnix) -> io::Result<Self> {
        let socket = system_calls::socket(AddressFamily::UNIX, SocketType::STREAM)?;
        // On this machine there is no "in progress": it is connected, refused, or has to come again.
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => return Self::new(socket),
                Err(rustix::io::Errno::AGAIN) => sleep(UNIX_CONNECT_RETRY).await,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Two streams that are connected to each other.
    ///
    /// # Errors
    /// The system has no descriptor left.
    ///
    /// # Panics
    /// Outside a loop.
    #[doc(alias = "socketpair")]
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (ours, theirs) = system_calls::unix_pair(SocketType::STREAM)?;
        Ok((Self::new(ours)?, Self::new(theirs)?))
    }

    /// Takes over a connection of the standard library and makes it non-blocking.
    ///
    /// # Errors
    /// When the loop already watches its descriptor for a callback, or cannot watch it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Self::new(stream.into())
    }

    /// Hands the connection to the standard library. It is still non-blocking.
    pub fn into_std(self) -> std::os::unix::net::UnixStream {
        let Inner::Os(os) = self.inner;
        os.into_bytes()
    }

    /// A connection from a connected socket that does not block.
    #[track_caller]
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::Os(ByteStream::new(socket.into(), Kind::Other, true)?) })
    }

    pub(super) fn os(&self) -> &ByteStream<std::os::unix::net::UnixStream> {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// What `getsockopt` says.
    #[doc(alias = "SO_PEERCRED")]
    pub fn peer_cred(&self) -> io::Result<PeerCredentials> {
        peer_cred(self)
    }

    /// Our name. Who connects has none.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().bytes.local_addr()
    }

    /// The peer's name.
    ///
    /// # Errors
    /// `NotConnected` when the connection has gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.os().bytes.peer_addr()
    }
}

/// Of any connected Unix socket.
pub(super) fn peer_cred(socket: impl AsFd) -> io::Result<PeerCredentials> {
    let (pid, uid, gid) = os::peer_cred(socket)?;
    Ok(PeerCredentials { pid, uid, gid })
}

read_methods!(UnixStream, "", "# let (reader, writer) = miniloop::net::UnixStream::pair()?;");
write_methods!(UnixStream, "", "# let (_reader, writer) = miniloop::net::UnixStream::pair()?;");
socket_methods!(UnixStream);
delegate_write!([] UnixStream, |stream| stream.os());
delegate_write!([] & UnixStream, |stream| stream.os());
descriptor_traits!(UnixStream, |stream| stream.os().bytes);

impl TryFrom<std::os::unix::net::UnixStream> for UnixStream {
    type Error = io::Error;

    /// [`from_std`](Self::from_std), which panics outside a loop.
    #[track_caller]
    fn try_from(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}

impl From<UnixStream> for std::os::unix::net::UnixStream {
    fn from(stream: UnixStream) -> Self {
        stream.into_std()
    }
}

impl Stream for UnixStream {
    fn end(&self) -> io::Result<()> {
        self.os().bytes.end()
    }
}
