//! Single messages within the machine.
//!
//! Unlike UDP's they are neither lost nor reordered: a receiver's queue that is full makes the sender wait. Of a peer that it is not
//! connected to the kernel does not say when that has room again: our own socket counts as writable all the while. [`SendTo`] asks with a
//! second socket that is connected to that peer, which the kernel does tell; it exists for as long as the wait and sends nothing.
//!
//! Sending to the connected peer, receiving and waiting comes from `datagram.rs`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use super::datagram::{DatagramSocket, OsDatagram, datagram_methods};
use super::unix_stream::{PeerCredentials, peer_cred};
use super::{system_calls, unix_address};
use crate::byte_stream_methods::descriptor_traits;
use crate::driver::{Direction, Kind};
use crate::engine::context;
use crate::readiness::look;
use crate::registration::{Line, Place, Registration};

/// A Unix socket for messages. Each arrives whole, and in the order in which they were sent.
///
/// It belongs to the loop under which it was made. The file at its path stays when it is dropped.
///
/// ```
/// use miniloop::net::UnixDatagram;
///
/// # let path = std::env::temp_dir().join(format!("miniloop-datagram-{}", std::process::id()));
/// # miniloop::run(async {
/// let server = UnixDatagram::bind(&path)?;
/// let client = UnixDatagram::unbound()?;
/// client.send_to(b"hello", &path).await?;
/// let mut buffer = [0; 16];
/// let (len, sender) = server.recv_from(&mut buffer).await?;
/// assert_eq!(&buffer[..len], b"hello");
/// assert!(sender.is_unnamed(), "so it cannot be answered");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
pub struct UnixDatagram {
    inner: Inner,
}

/// Where messages go. A simulated network will be the second variant (decision 0007).
enum Inner {
    Os(OsDatagram<std::os::unix::net::UnixDatagram>),
}

impl UnixDatagram {
    /// A socket at a path.
    ///
    /// # Errors
    /// `AddrInUse` when there is a file of that name; `InvalidInput` for a path of more than 107 bytes; what else `bind` says.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::bind_to(&unix_address::of_path(path.as_ref())?)
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
        Self::bind_to(&unix_address::to_kernel(address)?)
    }

    #[track_caller]
    fn bind_to(address: &SocketAddrUnix) -> io::Result<Self> {
        let socket = system_calls::socket(AddressFamily::UNIX, SocketType::DGRAM)?;
        rustix::net::bind(&socket, address)?;
        Self::new(socket)
    }

    /// A socket without a name, which can send and not be answered.
    ///
    /// # Errors
    /// The system has no descriptor left.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn unbound() -> io::Result<Self> {
        Self::new(system_calls::socket(AddressFamily::UNIX, SocketType::DGRAM)?)
    }

    /// Two sockets that are connected to each other.
    ///
    /// # Errors
    /// The system has no descriptor left.
    ///
    /// # Panics
    /// Outside a loop.
    #[doc(alias = "socketpair")]
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (ours, theirs) = system_calls::unix_pair(SocketType::DGRAM)?;
        Ok((Self::new(ours)?, Self::new(theirs)?))
    }

    /// Takes over a socket of the standard library and makes it non-blocking.
    ///
    /// # Errors
    /// When the loop already watches its descriptor for a callback, or cannot watch it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn from_std(socket: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::new(socket.into())
    }

    /// Hands the socket to the standard library. It is still non-blocking.
    pub fn into_std(self) -> std::os::unix::net::UnixDatagram {
        let Inner::Os(os) = self.inner;
        os.into_socket()
    }

    #[track_caller]
    fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::Os(OsDatagram::new(socket.into())?) })
    }

    fn os(&self) -> &OsDatagram<std::os::unix::net::UnixDatagram> {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Chooses the peer of [`send`](Self::send). From now on only its messages are received.
    ///
    /// # Errors
    /// `NotFound` without a socket of that name, `ConnectionRefused` when nobody has it any more.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        Ok(rustix::net::connect(self, &unix_address::of_path(path.as_ref())?)?)
    }

    /// [`connect`](Self::connect) to any name, an abstract one for instance.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_addr(&self, address: &SocketAddr) -> io::Result<()> {
        Ok(rustix::net::connect(self, &unix_address::to_kernel(address)?)?)
    }

    /// Sends one message to the socket at a path. Waits while its queue is full.
    ///
    /// # Errors
    /// `NotFound` without a socket of that name, `ConnectionRefused` when nobody has it any more, an error for a message that is too long.
    ///
    /// # Cancellation
    /// Nothing has been sent if the future is dropped before it is done.
    pub fn send_to<'a, P: AsRef<Path>>(
        &'a self,
        message: &'a [u8],
        path: P,
    ) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + use<'a, P> {
        SendTo::new(self.os(), message, unix_address::of_path(path.as_ref()))
    }

    /// [`send_to`](Self::send_to) any name, that of [`recv_from`](Self::recv_from) for instance.
    ///
    /// # Errors
    /// As [`send_to`](Self::send_to).
    ///
    /// # Cancellation
    /// As [`send_to`](Self::send_to).
    pub fn send_to_addr<'a>(
        &'a self,
        message: &'a [u8],
        address: &SocketAddr,
    ) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + use<'a> {
        SendTo::new(self.os(), message, unix_address::to_kernel(address))
    }

    /// [`send_to`](Self::send_to) now, by one system call.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, message: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        self.os().send_to(message, &unix_address::of_path(path.as_ref())?)
    }

    /// [`try_send_to`](Self::try_send_to) any name, that of [`recv_from`](Self::recv_from) for instance.
    ///
    /// # Errors
    /// As [`try_send_to`](Self::try_send_to).
    pub fn try_send_to_addr(&self, message: &[u8], address: &SocketAddr) -> io::Result<usize> {
        self.os().send_to(message, &unix_address::to_kernel(address)?)
    }

    /// Our name.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.local_addr()
    }

    /// The name of the peer that the socket is connected to.
    ///
    /// # Errors
    /// `NotConnected` if it is not.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.peer_addr()
    }

    /// Who made the other socket of a [`pair`](Self::pair). Without a pair the kernel knows nobody: process 0, and no user.
    ///
    /// # Errors
    /// What `getsockopt` says.
    #[doc(alias = "SO_PEERCRED")]
    pub fn peer_cred(&self) -> io::Result<PeerCredentials> {
        peer_cred(self)
    }
}

