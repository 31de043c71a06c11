//! Where TCP connections come in. How they are taken from the kernel, also when the process is out of descriptors, is in `listener.rs`.
//!
//! Next: `unix_listener.rs`.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};

use rustix::net::SocketAddrAny;

use super::listener::{self, Accept, Incoming, Listener, OsListener};
use super::system_calls;
use super::tcp_stream::TcpStream;
use crate::byte_stream_methods::descriptor_traits;

/// A socket that accepts TCP connections.
///
/// It belongs to the loop under which it was made.
///
/// ```
/// use miniloop::io::write_all;
/// use miniloop::net::{TcpListener, TcpStream};
///
/// miniloop::run(async {
///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
///     let address = listener.local_addr()?;
///     let server = miniloop::spawn(async move {
///         loop {
///             let (stream, _peer) = listener.accept().await?;
///             miniloop::spawn(async move { write_all(&stream, b"hello").await }).detach();
///         }
///         # #[allow(unreachable_code)] Ok::<(), std::io::Error>(())
///     });
///     let client = TcpStream::connect(address).await?;
///     assert_eq!(client.read(&mut [0; 16]).await?, 5);
///     drop(server);
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "start_server")]
#[doc(alias = "create_server")]
pub struct TcpListener {
    inner: Inner,
}

/// Where connections come from. A simulated network will be the second variant (decision 0007).
enum Inner {
    Os(OsListener<std::net::TcpListener>),
}

impl TcpListener {
    /// Listens on an address. Port 0 takes a free one, which [`local_addr`](Self::local_addr) tells.
    ///
    /// `"127.0.0.1:0".parse()?` is an address, and so is `(Ipv4Addr::LOCALHOST, 0).into()`, which cannot fail. Names are not looked up:
    /// [`resolve`](super::resolve()) does that.
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

    /// Hands the listener to the standard library. It is still non-blocking.
    pub fn into_std(self) -> std::net::TcpListener {
        let Inner::Os(os) = self.inner;
        os.into_socket()
    }

    #[track_caller]
    fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::Os(OsListener::new(socket.into())?) })
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
    pub fn accept(&self) -> Accept<'_, Self> {
        Accept::new(self)
    }

    /// Takes a connection that is there.
    ///
    /// # Errors
    /// `WouldBlock` if there is none. Else what `accept` says, that no descriptor is left included.
    pub fn try_accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        listener::try_accept(self)
    }

    /// [`accept`](Self::accept) for hand-written futures. The last caller is woken.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        listener::poll_accept(self, cx)
    }

    /// The connections, one after the other, without an end.
    ///
    /// ```
    /// use futures_util::{StreamExt, select};
    /// use miniloop::net::{TcpListener, TcpStream};
    ///
    /// # miniloop::run(async {
    /// let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
    /// # let _client = TcpStream::connect(listener.local_addr()?).await?;
    /// let (mut connections, mut limit) = (listener.incoming(), miniloop::sleep(std::time::Duration::from_secs(10)));
    /// select! {
    ///     connection = connections.select_next_some() => println!("from {}", connection?.peer_addr()?),
    ///     () = limit => println!("nobody comes"),
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn incoming(&self) -> Incoming<'_, Self> {
        Incoming::new(self)
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.local_addr()
    }
}

impl Listener for TcpListener {
    type Stream = TcpStream;
    type Address = SocketAddr;
    type Socket = std::net::TcpListener;

    fn os(&self) -> &OsListener<Self::Socket> {
        let Inner::Os(os) = &self.inner;
        os
    }

    fn connection(socket: OwnedFd, address: Option<SocketAddrAny>) -> io::Result<(TcpStream, SocketAddr)> {
        let Some(address) = address.and_then(|address| address.try_into().ok()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this listener accepts connections without an IP address"));
        };
        Ok((TcpStream::new(socket, true)?, address))
    }

    fn name(&self) -> Option<String> {
        Some(self.local_addr().ok()?.to_string())
    }
}

descriptor_traits!(TcpListener, |listener| listener.os().socket);

impl TryFrom<std::net::TcpListener> for TcpListener {
    type Error = io::Error;

    /// [`from_std`](Self::from_std), which panics outside a loop.
    #[track_caller]
    fn try_from(listener: std::net::TcpListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}

impl From<TcpListener> for std::net::TcpListener {
    fn from(listener: TcpListener) -> Self {
        listener.into_std()
    }
}
