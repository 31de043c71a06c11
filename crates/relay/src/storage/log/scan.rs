//! Reads the log from its first record to its last, in order, and tells the end of the log from damage.
//!
//! One record at a time is in memory. The rule: the first record that does not fit is the end, unless an intact later one exists; then the
//! log is damaged. So it is when a file is missing or has another length. Whatever the damage, what stands before it is read first, and the
//! commands of the error make a log of just that. Reading works beside a running server, which only ever writes behind the end.
//! Next: `log_end.rs`.

use super::{
    file_names::{file_name, file_numbers},
    record::{Beneath, HEADER_BYTES, Header, Invalid, Link, Record},
    window::Window,
};
use crate::storage::{
    disk::{Access, Disk},
    error::{OpenError, open_error, quoted},
    limits::RECORD_ALIGNMENT_BYTES,
};
use std::{cmp::Ordering, sync::Arc};

/// A walk over the records of a log, and where it stands.
pub(crate) struct Scan {
    pub(crate) window: Window,
    pub(crate) file_bytes: u64,
    /// Where the next record is looked for first.
    pub(crate) next: Place,
    pub(crate) sequence: u64,
    pub(crate) previous_checksum: u32,
    /// The last record: where it stands, its length with padding, what it was written over.
    pub(crate) last: Option<(Place, u64, Beneath)>,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file_number: u64,
    pub(crate) offset: u64,
}

impl Scan {
    /// Stands before the first record of the log whose files are all `file_bytes` long.
    pub(crate) fn start(disk: Arc<dyn Disk>, file_bytes: u64) -> Scan {
        let next = Place { file_number: 1, offset: 0 };
        Scan { window: Window::new(disk), file_bytes, next, sequence: 1, previous_checksum: 0, last: None }
    }

    /// The next record, or `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// The log is damaged here, or cannot be read.
    pub(crate) fn next_record(&mut self) -> Result<Option<Record<'_>>, OpenError> {
        let Some(header) = self.advance()? else { return Ok(None) };
        let offset = self.last.map_or(0, |(place, _, _)| place.offset);
        let bytes = self.window.bytes(offset, header.record_bytes())?;
        Ok(Some(header.trusted(bytes)))
    }

    /// Where the next record may stand: behind the last one, or at the start of the next file when it was too long for that.
    pub(crate) fn next_places(&self) -> [Place; 2] {
        [self.next, Place { file_number: self.next.file_number + 1, offset: 0 }]
    }

    pub(crate) fn link(&self, file_number: u64) -> Link {
        Link { file_number, sequence: self.sequence, previous_checksum: self.previous_checksum }
    }

    /// What to say when the log is wrong at `place`: the commands keep what was read, so all that stands before the next record.
    pub(crate) fn damaged(&self, place: Place, reason: String) -> OpenError {
        let path = self.window.disk().path().join(file_name(place.file_number));
        match self.way_out() {
            Ok(way_out) => OpenError::Damaged { path, offset: place.offset, reason, way_out },
            Err(error) => error,
        }
    }

    /// Steps over the next record and returns its header.
    fn advance(&mut self) -> Result<Option<Header>, OpenError> {
        let found = match self.step()? {
            Ok(header) => return Ok(Some(header)),
            Err(found) => found,
        };
        self.check_files()?;
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
                    self.last = Some((place, header.padded_bytes(), header.beneath));
                    self.next = Place { offset: place.offset + header.padded_bytes(), ..place };
                    self.sequence += 1;
                    self.previous_checksum = header.checksum;
                    return Ok(Ok(header));
                }
                Err(invalid) => *found = invalid,
            }
        }
        Ok(Err(found))
    }

    /// Finds an intact record that was written after the one that is looked for, and its sequence. Stale ones of a reused file have lower
    /// sequences.
    fn later_record(&mut self) -> Result<Option<(Place, u64)>, OpenError> {
        for file_number in file_numbers(self.window.disk().as_ref())? {
            if file_number < self.next.file_number || !self.window.select(file_number)? {
                continue;
            }
            let mut offset = if file_number == self.next.file_number { self.next.offset } else { 0 };
            while offset < self.file_bytes {
                let (place, sequence) = (Place { file_number, offset }, self.sequence);
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
        let is_gap = later == next_file && later_sequence > self.sequence && behind.offset < self.file_bytes;
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

    /// Files carry the numbers 1, 2, 3, .. and have the length that they were made with: neither relay nor a power cut changes that.
    fn check_files(&self) -> Result<(), OpenError> {
        for (number, expected) in file_numbers(self.window.disk().as_ref())?.into_iter().zip(1..) {
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
        Ok(())
    }

    /// The commands after which the log ends where reading it came to, in files that are all there and all of one length.
    fn way_out(&self) -> Result<String, OpenError> {
        let disk = self.window.disk();
        let Place { file_number, offset } = self.next;
        let file_bytes = self.file_bytes;
        let mut commands = Vec::new();
        for number in file_numbers(disk.as_ref())? {
            let path = quoted(&disk.path().join(file_name(number)));
            match number.cmp(&file_number) {
                Ordering::Less if self.byte_count(number)? == file_bytes => {}
                Ordering::Less => commands.push(format!("truncate -s {file_bytes} {path}")),
                Ordering::Equal => commands.push(format!("truncate -s {offset} {path} && truncate -s {file_bytes} {path}")),
                Ordering::Greater => commands.push(format!("rm {path}")),
            }
        }
        let log = quoted(disk.path());
        Ok(format!("to start with what stands before, keep a copy of {log} and run `{}`", commands.join(" && ")))
    }

    fn byte_count(&self, file_number: u64) -> Result<u64, OpenError> {
        let (disk, name) = (self.window.disk(), file_name(file_number));
        let opened = disk.open(&name, Access::Read);
        opened.and_then(|file| file.byte_count()).map_err(open_error("opening", disk.path().join(name)))
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "way_out_tests.rs"]
mod way_out_tests;
