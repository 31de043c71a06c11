//! Places among everything that was ever committed: of one message, and between two records of the log.
//!
//! Next: `contract.rs`.

/// Names a message, for ever: the record that committed it, and its place among the messages of its room there. Ids grow with time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// The record's place in the log: 1, 2, 3, ..
    pub sequence: u64,
    /// 0 for the first message of its room in that record.
    pub ordinal: u32,
}

/// Behind which record of the log reading or writing goes on, and where that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// The last record before this place; 0 when there is none.
    pub(crate) sequence: u64,
    /// The checksum of that record's header, which the next one names; 0 when there is none.
    pub(crate) checksum: u32,
    /// The file in which the next record is looked for first, at `offset`.
    pub(crate) file_number: u64,
    pub(crate) offset: u64,
}

impl LogPosition {
    /// Before everything.
    pub(crate) const START: LogPosition = LogPosition { sequence: 0, checksum: 0, file_number: 1, offset: 0 };
}
