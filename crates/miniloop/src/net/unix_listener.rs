//! Where connections over Unix sockets come in. How they are taken from the kernel is in `listener.rs`.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::task::{Context, Poll};

use rustix::net::SocketAddrAny;

use super::listener::{self, Accept, Incoming, Listener, OsListener};
use super::unix_stream::UnixStream;
use super::{system_calls, unix_address};
use crate::byte_stream_methods::descriptor_traits;

/// A socket that accepts connections of this machine, at a path or under an abstract name.
///
/// It belongs to the loop under which it was made. The file at its path stays when it is dropped, and must go before the path can be bound
/// again; an abstract name is free again at once.
///
/// ```
/// use std::os::linux::net::SocketAddrExt;
/// use std::os::unix::net::SocketAddr;
///
/// use miniloop::net::{UnixListener, UnixStream};
///
/// # let name = format!("miniloop-listener-{}", std::process::id());
/// # miniloop::run(async {
/// let address = SocketAddr::from_abstract_name(&name)?;
/// let listener = UnixListener::bind_addr(&address)?;
/// let client = UnixStream::connect_addr(&address).await?;
/// let (server, _) = listener.accept().await?;
/// client.write(b"hello").await?;
/// assert_eq!(server.read(&mut [0; 16]).await?, 5);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[doc(alias = "start_unix_server")]
#[doc(alias = "create_unix_server")]
pub struct UnixListener {
    inner: Inner,
}

/// Where connections come from. A simulated network will be the second variant (decision 0007).
enum Inner {
    Os(OsListener<std::os::unix::net::UnixListener>),
}

impl UnixListener {
    /// Makes a socket at a path and listens on it.
    ///
    /// # Errors
    /// `AddrInUse` when there is a file of that name, also one that a listener before left; `InvalidInput` for a path of more than 107
    /// bytes; what else `bind` says.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::new(system_calls::unix_listen(&unix_address::of_path(path.as_ref())?)?)
    }

    /// [`bind`](Self::bind) to any name, an abstract one for instance.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn bind_addr(address: &SocketAddr) -> io::Result<Self> {
        Self::new(system_calls::unix_listen(&unix_address::to_kernel(address)?)?)
    }

    /// Takes over a listener of the standard library and makes it non-blocking.
    ///
    /// # Errors
    /// When the loop already watches its descriptor for a callback, or cannot watch it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::new(listener.into())
    }

    /// Hands the listener to the standard library. It is still non-blocking.
    pub fn into_std(self) -> std::os::unix::net::UnixListener {
        let Inner::Os(os) = self.inner;
        os.into_socket()
    }

    #[track_caller]
    fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::Os(OsListener::new(socket.into())?) })
    }

    /// Waits for the next connection. The address is the peer's name; who only connects has none.
    ///
    /// Out of descriptors or memory it reports that once (`on_error`), and tries again every second until it succeeds.
    ///
    /// # Errors
    /// What `accept` says of the listener itself.
    ///
    /// # Cancellation
    /// No connection is lost: it is taken from the kernel only in the poll that returns it.
    pub fn accept(&self) -> Accept<'_, Self> {
        Accept::new(self)
    }

    /// Takes a connection that is there.
    ///
    /// # Errors
    /// `WouldBlock` if there is none. Else what `accept` says, that no descriptor is left included.
    pub fn try_accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        listener::try_accept(self)
    }

    /// [`accept`](Self::accept) for hand-written futures. The last caller is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        listener::poll_accept(self, cx)
    }

    /// The connections, one after the other, without an end.
    pub fn incoming(&self) -> Incoming<'_, Self> {
        Incoming::new(self)
    }

    /// The name it listens under.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.local_addr()
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;
    type Address = SocketAddr;
    type Socket = std::os::unix::net::UnixListener;

    fn os(&self) -> &OsListener<Self::Socket> {
        let Inner::Os(os) = &self.inner;
        os
    }

    fn connection(socket: OwnedFd, address: Option<SocketAddrAny>) -> io::Result<(UnixStream, SocketAddr)> {
        Ok((UnixStream::new(socket)?, unix_address::from_kernel(address)?))
    }

    fn name(&self) -> Option<String> {
        Some(format!("{:?}", self.local_addr().ok()?))
    }
}

descriptor_traits!(UnixListener, |listener| listener.os().socket);

impl TryFrom<std::os::unix::net::UnixListener> for UnixListener {
    type Error = io::Error;

    /// [`from_std`](Self::from_std), which panics outside a loop.
    #[track_caller]
    fn try_from(listener: std::os::unix::net::UnixListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}

impl From<UnixListener> for std::os::unix::net::UnixListener {
    fn from(listener: UnixListener) -> Self {
        listener.into_std()
    }
}
