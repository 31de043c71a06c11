//! Accepting connections.
//!
//! Who is let in, the hub decides; when descriptors run out, the listener waits by itself. Next: `loads.rs`.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use miniloop::Task;
use miniloop::net::TcpListener;
use tracing::error;

use super::connection;
use super::state::Server;

/// The listener, open until it is stopped.
pub(super) struct Accepting(Task<()>);

pub(super) fn start(server: &Rc<Server>, listener: TcpListener) -> Accepting {
    let server = server.clone();
    let accept = async move {
        loop {
            match listener.accept().await {
                Ok((stream, address)) => connection::open(&server, stream, address),
                // What can be waited out, the listener waits out by itself.
                Err(error) => {
                    error!(%error, "cannot accept connections any more");
                    return;
                }
            }
        }
    };
    Accepting(miniloop::spawn(accept).named("accept"))
}

impl Accepting {
    /// Ready when it has ended by itself, which it never should.
    pub(super) fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|ended| {
            if let Err(error) = ended {
                error!(%error, "the part `accept` of the server has ended");
            }
        })
    }

    /// Closes the listener: whoever connects from now on is refused.
    pub(super) fn stop(self) {
        drop(self.0);
    }
}
