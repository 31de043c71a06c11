//! The server: moves bytes between sockets, the hub and the storage. All rules of the chat are in `relay_core`; all I/O is here.
//!
//! ```text
//! socket -> connection.rs -> hub -> commit.rs -> storage (its own thread)
//!                             |                      |
//! socket <------ turn.rs <----+<----- committed -----+
//!                             |                      |
//!                             +<----- loads.rs, archive.rs <-> archive (its own thread): from the log to the history
//! ```
//!
//! One task per connection reads; one task, the turn, writes to all that were touched, once for each round of the loop; one task takes
//! batches to the commit worker and back. The archive worker folds behind them what is committed, and loads histories. The files stand in
//! reading order: `state.rs` is what they share.

mod stop;
mod backlog;
mod fold_schedule;
mod metrics;
mod state;
mod lingering;
mod deadlines;
mod turn;
mod connection;
mod accept;
mod loads;
mod archive;
mod commit;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use miniloop::net::TcpListener;
use relay_core::Hub;
use relay_core::limits::FLUSH_TIMEOUT;
use tracing::debug;

use self::state::Server;
pub use self::stop::Stop;
use crate::storage::{Archive, Storage};

/// What a server is made of.
pub struct Parts<S, A> {
    /// The chat.
    pub hub: Hub,
    /// Where clients connect.
    pub listener: TcpListener,
    /// Makes messages durable, on a thread of its own.
    pub storage: S,
    /// Moves them to the history, on another one.
    pub archive: A,
    /// The last commit before this start. Everything up to it is in the history.
    pub base_sequence: u64,
    /// How much of the log may be unfolded: from half of it on commits are slowed, and at it they wait.
    pub unfolded_bytes_max: u64,
}

/// A server that accepts connections.
pub struct Running {
    server: Rc<Server>,
    accepting: accept::Accepting,
    address: SocketAddr,
}

/// Starts serving on the running loop.
///
/// # Errors
/// What the listener says of its address; that a thread cannot be started.
pub fn start<S: Storage, A: Archive>(parts: Parts<S, A>) -> io::Result<Running> {
    let Parts { hub, listener, storage, archive, base_sequence, unfolded_bytes_max } = parts;
    let address = listener.local_addr()?;
    let server = Rc::new(Server::new(hub, base_sequence, unfolded_bytes_max));
    turn::start(&server);
    archive::start(&server, archive)?;
    commit::start(&server, storage)?;
    let accepting = accept::start(&server, listener);
    Ok(Running { server, accepting, address })
}

impl Running {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How to stop it from elsewhere on this thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.server.clone())
    }

    /// What it has counted and measured, for as long as it serves.
    pub fn measured(&self) -> Measured {
        Measured(self.server.clone())
    }

    /// Serves until somebody asks to stop or something fails, then stops accepting, commits what was accepted, flushes for at most
    /// [`FLUSH_TIMEOUT`], and closes. Returns why it stopped: that the disk has failed, if it did, also when it was asked to stop before.
    pub async fn serve(mut self) -> Stop {
        poll_fn(|cx| self.poll_stopping(cx)).await;
        self.accepting.stop();
        self.server.hub.borrow_mut().shutdown(self.server.now());
        self.server.wake_turn();
        let deadline = miniloop::now() + FLUSH_TIMEOUT;
        let finished = self.server.finished();
        if self.server.is_stopped_by_defect() {
            // The part that has ended may be the one that the others wait for.
            let _ = miniloop::timeout(FLUSH_TIMEOUT, finished).await;
        } else {
            finished.await;
        }
        let _ = miniloop::timeout(deadline - miniloop::now(), self.server.delivered()).await;
        debug!("what it has counted and measured:\n{}", Measured(self.server.clone()).text());
        self.server.take_stop().unwrap_or(Stop::Requested)
    }

    fn poll_stopping(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.accepting.poll_ended(cx).is_ready() {
            self.server.stop(Stop::Defect("accept"));
        }
        self.server.poll_stopping(cx)
    }
}

/// Stops a server.
#[derive(Clone)]
pub struct Stopper(Rc<Server>);

impl Stopper {
    /// Asks the server to stop; the first reason counts.
    pub fn stop(&self) {
        self.0.stop(Stop::Requested);
    }
}

/// What a server has counted and measured.
#[derive(Clone)]
pub struct Measured(Rc<Server>);

impl Measured {
    /// One line for each number: its name, as Prometheus would have it, and its value.
    #[must_use]
    pub fn text(&self) -> String {
        let Server { metrics, hub, backlog, lingering_len, .. } = &*self.0;
        metrics.borrow().text(&hub.borrow(), &backlog.borrow(), lingering_len.get())
    }
}

#[cfg(test)]
mod tests;