impl OsDatagram<std::os::unix::net::UnixDatagram> {
    /// That a queue is full is not held against our own socket, which may have room for other peers.
    fn send_to(&self, message: &[u8], address: &SocketAddrUnix) -> io::Result<usize> {
        loop {
            match system_calls::send_to(&self.socket, message, address) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

/// The future of [`UnixDatagram::send_to`].
#[must_use = "futures do nothing unless awaited"]
struct SendTo<'a> {
    os: &'a OsDatagram<std::os::unix::net::UnixDatagram>,
    message: &'a [u8],
    /// `None` once it is done.
    address: Option<io::Result<SocketAddrUnix>>,
    line: Line<'a>,
    /// Our own buffer is full: `line` hears of room in it.
    waits_for_ours: bool,
    /// The peer's queue is full: this hears of room in it.
    scout: Option<Scout>,
}

/// A socket that is connected to the peer, and writable when the peer's queue has room. The registration stands first, as ever.
struct Scout {
    registration: Registration,
    _socket: OwnedFd,
}

impl<'a> SendTo<'a> {
    fn new(os: &'a OsDatagram<std::os::unix::net::UnixDatagram>, message: &'a [u8], address: io::Result<SocketAddrUnix>) -> Self {
        let line = Line::new(&os.registration, Direction::Write);
        Self { os, message, address: Some(address), line, waits_for_ours: false, scout: None }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, address: &SocketAddrUnix) -> Poll<io::Result<usize>> {
        let mut is_room_at_the_peer = false;
        loop {
            if self.waits_for_ours || self.scout.is_some() {
                let is_room_at_ours = self.waits_for_ours && self.poll_ours(cx)?.is_ready();
                is_room_at_the_peer = match &self.scout {
                    Some(scout) => scout.registration.poll_io(Direction::Write, Place::Alone, cx, || Ok(()))?.is_ready(),
                    None => false,
                };
                if !is_room_at_ours && !is_room_at_the_peer {
                    return Poll::Pending;
                }
            }
            ready!(context::poll_budget(cx));
            match self.os.send_to(self.message, address) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => {
                    context::spend_system_call();
                    return Poll::Ready(result);
                }
            }
            // Which of the two is full? Ours is it for certain if the peer has just said that it is not.
            self.waits_for_ours = look(self.os.socket.as_fd(), Direction::Write).is_err();
            let is_ours_alone = self.waits_for_ours && is_room_at_the_peer;
            // A new scout each time: the kernel looks at the peer's queue when it is told to watch, and from then on.
            self.scout = if is_ours_alone { None } else { Some(Scout::new(address)?) };
        }
    }

    fn poll_ours(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let os = self.os;
        self.line.poll_io(cx, || look(os.socket.as_fd(), Direction::Write))
    }
}

impl Scout {
    fn new(address: &SocketAddrUnix) -> io::Result<Self> {
        let socket = system_calls::socket(AddressFamily::UNIX, SocketType::DGRAM)?;
        rustix::net::connect(&socket, address)?;
        Ok(Self { registration: Registration::new(socket.as_fd(), Kind::Other, false)?, _socket: socket })
    }
}

impl Future for SendTo<'_> {
    type Output = io::Result<usize>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let result = match this.address.take().expect("an I/O future was polled after it was done") {
            Ok(address) => match this.poll_send(cx, &address) {
                Poll::Pending => {
                    this.address = Some(Ok(address));
                    return Poll::Pending;
                }
                Poll::Ready(result) => result,
            },
            Err(error) => Err(error),
        };
        this.scout = None;
        Poll::Ready(result)
    }
}

impl FusedFuture for SendTo<'_> {
    fn is_terminated(&self) -> bool {
        self.address.is_none()
    }
}

datagram_methods!(UnixDatagram, SocketAddr, "# let (ours, theirs) = miniloop::net::UnixDatagram::pair()?;");

impl DatagramSocket for std::os::unix::net::UnixDatagram {
    type Address = SocketAddr;

    fn receive_from(&self, buffer: &mut [u8], is_peek: bool) -> io::Result<(usize, SocketAddr)> {
        let (len, address) = system_calls::receive_from(self, buffer, is_peek)?;
        Ok((len, unix_address::from_kernel(address)?))
    }
}

impl TryFrom<std::os::unix::net::UnixDatagram> for UnixDatagram {
    type Error = io::Error;

    /// [`from_std`](Self::from_std), which panics outside a loop.
    #[track_caller]
    fn try_from(socket: std::os::unix::net::UnixDatagram) -> io::Result<Self> {
        Self::from_std(socket)
    }
}

impl From<UnixDatagram> for std::os::unix::net::UnixDatagram {
    fn from(socket: UnixDatagram) -> Self {
        socket.into_std()
    }
}
