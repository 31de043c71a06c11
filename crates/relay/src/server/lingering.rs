//! Closing a socket without destroying our own last words.
//!
//! A kernel that closes a socket with unread input sends a reset, and a reset makes the client's kernel throw away what it has not handed
//! over yet: `OK QUIT`, or the error that explains the end. So when there is unread input, our direction is ended first and the rest is
//! read away, for a second at most and for a few connections at a time. Next: `deadlines.rs`.

use std::cell::Cell;
use std::net::Shutdown;
use std::rc::Rc;

use miniloop::net::TcpStream;

use super::state::Server;
use crate::limits::{LINGER_TIMEOUT, LINGERING_LEN_MAX};

pub(super) fn close(server: &Rc<Server>, stream: TcpStream) {
    let has_unread_input = stream.try_read(&mut [0]).is_ok_and(|len| len > 0);
    let is_ended = stream.shutdown(Shutdown::Write).is_err();
    if !has_unread_input || is_ended || server.lingering_len.get() >= LINGERING_LEN_MAX {
        return;
    }
    let counted = Counted::new(server.clone());
    let read_away = async move {
        let _counted = counted;
        // Whatever ends it, the socket is closed.
        let _ = miniloop::timeout(LINGER_TIMEOUT, async { while stream.read(&mut [0; 4096]).await.is_ok_and(|len| len > 0) {} }).await;
    };
    miniloop::spawn(read_away).named("lingering connection").detach();
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
        let len: &Cell<usize> = &self.0.lingering_len;
        len.set(len.get() - 1);
    }
}
