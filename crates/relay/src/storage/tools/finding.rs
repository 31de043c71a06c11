//! What `relay verify` has to say: findings, of which a bounded number is kept and all are counted, and what it has looked at.
//!
//! Knows nothing of how they are found. Next: `check_folder.rs`.

use super::source::Source;
use crate::storage::{
    error::{OpenError, quoted},
    limits::FINDINGS_LEN_MAX,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

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

impl Source {
    /// Something that a repair may help against.
    pub(crate) fn finding(&self, path: PathBuf, offset: Option<u64>, row: Option<i64>, meaning: String) -> Finding {
        let command = format!("relay repair --data {}", quoted(&self.data_dir));
        Finding { path: path.display().to_string(), offset, row, meaning, command }
    }

    /// Adds damage to the report. What is no damage but the system's refusal stays an error.
    pub(crate) fn find(&self, report: &mut Report, error: OpenError) -> Result<(), OpenError> {
        let finding = match error {
            OpenError::Damaged { path, offset, reason, .. } => self.finding(path, Some(offset), None, reason),
            OpenError::DamagedHistory { path, reason, .. } => self.finding(path, None, None, reason),
            OpenError::NewerFormat { ref path, offset, .. } => self.finding(path.clone(), Some(offset), None, error.to_string()),
            error => return Err(error),
        };
        report.find(finding);
        Ok(())
    }
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
