//! Folding: a window of the log is gathered by room, and written into the database in transactions of bounded size.
//!
//! Where messages come from is not known here: from records of the log, or, for a backup or a repair, from other segments. An interruption
//! needs no memory of where it was: a message whose id is not above the last one of its room is there already and is skipped. So a window, or
//! any part of it, may be folded again. Costs one look-up for each room of a window, and the rewriting of what its last segment holds while that is
//! small. Next: `archive.rs`, which says when.

use super::{
    database::{Database, DatabaseError, Writing},
    segment::{Cursor, Run, Segment},
};
use crate::storage::{
    limits::{FOLD_PAGE_BYTES, FOLD_WINDOW_BYTES, SEGMENT_BYTES, SEGMENT_SMALL_BYTES},
    log::Record,
    position::{LogPosition, MessageId},
};
use std::collections::BTreeMap;

/// A stretch of the log that is not in the database yet, by room.
#[derive(Default)]
pub(crate) struct Window {
    rooms: BTreeMap<String, Pending>,
    /// Where the stretch ends; `None` when it comes from elsewhere, and `folded` is not to be moved.
    behind: Option<LogPosition>,
    /// What it takes in memory.
    memory_bytes: usize,
    /// What of the first room is written, when that is larger than a transaction.
    first_room_written_bytes: usize,
}

/// The messages of a room that are to be folded, in the order of their ids.
#[derive(Default)]
struct Pending {
    runs: Vec<Run>,
    lines: Vec<u8>,
}

/// What a transaction has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    /// Bytes of lines that are off the window.
    pub(crate) line_bytes: usize,
    /// Whether the window is empty, and `folded` moved.
    pub(crate) finished: bool,
    /// The rooms that are off the window, and the number that the next message of each will have.
    pub(crate) rooms: Vec<(String, u64)>,
}

/// How far a room got in a transaction.
struct RoomWritten {
    /// Bytes of its pending lines that are in the database now, counted from the first.
    line_bytes: usize,
    next_number: u64,
    /// What the transaction has to write for it.
    cost_bytes: usize,
}

impl Window {
    /// Adds a record that follows those before it, `behind` which the log goes on.
    pub(crate) fn add(&mut self, record: &Record<'_>, behind: LogPosition) {
        for section in record.sections() {
            let run = Run {
                id: MessageId { sequence: record.sequence(), ordinal: 0 },
                unix_ms: record.unix_ms(),
                message_count: section.message_count,
                line_bytes: section.lines.len() as u32,
            };
            self.add_run(section.room, run, section.lines);
        }
        self.behind = Some(behind);
    }

    /// Adds a run of a room. In each room, ids must grow.
    pub(crate) fn add_run(&mut self, room: &str, run: Run, lines: &[u8]) {
        let added = match self.rooms.get_mut(room) {
            Some(pending) => pending.push(run, lines),
            None => {
                let pending = self.rooms.entry(room.to_owned()).or_default();
                ROOM_OVERHEAD_BYTES + room.len() + pending.push(run, lines)
            }
        };
        self.memory_bytes += added;
    }

