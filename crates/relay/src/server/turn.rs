//! The turn: writes to every connection that was touched, once, and lets go of those that have ended.
//!
//! Reading, commits and deadlines only ring; the turn runs after all of them, in the next round of the loop. So a member of a busy room
//! gets one system call for everything that a round brought it, and a commit is fanned out to thousands without one of them being waited
//! for. Costs one system call per connection with something queued. Next: `connection.rs`.

use std::io::{self, IoSlice};
use std::rc::Rc;

use relay_core::{CloseReason, Closed, ConnectionId, Hub, Nanos, Touched};
use tracing::{debug, field, info};

use super::deadlines;
use super::state::{End, Peer, Server};
use crate::limits::SLICES_PER_WRITE;

pub(super) fn start(server: &Rc<Server>) {
    let turning = server.clone();
    let turns = async move {
        loop {
            turning.turn.heard().await;
            run(&turning);
        }
    };
    server.spawn_part("turn", turns);
}

/// Writes what is queued, closes what has ended, and sees to what follows from it.
pub(super) fn run(server: &Rc<Server>) {
    let now = server.now();
    let touched_len = server.hub.borrow().touched_len();
    for _ in 0..touched_len {
        let touched = server.hub.borrow_mut().pop_touched();
        let Some(Touched { id, send, read, closed }) = touched else { break };
        if let Some(closed) = closed {
            close(server, id, closed);
            continue;
        }
        let Some(peer) = server.peer(id) else { continue };
        if send {
            write(server, &peer, now);
        }
        if read {
            peer.task.ring();
        }
    }
    if server.hub.borrow().touched_len() > 0 {
        // A large commit takes as many turns as the kernels' buffers have place for. Those who have something to say are read in between.
        let turning = server.clone();
        server.after_next_poll(move || turning.wake_turn());
    }
    deadlines::arm(server);
    server.commits.ring();
    if server.hub.borrow().loads_len() > 0 {
        server.loads.ring();
    }
    server.look_whether_finished();
}

/// One write to one connection.
fn write(server: &Server, peer: &Peer, now: Nanos) {
    let mut hub = server.hub.borrow_mut();
    let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
    let (mut len, mut offered_bytes) = (0, 0);
    for (place, slice) in slices.iter_mut().zip(hub.outbox(peer.id)) {
        *place = IoSlice::new(slice);
        len += 1;
        offered_bytes += slice.len();
    }
    let written = peer.stream.try_write_vectored(&slices[..len]);
    match written {
        Ok(written_bytes) => {
            hub.sent(now, peer.id, written_bytes);
            if written_bytes < offered_bytes {
                block(&mut hub, peer);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => block(&mut hub, peer),
        Err(error) => {
            debug!(%error, "cannot write to a connection");
            hub.disconnect(peer.id);
        }
    }
}

/// The kernel takes no more for now.
fn block(hub: &mut Hub, peer: &Peer) {
    hub.send_blocked(peer.id);
    peer.is_blocked.set(true);
    peer.task.ring();
}

fn close(server: &Server, id: ConnectionId, closed: Closed) {
    log_end(&closed);
    if let Some(peer) = server.remove_peer(id) {
        peer.end.set(Some(if closed.reset { End::Reset } else { End::Orderly }));
        peer.task.ring();
    }
}

/// An operator wants to know whom the server has thrown out, and rarely who has left.
fn log_end(Closed { reason, reset, peer, name, room }: &Closed) {
    // Names were chosen by strangers: `Debug` escapes them.
    let (name, room) = (name.as_deref().map(field::debug), room.as_deref().map(field::debug));
    let reason_text = reason.as_str();
    match reason {
        CloseReason::Quit | CloseReason::EndOfInput | CloseReason::ConnectionLost | CloseReason::Shutdown => {
            debug!(%peer, name, room, reason = reason_text, reset, "closed");
        }
        _ => info!(%peer, name, room, reason = reason_text, reset, "closed"),
    }
}
