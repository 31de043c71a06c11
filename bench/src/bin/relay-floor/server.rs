//! The loop: reads whoever has sent something, then shows what has become durable, and has the disk take what has come in meanwhile.
//!
//! Everything is edge-triggered, so a descriptor is registered once and never again: a read that does not fill the buffer has emptied the
//! socket, and a write that takes less than it was given is followed by an edge. Costs one `epoll_wait` a turn, one `recv` for each
//! connection that sends, one `send` for each member and commit. Next: `main.rs`.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, sockopt};

use crate::batch::Batch;
use crate::commit::Committer;
use crate::connection::{Connection, Ended};
use crate::rooms::Rooms;

/// A server that listens.
pub(crate) struct Server {
    epoll: OwnedFd,
    listener: TcpListener,
    committer: Committer,
    is_disk_busy: bool,
    /// The index is the epoll key. A place is used again: a stale event makes its new owner try a read for nothing.
    connections: Vec<Option<Connection>>,
    free_places: Vec<usize>,
    rooms: Rooms,
    /// Everybody is read into this, one after the other.
    buffer: Vec<u8>,
}

impl Server {
    pub(crate) fn new(listener: TcpListener, committer: Committer) -> io::Result<Server> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&epoll, committer.doorbell(), EventData::new_u64(DOORBELL), EventFlags::IN | EventFlags::ET)?;
        let (connections, free_places, rooms) = (Vec::new(), Vec::new(), Rooms::default());
        Ok(Server { epoll, listener, committer, is_disk_busy: false, connections, free_places, rooms, buffer: vec![0; BUFFER_BYTES] })
    }

    pub(crate) fn run(mut self) -> io::Result<Infallible> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let mut is_committed = false;
            for event in &events {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    DOORBELL => is_committed = true,
                    key => self.serve(key as usize, event.flags),
                }
            }
            let committed = if is_committed { self.committer.committed() } else { None };
            self.is_disk_busy &= committed.is_none();
            // The disk works while the last batch is shown.
            if !self.is_disk_busy
                && let Some(batch) = self.rooms.take_batch()
            {
                self.committer.submit(batch)?;
                self.is_disk_busy = true;
            }
            if let Some(batch) = committed {
                self.show(batch);
            }
        }
    }

    fn accept(&mut self) {
        // Whatever stops it is tried again: the listener reports as long as somebody waits.
        while let Ok(socket) = accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            let place = self.free_places.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            let added = epoll::add(&self.epoll, socket.as_fd(), EventData::new_u64(place as u64), flags);
            if added.and(sockopt::set_tcp_nodelay(&socket, true)).is_ok() {
                self.connections[place] = Some(Connection::new(socket));
            } else {
                self.free_places.push(place);
            }
        }
    }

    fn serve(&mut self, place: usize, flags: EventFlags) {
        let Some(connection) = &mut self.connections[place] else { return };
        if flags.contains(EventFlags::OUT) {
            connection.send_rest();
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) && self.read(place).is_err() {
            self.close(place);
        }
    }

    /// Reads until the socket is empty.
    fn read(&mut self, place: usize) -> Result<(), Ended> {
        while let Some(connection) = &mut self.connections[place]
            && let Some(len) = connection.read(&mut self.buffer)?
        {
            let bytes = &self.buffer[..len];
            let lines_len = memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1);
            let (lines, unfinished) = bytes.split_at(lines_len);
            connection.keep(unfinished);
            // Stored and shown as text, so it has to be.
            str::from_utf8(lines).map_err(|_| Ended)?;
            obey(connection, place, lines, &mut self.rooms)?;
            if len < self.buffer.len() {
                break;
            }
        }
        Ok(())
    }

    /// Writes a batch that is durable to everybody whom it concerns.
    fn show(&mut self, batch: Batch) {
        for section in batch.sections {
            for place in self.rooms.members(section.room) {
                if let Some(connection) = &mut self.connections[*place] {
                    connection.send(&section.lines);
                }
            }
            self.rooms.reuse(section);
        }
        for place in batch.quitting {
            // Who has left meanwhile may have a successor.
            if let Some(connection) = &mut self.connections[place]
                && connection.is_quitting
            {
                connection.send(b"OK QUIT\n");
                self.close(place);
            }
        }
    }

    fn close(&mut self, place: usize) {
        // Closing the socket ends its registration.
        if let Some(connection) = self.connections[place].take() {
            if let Some(member) = &connection.member {
                self.rooms.leave(place, member);
            }
            self.free_places.push(place);
        }
    }
}

/// Does what the lines say, all of which have an end.
fn obey(connection: &mut Connection, place: usize, mut lines: &[u8], rooms: &mut Rooms) -> Result<(), Ended> {
    loop {
        if let Some(member) = &connection.member {
            lines = rooms.add_messages(member, lines);
        }
        let Some(end) = memchr::memchr(b'\n', lines) else { return Ok(()) };
        let line = str::from_utf8(&lines[..end]).map_err(|_| Ended)?;
        lines = &lines[end + 1..];
        let mut words = line.split_ascii_whitespace();
        match (&connection.member, words.next()) {
            (None, Some("JOIN")) => {
                let (Some(name), Some(room)) = (words.next(), words.next()) else { return Err(Ended) };
                connection.member = Some(rooms.join(place, name, room));
                connection.send(format!("OK JOIN {name} {room}\n").as_bytes());
            }
            (Some(_), Some("PONG")) => {}
            (Some(_), Some("QUIT")) => {
                connection.is_quitting = true;
                rooms.quit(place);
            }
            (None, _) => connection.send(b"ERR expected JOIN <name> <room>\n"),
            (Some(_), _) => connection.send(b"ERR expected MSG <text> or QUIT\n"),
        }
    }
}

const LISTENER: u64 = u64::MAX;
const DOORBELL: u64 = u64::MAX - 1;

/// What one read takes at most: it stays in the processor's cache.
const BUFFER_BYTES: usize = 256 << 10;

const EVENTS_PER_WAIT: usize = 1024;
