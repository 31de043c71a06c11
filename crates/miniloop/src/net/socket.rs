//! What the byte streams of TCP and of Unix sockets share: the same system calls move their bytes, and the same call ends a direction.
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
