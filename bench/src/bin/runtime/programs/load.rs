//! The other side of an echo server: many connections on one thread and bare epoll, so that it waits for the server and not the server
//! for it.
//!
//! A connection keeps a number of bytes on the way: as many as come back as whole messages go out again. It must know no contender.
//! Next: `programs/server.rs`.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::RecvFlags;

/// What each connection sends.
#[derive(Clone, Copy)]
pub(crate) struct Traffic {
    pub(crate) message_len: usize,
    /// How many messages are on the way at once.
    pub(crate) deep: usize,
}

impl Traffic {
    /// As fast as the kernel takes it.
    pub(crate) const FLOOD: Traffic = Traffic { message_len: 16 << 10, deep: usize::MAX >> 20 };
}

struct Connection {
    stream: TcpStream,
    sent: usize,
    received: usize,
    /// How much may have been sent by now.
    allowed: usize,
    /// Asked to be told when there is room.
    is_stuck: bool,
}

pub(crate) struct Load {
    selector: OwnedFd,
    connections: Vec<Connection>,
    traffic: Traffic,
    /// What is sent, from the place of the stream's position in it: so whoever receives knows what must come.
    pattern: Vec<u8>,
    buffer: Vec<u8>,
    /// Over all connections.
    received: usize,
}

/// A prime, so that what is lost or doubled shows wherever messages are cut.
const PATTERN_LEN: usize = 251;
/// At most so much in one system call.
const PIECE_LEN: usize = 64 << 10;
const EVENTS_PER_WAIT: usize = 1_024;

impl Load {
    /// Connects, and lets each connection send its first messages.
    pub(crate) fn start(server: SocketAddr, connections: usize, traffic: Traffic) -> io::Result<Load> {
        let mut load = Load {
            selector: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Vec::new(),
            traffic,
            pattern: (0..PATTERN_LEN + PIECE_LEN).map(|place| (place % PATTERN_LEN) as u8).collect(),
            buffer: vec![0; PIECE_LEN],
            received: 0,
        };
        for key in 0..connections {
            let stream = TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            // Ended without TIME_WAIT, which would keep the next run from its ports.
            rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))?;
            epoll::add(&load.selector, &stream, EventData::new_u64(key as u64), EventFlags::IN)?;
            let allowed = traffic.message_len * traffic.deep;
            load.connections.push(Connection { stream, sent: 0, received: 0, allowed, is_stuck: false });
        }
        for key in 0..connections {
            load.send(key)?;
        }
        Ok(load)
    }

    /// Goes on until then and returns the messages that have come back meanwhile. With `checks` each byte is looked at.
    ///
    /// # Errors
    ///
    /// The server has closed a connection, or has sent something else than what it was sent.
    pub(crate) fn run_until(&mut self, end: Instant, checks: bool) -> io::Result<f64> {
        let before = self.received;
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok((self.received - before) as f64 / self.traffic.message_len as f64);
            }
            let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
            events.clear();
            epoll::wait(&self.selector, rustix::buffer::spare_capacity(&mut events), Some(&timeout))?;
            for event in &events {
                let key = event.data.u64() as usize;
                // Copied, since the kernel packs it.
                let flags = event.flags;
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                    self.receive(key, checks)?;
                }
                self.send(key)?;
            }
        }
    }

    /// Goes on until each connection has had back all of its first messages.
    pub(crate) fn run_once_round(&mut self) -> io::Result<()> {
        let wanted = self.traffic.message_len * self.traffic.deep;
        while self.connections.iter().any(|connection| connection.received < wanted) {
            // What the others send meanwhile waits in the kernel.
            let mut event = Vec::with_capacity(1);
            epoll::wait(&self.selector, rustix::buffer::spare_capacity(&mut event), None)?;
            for event in &event {
                self.receive(event.data.u64() as usize, true)?;
            }
        }
        Ok(())
    }

    fn receive(&mut self, key: usize, checks: bool) -> io::Result<()> {
        let connection = &mut self.connections[key];
        // What nobody looks at is not copied either.
        let flags = if checks { RecvFlags::empty() } else { RecvFlags::TRUNC };
        let len = match rustix::net::recv(&connection.stream, &mut self.buffer[..], flags) {
            Ok((_, 0)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, len)) => len,
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if checks && self.buffer[..len] != self.pattern[connection.received % PATTERN_LEN..][..len] {
            return Err(io::Error::other("the server has sent back something else than what it was sent"));
        }
        let message_len = self.traffic.message_len;
        let before = connection.received / message_len;
        connection.received += len;
        connection.allowed += (connection.received / message_len - before) * message_len;
        self.received += len;
        Ok(())
    }

    /// All that may be sent, as far as the kernel takes it.
    fn send(&mut self, key: usize) -> io::Result<()> {
        let connection = &mut self.connections[key];
        let len = (connection.allowed - connection.sent).min(PIECE_LEN);
        if len > 0 {
            match connection.stream.write(&self.pattern[connection.sent % PATTERN_LEN..][..len]) {
                Ok(sent) => connection.sent += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        let is_stuck = connection.sent < connection.allowed;
        if is_stuck != connection.is_stuck {
            connection.is_stuck = is_stuck;
            let wanted = if is_stuck { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(&self.selector, &connection.stream, EventData::new_u64(key as u64), wanted)?;
        }
        Ok(())
    }
}
