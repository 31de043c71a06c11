//! What a salvage could not keep: where, and as far as it can be told, of which rooms, which messages and how many.
//!
//! Holds a bounded number of places and counts all. Next: `salvage.rs`.

use crate::storage::limits::FINDINGS_LEN_MAX;
use std::path::Path;

/// Everything that is lost.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Losses {
    /// How many places there are.
    pub place_count: u64,
    /// The first of them in words, at most 100.
    pub places: Vec<String>,
    /// Messages that are lost for certain.
    pub known_messages: u64,
    /// There are places where nobody knows how many messages they held.
    pub are_more: bool,
}

impl Losses {
    /// Adds a place; `messages` is `None` where nobody knows.
    pub(crate) fn lose(&mut self, path: &Path, what: &str, messages: Option<u64>) {
        self.place_count += 1;
        self.known_messages += messages.unwrap_or(0);
        self.are_more |= messages.is_none();
        if self.places.len() < FINDINGS_LEN_MAX {
            self.places.push(format!("{}: {what}", path.display()));
        }
    }

    /// Whether everything could be kept.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.place_count == 0
    }
}
