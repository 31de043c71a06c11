//! The rows of a history that cannot all be found through its trees, collected from its pages, and what the log still has between them.
//!
//! Every page is looked at, those that SQLite has freed as well, so that messages may come back that were deleted because of their age or
//! to make room. Of a row and an older version of it the one is left that has more. Holds an entry of some dozen bytes for each row, and
//! reads a row again when its turn has come; costs two reads of the file. Next: `salvage.rs`.

use super::{
    page_scan::{Found, cell_count, row},
    report::{Progress, Watch},
    room_reader::{behind, section, segment_of},
};
use crate::storage::{
    disk::{Access, Disk, DiskFile},
    error::{OpenError, open_error},
    folder::HISTORY,
    history::{PAGE_BYTES, Segment, check_page},
    log::{self, Salvage, Salvaged, StoredSection},
    position::{LogPosition, MessageId},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::Arc,
};

/// What was found.
pub(crate) struct Scattered {
    file: Box<dyn DiskFile>,
    /// By room, in the order of their first messages.
    rooms: BTreeMap<String, Vec<Piece>>,
    rows: BTreeSet<i64>,
    /// Up to where the log is in the history, if that could be read.
    pub(crate) folded: Option<LogPosition>,
    /// Pages that may have held rows and are not as they were written; of how many.
    pub(crate) wrong_page_count: u64,
    pub(crate) page_count: u64,
    /// From this commit on the log has everything that is folded; `u64::MAX` when it does not reach so far.
    pub(crate) log_whole_from: u64,
}

/// Consecutive messages of a room.
struct Piece {
    first_id: MessageId,
    last_id: MessageId,
    /// The numbers in the room of its first message and of the one behind its last; `None` in the log.
    numbers: Option<(u64, u64)>,
    place: Place,
}

#[derive(Clone, Copy)]
enum Place {
    Cell { page: u32, cell: u16 },
    Record(log::Place),
}

/// Messages of a room that are in no piece, told by their numbers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hole {
    pub(crate) room: String,
    /// The first message of the row before it, and the last one.
    pub(crate) from: MessageId,
    pub(crate) after: MessageId,
    pub(crate) before: MessageId,
    pub(crate) message_count: u64,
}

impl Scattered {
    /// Looks at every page of history.db on this disk; `None` if there is no such file.
    pub(crate) fn find(disk: &dyn Disk, watch: &mut Watch<'_>) -> Result<Option<Scattered>, OpenError> {
        let path = disk.path().join(HISTORY);
        let file = match disk.open(HISTORY, Access::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(open_error("opening", path)(error)),
        };
        let page_count = file.byte_count().map_err(open_error("looking at", path))?.div_ceil(PAGE_BYTES as u64);
        let (rooms, rows) = (BTreeMap::new(), BTreeSet::new());
        let mut scattered = Scattered { file, rooms, rows, folded: None, wrong_page_count: 0, page_count, log_whole_from: u64::MAX };
        for number in 1..=u32::try_from(page_count).unwrap_or(u32::MAX) {
            scattered.look_at(number);
            watch(Progress { what: "looking at pages", done: u64::from(number), total: page_count });
        }
        scattered.rooms.values_mut().for_each(sort);
        // The file may have been cut off.
        let first = read_page(scattered.file.as_ref(), 1).filter(|page| page.starts_with(b"SQLite format 3\0"));
        let declared = first.and_then(|page| page.get(28..)?.first_chunk().copied());
        let declared = u64::from(declared.map_or(0, u32::from_be_bytes));
        scattered.wrong_page_count += declared.saturating_sub(page_count);
        scattered.page_count = page_count.max(declared);
        Ok(Some(scattered))
    }

