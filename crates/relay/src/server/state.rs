//! What the parts of the server share: the hub, the sockets, and how the parts wake one another.
//!
//! Everything is on one thread. Nobody awaits while the hub is borrowed, and nobody calls another part meanwhile. Next: `lingering.rs`.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use miniloop::net::TcpStream;
use miniloop::{Abandoned, LoopHandle, Resolver, TimerHandle};
use relay_core::{ConnectionId, Hub, Nanos};
use tracing::error;

use super::stop::Stop;
use crate::limits::READ_BYTES;
use crate::storage::StorageError;

pub(super) struct Server {
    pub(super) hub: RefCell<Hub>,
    /// The open sockets, at the index of their connection's id.
    peers: RefCell<Vec<Option<Rc<Peer>>>>,
    pub(super) event_loop: LoopHandle,
    /// One for all: what is read is parsed before anybody else reads.
    pub(super) read_buffer: RefCell<Box<[u8]>>,
    /// The timer for the hub's next deadline.
    pub(super) deadline: RefCell<Option<TimerHandle>>,
    /// Connections were touched.
    pub(super) turn: Bell,
    /// Messages wait for their commit.
    pub(super) commits: Bell,
    /// A commit may have used up the prepared log file.
    pub(super) prepare: Bell,
    finished: Bell,
    pub(super) lingering_len: Cell<usize>,
    stop: Cell<Option<Resolver<Stop, Abandoned>>>,
    pub(super) storage_failure: RefCell<Option<StorageError>>,
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
    pub(super) fn new(hub: Hub, stop: Resolver<Stop, Abandoned>) -> Server {
        Server {
            hub: RefCell::new(hub),
            peers: RefCell::default(),
            event_loop: LoopHandle::current(),
            read_buffer: RefCell::new(vec![0; READ_BYTES].into_boxed_slice()),
            deadline: RefCell::default(),
            turn: Bell::default(),
            commits: Bell::default(),
            prepare: Bell::default(),
            finished: Bell::default(),
            lingering_len: Cell::new(0),
            stop: Cell::new(Some(stop)),
            storage_failure: RefCell::default(),
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

    /// The storage has failed: whatever it stops for, that is what has to be told in the end.
    pub(super) fn storage_failed(&self, error: StorageError) {
        self.storage_failure.replace(Some(error.clone()));
        self.stop(Stop::Storage(error));
    }

    /// The first reason stops it.
    pub(super) fn stop(&self, why: Stop) {
        if let Some(stop) = self.stop.take() {
            stop.set_result(why);
        }
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
