//! Reads the log from its first record to its last, in order, and tells the end of the log from damage.
//!
//! One record at a time is in memory. The rule: the first record that does not fit is the end, unless an intact later one exists; then the
//! log is damaged. Reading works beside a running server, which only ever writes behind the end. Next: `log_end.rs`.

use super::{
    disk::{Access, Disk},
    error::{OpenError, open_error},
    file_names::{file_name, file_numbers},
    limits::RECORD_ALIGNMENT_BYTES,
    record::{Beneath, HEADER_BYTES, Header, Invalid, Link, Record},
    window::Window,
};
use std::sync::Arc;

/// A walk over the records of a log, and where it stands.
pub(super) struct Scan {
    pub(super) window: Window,
    pub(super) file_bytes: u64,
    /// Where the next record is looked for first.
    pub(super) next: Place,
    pub(super) sequence: u64,
    pub(super) previous_checksum: u32,
    /// The last record: where it stands, its length with padding, what it was written over.
    pub(super) last: Option<(Place, u64, Beneath)>,
}

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file_number: u64,
    pub(super) offset: u64,
}

impl Scan {
    /// Stands before the first record of the log whose files are all `file_bytes` long.
    ///
    /// # Errors
    ///
    /// A file is missing, or has another length than it was made with.
    pub(super) fn start(disk: Arc<dyn Disk>, file_bytes: u64) -> Result<Scan, OpenError> {
        check_files(disk.as_ref(), file_bytes)?;
        let next = Place { file_number: 1, offset: 0 };
        Ok(Scan { window: Window::new(disk), file_bytes, next, sequence: 1, previous_checksum: 0, last: None })
    }

    /// The next record, or `None` at the end of the log.
    ///
    /// # Errors
    ///
    /// The log is damaged here, or cannot be read.
    pub(super) fn next_record(&mut self) -> Result<Option<Record<'_>>, OpenError> {
        let Some(header) = self.advance()? else { return Ok(None) };
        let offset = self.last.map_or(0, |(place, _, _)| place.offset);
        let bytes = self.window.bytes(offset, header.record_bytes())?;
        Ok(Some(header.trusted(bytes)))
    }

    /// Where the next record may stand: behind the last one, or at the start of the next file when it was too long for that.
    pub(super) fn next_places(&self) -> [Place; 2] {
        [self.next, Place { file_number: self.next.file_number + 1, offset: 0 }]
    }

    pub(super) fn link(&self, file_number: u64) -> Link {
        Link { file_number, sequence: self.sequence, previous_checksum: self.previous_checksum }
    }

    pub(super) fn damaged(&self, place: Place, reason: String) -> OpenError {
        let log = self.window.disk().path();
        let path = log.join(file_name(place.file_number));
        let Place { file_number, offset } = place;
        let way_out = format!(
            "to give up what follows, keep a copy of {log} and run `truncate -s {offset} {path} && truncate -s {bytes} {path}`, then \
             delete the log files after number {file_number}",
            log = log.display(),
            path = path.display(),
            bytes = self.file_bytes,
        );
        OpenError::Damaged { path, offset, reason, way_out }
    }

    /// Steps over the next record and returns its header.
    fn advance(&mut self) -> Result<Option<Header>, OpenError> {
        let (place, invalid) = match self.step()? {
            Ok(header) => return Ok(Some(header)),
            Err(verdict) => verdict,
        };
        let Some(later) = self.later_record()? else {
            let Invalid::Version(version) = invalid else { return Ok(None) };
            let path = self.window.disk().path().join(file_name(place.file_number));
            return Err(OpenError::NewerFormat { path, offset: place.offset, version });
        };
        // Beside a running server the record may have been in the making at the first look; it was complete before the later one was begun.
        self.window.forget();
        match self.step()? {
            Ok(header) => Ok(Some(header)),
            Err((place, invalid)) => {
                let later = format!("{} at offset {}", file_name(later.file_number), later.offset);
                Err(self.damaged(place, format!("{invalid}, but a later record is intact ({later})")))
            }
        }
    }

    /// Steps over the record at one of the next places, or says what stands there instead.
    fn step(&mut self) -> Result<Result<Header, (Place, Invalid)>, OpenError> {
        let mut verdict = (self.next, Invalid::NoRecord);
        for place in self.next_places() {
            if !self.window.select(place.file_number)? {
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
                // What stands at the first place says more than what stands at the second, unless it is nothing.
                Err(invalid) if verdict.1 == Invalid::NoRecord => verdict = (place, invalid),
                Err(_) => {}
            }
        }
        Ok(Err(verdict))
    }

    /// Finds an intact record that was written after the one that is looked for. Stale ones of a reused file have lower sequences.
    fn later_record(&mut self) -> Result<Option<Place>, OpenError> {
        for file_number in file_numbers(self.window.disk().as_ref())? {
            if file_number < self.next.file_number || !self.window.select(file_number)? {
                continue;
            }
            let mut offset = if file_number == self.next.file_number { self.next.offset } else { 0 };
            while offset < self.file_bytes {
                let (place, sequence) = (Place { file_number, offset }, self.sequence);
                if self.check(place, |header| header.sequence >= sequence)?.is_ok() {
                    return Ok(Some(place));
                }
                offset += RECORD_ALIGNMENT_BYTES;
            }
        }
        Ok(None)
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
}

/// Files carry the numbers 1, 2, 3, .. and have the length that they were made with; nothing that relay or a power cut does changes that.
fn check_files(disk: &dyn Disk, file_bytes: u64) -> Result<(), OpenError> {
    for (number, expected) in file_numbers(disk)?.into_iter().zip(1..) {
        if number != expected {
            let path = disk.path().join(file_name(expected));
            let reason = format!("the file is missing, though {} is there", file_name(number));
            let way_out = format!("or put back {}", path.display());
            return Err(OpenError::Damaged { path, offset: 0, reason, way_out });
        }
        let path = disk.path().join(file_name(number));
        let opened = disk.open(&file_name(number), Access::Read);
        let byte_count = opened.and_then(|file| file.byte_count()).map_err(open_error("opening", &path))?;
        if byte_count != file_bytes {
            let reason = format!("the file is {byte_count} bytes long instead of {file_bytes}");
            let way_out = format!("to start with what it holds, keep a copy and run `truncate -s {file_bytes} {}`", path.display());
            return Err(OpenError::Damaged { path, offset: byte_count.min(file_bytes), reason, way_out });
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
