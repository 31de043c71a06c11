//! A member's connection: bytes in both directions, of which it understands none.
//!
//! A read is handled where it lies, in the buffer that all share; only what is unfinished is kept, and put in front of the next read. What
//! is written waits here until the kernel takes it. Next: `report.rs`.

use std::io::{self, ErrorKind};
use std::task::{Context, Poll, ready};

use miniloop::net::TcpStream;

use crate::limits::READ_BYTES;

pub(crate) struct Connection {
    stream: TcpStream,
    /// What the last read did not end.
    unfinished: Vec<u8>,
    pub(crate) out: Vec<u8>,
    /// How much of `out` the kernel took.
    written_len: usize,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Connection {
        Connection { stream, unfinished: Vec::new(), out: Vec::new(), written_len: 0 }
    }

    /// Reads once, behind what is unfinished, and says how much there is. Zero: the server has closed the connection.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8; READ_BYTES]) -> Poll<io::Result<usize>> {
        let unfinished_len = self.unfinished.len();
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            match self.stream.try_read(&mut buffer[unfinished_len..]) {
                Ok(0) => return Poll::Ready(Ok(0)),
                Ok(len) => {
                    buffer[..unfinished_len].copy_from_slice(&self.unfinished);
                    return Poll::Ready(Ok(unfinished_len + len));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Keeps what has no end yet.
    pub(crate) fn keep(&mut self, rest: &[u8]) {
        self.unfinished.clear();
        self.unfinished.extend_from_slice(rest);
    }

    /// Writes what the kernel takes. Afterwards `out` is empty, or we are woken when there is room.
    pub(crate) fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while self.written_len < self.out.len() {
            match self.stream.poll_write_ready(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready?,
            }
            match self.stream.try_write(&self.out[self.written_len..]) {
                Ok(len) => self.written_len += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written_len = 0;
        Ok(())
    }
}
