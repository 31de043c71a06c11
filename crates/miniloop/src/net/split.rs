//! The two directions of a stream in two hands.

use std::net::Shutdown;
use std::rc::Rc;

use super::delegate::{delegate_read, delegate_write};
use super::tcp_stream::TcpStream;

/// The reading direction of a stream, lent by [`TcpStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a>(&'a TcpStream);

/// The writing direction of a stream, lent by [`TcpStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a>(&'a TcpStream);

/// The reading direction of a stream, from [`TcpStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf(Rc<TcpStream>);

/// The writing direction of a stream, from [`TcpStream::into_split`]. Dropping it ends this direction: the peer reads to the end.
#[derive(Debug)]
pub struct OwnedWriteHalf(Rc<TcpStream>);

impl TcpStream {
    /// Lends the two directions to two pieces of code of one task.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Gives the two directions to two tasks. The connection is closed when both are gone.
    pub fn into_split(self) -> (OwnedReadHalf, OwnedWriteHalf) {
        let stream = Rc::new(self);
        (OwnedReadHalf(stream.clone()), OwnedWriteHalf(stream))
    }
}

impl Drop for OwnedWriteHalf {
    fn drop(&mut self) {
        // It fails if the connection has gone: then this direction has ended already.
        let _ended_before = self.0.shutdown(Shutdown::Write);
    }
}

delegate_read!(ReadHalf<'_>, |half| half.0);
delegate_read!(OwnedReadHalf, |half| half.0);
delegate_write!(WriteHalf<'_>, |half| half.0);
delegate_write!(OwnedWriteHalf, |half| half.0);

// For addresses, options and the methods over `&self`.

impl AsRef<TcpStream> for ReadHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for WriteHalf<'_> {
    fn as_ref(&self) -> &TcpStream {
        self.0
    }
}

impl AsRef<TcpStream> for OwnedReadHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}

impl AsRef<TcpStream> for OwnedWriteHalf {
    fn as_ref(&self) -> &TcpStream {
        &self.0
    }
}
