//! What the byte streams of TCP and of Unix sockets share: the same system calls move their bytes and look at them, and the same call ends
//! a direction.
//!
//! Next: `tcp_stream.rs` and `unix_stream.rs`.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Shutdown;
use std::os::fd::AsFd;

use super::system_calls;
use crate::byte_stream::{ReadCalls, WriteCalls};

/// A stream of this module. The trait is sealed: its module is private.
pub trait Stream {
    /// Ends our direction.
    #[doc(hidden)]
    fn end(&self) -> io::Result<()>;
}

/// A connected socket of the standard library, which does not block.
pub(super) trait StreamSocket: AsFd {
    fn shutdown(&self, how: Shutdown) -> io::Result<()>;
}

impl StreamSocket for std::net::TcpStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

impl StreamSocket for std::os::unix::net::UnixStream {
    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.shutdown(how)
    }
}

impl<S: StreamSocket> ReadCalls for S {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        system_calls::receive(self, buffer)
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        system_calls::receive_vectored(self, buffers)
    }
}

impl<S: StreamSocket> WriteCalls for S {
    const IS_SHORT_WRITE_PROOF: bool = true;

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        system_calls::send(self, bytes)
    }

    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        system_calls::send_vectored(self, slices)
    }

    /// Ends our direction; the peer's goes on. That the connection has gone already is no error.
    fn end(&self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}

/// The public methods that both have, beside those of all byte streams. The type has a private method `os`, which lends its `ByteStream`.
macro_rules! socket_methods {
    ($type:ty) => {
        const _: () = {
            use std::io::Result;
            use std::net::Shutdown;

            use futures_core::FusedFuture;

            use crate::driver::Direction;
            use crate::net::system_calls;

            impl $type {
                /// Reads as [`read`](Self::read) does, and leaves the bytes where they are: to see what a peer wants before it is decided
                /// who serves it.
                ///
                /// # Errors
                /// As [`read`](Self::read).
                ///
                /// # Cancellation
                /// Nothing is lost.
                pub fn peek<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = Result<usize>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Read, || system_calls::peek(&os.bytes, buffer))
                }

                /// [`peek`](Self::peek) at what is there now, by one system call.
                ///
                /// # Errors
                /// As [`try_read`](Self::try_read).
                pub fn try_peek(&self, buffer: &mut [u8]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || system_calls::peek(&os.bytes, buffer))
                }

                /// Ends one direction, or both, at once. The peer reads to the end; the other direction goes on.
                ///
                /// # Errors
                /// `NotConnected` when the connection has gone.
                pub fn shutdown(&self, how: Shutdown) -> Result<()> {
                    self.os().bytes.shutdown(how)
                }
            }
        };
    };
}

pub(super) use socket_methods;
