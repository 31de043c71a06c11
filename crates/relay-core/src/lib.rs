//! Rooms, sessions and the line protocol of relay, as pure state.
//!
//! Bytes and the time go in; what to send to whom, what to make durable and when to call again come out. This crate knows no socket,
//! clock, file, thread and no `async`: the crate `relay` moves bytes between it and the world. So each of its tests is a conversation, in
//! virtual time.
//!
//! Everything happens through a [`Hub`]. A turn of the shell:
//!
//! 1. For each readable socket: while [`Hub::may_read`], read and [`Hub::receive`]; when nothing is left to read, [`Hub::read_dry`], or
//!    [`Hub::read_later`] when it has had its share of this turn; at its end, [`Hub::end_of_input`]; on an error, [`Hub::disconnect`]. For
//!    each that can be written again, [`Hub::writable`].
//! 2. When a batch came back from the disk, [`Hub::committed`] or [`Hub::commit_refused`]. When the archive has answered,
//!    [`Hub::history_loaded`] or [`Hub::history_unavailable`]; when it has come further, [`Hub::archived`].
//! 3. [`Hub::tick`], after the reading: a `PONG` that arrived together with its deadline counts.
//! 4. For the next [`Hub::touched_len`] of [`Hub::pop_touched`]: write what [`Hub::outbox`] holds once and report it with [`Hub::sent`]
//!    and, if the kernel took less, [`Hub::send_blocked`]; go back to step 1 where a pause is over, also if nothing has come meanwhile;
//!    close what has ended.
//! 5. [`Hub::take_batch`], for the commit worker, and [`Hub::pop_load`], for the archive.
//! 6. Wait for sockets and the worker, at most until [`Hub::next_deadline`].
//!
//! ```
//! use relay_core::{Hub, Nanos, Settings};
//!
//! let mut hub = Hub::new(Settings::default());
//! let now = Nanos(0);
//! let alice = hub.connect(now, "127.0.0.1:50000".parse().unwrap()).unwrap();
//! hub.receive(now, alice, b"JOIN alice blue\nMSG hello\n");
//!
//! // The join is answered at once, the message is not shown to anybody before it is durable.
//! let queued = |hub: &Hub| hub.outbox(alice).collect::<Vec<_>>().concat();
//! assert_eq!(queued(&hub), b"OK JOIN alice blue\n");
//! let batch = hub.take_batch().unwrap();
//! assert_eq!(batch.sections[0].lines, b"MESSAGE alice hello\n");
//! hub.committed(now, batch);
//! assert_eq!(queued(&hub), b"OK JOIN alice blue\nMESSAGE alice hello\n");
//! ```
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod batch;
mod nanos;
pub mod limits;
mod settings;
mod closing;
mod counters;
mod slots;
mod once_queue;
mod deadlines;
mod clock;
mod bucket;
mod name;
mod line;
mod command;
mod kept;
mod reply;
mod outbox;
mod tail;
mod room;
mod uncommitted;
mod connection;
mod hub;

pub use batch::{Batch, CommitError, Section};
pub use closing::{CloseReason, Closed, Refused};
pub use counters::Counters;
pub use hub::{ConnectionId, Hub, Load, RoomId, Touched};
pub use nanos::Nanos;
pub use reply::SERVER_FULL;
pub use settings::{PeerLimits, Rate, Settings};