    /// Whether it takes as much memory as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.memory_bytes >= FOLD_WINDOW_BYTES
    }

    /// Whether nothing is left to be written, neither messages nor a place.
    pub(crate) fn is_empty(&self) -> bool {
        self.rooms.is_empty() && self.behind.is_none()
    }

    /// The place behind the last record, if it holds records.
    pub(crate) fn behind(&self) -> Option<LogPosition> {
        self.behind
    }

    /// The bytes of lines that are still to be written.
    pub(crate) fn line_bytes(&self) -> usize {
        let all: usize = self.rooms.values().map(|pending| pending.lines.len()).sum();
        all.saturating_sub(self.first_room_written_bytes)
    }

    /// Writes rooms of it in one transaction until that holds `budget_bytes`, lines and a page for each room and segment. The transaction that
    /// writes the last of them moves `folded` too.
    ///
    /// # Errors
    ///
    /// Nothing was written, and the window is as it was: call again, after [`Full`](DatabaseError::Full) or [`Busy`](DatabaseError::Busy).
    pub(crate) fn write_some(&mut self, database: &Database, budget_bytes: usize) -> Result<Written, DatabaseError> {
        let (mut rooms, mut partial_bytes) = (Vec::new(), 0);
        let finished = database.transaction(|writing| {
            let mut left_bytes = budget_bytes;
            for (room, pending) in &self.rooms {
                if left_bytes == 0 {
                    return Ok(false);
                }
                let written = pending.write(room, database, writing, left_bytes)?;
                if written.line_bytes < pending.lines.len() {
                    partial_bytes = written.line_bytes;
                    return Ok(false);
                }
                left_bytes = left_bytes.saturating_sub(written.cost_bytes);
                rooms.push((room.clone(), written.next_number));
            }
            if let Some(behind) = self.behind {
                writing.set_folded(behind)?;
            }
            Ok(true)
        })?;

        let before_bytes = self.line_bytes();
        for (room, _) in &rooms {
            if let Some(pending) = self.rooms.remove(room) {
                self.memory_bytes = self.memory_bytes.saturating_sub(ROOM_OVERHEAD_BYTES + room.len() + pending.memory_bytes());
            }
        }
        self.first_room_written_bytes = partial_bytes;
        if finished {
            self.behind = None;
        }
        Ok(Written { line_bytes: before_bytes.saturating_sub(self.line_bytes()), finished, rooms })
    }
}

impl Pending {
    /// Appends a run; returns how much more memory it takes now.
    fn push(&mut self, run: Run, lines: &[u8]) -> usize {
        let before_bytes = self.memory_bytes();
        self.runs.push(run);
        self.lines.extend_from_slice(lines);
        self.memory_bytes() - before_bytes
    }

    fn memory_bytes(&self) -> usize {
        self.runs.capacity() * size_of::<Run>() + self.lines.capacity()
    }

    /// Writes the messages that the room does not have yet, from the first on, until the transaction has `budget_bytes` more to write.
    fn write(&self, room: &str, database: &Database, writing: &Writing<'_>, budget_bytes: usize) -> Result<RoomWritten, DatabaseError> {
        let last = database.last_summary(room)?;
        let mut rest = Cursor::new(&self.runs, &self.lines);
        let mut next_number = 1;
        let mut cost_bytes = FOLD_PAGE_BYTES;
        let mut extended = None;
        if let Some(last) = last {
            rest.skip_messages(rest.count_up_to(last.last_id));
            next_number = last.first_number.saturating_add(u64::from(last.message_count));
            if !rest.is_empty() && is_extended(last.line_bytes as usize, rest.line_bytes()) {
                extended = database.segment(last.row)?;
            }
        }
        if let Some(mut last) = extended {
            let before_bytes = rest.line_bytes();
            rest.fill(&mut last.segment);
            if rest.line_bytes() < before_bytes {
                writing.delete(last.row)?;
                writing.insert(&last.segment)?;
                next_number = last.segment.end_number();
                cost_bytes += last.segment.lines.len() + FOLD_PAGE_BYTES;
            }
        }
        while !rest.is_empty() && (cost_bytes < budget_bytes || cost_bytes == FOLD_PAGE_BYTES) {
            let mut segment = Segment::new(room, next_number);
            rest.fill(&mut segment);
            writing.insert(&segment)?;
            next_number = segment.end_number();
            cost_bytes += segment.lines.len() + FOLD_PAGE_BYTES;
        }
        Ok(RoomWritten { line_bytes: self.lines.len() - rest.line_bytes(), next_number, cost_bytes })
    }
}

/// Whether a room's last segment is rewritten with the new messages behind it: when it is small, or when what is rewritten is not much more
/// than what is new. So a byte is rewritten a few times at most while its segment grows, and most segments end up at least half full.
fn is_extended(last_bytes: usize, new_bytes: usize) -> bool {
    last_bytes <= SEGMENT_SMALL_BYTES || (last_bytes < SEGMENT_BYTES / 2 && last_bytes <= 4 * new_bytes)
}

/// What a room of a window takes beside its name, its runs and its lines: a place in the tree, which may be half empty, and three allocations.
const ROOM_OVERHEAD_BYTES: usize = 2 * (size_of::<String>() + size_of::<Pending>()) + 3 * 16;

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
