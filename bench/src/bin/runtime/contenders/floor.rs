//! The floor: an echo server on bare epoll, without any runtime: the least that one which waits, receives and sends must do.
//!
//! It has no tasks, so it takes part only where there are connections. One buffer serves all of them, since nobody waits while it is
//! full: what the kernel does not take is copied. Next: `contenders/mod.rs`.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};

use rustix::event::epoll::{self, EventData, EventFlags};

use crate::contract::prepare;

struct Connection {
    stream: TcpStream,
    /// What could not be sent yet. While there is any, nothing is read.
    unsent: Vec<u8>,
}

const LISTENER: u64 = u64::MAX;
const EVENTS_PER_WAIT: usize = 1_024;

/// Sends back what it receives, for ever. The listener does not block.
pub(crate) fn serve(listener: &TcpListener, buffer_len: usize) -> io::Result<()> {
    let selector = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&selector, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut free = Vec::new();
    let mut buffer = vec![0; buffer_len];
    let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
    loop {
        events.clear();
        epoll::wait(&selector, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let key = event.data.u64();
            if key == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    prepare(&stream);
                    stream.set_nonblocking(true)?;
                    let key = free.pop().unwrap_or_else(|| {
                        connections.push(None);
                        connections.len() - 1
                    });
                    epoll::add(&selector, &stream, EventData::new_u64(key as u64), EventFlags::IN)?;
                    connections[key] = Some(Connection { stream, unsent: Vec::new() });
                }
                continue;
            }
            let slot = &mut connections[key as usize];
            let Some(connection) = slot else { continue };
            let was_stuck = !connection.unsent.is_empty();
            match connection.turn(&mut buffer) {
                Ok(true) => {
                    let is_stuck = !connection.unsent.is_empty();
                    if is_stuck != was_stuck {
                        let wanted = if is_stuck { EventFlags::OUT } else { EventFlags::IN };
                        epoll::modify(&selector, &connection.stream, event.data, wanted)?;
                    }
                }
                // Closing the descriptor takes it out of the selector.
                Ok(false) | Err(_) => {
                    *slot = None;
                    free.push(key as usize);
                }
            }
        }
    }
}

impl Connection {
    /// One receive and one send, or the rest of the last send. Whether there is more to come.
    fn turn(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        if !self.unsent.is_empty() {
            let sent = send(&mut self.stream, &self.unsent)?;
            self.unsent.drain(..sent);
            return Ok(true);
        }
        match self.stream.read(buffer) {
            Ok(0) => Ok(false),
            Ok(received) => {
                let sent = send(&mut self.stream, &buffer[..received])?;
                self.unsent.extend_from_slice(&buffer[sent..received]);
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error),
        }
    }
}

/// How much the kernel takes now.
fn send(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}
