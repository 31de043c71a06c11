//! Sockets on the loop.
//!
//! | What | Type |
//! |---|---|
//! | a connection over the network: bytes in both directions | [`TcpStream`], [`TcpListener`] |
//! | the same within the machine, with files' permissions and the peer's identity | [`UnixStream`], [`UnixListener`] |
//! | single messages over the network, which may be lost, doubled or overtake each other | [`UdpSocket`] |
//! | single messages within the machine, which are not | [`UnixDatagram`] |
//! | bytes in one direction, to a child process for instance | [`io::pipe`](crate::io::pipe) |
//! | any other descriptor: named pipes, raw sockets, `SOCK_SEQPACKET`, netlink | [`Readiness`](crate::Readiness) |
//! | the addresses of a name | [`resolve()`]; [`TcpStream::connect`] does it by itself |
//! | a socket that other code made and keeps | [`sock_recv`](crate::sock_recv) and its like |
//!
//! Every operation tries its system call first and waits only if that would block. Sockets are watched from the start to the end of their
//! life by one registration, so a steady exchange costs nothing but its own reads and writes and one wait of the loop.
//!
//! An operation can be dropped at any time: no bytes, no datagram and no connection are lost, because they are taken from the kernel only
//! in the poll that returns them. Each object can be used by many: `&self` methods of one direction wait in line. In one poll a task gets
//! 64 operations that need not wait, then it gives way.
//!
//! A socket belongs to the loop under which it was made, and panics under another.

pub(crate) mod system_calls;
mod socket;
mod tcp_stream;
mod unix_address;
mod unix_stream;
mod split;
mod listener;
mod tcp_listener;
mod unix_listener;
mod datagram;
mod udp_socket;
mod unix_datagram;
mod resolve;
mod connect;

pub use self::listener::{Accept, Incoming};
pub use self::resolve::{Destination, resolve};
pub use self::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use self::tcp_listener::TcpListener;
pub use self::tcp_stream::TcpStream;
pub use self::udp_socket::UdpSocket;
pub use self::unix_datagram::UnixDatagram;
pub use self::unix_listener::UnixListener;
pub use self::unix_stream::{PeerCredentials, UnixStream};
