//! Why connections end or are not let in, and what the shell learns of it.
//!
//! Words only: `hub::ending` decides. Next: `counters.rs`.

use alloc::rc::Rc;
use core::net::SocketAddr;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// The client said `QUIT`, and everything was answered and flushed.
    Quit,
    /// The client closed its side, and everything was answered and flushed.
    EndOfInput,
    /// The shell reported that the connection is broken.
    ConnectionLost,
    /// More than [`OUTBOX_MAX_BYTES`](crate::limits::OUTBOX_MAX_BYTES) queued, or [`BEHIND_MAX_BYTES`](crate::limits::BEHIND_MAX_BYTES)
    /// behind.
    Slow,
    /// No `PONG` after a `PING`.
    PingTimeout,
    /// No `JOIN` in time.
    JoinTimeout,
    /// Too many other lines before `JOIN`.
    TooMuchBeforeJoin,
    /// An HTTP request on the line protocol's port.
    Http,
    /// It was being closed, and did not take what was still queued for it.
    FlushTimeout,
    /// The server stops.
    Shutdown,
}

impl CloseReason {
    /// All of them, in the order in which they are declared.
    pub const ALL: [CloseReason; 10] = [
        CloseReason::Quit,
        CloseReason::EndOfInput,
        CloseReason::ConnectionLost,
        CloseReason::Slow,
        CloseReason::PingTimeout,
        CloseReason::JoinTimeout,
        CloseReason::TooMuchBeforeJoin,
        CloseReason::Http,
        CloseReason::FlushTimeout,
        CloseReason::Shutdown,
    ];

    /// In words, for logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            CloseReason::Quit => "quit",
            CloseReason::EndOfInput => "end of input",
            CloseReason::ConnectionLost => "connection lost",
            CloseReason::Slow => "slow",
            CloseReason::PingTimeout => "ping timeout",
            CloseReason::JoinTimeout => "join timeout",
            CloseReason::TooMuchBeforeJoin => "too much before JOIN",
            CloseReason::Http => "http",
            CloseReason::FlushTimeout => "flush timeout",
            CloseReason::Shutdown => "shutdown",
        }
    }
}

/// The end of a connection: the shell closes its socket and logs the rest. The names were chosen by strangers.
#[derive(Clone, Debug)]
pub struct Closed {
    /// Why it ended.
    pub reason: CloseReason,
    /// Whether something that was queued is dropped: the shell closes with a reset, so that the kernel drops its part too.
    pub reset: bool,
    /// Where it came from.
    pub peer: SocketAddr,
    /// The member's name, if it ever joined.
    pub name: Option<Rc<str>>,
    /// The room that it joined.
    pub room: Option<Rc<str>>,
}

/// Why a connection was not let in. The shell sends [`SERVER_FULL`](crate::SERVER_FULL) and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There are as many connections as the settings allow.
    ServerFull,
    /// There are as many from this address as the settings allow.
    AddressFull,
    /// The server stops.
    Shutdown,
}
