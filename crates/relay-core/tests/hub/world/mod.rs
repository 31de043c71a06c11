//! A shell for the hub without sockets and clocks: what the crate `relay` does each turn, in virtual time, with clients that are two
//! queues of bytes. `scenario` is a language on top of it.

mod scenario;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use relay_core::limits::HISTORY_LEN_MAX_MESSAGES;
use relay_core::{Batch, Closed, CommitError, ConnectionId, Hub, Load, Nanos, Refused, Settings};

pub(crate) use scenario::check;

/// What a shell reads at once.
pub(crate) const READ_LEN_MAX: usize = 64 * 1024;

/// A hub and its clients.
pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) now: Nanos,
    pub(crate) read_len_max: usize,
    /// Every committed section, in order.
    pub(crate) stored: Vec<(String, Vec<u8>)>,
    /// The archive: of each room every message with its line's end and the number of its commit, 0 for those from before the start.
    pub(crate) archive: BTreeMap<String, Vec<(u64, String)>>,
    /// So many commits are in it; of the others it knows nothing.
    pub(crate) archived: u64,
    /// Whether the archive answers only when a test says so.
    pub(crate) holds_loads: bool,
    /// What it has not answered.
    pub(crate) loads: VecDeque<Load>,
    clients: BTreeMap<String, Client>,
    names: BTreeMap<ConnectionId, String>,
    flight: Option<Batch>,
}

/// The far end of a connection, with the kernel in between.
pub(crate) struct Client {
    pub(crate) id: ConnectionId,
    /// What the client sent and the server has not read.
    unread: Vec<u8>,
    has_ended: bool,
    /// How much more the kernel takes from the server.
    kernel_room: usize,
    /// What the client has received and no test has looked at.
    received: Vec<u8>,
    closed: Option<Closed>,
}

impl World {
    pub(crate) fn new(settings: Settings) -> World {
        World {
            hub: Hub::new(settings),
            // Not zero, so that a time that was never set is noticed.
            now: Nanos(1_000_000_000_000),
            read_len_max: READ_LEN_MAX,
            stored: Vec::new(),
            archive: BTreeMap::new(),
            archived: 0,
            holds_loads: false,
            loads: VecDeque::new(),
            clients: BTreeMap::new(),
            names: BTreeMap::new(),
            flight: None,
        }
    }

    pub(crate) fn connect(&mut self, name: &str, address: IpAddr) -> Result<(), Refused> {
        let id = self.hub.connect(self.now, SocketAddr::new(address, 50_000))?;
        self.names.insert(id, name.to_owned());
        let client = Client { id, unread: Vec::new(), has_ended: false, kernel_room: usize::MAX, received: Vec::new(), closed: None };
        let before = self.clients.insert(name.to_owned(), client);
        assert!(before.is_none_or(|before| before.closed.is_some() && before.received.is_empty()), "{name} is still there");
        Ok(())
    }

    /// A client on this machine, joined, its answer read.
    #[track_caller]
    pub(crate) fn join(&mut self, name: &str, room: &str) {
        self.connect(name, Ipv4Addr::LOCALHOST.into()).expect("there is room");
        self.send(name, format!("JOIN {name} {room}\n"));
        assert_eq!(self.received(name), format!("OK JOIN {name} {room}\n"));
    }

    #[track_caller]
    pub(crate) fn client(&mut self, name: &str) -> &mut Client {
        self.clients.get_mut(name).unwrap_or_else(|| panic!("{name} never connected"))
    }

    pub(crate) fn has_client(&self, name: &str) -> bool {
        self.clients.contains_key(name)
    }

    /// The client sends; the server has a turn.
    #[track_caller]
    pub(crate) fn send(&mut self, name: &str, bytes: impl AsRef<[u8]>) {
        self.client(name).unread.extend_from_slice(bytes.as_ref());
        self.turn();
    }

    /// The client closes its side.
    #[track_caller]
    pub(crate) fn end(&mut self, name: &str) {
        self.client(name).has_ended = true;
        self.turn();
    }

