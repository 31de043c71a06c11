//! Reads the log from a position on, record by record, and tells the end of the log from damage.
//!
//! One record at a time is in memory. The rule: the first record that does not fit is the end, unless an intact later one exists; then the
//! log is damaged. So it is when a file is missing or has another length. Whatever the damage, what stands before it is read first. Files
//! below the one that is read are of no concern: they are waiting to be used again, or are being overwritten.
//!
//! Who may read beside a server, which writes behind the end and uses files again whose records are in the history:
//!
//! - The server's own archive, which knows what is committed: [`Scan::next_record_up_to`] looks at nothing else.
//! - Another process, which does not: [`Scan::next_record`] leaves out what is being written. If the file that it stands in is used again
//!   meanwhile, the chain breaks (other numbers, other checksums) and the file's name is gone, so the answer is an error, never wrong data
//!   and never the end. It is no damage if the history has come further meanwhile than the file of [`Scan::position`].
//!
//! Next: `log_end.rs`.

use super::{
    file_names::{file_name, file_numbers},
    record::{HEADER_BYTES, Header, Invalid, Link, Record},
    window::Window,
};
use crate::storage::{
    disk::{Access, Disk},
    error::{OpenError, open_error},
    folder::data_dir_of,
    limits::{RECORD_ALIGNMENT_BYTES, RECORD_BYTES_MAX},
    position::LogPosition,
};
use std::sync::Arc;

/// A walk over the records of a log, and where it stands.
pub(crate) struct Scan {
    pub(crate) window: Window,
    pub(crate) file_bytes: u64,
    /// Behind the last record; the next one stands here, or at the start of the next file when it was too long for that.
    position: LogPosition,
    /// The last record that this walk has read: where it stands, and its length with padding.
    pub(crate) last: Option<(Place, u64)>,
    /// What the window holds was read when everything up to this record was known to be committed.
    committed: u64,
    /// Nothing is read behind this file.
    last_file_number: u64,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file_number: u64,
    pub(crate) offset: u64,
}

impl Scan {
    /// Stands at `position` of the log whose files are all `file_bytes` long.
    pub(crate) fn start(disk: Arc<dyn Disk>, file_bytes: u64, position: LogPosition) -> Scan {
        Scan { window: Window::new(disk), file_bytes, position, last: None, committed: position.sequence, last_file_number: u64::MAX }
    }

    /// Ends behind this file, for readers beside a server: they would run after one that writes as fast as they read.
    pub(crate) fn until_file(self, last_file_number: u64) -> Scan {
        Scan { last_file_number, ..self }
    }

    /// Whether the log may go on behind the last file that is read.
    pub(crate) fn is_at_its_bound(&self) -> bool {
        self.position.file_number > self.last_file_number
    }

    /// Behind the last record that was returned.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Checks that the record before this place stands there: a history and a log of different times do not fit together.
    ///
    /// # Errors
    ///
    /// It is another record, or none.
    pub(crate) fn check_position(&mut self) -> Result<(), OpenError> {
        let LogPosition { sequence, checksum, file_number, offset } = self.position;
        if offset == 0 {
            return Ok(());
        }
        if !self.window.select(file_number)? {
            // Missing files are another check's.
            return Ok(());
        }
        // The record is as long as this place is behind its beginning.
        let lengths = (RECORD_ALIGNMENT_BYTES..=offset.min(RECORD_BYTES_MAX)).step_by(RECORD_ALIGNMENT_BYTES as usize);
        for record_bytes in lengths {
            let header = Header::read(self.window.bytes(offset - record_bytes, HEADER_BYTES)?);
            if header.is_ok_and(|header| (header.sequence, header.checksum, header.padded_bytes()) == (sequence, checksum, record_bytes)) {
                self.window.forget();
                return Ok(());
            }
        }
        let reason = format!(
            "the history goes on behind record {sequence}, which does not end here: it has decayed, or they are of different times"
        );
        Err(self.damaged(Place { file_number, offset }, reason))
    }

