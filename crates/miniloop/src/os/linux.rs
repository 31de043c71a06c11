//! Linux. This file is listed for `unsafe`: the kernel is asked what a peer has not acknowledged.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::ioctl;
use rustix::net::{self, AddressFamily, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use rustix::pipe::{PipeFlags, pipe_with};

/// A socket that does not block.
pub(crate) fn socket(family: AddressFamily, kind: SocketType) -> io::Result<OwnedFd> {
    Ok(net::socket_with(family, kind, SOCKET_FLAGS, None)?)
}

/// Two sockets that are connected to each other.
pub(crate) fn unix_pair(kind: SocketType) -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(net::socketpair(AddressFamily::UNIX, kind, SOCKET_FLAGS, None)?)
}

/// The next connection.
pub(crate) fn accept(socket: impl AsFd) -> io::Result<(OwnedFd, Option<SocketAddrAny>)> {
    Ok(net::acceptfrom_with(socket, SOCKET_FLAGS)?)
}

/// A pipe, the end to read from first.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?)
}

const SOCKET_FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// A peer that has gone is an error of the call, not a signal to the process.
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// All that makes something worth reading.
pub(crate) const POLL_READ: PollFlags = PollFlags::IN.union(PollFlags::PRI).union(PollFlags::RDHUP);

/// Linux passes on what happened to a connection before it was accepted. accept(2) lists what to take for "try the next one".
pub(crate) fn is_of_the_connection(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::CONNABORTED
            | Errno::PERM
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::NETDOWN
            | Errno::NETUNREACH
            | Errno::NONET
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::OPNOTSUPP
    )
}

/// How many bytes the kernel still keeps for the peer, sent or not, because it has not acknowledged them.
pub(crate) fn unacknowledged_len(socket: impl AsFd) -> io::Result<usize> {
    // SAFETY: for a TCP socket `SIOCOUTQ` writes one `int` to where its argument points, and nothing else; that is what `Getter` gives it.
    let len = unsafe { ioctl::ioctl(socket, ioctl::Getter::<SIOCOUTQ, i32>::new()) }?;
    Ok(usize::try_from(len).unwrap_or(0))
}

/// tcp(7). The headers of the kernel define it as the same question about a terminal, and so it has that one's number on each architecture.
const SIOCOUTQ: ioctl::Opcode = libc::TIOCOUTQ as ioctl::Opcode;

/// Process, user and group of the peer of a Unix socket.
pub(crate) fn peer_cred(socket: impl AsFd) -> io::Result<(i32, u32, u32)> {
    let credentials = sockopt::socket_peercred(socket)?;
    Ok((credentials.pid.as_raw_pid(), credentials.uid.as_raw(), credentials.gid.as_raw()))
}

/// A name that is no path, for the kernel: an abstract one, or none.
pub(crate) fn pathless_to_kernel(address: &SocketAddr) -> io::Result<SocketAddrUnix> {
    match address.as_abstract_name() {
        Some(name) => Ok(SocketAddrUnix::new_abstract_name(name)?),
        None => Ok(SocketAddrUnix::new_unnamed()),
    }
}

/// The way back, for an abstract name.
pub(crate) fn abstract_from_kernel(address: &SocketAddrUnix) -> Option<io::Result<SocketAddr>> {
    // rustix takes no name for the empty abstract one.
    address.abstract_name().filter(|name| !name.is_empty()).map(SocketAddr::from_abstract_name)
}
