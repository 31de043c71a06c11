//! What commands have to tell: how far they are, what they found wrong, and what is lost.
//!
//! Of the places a bounded number is kept, and all are counted. Knows nothing of how they are found. Next: `overlay.rs`.

use crate::storage::limits::FINDINGS_LEN_MAX;
use serde::Serialize;
use std::path::Path;

/// A piece of work of a command, and how much of it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, as "checking the pages".
    pub what: &'static str,
    /// Of those below.
    pub done: u64,
    /// Messages, bytes or rows; an estimate while a server goes on.
    pub total: u64,
}

/// Who is told.
pub type Watch<'a> = dyn FnMut(Progress) + 'a;

/// What a data folder holds, and what is wrong with it.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The data folder.
    pub data: String,
    /// How many findings there are. 0: everything is right.
    pub finding_count: u64,
    /// The first of them, at most 100.
    pub findings: Vec<Finding>,
    /// What is no damage and worth knowing, such as a commit that was interrupted.
    pub notes: Vec<String>,
    /// Messages that were read and found right.
    pub message_count: u64,
    /// Rooms in `history.db`.
    pub room_count: u64,
    /// Pages of `history.db` whose seal was checked.
    pub page_count: u64,
    /// Segments of `history.db` that were read.
    pub segment_count: u64,
    /// Records of the log that are not folded yet, all of them read.
    pub record_count: u64,
}

/// Something that is not as relay left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The file or folder.
    pub path: String,
    /// Where in the file, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The row of table `segment`, by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<i64>,
    /// What is wrong, and what it means.
    pub meaning: String,
    /// What to run.
    pub command: String,
}

/// What could not be saved of a damaged folder: where, and as far as it can be told, of which rooms, which messages and how many.
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

impl Report {
    pub(crate) fn new(data_dir: &Path) -> Report {
        Report { data: data_dir.display().to_string(), ..Report::default() }
    }

    pub(crate) fn find(&mut self, finding: Finding) {
        self.finding_count += 1;
        if self.findings.len() < FINDINGS_LEN_MAX {
            self.findings.push(finding);
        }
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.finding_count == 0
    }
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
}
