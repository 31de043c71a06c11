//! Closing a socket without destroying our own last words.
//!
//! What arrives at a closed socket the kernel answers with a reset, and with that throws away what it has not delivered yet: `OK QUIT`,
//! the messages before it, or the error that explains the end. So our direction is ended first, what the client still sends is read away,
//! and the socket is closed when the client has everything, has ended its own direction, or the time is over. Most are closed at once:
//! their client has everything already. Next: `deadlines.rs`.

use std::io;
use std::net::Shutdown;
use std::rc::Rc;

use miniloop::net::TcpStream;
use relay_core::limits::FLUSH_TIMEOUT;

use super::state::Server;
use crate::limits::{LINGER_STEP, LINGERING_LEN_MAX};

pub(super) fn close(server: &Rc<Server>, stream: TcpStream) {
    let has_everything = match stream.try_read(&mut [0]) {
        Ok(0) => return,
        Ok(_) => false,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => unacknowledged_len(&stream) == 0,
        Err(_) => return,
    };
    if stream.shutdown(Shutdown::Write).is_err() || has_everything {
        return;
    }
    if !has_place(server) {
        server.metrics.borrow_mut().not_lingered += 1;
        return;
    }
    let counted = Counted::new(server.clone());
    let linger = async move {
        let _counted = counted;
        // Whatever ends it, the socket is closed.
        let _ = miniloop::timeout(FLUSH_TIMEOUT, until_delivered(&stream)).await;
    };
    miniloop::spawn(linger).named("lingering connection").detach();
}

async fn until_delivered(stream: &TcpStream) {
    let mut read_away = [0; 4096];
    loop {
        match miniloop::timeout(LINGER_STEP, stream.read(&mut read_away)).await {
            Ok(Ok(1..)) => {}
            Ok(_) => return,
            // Our end of the connection counts as one byte, and is acknowledged late.
            Err(_) if unacknowledged_len(stream) <= 1 => return,
            Err(_) => {}
        }
    }
}

fn unacknowledged_len(stream: &TcpStream) -> usize {
    // It is only told of a socket that is there.
    stream.unacknowledged_len().unwrap_or(0)
}

/// A connection that lingers may take the place that it had among all others, and a few more.
fn has_place(server: &Server) -> bool {
    let hub = server.hub.borrow();
    hub.connection_count() + server.lingering_len.get() < hub.connections_max() + LINGERING_LEN_MAX
}

struct Counted(Rc<Server>);

impl Counted {
    fn new(server: Rc<Server>) -> Counted {
        server.lingering_len.set(server.lingering_len.get() + 1);
        Counted(server)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.lingering_len.set(self.0.lingering_len.get() - 1);
        self.0.look_whether_finished();
    }
}
