//! UDP: single messages over the network.
//!
//! Sending, receiving and waiting comes from `datagram.rs`; here are addresses and options. Next: `unix_datagram.rs`.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use futures_core::FusedFuture;

use super::datagram::{DatagramSocket, OsDatagram, datagram_methods};
use super::system_calls;
use crate::byte_stream_methods::descriptor_traits;
use crate::driver::Direction;

/// A UDP socket. Each message arrives whole or not at all, perhaps twice, perhaps after a later one.
///
/// It belongs to the loop under which it was made.
///
/// ```
/// use miniloop::net::UdpSocket;
///
/// miniloop::run(async {
///     let server = UdpSocket::bind("[::1]:0".parse().unwrap())?;
///     let client = UdpSocket::bind("[::1]:0".parse().unwrap())?;
///     client.send_to(b"hello", server.local_addr()?).await?;
///
///     let mut buffer = [0; 1500];
///     let (len, sender) = server.recv_from(&mut buffer).await?;
///     server.send_to(&buffer[..len], sender).await?;
///     assert_eq!(client.recv(&mut buffer).await?, 5);
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "create_datagram_endpoint")]
pub struct UdpSocket {
    inner: Inner,
}

/// Where messages go. A simulated network will be the second variant (decision 0007).
enum Inner {
    Os(OsDatagram<std::net::UdpSocket>),
}

impl UdpSocket {
    /// A socket with this address. Port 0 takes a free one, which [`local_addr`](Self::local_addr) tells.
    ///
    /// # Errors
    /// `AddrInUse`, `PermissionDenied` and what else `bind` says.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(system_calls::udp_socket(address)?)
    }

    /// Takes over a socket of the standard library and makes it non-blocking.
    ///
    /// # Errors
    /// When the loop already watches its descriptor for a callback, or cannot watch it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Self::new(socket.into())
    }

    /// Hands the socket to the standard library. It is still non-blocking.
    pub fn into_std(self) -> std::net::UdpSocket {
        let Inner::Os(os) = self.inner;
        os.into_socket()
    }

    #[track_caller]
    fn new(socket: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::Os(OsDatagram::new(socket.into())?) })
    }

    fn os(&self) -> &OsDatagram<std::net::UdpSocket> {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Chooses the peer of [`send`](Self::send). From now on only its messages are received, and that nobody is there becomes an error.
    ///
    /// # Errors
    /// What `connect` says. Nothing is sent, so that nobody is there is not noticed yet.
    pub fn connect(&self, address: SocketAddr) -> io::Result<()> {
        Ok(rustix::net::connect(self, &address)?)
    }

    /// Sends one message.
    ///
    /// # Errors
    /// What `sendto` says, for a message that is too long for instance.
    ///
    /// # Cancellation
    /// Nothing has been sent if the future is dropped before it is done.
    #[doc(alias = "sock_sendto")]
    pub fn send_to<'a>(&'a self, message: &'a [u8], address: SocketAddr) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + 'a {
        let os = self.os();
        os.registration.io(Direction::Write, move || system_calls::send_to(&os.socket, message, &address))
    }

    /// [`send_to`](Self::send_to) now, by one system call.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, message: &[u8], address: SocketAddr) -> io::Result<usize> {
        let os = self.os();
        os.registration.try_io(Direction::Write, || system_calls::send_to(&os.socket, message, &address))
    }

    /// Our address.
    ///
    /// # Errors
    /// What `getsockname` says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.local_addr()
    }

    /// The address that the socket is connected to.
    ///
    /// # Errors
    /// `NotConnected` if it is not.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.os().socket.peer_addr()
    }

    /// Whether messages may be sent to broadcast addresses. Not by default.
    ///
    /// # Errors
    /// What `setsockopt` says.
    #[doc(alias = "allow_broadcast")]
    pub fn set_broadcast(&self, is_allowed: bool) -> io::Result<()> {
        self.os().socket.set_broadcast(is_allowed)
    }

    /// Whether messages may be sent to broadcast addresses.
    ///
    /// # Errors
    /// What `getsockopt` says.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.os().socket.broadcast()
    }

    /// How many routers an IPv4 message may pass. 64 by default.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.os().socket.set_ttl(ttl)
    }

    /// How many routers an IPv4 message may pass.
    ///
    /// # Errors
    /// What `getsockopt` says.
    pub fn ttl(&self) -> io::Result<u32> {
        self.os().socket.ttl()
    }

    /// Receives from now on what is sent to a multicast group. `interface`: the address of ours on whose network, the system's choice if
    /// unspecified.
    ///
    /// ```
    /// # use miniloop::net::UdpSocket;
    /// use std::net::Ipv4Addr;
    ///
    /// # miniloop::run(async {
    /// let socket = UdpSocket::bind("0.0.0.0:0".parse().unwrap())?;
    /// let group = Ipv4Addr::new(239, 255, 0, 1);
    /// socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST)?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// What `setsockopt` says, `InvalidInput` for what is no group.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.os().socket.join_multicast_v4(&group, &interface)
    }

    /// The end of [`join_multicast_v4`](Self::join_multicast_v4).
    ///
    /// # Errors
    /// What `setsockopt` says, `AddrNotAvailable` if it has not been joined.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.os().socket.leave_multicast_v4(&group, &interface)
    }

    /// [`join_multicast_v4`](Self::join_multicast_v4) for IPv6. `interface`: its index, 0 for the system's choice.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn join_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.os().socket.join_multicast_v6(&group, interface)
    }

    /// The end of [`join_multicast_v6`](Self::join_multicast_v6).
    ///
    /// # Errors
    /// What `setsockopt` says, `AddrNotAvailable` if it has not been joined.
    pub fn leave_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.os().socket.leave_multicast_v6(&group, interface)
    }

    /// Whether sockets of this machine, this one included, hear what it sends to an IPv4 group. They do by default.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_multicast_loop_v4(&self, is_heard: bool) -> io::Result<()> {
        self.os().socket.set_multicast_loop_v4(is_heard)
    }

    /// How many routers a message to an IPv4 group may pass. 1 by default, which keeps it in the local network.
    ///
    /// # Errors
    /// What `setsockopt` says.
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.os().socket.set_multicast_ttl_v4(ttl)
    }
}

datagram_methods!(
    UdpSocket,
    SocketAddr,
    "# use miniloop::net::UdpSocket;
# let (ours, theirs) = (UdpSocket::bind(\"127.0.0.1:0\".parse().unwrap())?, UdpSocket::bind(\"127.0.0.1:0\".parse().unwrap())?);
# ours.connect(theirs.local_addr()?)?;
# theirs.connect(ours.local_addr()?)?;"
);

impl DatagramSocket for std::net::UdpSocket {
    type Address = SocketAddr;

    fn receive_from(&self, buffer: &mut [u8], is_peek: bool) -> io::Result<(usize, SocketAddr)> {
        let (len, address) = system_calls::receive_from(self, buffer, is_peek)?;
        let address = address.and_then(|address| address.try_into().ok());
        Ok((
            len,
            address.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "this socket receives messages without an IP address"))?,
        ))
    }
}

impl TryFrom<std::net::UdpSocket> for UdpSocket {
    type Error = io::Error;

    /// [`from_std`](Self::from_std), which panics outside a loop.
    #[track_caller]
    fn try_from(socket: std::net::UdpSocket) -> io::Result<Self> {
        Self::from_std(socket)
    }
}

impl From<UdpSocket> for std::net::UdpSocket {
    fn from(socket: UdpSocket) -> Self {
        socket.into_std()
    }
}
