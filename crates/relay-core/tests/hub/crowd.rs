//! As many connections as the server lets in, which come, talk, stop reading and leave in random order: nothing of one is left in the place
//! that another one gets, and nobody is forgotten.

use std::time::Duration;

use relay_core::{CloseReason, CommitError, ConnectionId, Hub, Load, Nanos, Settings};

/// What the settings let in by default.
const CROWD_LEN: usize = 15_000;

struct Crowd {
    hub: Hub,
    now: Nanos,
    /// At the index of their ids.
    peers: Vec<Option<Peer>>,
    living: Vec<ConnectionId>,
    /// Ids whose end was announced.
    gone: Vec<ConnectionId>,
    announced: u64,
    /// What the archive is asked for.
    loads: Vec<Load>,
    random: u64,
}

struct Peer {
    id: ConnectionId,
    /// It has closed its side, which the hub may not have heard.
    has_ended: bool,
}

impl Crowd {
    fn new(seed: u64) -> Crowd {
        let hub = Hub::new(Settings::default());
        let now = Nanos(1_000_000_000);
        Crowd { hub, now, peers: Vec::new(), living: Vec::new(), gone: Vec::new(), announced: 0, loads: Vec::new(), random: seed }
    }

    /// A number below `end`: the generator is Marsaglia's xorshift.
    fn random(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as usize % end
    }

    fn connect(&mut self) {
        let Ok(id) = self.hub.connect(self.now, "127.0.0.1:1".parse().unwrap()) else {
            return assert_eq!(self.living.len(), CROWD_LEN);
        };
        if self.peers.len() <= id.index() {
            self.peers.resize_with(id.index() + 1, || None);
        }
        let before = self.peers[id.index()].replace(Peer { id, has_ended: false });
        assert!(before.is_none(), "two living connections have one index");
        self.living.push(id);
    }

    /// Somebody says something, or nothing any more.
    fn act(&mut self) {
        let place = self.random(CROWD_LEN);
        let Some(&id) = self.living.get(place) else { return };
        let joined = format!("JOIN {} {}\n", id.index(), id.index() % 500);
        match self.random(24) {
            0..8 => self.receive(id, joined.as_bytes()),
            8..12 => self.receive(id, b"MSG hello\n"),
            12 => self.receive(id, b"MSG one\nHISTORY\nMSG two\nx\n"),
            13 => self.receive(id, &b"MSG one\nx\n".repeat(100)),
            14 => self.receive(id, b"HISTORY\nMSG hel"),
            15..18 => self.receive(id, b"PONG\n"),
            18 => self.hub.writable(id),
            _ => self.leave(id),
        }
    }

    fn receive(&mut self, id: ConnectionId, bytes: &[u8]) {
        let has_ended = self.peers[id.index()].as_ref().is_none_or(|peer| peer.has_ended);
        if !has_ended && self.hub.may_read(self.now, id) {
            self.hub.receive(self.now, id, bytes);
            self.hub.read_dry(self.now, id);
        }
    }

    fn leave(&mut self, id: ConnectionId) {
        match self.random(4) {
            0 => self.hub.disconnect(id),
            1 => self.receive(id, b"QUIT\n"),
            _ => {
                self.hub.end_of_input(self.now, id);
                self.peers[id.index()].as_mut().expect("it is living").has_ended = true;
            }
        }
    }

    fn commit(&mut self) {
        let Some(batch) = self.hub.take_batch() else { return };
        match self.random(8) {
            0 => self.hub.commit_refused(self.now, batch, CommitError::Full),
            _ => self.hub.committed(self.now, batch),
        }
    }

    /// The archive answers some of what it is asked, in any order, and comes further.
    fn archive(&mut self) {
        for _ in 0..self.loads.len() {
            let place = self.random(self.loads.len());
            let load = self.loads.swap_remove(place);
            match self.random(4) {
                0 => self.loads.push(load),
                1 => self.hub.history_unavailable(self.now, load.room),
                _ => self.hub.history_loaded(self.now, load.room, b"MESSAGE a old\n".to_vec(), 1),
            }
        }
        let behind = self.random(3) as u64;
        self.hub.archived(self.hub.counters().commits.saturating_sub(behind));
    }

