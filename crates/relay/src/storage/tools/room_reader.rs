//! All messages of one room in their order, from the history and then from the log, beside a server that commits, folds and uses log files
//! again meanwhile: `relay history ROOM`, and what `relay export ROOM` reads.
//!
//! No message is left out or shown twice: the log is read from the place that `folded` named before the history had no more; and when the
//! file that is read has been folded and used again meanwhile, `folded` has passed it, and reading goes on in the history behind the last
//! message it has. Holds one segment or one record. Writes nothing. Next: `export.rs`.

use super::source::{History, Source};
use crate::storage::{
    error::{HistoryError, OpenError},
    history::{Run, Segment},
    log::{Record, Scan},
    position::MessageId,
};
use std::{io::Write, path::Path};
#[cfg(test)]
use {crate::storage::disk::Disk, std::sync::Arc};

/// Writes every stored message of `room` to `out`, oldest first, as the `MESSAGE <name> <text>` lines that were broadcast. Returns their
/// number.
///
/// `out` gets few and large writes. A record that is being written at the moment is left out.
///
/// # Errors
///
/// [`HistoryError::RoomNotFound`] when nothing was ever stored in the room; [`HistoryError::Stored`] when there is no data, or it is
/// damaged, after what stands before the damage; [`HistoryError::Output`] when `out` refuses.
pub fn print_history(data_dir: &Path, room: &str, out: &mut dyn Write) -> Result<u64, HistoryError> {
    print_from(Source::open(data_dir)?, room, out)
}

fn print_from(source: Source, room: &str, out: &mut dyn Write) -> Result<u64, HistoryError> {
    let printed = each_segment(source, room, &mut |segment| out.write_all(&segment.lines).map_err(HistoryError::Output));
    // Also what stands before damage.
    out.flush().map_err(HistoryError::Output)?;
    printed
}

/// The same from a disk in memory that has both stores.
#[cfg(test)]
pub(crate) fn print_room(disk: Arc<dyn Disk>, file_bytes: u64, room: &str, out: &mut dyn Write) -> Result<u64, HistoryError> {
    print_from(Source { data_dir: "memory".into(), disk: disk.clone(), log: disk, file_bytes }, room, out)
}

/// Shows `visit` all messages of a room, and returns their number.
///
/// # Errors
///
/// Those of `visit`; and those of reading, after what could be read.
pub(crate) fn each_segment(
    source: Source,
    room: &str,
    visit: &mut dyn FnMut(&Segment) -> Result<(), HistoryError>,
) -> Result<u64, HistoryError> {
    let mut message_count = 0;
    let mut reader = RoomReader::new(source, room);
    while let Some(segment) = reader.next()? {
        visit(&segment)?;
        message_count += u64::from(segment.message_count());
    }
    if message_count == 0 { Err(HistoryError::RoomNotFound { room: room.to_owned() }) } else { Ok(message_count) }
}

/// A walk over the messages of a room.
pub(crate) struct RoomReader {
    source: Source,
    room: String,
    /// The last message that was returned.
    after: Option<MessageId>,
    /// `None` until it is needed, and as long as there is no history.
    history: Option<History>,
    /// Where it stands in the log; `None` while there is more in the history.
    scan: Option<Scan>,
}

impl RoomReader {
    pub(crate) fn new(source: Source, room: &str) -> RoomReader {
        RoomReader { source, room: room.to_owned(), after: None, history: None, scan: None }
    }

    /// Messages that follow those before; `None` at the end, after which it may be asked again.
    ///
    /// # Errors
    ///
    /// What is stored is damaged here, or cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<Segment>, OpenError> {
        loop {
            let Some(scan) = &mut self.scan else {
                // In this order: what is folded after the first question is found by the second one, or it is still in the log.
                let folded = self.source.folded(&mut self.history)?;
                if let Some(segment) = self.next_in_history()? {
                    return Ok(Some(segment));
                }
                self.scan = Some(Scan::start(self.source.log.clone(), self.source.file_bytes, folded));
                continue;
            };
            let end = match scan.next_record() {
                Ok(Some(record)) => match section(&record, &self.room).and_then(|section| behind(section, self.after)) {
                    Some(segment) => {
                        self.after = Some(segment.last_id());
                        return Ok(Some(segment));
                    }
                    None => continue,
                },
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            let file_number = scan.position().file_number;
            if self.source.folded(&mut self.history)?.file_number <= file_number {
                return end;
            }
            self.scan = None;
        }
    }

    fn next_in_history(&mut self) -> Result<Option<Segment>, OpenError> {
        let Some(history) = &self.history else { return Ok(None) };
        let stored = history.ask(|database| database.segment_of_room_after(&self.room, self.after))?;
        let segment = stored.and_then(|stored| behind(stored.segment, self.after));
        if let Some(segment) = &segment {
            self.after = Some(segment.last_id());
        }
        Ok(segment)
    }
}

/// What a record holds of a room.
pub(crate) fn section(record: &Record<'_>, room: &str) -> Option<Segment> {
    let section = record.sections().find(|section| section.room == room)?;
    Some(segment_of(record, section.room, section.message_count, section.lines))
}

/// A section of a record as a segment. Its number in the room is not known.
pub(crate) fn segment_of(record: &Record<'_>, room: &str, message_count: u32, lines: &[u8]) -> Segment {
    let mut segment = Segment::new(room, 1);
    let id = MessageId { sequence: record.sequence(), ordinal: 0 };
    segment.runs.push(Run { id, unix_ms: record.unix_ms(), message_count, line_bytes: lines.len() as u32 });
    segment.lines.extend_from_slice(lines);
    segment
}

/// The messages of a segment behind this one.
pub(crate) fn behind(segment: Segment, after: Option<MessageId>) -> Option<Segment> {
    match after {
        Some(after) if segment.first_id() <= after => segment.after(after),
        _ => Some(segment),
    }
}

#[cfg(test)]
#[path = "room_reader_tests.rs"]
mod tests;
