//! Every other Unix. The flags that Linux takes with the call that makes a descriptor are set right after it, so a child that another
//! thread starts in between inherits the descriptor. What there is no portable call for is `Unsupported`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::SocketAddr;

use rustix::event::PollFlags;
use rustix::io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio};
#[cfg(target_vendor = "apple")]
use rustix::net::sockopt;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType};

/// A socket that does not block.
pub(crate) fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    prepare(net::socket(family, kind, None)?)
}

/// Two sockets that are connected to each other.
pub(crate) fn unix_pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = net::socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None)?;
    Ok((prepare(ours)?, prepare(theirs)?))
}

/// The next connection.
pub(crate) fn accept(socket: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    let (socket, address) = net::acceptfrom(socket)?;
    Ok((prepare(socket)?, address))
}

/// A pipe, the end to read from first.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    ioctl_fionbio(&reader, true)?;
    ioctl_fionbio(&writer, true)?;
    Ok((reader.into(), writer.into()))
}

fn prepare(socket: OwnedFd) -> io::Result<OwnedFd> {
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&socket, true)?;
    never_signal(&socket)?;
    Ok(socket)
}

/// Apple's systems say it once for a socket, the others with each call.
#[cfg(target_vendor = "apple")]
fn never_signal(socket: &OwnedFd) -> io::Result<()> {
    Ok(sockopt::set_socket_nosigpipe(socket, true)?)
}

#[cfg(not(target_vendor = "apple"))]
fn never_signal(_socket: &OwnedFd) -> io::Result<()> {
    Ok(())
}

/// A peer that has gone is an error of the call, not a signal to the process.
#[cfg(target_vendor = "apple")]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT;
#[cfg(not(target_vendor = "apple"))]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// All that makes something worth reading.
pub(crate) const POLL_READ: PollFlags = PollFlags::IN.union(PollFlags::PRI);

/// POSIX knows one: the connection was aborted before it was accepted.
pub(crate) fn is_of_the_connection(errno: Errno) -> bool {
    matches!(errno, Errno::CONNABORTED | Errno::PROTO)
}

/// How many bytes the kernel still keeps for the peer, because it has not acknowledged them: nobody says.
pub(crate) fn unacknowledged_len(_socket: impl AsFd) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Process, user and group of the peer of a Unix socket: each system has a call of its own.
pub(crate) fn peer_cred(_socket: impl AsFd) -> io::Result<(i32, u32, u32)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A name that is no path: there is nobody to reach under it.
pub(crate) fn pathless_to_kernel(_address: &SocketAddr) -> io::Result<SocketAddrUnix> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, "a Unix socket without a path cannot be named"))
}

/// Abstract names are Linux's.
pub(crate) fn abstract_from_kernel(_address: &SocketAddrUnix) -> Option<io::Result<SocketAddr>> {
    None
}
