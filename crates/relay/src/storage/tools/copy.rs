//! Reads everything that was committed when it began, in the order in which it may be folded: by row, then from the log. Stops at damage.
//!
//! Works beside a server that folds and uses log files again: a row that is new has a higher id than all before it, so what was folded
//! meanwhile is found behind the last row. What was committed later is left out, so that the copy is what a crash at the beginning would
//! have left. Holds one segment or record, and a number for each room. Next: `salvage.rs`.

use super::{
    progress::{Progress, Watch},
    room_reader::{behind, segment_of},
    source::{History, Source, folded},
};
use crate::storage::{
    error::OpenError,
    history::Segment,
    log::Scan,
    position::{LogPosition, MessageId},
};
use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
};

/// What a copy gives to its target.
pub(crate) enum Copied {
    /// Messages that follow those before of their room, or repeat them.
    Messages(Segment),
    /// What was given of this room before is not to be kept: the server has deleted something behind it meanwhile.
    Forget(String),
}

/// How far a room is.
struct Given {
    last_id: MessageId,
    /// The number that its next message has, unless something before that is deleted.
    next_number: u64,
}

/// A walk over everything, in steps.
pub(crate) struct Copy {
    source: Source,
    history: Option<History>,
    /// The last commit that is copied.
    end: LogPosition,
    row: i64,
    last_row: i64,
    /// Where it stands in the log; `None` while there are more rows.
    scan: Option<Scan>,
    /// Sections of the last record that are still to be given.
    sections: Vec<Segment>,
    /// What was given of each room, by a hash of its name.
    rooms: BTreeMap<u64, Given>,
    forgotten: Option<Segment>,
}

impl Copy {
    /// Finds out what is committed by now.
    pub(crate) fn begin(source: Source) -> Result<Copy, OpenError> {
        let mut history = source.history()?;
        let end = loop {
            let mut scan = Scan::start(source.log.clone(), source.file_bytes, folded(history.as_ref())?);
            let read = loop {
                match scan.next_record() {
                    Ok(Some(_)) => {}
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            if history.is_none() {
                history = source.history()?;
            }
            if folded(history.as_ref())?.file_number <= scan.position().file_number {
                read?;
                break scan.position();
            }
        };
        Ok(Copy { source, history, end, row: 0, last_row: 0, scan: None, sections: Vec::new(), rooms: BTreeMap::new(), forgotten: None })
    }

    /// The last commit that is copied.
    pub(crate) fn end(&self) -> LogPosition {
        self.end
    }

    /// What comes next; `None` at the end.
    ///
    /// # Errors
    ///
    /// What is stored is damaged, or cannot be read.
    pub(crate) fn next(&mut self, watch: &mut Watch<'_>) -> Result<Option<Copied>, OpenError> {
        loop {
            if let Some(segment) = self.forgotten.take().or_else(|| self.sections.pop()) {
                return Ok(Some(Copied::Messages(segment)));
            }
            let Some(scan) = &mut self.scan else {
                // In this order: what is folded after the first question is found by the second one, or it is still in the log.
                if self.history.is_none() {
                    self.history = self.source.history()?;
                }
                let position = folded(self.history.as_ref())?;
                match self.next_row(watch)? {
                    Some(copied) => return Ok(Some(copied)),
                    None => self.scan = Some(Scan::start(self.source.log.clone(), self.source.file_bytes, position)),
                }
                continue;
            };
            if scan.position().sequence >= self.end.sequence {
                return Ok(None);
            }
            let read = match scan.next_record() {
                Ok(Some(record)) => {
                    for section in record.sections() {
                        let segment = segment_of(&record, section.room, section.message_count, section.lines);
                        let given = self.rooms.get(&hash(&segment.room));
                        // In a room that has nothing in the history, numbers begin at 1.
                        let next_number = given.map_or(1, |given| given.next_number);
                        if let Some(segment) = behind(segment, given.map(|given| given.last_id)) {
                            let next_number = next_number + u64::from(segment.message_count());
                            self.rooms.insert(hash(&segment.room), Given { last_id: segment.last_id(), next_number });
                            self.sections.push(segment);
                        }
                    }
                    watch(Progress { what: "copying the log", done: record.sequence(), total: self.end.sequence });
                    continue;
                }
                // What was there when this began is there, or folded.
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            let file_number = scan.position().file_number;
            if folded(self.history.as_ref())?.file_number <= file_number {
                read?;
            }
            self.scan = None;
        }
    }

    /// The next row that has something that was committed when this began.
    fn next_row(&mut self, watch: &mut Watch<'_>) -> Result<Option<Copied>, OpenError> {
        let Some(history) = &self.history else { return Ok(None) };
        while let Some(stored) = history.ask(|database| database.segment_after_row(self.row))? {
            self.row = stored.row;
            if self.row > self.last_row {
                let sql = "SELECT max(id) FROM segment";
                self.last_row =
                    history.ask(|database| Ok(database.connection().query_row(sql, [], |row| row.get::<_, Option<i64>>(0))?))?.unwrap_or(0);
            }
            watch(Progress { what: "copying rooms", done: self.row as u64, total: self.last_row as u64 });
            let Some(segment) = stored.segment.up_to(self.end.sequence) else { continue };
            let given = Given { last_id: segment.last_id(), next_number: segment.end_number() };
            let is_behind = |before: &Given| segment.last_id() <= before.last_id;
            // Numbers count without gaps, and begin again in a room of which nothing was left.
            let is_beyond = |before: &Given| segment.first_id() > before.last_id && segment.first_number != before.next_number;
            let before = self.rooms.get(&hash(&segment.room));
            if before.is_some_and(is_behind) {
                continue;
            }
            let is_missing = before.is_some_and(is_beyond);
            self.rooms.insert(hash(&segment.room), given);
            if is_missing {
                let room = segment.room.clone();
                self.forgotten = Some(segment);
                return Ok(Some(Copied::Forget(room)));
            }
            return Ok(Some(Copied::Messages(segment)));
        }
        Ok(None)
    }
}

/// Two rooms of one hash are taken for one, and then for one whose start was deleted: so the hash is a good one.
fn hash(room: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    room.hash(&mut hasher);
    hasher.finish()
}
