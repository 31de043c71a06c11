//! What is committed at a time. Next: `log.rs`, which writes it.

use std::sync::Arc;

/// The messages of one commit, by room.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) sections: Vec<Section>,
    /// The connections that are answered `OK QUIT` and closed when everything above is on disk.
    pub(crate) quitting: Vec<usize>,
}

/// The messages of one room in one commit, as they are stored and as they are shown.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) room: usize,
    pub(crate) room_name: Arc<str>,
    pub(crate) message_count: u32,
    pub(crate) lines: Vec<u8>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.quitting.is_empty()
    }
}
