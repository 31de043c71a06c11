//! One connection: reads whenever the hub lets it, and tells the turn when the kernel takes bytes again.
//!
//! It knows nothing of lines: whether to read on, and what the bytes mean, the hub says. While nothing comes it costs a task and no buffer.
//! Next: `accept.rs`.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use miniloop::net::TcpStream;
use relay_core::ConnectionId;
use tracing::debug;

use super::lingering;
use super::state::{Bell, End, Peer, Server};

/// Lets a connection in, or turns it away.
pub(super) fn open(server: &Rc<Server>, stream: TcpStream, address: SocketAddr) {
    let admitted = server.hub.borrow_mut().connect(server.now(), address);
    match admitted {
        Ok(id) => {
            let peer = Rc::new(Peer { id, stream, task: Bell::default(), is_blocked: Cell::new(false), end: Cell::new(None) });
            server.add_peer(peer.clone());
            miniloop::spawn(serve(server.clone(), peer)).named(format!("connection {address}")).detach();
            server.wake_turn();
        }
        Err(refused) => {
            debug!(%address, ?refused, "turned away");
            // A new socket has room for one line.
            let _ = stream.try_write(relay_core::SERVER_FULL.as_bytes());
            lingering::close(server, stream);
        }
    }
}

async fn serve(server: Rc<Server>, peer: Rc<Peer>) {
    let guard = DisconnectOnDrop { server, id: peer.id };
    let server = &guard.server;
    let end = poll_fn(|cx| poll(server, &peer, cx)).await;
    match end {
        End::Reset => {
            // It can only fail for a socket that has no connection any more.
            let _ = peer.stream.set_linger(Some(std::time::Duration::ZERO));
        }
        End::Orderly => {
            // The table has let go of it, so the stream is ours alone.
            if let Some(peer) = Rc::into_inner(peer) {
                lingering::close(server, peer.stream);
            }
        }
    }
}

/// The task of a connection may end early, by a defect or with the loop: then the hub must hear of it.
struct DisconnectOnDrop {
    server: Rc<Server>,
    id: ConnectionId,
}

impl Drop for DisconnectOnDrop {
    fn drop(&mut self) {
        if self.server.peer(self.id).is_some() {
            self.server.hub.borrow_mut().disconnect(self.id);
            self.server.wake_turn();
        }
    }
}

fn poll(server: &Server, peer: &Rc<Peer>, cx: &mut Context<'_>) -> Poll<End> {
    if let Some(end) = peer.end.get() {
        return Poll::Ready(end);
    }
    // Whatever it rang for is looked at below; this asks to be woken by the next ring.
    while peer.task.poll_heard(cx) {}
    if peer.is_blocked.get() && peer.stream.poll_write_ready(cx).is_ready() {
        peer.is_blocked.set(false);
        server.hub.borrow_mut().writable(peer.id);
    }
    if let Err(error) = read(server, peer, cx) {
        debug!(%error, "cannot read from a connection");
        server.hub.borrow_mut().disconnect(peer.id);
    }
    // Also when nothing was read: a pause or its end has moved the connection's deadline, and the turn arms the timer.
    server.wake_turn();
    Poll::Pending
}

/// Reads once, and sees to it that it goes on when there may be more: after the others.
fn read(server: &Server, peer: &Rc<Peer>, cx: &mut Context<'_>) -> io::Result<()> {
    let mut hub = server.hub.borrow_mut();
    let mut buffer = server.read_buffer.borrow_mut();
    let now = server.now();
    let mut has_read = false;
    while hub.may_read(now, peer.id) {
        let Poll::Ready(ready) = peer.stream.poll_read_ready(cx) else {
            hub.read_dry(now, peer.id);
            break;
        };
        ready?;
        if has_read {
            hub.read_later(now, peer.id);
            // After the others.
            let peer = peer.clone();
            server.after_next_poll(move || peer.task.ring());
            break;
        }
        let len = match peer.stream.try_read(&mut buffer) {
            // It was ready for nothing; the next step sees that.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            len => len?,
        };
        if len == 0 {
            hub.end_of_input(now, peer.id);
            break;
        }
        hub.receive(now, peer.id, &buffer[..len]);
        has_read = true;
    }
    Ok(())
}
