//! What the parts of the server share: the hub, the sockets, and how the parts wake one another.
//!
//! Everything is on one thread. Nobody awaits while the hub is borrowed, and nobody calls another part meanwhile. Next: `lingering.rs`.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use miniloop::net::TcpStream;
use miniloop::{LoopHandle, TimerHandle};
use relay_core::{ConnectionId, Hub, Nanos};
use tracing::error;

use super::backlog::Backlog;
use super::fold_schedule::FoldSchedule;
use super::metrics::Metrics;
use super::stop::Stop;
use crate::limits::READ_BYTES;

pub(super) struct Server {
    pub(super) hub: RefCell<Hub>,
    /// The commit before the hub's first one.
    pub(super) base_sequence: u64,
    pub(super) backlog: RefCell<Backlog>,
    pub(super) folding: RefCell<FoldSchedule>,
    pub(super) metrics: RefCell<Metrics>,
    /// The open sockets, at the index of their connection's id.
    peers: RefCell<Vec<Option<Rc<Peer>>>>,
    pub(super) event_loop: LoopHandle,
    /// One for all: what is read is parsed before anybody else reads.
    pub(super) read_buffer: RefCell<Box<[u8]>>,
    /// The timer for the hub's next deadline.
    pub(super) deadline: RefCell<Option<TimerHandle>>,
    /// Connections were touched.
    pub(super) turn: Bell,
    /// Messages wait for their commit, or the archive has come further.
    pub(super) commits: Bell,
    /// The archive's work is due earlier than before.
    pub(super) archive: Bell,
    /// Histories may have to be loaded.
    pub(super) loads: Bell,
    finished: Bell,
    pub(super) lingering_len: Cell<usize>,
    /// Why it stops, once it does.
    stop: RefCell<Option<Stop>>,
    stopping: Bell,
}

/// One socket.
pub(super) struct Peer {
    pub(super) id: ConnectionId,
    pub(super) stream: TcpStream,
    /// Its task.
    pub(super) task: Bell,
    /// The kernel took less than it was offered: the task waits until it takes more.
    pub(super) is_blocked: Cell<bool>,
    pub(super) end: Cell<Option<End>>,
}

/// How a socket is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// What was sent is delivered.
    Orderly,
    /// What the kernel still holds is dropped with what we held.
    Reset,
}

impl Server {
    pub(super) fn new(hub: Hub, base_sequence: u64, unfolded_bytes_max: u64) -> Server {
        Server {
            hub: RefCell::new(hub),
            base_sequence,
            backlog: RefCell::new(Backlog::new(unfolded_bytes_max)),
            folding: RefCell::new(FoldSchedule::new(base_sequence, unfolded_bytes_max)),
            metrics: RefCell::default(),
            peers: RefCell::default(),
            event_loop: LoopHandle::current(),
            read_buffer: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()),
            deadline: RefCell::default(),
            turn: Bell::default(),
            commits: Bell::default(),
            archive: Bell::default(),
            loads: Bell::default(),
            finished: Bell::default(),
            lingering_len: Cell::new(0),
            stop: RefCell::default(),
            stopping: Bell::default(),
        }
    }

    /// The hub's time is the loop's.
    pub(super) fn now(&self) -> Nanos {
        Nanos(self.event_loop.now().as_nanos())
    }

    /// Has everything written that was queued, in the next round of the loop.
    pub(super) fn wake_turn(&self) {
        self.turn.ring();
    }

    /// Rings when the loop has looked at the world again, for a part that has more to do. A task that woke itself would be back in the next
    /// round, dozens of times before the loop looks at anybody else; a deadline that has passed makes the next round begin with a poll.
    pub(super) fn after_next_poll(&self, ring: impl FnOnce() + 'static) {
        self.event_loop.call_at(self.event_loop.now(), ring);
    }

    /// Runs a part of the server that never ends; if it does, by a defect, the server stops.
    pub(super) fn spawn_part(self: &Rc<Self>, name: &'static str, part: impl Future<Output = Infallible> + 'static) {
        let server = Rc::downgrade(self);
        miniloop::spawn(part).named(name).on_done(move |ended| {
            if let (Some(server), Err(error)) = (server.upgrade(), ended)
                && error.is_panic()
            {
                server.stop(Stop::Defect(name));
                error!(%error, "the part `{name}` of the server has ended");
            }
        });
    }

    /// The first reason stops it. A failure of the disk is what has to be told in the end, whatever it stops for.
    pub(super) fn stop(&self, why: Stop) {
        let mut stop = self.stop.borrow_mut();
        if stop.as_ref().is_none_or(|first| why.is_failure_of_disk() && !first.is_failure_of_disk()) {
            *stop = Some(why);
        }
        self.stopping.ring();
    }

    /// Ready once it has to stop.
    pub(super) fn poll_stopping(&self, cx: &Context<'_>) -> Poll<()> {
        while self.stopping.poll_heard(cx) {}
        if self.stop.borrow().is_some() { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn is_stopped_by_defect(&self) -> bool {
        matches!(*self.stop.borrow(), Some(Stop::Defect(_)))
    }

    /// Why it has stopped, in the end.
    pub(super) fn take_stop(&self) -> Option<Stop> {
        self.stop.take()
    }

    /// Waits, after a shutdown, until everything is committed and sent.
    pub(super) async fn finished(&self) {
        while !self.hub.borrow().is_finished() {
            self.finished.heard().await;
        }
    }

    /// Waits until every client that was said goodbye to has taken its last words.
    pub(super) async fn delivered(&self) {
        while self.lingering_len.get() > 0 {
            self.finished.heard().await;
        }
    }

    pub(super) fn look_whether_finished(&self) {
        self.finished.ring();
    }

    pub(super) fn add_peer(&self, peer: Rc<Peer>) {
        let mut peers = self.peers.borrow_mut();
        let index = peer.id.index();
        if peers.len() <= index {
            peers.resize(index + 1, None);
        }
        peers[index] = Some(peer);
    }

    pub(super) fn peer(&self, id: ConnectionId) -> Option<Rc<Peer>> {
        self.peers.borrow().get(id.index())?.clone().filter(|peer| peer.id == id)
    }

    pub(super) fn remove_peer(&self, id: ConnectionId) -> Option<Rc<Peer>> {
        self.peers.borrow_mut().get_mut(id.index())?.take_if(|peer| peer.id == id)
    }
}

/// Wakes the one task that listens to it; a ring while nobody listens is heard later.
#[derive(Default)]
pub(super) struct Bell {
    has_rung: Cell<bool>,
    listener: Cell<Option<Waker>>,
}

impl Bell {
    pub(super) fn ring(&self) {
        self.has_rung.set(true);
        if let Some(waker) = self.listener.take() {
            waker.wake();
        }
    }

    /// True if it has rung since it was last asked; otherwise the next ring wakes the task that asked.
    pub(super) fn poll_heard(&self, cx: &Context<'_>) -> bool {
        if self.has_rung.take() {
            return true;
        }
        self.listener.set(Some(cx.waker().clone()));
        false
    }

    /// Waits until it has rung since it was last asked.
    pub(super) async fn heard(&self) {
        poll_fn(|cx| if self.poll_heard(cx) { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}
