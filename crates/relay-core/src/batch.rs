//! What one commit makes durable, the open messages of every room as the bytes that members will see, and why it may fail to.
//!
//! A batch is owned by one side at a time. The hub fills it, the commit worker borrows it while it is on its way to disk, and it comes back
//! whole to be fanned out. So nothing here is shared between threads, and the bytes of a message are written once, formatted, and never
//! copied. Next: `nanos.rs`.

use alloc::{string::String, vec::Vec};

/// The messages of one commit, room by room in the order in which the rooms were first written to.
#[derive(Debug, Default)]
pub struct Batch {
    /// One entry for each room that has messages in this commit.
    pub sections: Vec<Section>,
}

/// The messages of one room in one commit.
#[derive(Debug)]
pub struct Section {
    /// The room's name.
    pub room: String,
    /// How many messages `lines` holds.
    pub message_count: u32,
    /// `MESSAGE <name> <text>\n` lines, oldest first, exactly as they are broadcast, stored and replayed.
    pub lines: Vec<u8>,
}

/// Why the storage did not commit a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitError {
    /// No room: it may work again later.
    Full,
    /// It failed, and what is on disk is unknown.
    Unavailable,
}
