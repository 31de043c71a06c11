//! What the history holds already of records that are not folded yet, as after a fold that was cut off: the log must say the same.
//!
//! Bounded by what a fold gathers; holds a checksum for each run. Next: `check_history.rs`.

use crate::storage::{history::Segment, limits::UNFOLDED_RUNS_MAX, log::Record, position::MessageId};
use std::collections::BTreeMap;

/// Runs of messages behind a record, by record and room.
#[derive(Default)]
pub(crate) struct Unfolded {
    /// The last record that is folded.
    sequence: u64,
    runs: BTreeMap<(u64, String), Vec<Piece>>,
    len: usize,
    /// There were more than are kept; they are not compared.
    pub(crate) are_too_many: bool,
}

/// A run as a row has it.
struct Piece {
    row: i64,
    ordinal: u32,
    message_count: u32,
    unix_ms: u64,
    lines_checksum: u32,
}

/// A row that says something else than the log.
pub(crate) struct Contradiction {
    pub(crate) row: i64,
    pub(crate) room: String,
    pub(crate) first_id: MessageId,
}

impl Unfolded {
    pub(crate) fn behind(sequence: u64) -> Unfolded {
        Unfolded { sequence, ..Unfolded::default() }
    }

    /// Collects what a segment has of records that are not folded.
    pub(crate) fn add(&mut self, row: i64, segment: &Segment) {
        let mut at = 0;
        for run in &segment.runs {
            let lines = &segment.lines[at..at + run.line_bytes as usize];
            at += run.line_bytes as usize;
            if run.id.sequence <= self.sequence {
                continue;
            }
            if self.len >= UNFOLDED_RUNS_MAX {
                self.are_too_many = true;
                return;
            }
            self.len += 1;
            let piece = Piece {
                row,
                ordinal: run.id.ordinal,
                message_count: run.message_count,
                unix_ms: run.unix_ms,
                lines_checksum: crc32c::crc32c(lines),
            };
            self.runs.entry((run.id.sequence, segment.room.clone())).or_default().push(piece);
        }
    }

    /// Drops what has been folded meanwhile.
    pub(crate) fn folded(&mut self, sequence: u64) {
        self.sequence = self.sequence.max(sequence);
        self.runs = self.runs.split_off(&(self.sequence.saturating_add(1), String::new()));
    }

    /// Compares what was collected of a record with it, and returns how many messages of it that was.
    pub(crate) fn compare(&mut self, record: &Record<'_>, contradictions: &mut Vec<Contradiction>) -> u64 {
        let mut message_count = 0;
        for section in record.sections() {
            let Some(pieces) = self.runs.remove(&(record.sequence(), section.room.to_owned())) else { continue };
            for piece in pieces {
                let id = MessageId { sequence: record.sequence(), ordinal: piece.ordinal };
                let lines = lines_of(section.lines, piece.ordinal, piece.message_count);
                if piece.unix_ms == record.unix_ms() && lines.is_some_and(|lines| crc32c::crc32c(lines) == piece.lines_checksum) {
                    message_count += u64::from(piece.message_count);
                } else {
                    contradictions.push(Contradiction { row: piece.row, room: section.room.to_owned(), first_id: id });
                }
            }
        }
        message_count
    }

    /// What the log has not, though it was read to its end.
    pub(crate) fn rest(&mut self, contradictions: &mut Vec<Contradiction>) {
        for ((sequence, room), pieces) in std::mem::take(&mut self.runs) {
            for piece in pieces {
                let first_id = MessageId { sequence, ordinal: piece.ordinal };
                contradictions.push(Contradiction { row: piece.row, room: room.clone(), first_id });
            }
        }
    }
}

/// Some of the lines, by their numbers.
fn lines_of(lines: &[u8], first: u32, count: u32) -> Option<&[u8]> {
    let mut ends = std::iter::once(0).chain(memchr::memchr_iter(b'\n', lines).map(|at| at + 1));
    let start = ends.nth(first as usize)?;
    let end = if count == 0 { start } else { ends.nth(count as usize - 1)? };
    lines.get(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::history::Run;

    #[test]
    fn a_million_runs_are_kept_and_one_more_is_known_to_be_there() {
        let run = |ordinal| Run { id: MessageId { sequence: 2, ordinal }, unix_ms: 0, message_count: 1, line_bytes: 0 };
        let segment = |runs| Segment { room: "lobby".to_owned(), first_number: 1, runs, lines: Vec::new() };
        let mut unfolded = Unfolded::behind(1);
        unfolded.add(1, &segment((0..1 << 20).map(run).collect()));
        assert!(!unfolded.are_too_many);
        unfolded.add(2, &segment(vec![run(1 << 20)]));
        assert!(unfolded.are_too_many);
    }
}