    /// The shell's turn; the kernels take all, a part or nothing.
    fn turn(&mut self) {
        self.archive();
        self.hub.tick(self.now);
        assert!(self.hub.next_deadline().is_none_or(|next| next > self.now), "what is due is done");
        assert!(self.hub.touched_len() <= CROWD_LEN, "each is in the queue once");
        for _ in 0..self.hub.touched_len() {
            let Some(touched) = self.hub.pop_touched() else { break };
            let id = touched.id;
            let peer = self.peers[id.index()].as_ref().filter(|peer| peer.id == id);
            let has_ended = peer.expect("an end is announced once, and nothing afterwards").has_ended;
            if touched.closed.is_some() {
                self.announced += 1;
                self.peers[id.index()] = None;
                self.gone.push(id);
                continue;
            }
            let may_read = touched.read && self.hub.may_read(self.now, id);
            if may_read && has_ended {
                self.hub.end_of_input(self.now, id);
            } else if may_read {
                self.hub.read_dry(self.now, id);
            }
            if touched.send {
                let offered: usize = self.hub.outbox(id).map(<[u8]>::len).sum();
                assert_ne!(offered, 0);
                let taken = [offered, offered, offered, offered / 2, 0][self.random(5)];
                self.hub.sent(self.now, id, taken);
                if taken < offered {
                    self.hub.send_blocked(id);
                }
            }
        }
        self.loads.extend(std::iter::from_fn(|| self.hub.pop_load()));
        let peers = &self.peers;
        self.living.retain(|id| peers[id.index()].as_ref().is_some_and(|peer| peer.id == *id));
        assert_eq!(self.hub.connection_count(), self.living.len());
    }

    fn has_work(&self) -> bool {
        self.hub.uncommitted_len_bytes() > 0 || !self.loads.is_empty()
    }

    /// Whatever is done with the id of one that is gone, nobody else notices.
    fn disturb(&mut self) {
        let place = self.random(CROWD_LEN);
        let Some(&id) = self.gone.get(place) else { return };
        let before = (self.hub.touched_len(), self.hub.next_deadline(), self.hub.uncommitted_len_bytes(), self.hub.counters().clone());
        assert!(!self.hub.may_read(self.now, id));
        self.hub.receive(self.now, id, b"JOIN a b\nMSG hello\n");
        self.hub.sent(self.now, id, 1);
        self.hub.end_of_input(self.now, id);
        self.hub.disconnect(id);
        self.hub.send_blocked(id);
        self.hub.writable(id);
        let after = (self.hub.touched_len(), self.hub.next_deadline(), self.hub.uncommitted_len_bytes(), self.hub.counters().clone());
        assert_eq!(before, after);
    }
}

#[test]
fn fifteen_thousand_come_and_leave_in_random_order_and_nothing_is_left() {
    for seed in [1, 0x9e37_79b9_7f4a_7c15] {
        let mut crowd = Crowd::new(seed);
        let mut living_max = 0;
        for step in 0..120_000 {
            // More come than leave, until the server is full; then as many.
            if crowd.random(4) == 0 || crowd.living.len() < CROWD_LEN && step < 60_000 {
                crowd.connect();
            }
            crowd.act();
            crowd.disturb();
            if crowd.random(200) == 0 {
                crowd.commit();
                crowd.now = crowd.now + Duration::from_millis(crowd.random(50) as u64);
                living_max = living_max.max(crowd.living.len());
                crowd.turn();
            }
        }
        assert_eq!(living_max, CROWD_LEN);
        // The others never say anything again. Most have a deadline that ends them; who does not read is blocked at last.
        let last = crowd.now + Duration::from_secs(60);
        while let Some(deadline) = crowd.hub.next_deadline().or(crowd.has_work().then_some(crowd.now))
            && deadline < last
        {
            crowd.now = crowd.now.max(deadline);
            crowd.turn();
            crowd.commit();
        }
        crowd.turn();
        let counters = crowd.hub.counters().clone();
        assert_eq!((crowd.hub.connection_count(), crowd.hub.touched_len(), crowd.hub.next_deadline()), (0, 0, None));
        assert!(crowd.hub.is_finished());
        crowd.hub.archived(counters.commits);
        assert_eq!(crowd.hub.room_count(), 0);
        assert_eq!((counters.closed.iter().sum::<u64>(), counters.connections), (crowd.announced, crowd.announced));
        for reason in [CloseReason::EndOfInput, CloseReason::Quit, CloseReason::ConnectionLost, CloseReason::PingTimeout] {
            assert!(counters.closed_for(reason) > 100, "{}: {}", reason.as_str(), counters.closed_for(reason));
        }
    }
}
