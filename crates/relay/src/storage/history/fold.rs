//! Folding: a window of the log is gathered by room, and written into the database in transactions of bounded size.
//!
//! Where messages come from is not known here: from records of the log, or, for a backup or a repair, from other segments. An interruption
//! needs no memory of where it was: a message whose id is not above the last one of its room is there already and is skipped. So a window,
//! or any part of it, may be folded again. Costs one look-up for each room of a window, and the rewriting of what its last segment holds
//! while that is small. Next: `archive.rs`, which says when.

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
///
/// Keeps its memory for the next stretch; dropping it gives that back.
#[derive(Default)]
pub(crate) struct Window {
    rooms: BTreeMap<String, Pending>,
    /// The lines of all rooms, as they came: one buffer, because a room does not know how much it will have.
    lines: Vec<u8>,
    /// Where the stretch ends; `None` when it comes from elsewhere, and `folded` is not to be moved.
    behind: Option<LogPosition>,
    /// What it takes in memory beside the lines.
    overhead_bytes: usize,
    /// The lines that are still to be written.
    left_bytes: usize,
}

/// The messages of a room that are to be folded, in the order of their ids.
#[derive(Default)]
struct Pending {
    runs: Vec<PendingRun>,
    line_bytes: usize,
    /// What of the lines is written already: more than nothing for a room that is larger than a transaction.
    written_bytes: usize,
}

struct PendingRun {
    run: Run,
    /// Where its lines start in those of the window.
    start: usize,
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
    /// Bytes of its lines that are in the database now, counted from the first.
    line_bytes: usize,
    next_number: u64,
    /// What the transaction has to write for it.
    cost_bytes: usize,
}

impl Window {
    /// Adds a record that follows those before it.
    pub(crate) fn add(&mut self, record: &Record<'_>) {
        for section in record.sections() {
            let run = Run {
                id: MessageId { sequence: record.sequence(), ordinal: 0 },
                unix_ms: record.unix_ms(),
                message_count: section.message_count,
                line_bytes: section.lines.len() as u32,
            };
            self.add_run(section.room, run, section.lines);
        }
    }

    /// Behind its last record the log goes on here.
    pub(crate) fn ends_at(&mut self, behind: LogPosition) {
        self.behind = Some(behind);
    }

    /// Adds a run of a room. In each room, ids must grow.
    pub(crate) fn add_run(&mut self, room: &str, run: Run, lines: &[u8]) {
        let pending = match self.rooms.get_mut(room) {
            Some(pending) => pending,
            None => {
                self.overhead_bytes += ROOM_OVERHEAD_BYTES + room.len();
                self.rooms.entry(room.to_owned()).or_default()
            }
        };
        let capacity_before = pending.runs.capacity();
        let run = Run { line_bytes: lines.len() as u32, ..run };
        pending.runs.push(PendingRun { run, start: self.lines.len() });
        pending.line_bytes += lines.len();
        self.overhead_bytes += (pending.runs.capacity() - capacity_before) * size_of::<PendingRun>();
        self.lines.extend_from_slice(lines);
        self.left_bytes += lines.len();
    }

    /// Whether it takes as much memory as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.lines.len() + self.overhead_bytes >= FOLD_WINDOW_BYTES
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
        self.left_bytes
    }

    /// Writes rooms of it in one transaction until that holds `budget_bytes`, lines and a page for each room and segment. The transaction
    /// that writes the last of them moves `folded` too.
    ///
    /// # Errors
    ///
    /// Nothing was written, and the window is as it was: call again, after [`Full`](DatabaseError::Full) or [`Busy`](DatabaseError::Busy).
    pub(crate) fn write_some(&mut self, database: &Database, budget_bytes: usize) -> Result<Written, DatabaseError> {
        let (mut rooms, mut partial) = (Vec::new(), None);
        let finished = database.transaction(|writing| {
            let mut budget_left_bytes = budget_bytes;
            for (room, pending) in &self.rooms {
                if budget_left_bytes == 0 {
                    return Ok(false);
                }
                let written = pending.write(&self.lines, room, database, writing, budget_left_bytes)?;
                if written.line_bytes < pending.line_bytes {
                    partial = Some((room.clone(), written.line_bytes));
                    return Ok(false);
                }
                budget_left_bytes = budget_left_bytes.saturating_sub(written.cost_bytes);
                rooms.push((room.clone(), written.next_number));
            }
            if let Some(behind) = self.behind {
                writing.set_folded(behind)?;
            }
            Ok(true)
        })?;

        let before_bytes = self.left_bytes;
        for (room, _) in &rooms {
            if let Some(pending) = self.rooms.remove(room) {
                self.left_bytes -= pending.line_bytes - pending.written_bytes;
            }
        }
        if let Some((room, line_bytes)) = partial
            && let Some(pending) = self.rooms.get_mut(&room)
        {
            self.left_bytes -= line_bytes.saturating_sub(pending.written_bytes);
            pending.written_bytes = pending.written_bytes.max(line_bytes);
        }
        if finished {
            self.behind = None;
            self.lines.clear();
            self.overhead_bytes = 0;
        }
        Ok(Written { line_bytes: before_bytes - self.left_bytes, finished, rooms })
    }
}