    /// Adds what the log has up to `folded`, as far as no row has it; without such a place, what it has between rows.
    pub(crate) fn add_log(&mut self, log: &Arc<dyn Disk>, file_bytes: u64) -> Result<(), OpenError> {
        let mut salvage = Salvage::start(log.clone(), file_bytes, LogPosition::START)?;
        let mut added: Vec<(String, Piece)> = Vec::new();
        let (mut whole_from, mut last) = (u64::MAX, 0);
        while let Some(salvaged) = salvage.next()? {
            let (sequence, sections) = match salvaged {
                Salvaged::Gap(_) => {
                    whole_from = u64::MAX;
                    continue;
                }
                Salvaged::Record(record) if self.folded.is_some_and(|folded| record.sequence() > folded.sequence) => break,
                Salvaged::Record(record) => {
                    let of_room = |section: StoredSection<'_>| segment_of(&record, section.room, section.message_count, section.lines);
                    (record.sequence(), record.sections().map(of_room).collect::<Vec<Segment>>())
                }
            };
            last = sequence;
            whole_from = whole_from.min(sequence);
            let place = Place::Record(salvage.record_start());
            for section in sections {
                let (first_id, last_id) = (section.first_id(), section.last_id());
                let is_behind = self.folded.is_none() && self.last_id(&section.room).is_none_or(|last| first_id > last);
                if section.check().is_ok() && !is_behind && !self.covers(&section.room, first_id, last_id) {
                    added.push((section.room, Piece { first_id, last_id, numbers: None, place }));
                }
            }
        }
        if self.folded.is_some_and(|folded| folded.sequence == last) {
            self.log_whole_from = whole_from;
        }
        for (room, piece) in added {
            self.rooms.entry(room).or_default().push(piece);
        }
        self.rooms.values_mut().for_each(sort);
        Ok(())
    }

    /// Gives `take` everything, by room and in order, and `lose` what is missing between.
    pub(crate) fn take_all(
        &self,
        log: &Arc<dyn Disk>,
        file_bytes: u64,
        take: &mut dyn FnMut(Segment) -> Result<(), OpenError>,
        lose: &mut dyn FnMut(Hole),
        watch: &mut Watch<'_>,
    ) -> Result<(), OpenError> {
        let (mut done, total) = (0, self.rooms.values().map(|pieces| pieces.len() as u64).sum());
        for (room, pieces) in &self.rooms {
            // The last row, and how many messages of the log came since.
            let mut last_row: Option<&Piece> = None;
            let mut last_id: Option<MessageId> = None;
            let mut since = 0;
            for piece in pieces {
                let segment = match piece.place {
                    Place::Cell { page, cell } => self.segment(page, cell),
                    Place::Record(place) => section_at(log, file_bytes, place, room)?,
                };
                done += 1;
                watch(Progress { what: "reading rooms", done, total });
                let Some(segment) = segment else { continue };
                let overlap = last_id.map_or(0, |last_id| segment.cursor().count_up_to(last_id));
                match piece.numbers {
                    None => since += u64::from(segment.message_count() - overlap),
                    Some((first_number, _)) => {
                        let first_number = first_number.saturating_add(u64::from(overlap));
                        if let Some(row) = last_row {
                            let message_count = first_number.saturating_sub(row.end_number()).saturating_sub(since);
                            let (from, after, before) = (row.first_id, row.last_id, piece.first_id);
                            if message_count > 0 {
                                lose(Hole { room: room.clone(), from, after, before, message_count });
                            }
                        }
                        (last_row, since) = (Some(piece), 0);
                    }
                }
                let rest = behind(segment, last_id);
                last_id = last_id.max(Some(piece.last_id));
                rest.map_or(Ok(()), &mut *take)?;
            }
        }
        Ok(())
    }

    pub(crate) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Whether there was a row of this id.
    pub(crate) fn has_row(&self, row: i64) -> bool {
        self.rows.contains(&row)
    }

    /// Whether rows of the room stand before and behind this message, so that what is missing between them is known.
    pub(crate) fn is_between_rows(&self, room: &str, id: MessageId) -> bool {
        let mut rows = self.rooms.get(room).into_iter().flatten().filter(|piece| piece.numbers.is_some());
        rows.next().is_some_and(|row| row.first_id <= id) && rows.next_back().is_some_and(|row| row.first_id > id)
    }