    /// The connection breaks.
    #[track_caller]
    pub(crate) fn lose(&mut self, name: &str) {
        let id = self.client(name).id;
        self.hub.disconnect(id);
        self.turn();
    }

    /// Everything that the client has received since the last look.
    #[track_caller]
    pub(crate) fn received(&mut self, name: &str) -> String {
        String::from_utf8(std::mem::take(&mut self.client(name).received)).expect("the server sends text")
    }

    #[track_caller]
    pub(crate) fn received_line(&mut self, name: &str) -> Option<String> {
        let received = &mut self.client(name).received;
        let len = received.iter().position(|&byte| byte == b'\n')?;
        let line = received.drain(..=len).take(len).collect();
        Some(String::from_utf8(line).expect("the server sends text"))
    }

    /// How much of what the client sent is still in the kernel.
    #[track_caller]
    pub(crate) fn unread_len(&mut self, name: &str) -> usize {
        self.client(name).unread.len()
    }

    #[track_caller]
    pub(crate) fn take_closed(&mut self, name: &str) -> Option<Closed> {
        self.client(name).closed.take()
    }

    /// From now on the kernel takes so many more bytes for this client, then no more.
    #[track_caller]
    pub(crate) fn set_kernel_room(&mut self, name: &str, len_bytes: usize) {
        let client = self.client(name);
        client.kernel_room = len_bytes;
        let id = client.id;
        if len_bytes > 0 {
            self.hub.writable(id);
        }
        self.turn();
    }

    pub(crate) fn is_committing(&self) -> bool {
        self.flight.is_some()
    }

    /// The open messages start on their way to disk.
    #[track_caller]
    pub(crate) fn take(&mut self) {
        assert!(self.flight.is_none(), "one batch at a time");
        self.flight = self.hub.take_batch();
        assert!(self.flight.is_some(), "there is something to commit");
    }

    /// The batch in flight, or the next one, is on disk.
    #[track_caller]
    pub(crate) fn commit(&mut self) {
        if self.flight.is_none() {
            self.take();
        }
        let batch = self.flight.take().expect("just taken");
        self.stored.extend(batch.sections.iter().map(|section| (section.room.clone(), section.lines.clone())));
        let number = self.hub.counters().commits + 1;
        for section in &batch.sections {
            let lines = str::from_utf8(&section.lines).expect("the server stores text").split_inclusive('\n');
            let archive = self.archive.entry(section.room.clone()).or_default();
            archive.extend(lines.map(|line| (number, line.to_owned())));
        }
        self.hub.committed(self.now, batch);
        self.turn();
    }

    /// Commits until nothing waits any more.
    pub(crate) fn commit_all(&mut self) {
        while self.hub.uncommitted_len_bytes() > 0 {
            self.commit();
        }
    }

    #[track_caller]
    pub(crate) fn refuse(&mut self, error: CommitError) {
        if self.flight.is_none() {
            self.take();
        }
        let batch = self.flight.take().expect("just taken");
        self.hub.commit_refused(self.now, batch, error);
        self.turn();
    }

    /// A message in the archive from before the start.
    pub(crate) fn store(&mut self, room: &str, line: &str) {
        self.archive.entry(room.to_owned()).or_default().push((0, format!("{line}\n")));
    }

    pub(crate) fn archive_up_to(&mut self, commits: u64) {
        self.archived = commits;
        self.hub.archived(commits);
    }

    /// The archive answers the oldest question for this room, or says that it cannot.
    #[track_caller]
    pub(crate) fn answer_load(&mut self, room: &str, succeeds: bool) {
        let place = self.loads.iter().position(|load| load.name == room);
        let load = self.loads.remove(place.unwrap_or_else(|| panic!("nobody asks for {room}"))).expect("just found");
        if succeeds {
            self.load(&load);
        } else {
            self.hub.history_unavailable(self.now, load.room);
        }
        self.turn();
    }

