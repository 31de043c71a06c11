//! The system calls that sockets are made of, each in the form that never blocks, never is inherited by a child and never raises a signal.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::ioctl;
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    self, AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};

use crate::config::LISTEN_BACKLOG_LEN;

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

/// The next connection.
pub(crate) fn accept(socket: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    Ok(net::acceptfrom_with(socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?)
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

/// How many bytes the kernel still keeps for the peer, sent or not, because it has not acknowledged them.
pub(crate) fn unacknowledged_len(socket: impl AsFd) -> io::Result<usize> {
    // SAFETY: for a TCP socket `SIOCOUTQ` writes one `int` to where its argument points, and nothing else; that is what `Getter` gives it.
    let len = unsafe { ioctl::ioctl(socket, ioctl::Getter::<SIOCOUTQ, i32>::new()) }?;
    Ok(usize::try_from(len).unwrap_or(0))
}

fn tcp_socket(address: SocketAddr) -> io::Result<OwnedFd> {
    socket(family(address), SocketType::STREAM)
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

/// A socket that does not block.
pub(super) fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    Ok(net::socket_with(family, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?)
}

/// Two sockets that are connected to each other.
pub(super) fn unix_pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(net::socketpair(AddressFamily::UNIX, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?)
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

/// A peer that has gone is an error of the call, not a signal to the process.
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// tcp(7). The same number on every 64-bit architecture that this is built for.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64", target_arch = "loongarch64", target_arch = "s390x"))]
const SIOCOUTQ: ioctl::Opcode = 0x5411;