    /// The last message that there is of a room.
    pub(crate) fn last_id(&self, room: &str) -> Option<MessageId> {
        self.rooms.get(room)?.last().map(|piece| piece.last_id)
    }

    /// The last commit of which there is a message.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.rooms.values().filter_map(|pieces| pieces.last()).map(|piece| piece.last_id.sequence).max().unwrap_or(0)
    }

    fn covers(&self, room: &str, first_id: MessageId, last_id: MessageId) -> bool {
        let Some(pieces) = self.rooms.get(room) else { return false };
        let end = pieces.partition_point(|piece| piece.first_id <= first_id);
        pieces[..end].last().is_some_and(|piece| piece.last_id >= last_id)
    }

    fn look_at(&mut self, number: u32) {
        let page = read_page(self.file.as_ref(), number);
        // The first page holds the names of tables.
        let is_right = page.as_ref().is_some_and(|page| page.first_chunk().is_some_and(|page| check_page(page, number).is_ok()));
        self.wrong_page_count += u64::from(!is_right && number > 1);
        let Some(page) = page else { return };
        for cell in 0..cell_count(&page, number) {
            match row(&page, number, cell, &mut |number| read_page(self.file.as_ref(), number)) {
                Some(Found::Segment(stored)) => {
                    let segment = stored.segment;
                    self.rows.insert(stored.row);
                    let (first_id, last_id) = (segment.first_id(), segment.last_id());
                    let numbers = Some((segment.first_number, segment.end_number()));
                    let piece = Piece { first_id, last_id, numbers, place: Place::Cell { page: number, cell } };
                    self.rooms.entry(segment.room).or_default().push(piece);
                }
                Some(Found::Folded(position)) if self.folded.is_none_or(|folded| folded.sequence < position.sequence) => {
                    self.folded = Some(position);
                }
                _ => {}
            }
        }
    }

    fn segment(&self, page: u32, cell: u16) -> Option<Segment> {
        match row(&read_page(self.file.as_ref(), page)?, page, cell, &mut |number| read_page(self.file.as_ref(), number))? {
            Found::Segment(stored) => Some(stored.segment),
            Found::Folded(_) => None,
        }
    }
}

impl Piece {
    fn end_number(&self) -> u64 {
        self.numbers.map_or(0, |(_, end_number)| end_number)
    }
}

/// Drops what another one has too, so that the rest is in order by its last messages as well.
fn sort(pieces: &mut Vec<Piece>) {
    pieces.sort_by_key(|piece| (piece.first_id, std::cmp::Reverse(piece.last_id)));
    let mut last_id = None;
    pieces.retain(|piece| {
        let is_new = last_id < Some(piece.last_id);
        last_id = last_id.max(Some(piece.last_id));
        is_new
    });
}

/// What the record at this place has of a room.
fn section_at(log: &Arc<dyn Disk>, file_bytes: u64, place: log::Place, room: &str) -> Result<Option<Segment>, OpenError> {
    let log::Place { file_number, offset } = place;
    // Nothing is known of what was before; it is named as missing first.
    let mut salvage = Salvage::start(log.clone(), file_bytes, LogPosition { file_number, offset, ..LogPosition::START })?;
    while let Some(salvaged) = salvage.next()? {
        if let Salvaged::Record(record) = salvaged {
            return Ok(section(&record, room));
        }
    }
    Ok(None)
}

/// A whole page; `None` for one that is not there or cannot be read.
fn read_page(file: &dyn DiskFile, number: u32) -> Option<Vec<u8>> {
    let offset = u64::from(number).checked_sub(1)? * PAGE_BYTES as u64;
    let mut page = vec![0; PAGE_BYTES];
    let mut filled = 0;
    while filled < PAGE_BYTES {
        match file.read_at(&mut page[filled..], offset + filled as u64) {
            Ok(0) => return None,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(page)
}

#[cfg(test)]
#[path = "scattered_tests.rs"]
mod tests;