    /// The next record, or `None` at the end of the log as it was when this place was read. May be asked again then.
    ///
    /// # Errors
    ///
    /// The log is damaged here, or cannot be read; or the file was used again (see above).
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'_>>, OpenError> {
        if self.is_at_its_bound() {
            return Ok(None);
        }
        match self.advance()? {
            Some(header) => self.record(header).map(Some),
            None => {
                self.window.forget();
                Ok(None)
            }
        }
    }

    /// The next record if it is among those up to `committed`, which are known to be durable. Costs nothing if it is not.
    ///
    /// # Errors
    ///
    /// The record is not there, so the log is damaged; or it cannot be read.
    pub(crate) fn next_record_up_to(&mut self, committed: u64) -> Result<Option<Record<'_>>, OpenError> {
        if self.position.sequence >= committed {
            return Ok(None);
        }
        if self.position.sequence >= self.committed {
            // The window may have seen this record in the making, or nothing yet.
            self.window.forget();
            self.committed = committed;
        }
        match self.step()? {
            Ok(header) => self.record(header).map(Some),
            Err([behind, next_file]) => {
                self.check_files(self.position.file_number)?;
                let [place, next_place] = self.next_places();
                let is_file_over = behind == Invalid::NoRecord && (next_file != Invalid::NoRecord || place.offset >= self.file_bytes);
                let (place, invalid) = if is_file_over { (next_place, next_file) } else { (place, behind) };
                Err(self.damaged(place, format!("{invalid}, but record {} was committed", self.sequence())))
            }
        }
    }

    /// Where the next record may stand: behind the last one, or at the start of the next file when it was too long for that.
    pub(crate) fn next_places(&self) -> [Place; 2] {
        let LogPosition { file_number, offset, .. } = self.position;
        [Place { file_number, offset }, Place { file_number: file_number.saturating_add(1), offset: 0 }]
    }

    pub(crate) fn link(&self, file_number: u64) -> Link {
        Link { file_number, sequence: self.sequence(), previous_checksum: self.position.checksum }
    }

    /// What to say when the log is wrong at `place`.
    pub(crate) fn damaged(&self, place: Place, reason: String) -> OpenError {
        let log_dir = self.window.disk().path();
        let data_dir = data_dir_of(log_dir).to_owned();
        OpenError::Damaged { path: log_dir.join(file_name(place.file_number)), offset: place.offset, reason, data_dir }
    }

    /// Files from `first_number` on carry numbers without gaps and have the length that they were made with: neither relay nor a power cut
    /// changes that.
    pub(crate) fn check_files(&self, first_number: u64) -> Result<(), OpenError> {
        let numbers = self.file_numbers_from(first_number)?;
        for (number, expected) in numbers.iter().copied().zip(first_number..) {
            if number != expected {
                let reason = format!("the file is missing, though {} is there", file_name(number));
                return Err(self.damaged(Place { file_number: expected, offset: 0 }, reason));
            }
            let byte_count = self.byte_count(number)?;
            if byte_count != self.file_bytes {
                let reason = format!("the file is {byte_count} bytes long instead of {}", self.file_bytes);
                return Err(self.damaged(Place { file_number: number, offset: byte_count.min(self.file_bytes) }, reason));
            }
        }
        let LogPosition { sequence, file_number, offset, .. } = self.position;
        if offset > 0 && numbers.last().is_none_or(|last| *last < file_number) {
            let reason = format!("the file is missing, though record {sequence} was written to it");
            return Err(self.damaged(Place { file_number, offset: 0 }, reason));
        }
        Ok(())
    }

    /// The sequence of the next record.
    fn sequence(&self) -> u64 {
        self.position.sequence.saturating_add(1)
    }

    /// The record that was just stepped over.
    fn record(&mut self, header: Header) -> Result<Record<'_>, OpenError> {
        let offset = self.last.map_or(0, |(place, _)| place.offset);
        let bytes = self.window.bytes(offset, header.record_bytes())?;
        Ok(header.trusted(bytes))
    }

    /// Steps over the next record and returns its header.
    fn advance(&mut self) -> Result<Option<Header>, OpenError> {
        let found = match self.step()? {
            Ok(header) => return Ok(Some(header)),
            Err(found) => found,
        };
        // After the look: a file that is used again loses its name before its content.
        self.check_files(self.position.file_number)?;
        let Some((later, sequence)) = self.later_record()? else {
            for (place, invalid) in self.next_places().into_iter().zip(found) {
                if let Invalid::Version(version) = invalid {
                    let path = self.window.disk().path().join(file_name(place.file_number));
                    return Err(OpenError::NewerFormat { path, offset: place.offset, version });
                }
            }
            return Ok(None);
        };
        // Beside a running server the record may have been in the making at the first look; it was complete before the later one was begun.
        self.window.forget();
        match self.step()? {
            Ok(header) => Ok(Some(header)),
            Err(found) => {
                let (place, invalid) = self.lost(found, later, sequence);
                let later = format!("{} at offset {}", file_name(later.file_number), later.offset);
                Err(self.damaged(place, format!("{invalid}, but a later record is intact ({later})")))
            }
        }
    }

    /// Steps over the record at one of the next places, or says what stands at each of them instead.
    fn step(&mut self) -> Result<Result<Header, [Invalid; 2]>, OpenError> {
        let mut found = [Invalid::NoRecord; 2];
        for (place, found) in self.next_places().into_iter().zip(&mut found) {
            if place.offset >= self.file_bytes || !self.window.select(place.file_number)? {
                continue;
            }
            let link = self.link(place.file_number);
            match self.check(place, |header| header.fits(&link))? {
                Ok(header) => {
                    self.last = Some((place, header.padded_bytes()));
                    self.position = LogPosition {
                        sequence: header.sequence,
                        checksum: header.checksum,
                        file_number: place.file_number,
                        offset: place.offset + header.padded_bytes(),
                    };
                    return Ok(Ok(header));
                }
                Err(invalid) => *found = invalid,
            }
        }
        Ok(Err(found))
    }

    /// Finds an intact record that was written after the one that is looked for, and its sequence.
    fn later_record(&mut self) -> Result<Option<(Place, u64)>, OpenError> {
        let [next, _] = self.next_places();
        let sequence = self.sequence();
        for file_number in self.file_numbers_from(next.file_number)? {
            if !self.window.select(file_number)? {
                continue;
            }
            let mut offset = if file_number == next.file_number { next.offset } else { 0 };
            while offset < self.file_bytes {
                let place = Place { file_number, offset };
                if let Ok(header) = self.check(place, |header| header.sequence >= sequence)? {
                    return Ok(Some((place, header.sequence)));
                }
                offset += RECORD_ALIGNMENT_BYTES;
            }
        }
        Ok(None)
    }

    /// Which of the next places lost its record, by what was found at each and at a later place.
    fn lost(&self, found: [Invalid; 2], later: Place, later_sequence: u64) -> (Place, Invalid) {
        let [behind, next_file] = self.next_places();
        // Nothing stands in the rest of this file. What stands first in the next one may be right and only lack the one before it.
        let is_file_over = found[0] == Invalid::NoRecord && later.file_number > behind.file_number;
        let is_gap = later == next_file && later_sequence > self.sequence() && behind.offset < self.file_bytes;
        if is_file_over && !is_gap { (next_file, found[1]) } else { (behind, found[0]) }
    }

    /// Judges what stands at a place of the selected file.
    fn check(&mut self, place: Place, expected: impl Fn(&Header) -> bool) -> Result<Result<Header, Invalid>, OpenError> {
        let header = match Header::read(self.window.bytes(place.offset, HEADER_BYTES)?) {
            Ok(header) if expected(&header) => header,
            Ok(_) => return Ok(Err(Invalid::OutOfPlace)),
            Err(invalid) => return Ok(Err(invalid)),
        };
        let bytes = self.window.bytes(place.offset, header.record_bytes())?;
        Ok(header.check(bytes).map(|_| header))
    }

    fn file_numbers_from(&self, first_number: u64) -> Result<Vec<u64>, OpenError> {
        let mut numbers = file_numbers(self.window.disk().as_ref())?;
        numbers.retain(|number| *number >= first_number);
        Ok(numbers)
    }

    fn byte_count(&self, file_number: u64) -> Result<u64, OpenError> {
        let (disk, name) = (self.window.disk(), file_name(file_number));
        let opened = disk.open(&name, Access::Read);
        opened.and_then(|file| file.byte_count()).map_err(open_error("opening", disk.path().join(name)))
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
pub(super) mod tests;
