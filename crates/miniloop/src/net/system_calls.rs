//! The system calls that sockets are made of, each in the form that never blocks, never is inherited by a child and never raises a signal.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{self, AddressFamily, RecvFlags, SendAncillaryBuffer, SocketAddrAny, SocketAddrUnix, SocketType, sockopt};

use crate::config::LISTEN_BACKLOG_LEN;
use crate::os::SEND_FLAGS;
pub(crate) use crate::os::{accept, unacknowledged_len};
pub(super) use crate::os::{socket, unix_pair};

/// A socket that listens.
pub(crate) fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = tcp_socket(address)?;
    // A server that starts again must not wait until the last connections of its predecessor have timed out.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    net::bind(&socket, &address)?;
    net::listen(&socket, LISTEN_BACKLOG_LEN)?;
    Ok(socket)
}

/// A socket that connects. True if it is connected already; else it will be writable, and [`take_error`] says how it went.
pub(crate) fn connect(address: SocketAddr) -> io::Result<(OwnedFd, bool)> {
    let socket = tcp_socket(address)?;
    let is_connected = start_connect(&socket, address)?;
    Ok((socket, is_connected))
}

/// The same for a socket that is there.
pub(crate) fn start_connect(socket: impl AsFd, address: SocketAddr) -> io::Result<bool> {
    match net::connect(socket, &address) {
        Ok(()) => Ok(true),
        Err(Errno::INPROGRESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The error that came since the last call.
pub(crate) fn take_error(socket: impl AsFd) -> io::Result<()> {
    Ok(sockopt::socket_error(socket)??)
}

pub(crate) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (len, _untruncated_len) = net::recv(socket, buffer, RecvFlags::DONTWAIT)?;
    Ok(len)
}

/// The same, and leaves the bytes where they are.
pub(crate) fn peek(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    let (len, _untruncated_len) = net::recv(socket, buffer, RecvFlags::DONTWAIT | RecvFlags::PEEK)?;
    Ok(len)
}

pub(crate) fn receive_vectored(socket: impl AsFd, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
    Ok(rustix::io::readv(socket, buffers)?)
}

pub(crate) fn send(socket: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(net::send(socket, bytes, SEND_FLAGS)?)
}

/// Sends what lies in several places, at most [`SLICES_PER_CALL`](crate::byte_stream::SLICES_PER_CALL).
pub(crate) fn send_vectored(socket: impl AsFd, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    Ok(net::sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), SEND_FLAGS)?)
}

/// Without Nagle's delay, which the connections of a listener inherit: a loop writes what it has in one piece, and a second small piece
/// would wait for the peer's late acknowledgement of the first, up to 40 ms.
fn tcp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = socket(family(address), SocketType::STREAM)?;
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    Ok(socket)
}

/// A socket that takes datagrams at an address.
pub(super) fn udp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    let socket = socket(family(address), SocketType::DGRAM)?;
    net::bind(&socket, &address)?;
    Ok(socket)
}

fn family(address: SocketAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 }
}

/// A Unix socket that listens.
pub(super) fn unix_listen(address: &SocketAddrUnix) -> io::Result<OwnedFd> {
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM)?;
    net::bind(&socket, address)?;
    net::listen(&socket, LISTEN_BACKLOG_LEN)?;
    Ok(socket)
}

/// Takes a datagram, or looks at it, and says where it comes from.
pub(super) fn receive_from(socket: impl AsFd, buffer: &mut [u8], is_peek: bool) -> io::Result<(usize, Option<SocketAddrAny>)> {
    let flags = if is_peek { RecvFlags::DONTWAIT | RecvFlags::PEEK } else { RecvFlags::DONTWAIT };
    let (len, _untruncated_len, address) = net::recvfrom(socket, buffer, flags)?;
    Ok((len, address))
}

/// Sends a datagram.
pub(super) fn send_to(socket: impl AsFd, bytes: &[u8], address: &impl SocketAddrArg) -> io::Result<usize> {
    Ok(net::sendto(socket, bytes, SEND_FLAGS, address)?)
}
