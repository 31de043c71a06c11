//! A connection: what was read of an unfinished line, and what the kernel did not take yet. Next: `rooms.rs`.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

/// A client.
pub(crate) struct Connection {
    pub(crate) socket: OwnedFd,
    pub(crate) member: Option<Member>,
    pub(crate) is_quitting: bool,
    /// The line that the last read did not end.
    unfinished: Vec<u8>,
    /// What the kernel had no place for, and how much of it it has taken since.
    unsent: Vec<u8>,
    unsent_taken_len: usize,
}

/// A client that has joined.
pub(crate) struct Member {
    pub(crate) room: usize,
    /// What its messages begin with: `MESSAGE ada `.
    pub(crate) prefix: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(socket: OwnedFd) -> Connection {
        Connection { socket, member: None, is_quitting: false, unfinished: Vec::new(), unsent: Vec::new(), unsent_taken_len: 0 }
    }

    /// Reads once, behind the unfinished line, and says how long both are together. `None` when nothing came.
    ///
    /// A line that is longer than the buffer looks like the end of the connection.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Ended> {
        let kept_len = self.unfinished.len();
        buffer[..kept_len].copy_from_slice(&self.unfinished);
        match recv(&self.socket, &mut buffer[kept_len..], RecvFlags::empty()) {
            Ok((0, _)) => Err(Ended),
            Ok((read_len, _)) => Ok(Some(kept_len + read_len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(_) => Err(Ended),
        }
    }

    /// Keeps the beginning of a line for the next read.
    pub(crate) fn keep(&mut self, unfinished: &[u8]) {
        self.unfinished.clear();
        self.unfinished.extend_from_slice(unfinished);
    }

    /// One write, and what the kernel does not take waits until it does.
    ///
    /// A connection that is broken is not looked at here: reading finds out.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let taken_len = if self.unsent.is_empty() { send(&self.socket, bytes, SendFlags::NOSIGNAL).unwrap_or(0) } else { 0 };
        self.unsent.extend_from_slice(&bytes[taken_len..]);
    }

    /// The kernel may have place again.
    pub(crate) fn send_rest(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        self.unsent_taken_len += send(&self.socket, &self.unsent[self.unsent_taken_len..], SendFlags::NOSIGNAL).unwrap_or(0);
        // More is moved to the front than was taken only once, so this costs as much as taking it.
        if self.unsent_taken_len > self.unsent.len() / 2 {
            self.unsent.drain(..self.unsent_taken_len);
            self.unsent_taken_len = 0;
        }
    }
}

/// The connection is of no use any more.
pub(crate) struct Ended;
