//! Reads what is intact in a log that may be damaged anywhere, and says between which records something is missing.
//!
//! Every page of every file is tried as the start of a record, whatever name the file has. None is taken for one that is not: a record is
//! covered by checksums, carries its file's number, and what people write cannot look like a header. Records keep their sequences, so
//! nothing that was shown changes its place. Costs a read of all files; holds one record. Nobody may write to the log meanwhile. Next:
//! `mod.rs`.

use super::{
    file_names::{file_name, file_numbers},
    record::{HEADER_BYTES, Header, Invalid, Link, Record},
    scan::Place,
    window::Window,
};
use crate::storage::{disk::Disk, error::OpenError, limits::RECORD_ALIGNMENT_BYTES, position::LogPosition};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// A walk over all intact records from a position on.
pub(crate) struct Salvage {
    window: Window,
    file_bytes: u64,
    /// The numbers that files' records carry, and those in their names, which are others if somebody renamed them.
    files: BTreeMap<u64, u64>,
    /// The last intact record, and where the next one is looked for.
    position: LogPosition,
    /// Where the last intact record begins and ends.
    start: Place,
    behind: Place,
    /// What was skipped since that record.
    gap: Option<Gap>,
    /// An intact record that is returned after the gap before it.
    found: Option<Header>,
    /// Nothing follows in any file.
    is_over: bool,
}

/// What a salvage comes upon.
#[derive(Debug)]
pub(crate) enum Salvaged<'a> {
    Record(Record<'a>),
    Gap(Gap),
}

/// Something between two intact records, or behind the last one, that is no record or not the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// Where it begins.
    pub(crate) path: PathBuf,
    pub(crate) offset: u64,
    /// The intact records around it. There may be none after it, and then nobody knows how many are missing.
    pub(crate) after_sequence: u64,
    pub(crate) before_sequence: Option<u64>,
    /// How many messages the lost records had, as far as their headers are intact.
    pub(crate) known_messages: u64,
}

impl Gap {
    /// The records around it follow each other: what stands between is none.
    pub(crate) fn is_nothing_missing(&self) -> bool {
        self.before_sequence.is_some_and(|before| before <= self.after_sequence.saturating_add(1))
    }
}

impl Salvage {
    /// Stands at `position`, whose sequence is 0 if nothing is known of what was before.
    pub(crate) fn start(disk: Arc<dyn Disk>, file_bytes: u64, position: LogPosition) -> Result<Salvage, OpenError> {
        let mut window = Window::new(disk);
        let files = files_by_records(&mut window)?;
        let behind = Place { file_number: position.file_number, offset: position.offset };
        Ok(Salvage { window, file_bytes, files, position, start: behind, behind, gap: None, found: None, is_over: false })
    }

    /// Behind the last intact record.
    pub(crate) fn position(&self) -> LogPosition {
        let Place { file_number, offset } = self.behind;
        LogPosition { file_number, offset, ..self.position }
    }

    /// Where the record that was returned last begins.
    pub(crate) fn record_start(&self) -> Place {
        self.start
    }

