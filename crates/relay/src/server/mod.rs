//! The server: moves bytes between sockets, the hub and the storage. All rules of the chat are in `relay_core`; all I/O is here.
//!
//! ```text
//! socket -> connection.rs -> hub -> commit.rs -> storage (its own thread)
//!                             |                      |
//! socket <------ turn.rs <----+<----- committed -----+
//! ```
//!
//! One task per connection reads; one task, the turn, writes to all that were touched, once for each round of the loop; one task takes
//! batches to the commit worker and back. The files stand in reading order: `state.rs` is what they share.

mod stop;
mod state;
mod lingering;
mod deadlines;
mod turn;
mod connection;
mod accept;
mod commit;
mod prepare;

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use miniloop::net::TcpListener;
use miniloop::{Abandoned, Promise, promise};
use relay_core::Hub;
use relay_core::limits::FLUSH_TIMEOUT;
use tracing::debug;

use self::state::Server;
pub use self::stop::Stop;
use crate::storage::{Preparer, Storage};

/// A server that accepts connections.
pub struct Running {
    server: Rc<Server>,
    accepting: accept::Accepting,
    stop: Promise<Stop, Abandoned>,
    address: SocketAddr,
}

/// Starts serving `hub` on a listener, on the running loop. Messages are made durable by `storage`, on a thread of its own; `preparer`
/// gets its files ready ahead of time on another one.
///
/// # Errors
/// What the listener says of its address; that a thread cannot be started.
pub fn start(hub: Hub, listener: TcpListener, storage: impl Storage, preparer: Option<Preparer>) -> io::Result<Running> {
    let address = listener.local_addr()?;
    let (resolver, stop) = promise();
    let server = Rc::new(Server::new(hub, resolver));
    turn::start(&server);
    commit::start(&server, storage)?;
    if let Some(preparer) = preparer {
        prepare::start(&server, preparer)?;
    }
    let accepting = accept::start(&server, listener);
    Ok(Running { server, accepting, stop, address })
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

    /// Serves until somebody asks to stop or something fails, then stops accepting, commits what was accepted, flushes for at most
    /// [`FLUSH_TIMEOUT`], and closes. Returns why it stopped: that the storage has failed, if it did, also when it was asked to stop
    /// before.
    pub async fn serve(mut self) -> Stop {
        let stop = poll_fn(|cx| self.poll_stop(cx)).await;
        self.accepting.stop();
        self.server.hub.borrow_mut().shutdown(self.server.now());
        self.server.wake_turn();
        let deadline = miniloop::now() + FLUSH_TIMEOUT;
        let finished = self.server.finished();
        if let Stop::Defect(_) = stop {
            // The part that has ended may be the one that the others wait for.
            let _ = miniloop::timeout(FLUSH_TIMEOUT, finished).await;
        } else {
            finished.await;
        }
        let _ = miniloop::timeout(deadline - miniloop::now(), self.server.delivered()).await;
        debug!(counters = ?self.server.hub.borrow().counters(), "what it has counted");
        self.server.storage_failure.take().map_or(stop, Stop::Storage)
    }

    fn poll_stop(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        match Pin::new(&mut self.stop).poll(cx) {
            Poll::Ready(stop) => Poll::Ready(stop.unwrap_or(Stop::Defect("every way to stop it is gone"))),
            Poll::Pending => self.accepting.poll_ended(cx).map(|()| Stop::Defect("accept")),
        }
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

#[cfg(test)]
mod tests;