    fn load(&mut self, load: &Load) {
        let all = self.archive.get(&load.name).map(Vec::as_slice).unwrap_or_default();
        let past = &all[..all.partition_point(|&(commit, _)| commit <= load.commits)];
        assert!(past.last().is_none_or(|&(commit, _)| commit <= self.archived), "a room is asked for whose messages are not archived");
        let last = &past[past.len().saturating_sub(HISTORY_LEN_MAX_MESSAGES)..];
        let lines = last.iter().map(|(_, line)| line.as_str()).collect::<String>();
        self.hub.history_loaded(self.now, load.room, lines.into_bytes(), last.len() as u32);
    }

    pub(crate) fn shutdown(&mut self) {
        self.hub.shutdown(self.now);
        self.turn();
    }

    /// Time passes, with a turn at each deadline on the way and at the end.
    pub(crate) fn pass(&mut self, wait: Duration) {
        self.pass_up_to(wait);
        self.turn();
    }

    /// Time passes; the turn at its end is still to come, so what is sent now arrives together with a deadline then.
    pub(crate) fn pass_up_to(&mut self, wait: Duration) {
        let end = self.now + wait;
        while let Some(deadline) = self.hub.next_deadline()
            && deadline < end
        {
            self.now = self.now.max(deadline);
            self.turn();
            assert!(self.hub.next_deadline().is_none_or(|next| next > self.now), "a deadline that has come is not asked for again");
        }
        self.now = end;
    }

    /// One turn of the shell: read, judge deadlines, write and close.
    pub(crate) fn turn(&mut self) {
        let readable: Vec<String> = self.clients.iter().filter(|(_, client)| client.is_readable()).map(|(name, _)| name.clone()).collect();
        for name in readable {
            self.read(&name);
        }
        self.hub.tick(self.now);
        self.take_loads();
        while let Some(touched) = self.hub.pop_touched() {
            let name = self.names[&touched.id].clone();
            if touched.send {
                self.write(&name);
            }
            if touched.read {
                self.read(&name);
                self.take_loads();
            }
            if let Some(closed) = touched.closed {
                self.names.remove(&touched.id);
                let before = self.client(&name).closed.replace(closed);
                assert!(before.is_none(), "an end is announced once");
            }
        }
    }

    fn take_loads(&mut self) {
        while let Some(load) = self.hub.pop_load() {
            if self.holds_loads {
                self.loads.push_back(load);
            } else {
                self.load(&load);
            }
        }
    }

    fn read(&mut self, name: &str) {
        let World { hub, now, read_len_max, clients, .. } = self;
        let client = clients.get_mut(name).expect("known");
        while hub.may_read(*now, client.id) {
            let len = client.unread.len().min(*read_len_max);
            if len == 0 {
                hub.read_dry(*now, client.id);
                if client.has_ended {
                    hub.end_of_input(*now, client.id);
                }
                return;
            }
            let bytes: Vec<u8> = client.unread.drain(..len).collect();
            hub.receive(*now, client.id, &bytes);
            assert!(hub.kept_len_bytes(client.id) <= READ_LEN_MAX + relay_core::limits::LINE_LEN_MAX_BYTES + 1);
        }
    }

    fn write(&mut self, name: &str) {
        let World { hub, now, clients, .. } = self;
        let client = clients.get_mut(name).expect("known");
        let offered = hub.outbox(client.id).collect::<Vec<_>>().concat();
        assert!((1..=relay_core::limits::RELEASE_BYTES).contains(&offered.len()));
        let taken = offered.len().min(client.kernel_room);
        client.received.extend_from_slice(&offered[..taken]);
        if client.kernel_room != usize::MAX {
            client.kernel_room -= taken;
        }
        hub.sent(*now, client.id, taken);
        if taken < offered.len() {
            hub.send_blocked(client.id);
        }
    }

    /// Clients with received bytes or an end that no test has looked at.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let is_left = |client: &Client| !client.received.is_empty() || client.closed.is_some();
        let lines = |client: &Client| String::from_utf8_lossy(&client.received).chars().take(300).collect::<String>();
        let left = self.clients.iter().filter(|(_, client)| is_left(client));
        left.map(|(name, client)| format!("{name}: {:?} {:?}", lines(client), client.closed)).collect()
    }
}

impl Client {
    fn is_readable(&self) -> bool {
        self.closed.is_none() && (self.has_ended || !self.unread.is_empty())
    }
}