    /// The next intact record, or what is missing before it; `None` at the end of all files.
    ///
    /// # Errors
    ///
    /// A file cannot be opened. One that cannot be read counts as damaged where it cannot.
    pub(crate) fn next(&mut self) -> Result<Option<Salvaged<'_>>, OpenError> {
        if self.found.is_none() && !self.is_over {
            self.found = self.find()?;
            self.is_over = self.found.is_none();
            if let Some(mut gap) = self.gap.take() {
                gap.before_sequence = self.found.map(|header| header.sequence);
                return Ok(Some(Salvaged::Gap(gap)));
            }
        }
        let Some(header) = self.found.take() else { return Ok(None) };
        let offset = self.position.offset;
        let LogPosition { file_number, .. } = self.position;
        self.start = Place { file_number, offset };
        self.behind = Place { file_number, offset: offset + header.padded_bytes() };
        let Header { sequence, checksum, .. } = header;
        self.position = LogPosition { sequence, checksum, file_number, offset: self.behind.offset };
        let bytes = self.window.bytes(offset, header.record_bytes())?;
        Ok(Some(Salvaged::Record(header.trusted(bytes))))
    }

    /// Moves to the next intact record and leaves it to be stepped over. What lies between becomes a gap.
    fn find(&mut self) -> Result<Option<Header>, OpenError> {
        loop {
            let LogPosition { file_number, offset, .. } = self.position;
            let is_there = self.window.select(self.name_of(file_number))?;
            let page = if is_there { self.look() } else { Page::End };
            match page {
                Page::Record(header) => return Ok(Some(header)),
                Page::Zeros => self.position.offset += RECORD_ALIGNMENT_BYTES,
                Page::Wrong { known_messages } => {
                    self.skip(Place { file_number, offset }, known_messages);
                    self.position.offset += RECORD_ALIGNMENT_BYTES;
                }
                Page::End => {
                    // A file has the length that it was made with, and one that has a record is there.
                    if offset < self.file_bytes && (is_there || offset > 0) {
                        self.skip(Place { file_number, offset }, 0);
                    }
                    let next = self.files.keys().copied().find(|number| *number > file_number);
                    let Some(file_number) = next else { return Ok(None) };
                    self.position = LogPosition { file_number, offset: 0, ..self.position };
                }
            }
        }
    }

    /// What stands at the position.
    fn look(&mut self) -> Page {
        let LogPosition { sequence, checksum, file_number, offset } = self.position;
        let page = match self.window.bytes(offset, RECORD_ALIGNMENT_BYTES as usize) {
            Ok([]) => return Page::End,
            Ok(page) => page,
            // A sector that cannot be read.
            Err(_) => return Page::Wrong { known_messages: 0 },
        };
        let header = match Header::read(page) {
            Ok(header) if header.file_number == file_number && header.sequence > sequence => header,
            Err(Invalid::NoRecord) if page.len() == RECORD_ALIGNMENT_BYTES as usize && page.iter().all(|byte| *byte == 0) => {
                return Page::Zeros;
            }
            _ => return Page::Wrong { known_messages: 0 },
        };
        // The record behind the last one must name it. Behind lost ones nothing can be compared; but they must have had a place, unless
        // nothing is known of what was before: a log that goes on in a backup begins with any sequence.
        let place = Place { file_number, offset };
        let lost = header.sequence - sequence - 1;
        let link = Link { file_number, sequence: header.sequence, previous_checksum: checksum };
        if (lost == 0 && !header.fits(&link)) || (sequence > 0 && lost > self.pages_up_to(place)) {
            return Page::Wrong { known_messages: 0 };
        }
        match self.window.bytes(offset, header.record_bytes()).map(|bytes| header.check(bytes).is_ok()) {
            Ok(true) => {
                // They may have left nothing that looks wrong: a file that is gone, or zeros.
                if lost > 0 {
                    self.skip(self.behind, 0);
                }
                Page::Record(header)
            }
            _ => Page::Wrong { known_messages: u64::from(header.trusted(&[]).message_count()) },
        }
    }

    /// How many records there can have been since the last intact one.
    fn pages_up_to(&self, place: Place) -> u64 {
        let bytes = |place: Place| place.file_number.saturating_mul(self.file_bytes).saturating_add(place.offset);
        bytes(place).saturating_sub(bytes(self.behind)) / RECORD_ALIGNMENT_BYTES
    }

    /// The number in the name of the file whose records carry this one.
    fn name_of(&self, file_number: u64) -> u64 {
        self.files.get(&file_number).copied().unwrap_or(file_number)
    }

    /// Notes that something is wrong here.
    fn skip(&mut self, place: Place, known_messages: u64) {
        let Place { file_number, offset } = place;
        let path = self.window.disk().path().join(file_name(self.name_of(file_number)));
        let after_sequence = self.position.sequence;
        let gap = self.gap.get_or_insert(Gap { path, offset, after_sequence, before_sequence: None, known_messages: 0 });
        gap.known_messages += known_messages;
    }
}

/// Which file is which: by the first record in it, as far as that is intact, otherwise by its name.
fn files_by_records(window: &mut Window) -> Result<BTreeMap<u64, u64>, OpenError> {
    let names = file_numbers(window.disk().as_ref())?;
    let mut files = BTreeMap::new();
    let (mut renamed, mut unknown) = (Vec::new(), Vec::new());
    for name in names.iter().copied() {
        let header = if window.select(name)? { window.bytes(0, HEADER_BYTES).ok().and_then(|page| Header::read(page).ok()) } else { None };
        match header {
            Some(header) if header.file_number == name => _ = files.insert(name, name),
            Some(header) => renamed.push((header.file_number, name)),
            None => unknown.push(name),
        }
    }
    for (number, name) in renamed {
        // One of two that say the same is a copy.
        if *files.entry(number).or_insert(name) != name {
            unknown.push(name);
        }
    }
    for name in unknown {
        // If another one is what its name says, it is perhaps what the other's name says.
        let number = std::iter::once(name).chain(names.iter().copied()).find(|number| !files.contains_key(number));
        files.insert(number.unwrap_or(name), name);
    }
    Ok(files)
}

/// What a page may be.
enum Page {
    Record(Header),
    Zeros,
    /// Behind the end of the file.
    End,
    Wrong {
        known_messages: u64,
    },
}

#[cfg(test)]
#[path = "salvage_tests.rs"]
mod tests;
