//! TCP on the loop.
//!
//! Every operation tries its system call first and waits only if that would block. Sockets are watched from the start to the end of their
//! life by one registration, so a steady exchange costs nothing but its own reads and writes and one wait of the loop.

pub(crate) mod system_calls;
mod delegate;
mod tcp_stream;
mod split;
mod tcp_listener;

pub use self::split::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, WriteHalf};
pub use self::tcp_listener::{Accept, Incoming, TcpListener};
pub use self::tcp_stream::TcpStream;