impl Pending {
    /// Writes the messages that the room does not have yet, from the first on, until the transaction has `budget_bytes` more to write.
    fn write(
        &self,
        window_lines: &[u8],
        room: &str,
        database: &Database,
        writing: &Writing<'_>,
        budget_bytes: usize,
    ) -> Result<RoomWritten, DatabaseError> {
        let last = database.last_summary(room)?;
        let last_id = last.as_ref().map_or(MessageId { sequence: 0, ordinal: 0 }, |last| last.last_id);
        let (runs, lines, not_gathered_bytes) = self.gather(window_lines, last_id, budget_bytes.saturating_add(SEGMENT_BYTES));
        let mut rest = Cursor::new(&runs, &lines);
        rest.skip_messages(rest.count_up_to(last_id));

        let (mut next_number, mut cost_bytes) = (1, FOLD_PAGE_BYTES);
        if let Some(last) = last {
            next_number = last.end_number();
            if is_extended(last.line_bytes as usize, rest.line_bytes())
                && let Some(mut stored) = database.segment(last.row)?
            {
                let before_bytes = rest.line_bytes();
                rest.fill(&mut stored.segment);
                if rest.line_bytes() < before_bytes {
                    writing.delete(stored.row)?;
                    writing.insert(&stored.segment)?;
                    next_number = stored.segment.end_number();
                    cost_bytes += stored.segment.lines.len() + FOLD_PAGE_BYTES;
                }
            }
        }
        while !rest.is_empty() && (cost_bytes < budget_bytes || cost_bytes == FOLD_PAGE_BYTES) {
            let mut segment = Segment::new(room, next_number);
            rest.fill(&mut segment);
            writing.insert(&segment)?;
            next_number = segment.end_number();
            cost_bytes += segment.lines.len() + FOLD_PAGE_BYTES;
        }
        let left_bytes = rest.line_bytes() + not_gathered_bytes;
        Ok(RoomWritten { line_bytes: self.line_bytes - left_bytes, next_number, cost_bytes })
    }

    /// The runs that hold messages behind this one, with their lines in one piece, until those are more than `limit_bytes`; and the bytes
    /// of the lines behind them.
    fn gather(&self, window_lines: &[u8], id: MessageId, limit_bytes: usize) -> (Vec<Run>, Vec<u8>, usize) {
        let new = &self.runs[self.runs.partition_point(|pending| pending.run.last_id() <= id)..];
        let (mut runs, mut lines) = (Vec::new(), Vec::new());
        for PendingRun { run, start } in new {
            if lines.len() > limit_bytes {
                break;
            }
            runs.push(*run);
            lines.extend_from_slice(&window_lines[*start..*start + run.line_bytes as usize]);
        }
        let behind_bytes = new[runs.len()..].iter().map(|pending| pending.run.line_bytes as usize).sum();
        (runs, lines, behind_bytes)
    }
}

/// Whether a room's last segment is rewritten with the new messages behind it: when it is small, or when what is rewritten is not much more
/// than what is new. So a byte is rewritten a few times at most while its segment grows, and most segments end up at least half full.
fn is_extended(last_bytes: usize, new_bytes: usize) -> bool {
    last_bytes <= SEGMENT_SMALL_BYTES || (last_bytes < SEGMENT_BYTES / 2 && last_bytes <= 2 * new_bytes)
}

/// What a room of a window takes beside its name, its runs and its lines: a place in the tree, which may be half empty, and three
/// allocations.
const ROOM_OVERHEAD_BYTES: usize = 2 * (size_of::<String>() + size_of::<Pending>()) + 3 * 16;

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
