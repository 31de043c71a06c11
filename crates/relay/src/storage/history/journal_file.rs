//! The rollback journal, sealed: the header by a checksum of ours, each record by its page's seal and SQLite's own checksum together.
//!
//! SQLite takes a journal that it cannot read to its end for one that was never finished, and stops: a flipped byte would leave half of a
//! rollback. So nothing that a header counts is handed out unless it is right. The journal is kept from one transaction to the next, and
//! here it ends where its header says, so that older records cannot be mistaken for more. A page's image carries the seal that the page has
//! in the database, whoever rolls it back. Costs one write for each record instead of SQLite's three. Next: `sqlite_files.rs`.
//!
//! ```text
//! 0 .. 512    header: magic, record count, start of SQLite's checksums, pages in the database, sector size, page size (28 bytes), zeros,
//!             and in the last 4 bytes CRC-32C of what stands before
//! then        records of 4,104 bytes: page number, image, SQLite's checksum. All numbers but our CRC are big-endian.
//!
//! one transaction   header with magic and count zero -> records -> sync -> header with both -> sync -> pages of the database -> sync
//!                   -> header zero -> sync
//! ```
//!
//! This is all that SQLite writes as long as its cache does not spill, it syncs, and no second database is attached, which `connection.rs`
//! sees to; every other write is refused.

use super::{
    page_seal::{self, PAGE_BYTES, Page},
    reported_file::ReportedFile,
};
use crate::storage::limits::SECTOR_BYTES;
use sqlite_vfs::Error;

/// An open journal.
pub(super) struct JournalFile {
    pub(super) file: ReportedFile,
    /// What the header says, from when it was written or found to ask for a rollback, until it is done with.
    active: Option<Active>,
    /// The record whose parts are coming in, and where it will stand.
    record: Box<[u8; RECORD_BYTES]>,
    record_offset: u64,
}

/// A journal in use.
struct Active {
    header: [u8; HEADER_BYTES],
    /// Where the last of its records ends. What stands behind is of earlier transactions.
    end: u64,
}

impl JournalFile {
    pub(super) fn new(file: ReportedFile) -> JournalFile {
        JournalFile { file, active: None, record: Box::new([0; RECORD_BYTES]), record_offset: 0 }
    }

    pub(super) fn read_at(&mut self, out: &mut [u8], offset: u64) -> Result<usize, Error> {
        self.look()?;
        let Some(active) = &self.active else {
            // Nothing is to be rolled back, and SQLite asks for no more than that.
            return self.file.read_at(out, offset);
        };
        let count = active.end.saturating_sub(offset).min(out.len() as u64) as usize;
        let out = &mut out[..count];
        if offset < SECTOR_BYTES as u64 {
            for (index, byte) in out.iter_mut().enumerate() {
                *byte = active.header.get(offset as usize + index).copied().unwrap_or(0);
            }
            return Ok(count);
        }
        match part_of_record(offset, out.len()) {
            Some((Part::Image, record_offset)) => {
                let mut record = [0; RECORD_BYTES];
                self.file.read_at(&mut record, record_offset)?;
                self.check(active, &record, record_offset)?;
                out.copy_from_slice(&record[IMAGE..CHECKSUM]);
                Ok(count)
            }
            // The numbers around an image are checked with it; SQLite makes no use of them before.
            _ => self.file.read_at(out, offset),
        }
    }

    pub(super) fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        match (offset, bytes.len()) {
            (0, SECTOR_BYTES) if bytes[..MAGIC.len() + 4].iter().all(|byte| *byte == 0) => {
                let mut header = [0; HEADER_BYTES];
                header.copy_from_slice(&bytes[..HEADER_BYTES]);
                self.file.write_at(&sealed_header(&header), 0)?;
                self.active = Some(Active { header, end: SECTOR_BYTES as u64 });
                Ok(())
            }
            (0, FINISHED_BYTES) if self.active.is_some() => {
                let Some(active) = &mut self.active else { return Ok(()) };
                let mut header = active.header;
                header[..FINISHED_BYTES].copy_from_slice(bytes);
                self.file.write_at(&sealed_header(&header), 0)?;
                active.header = header;
                Ok(())
            }
            (0, HEADER_BYTES) if bytes.iter().all(|byte| *byte == 0) => {
                self.file.write_at(&[0; SECTOR_BYTES], 0)?;
                self.active = None;
                Ok(())
            }
            _ => self.write_record(bytes, offset),
        }
    }

    pub(super) fn truncate(&mut self, byte_count: u64) -> Result<(), Error> {
        self.file.truncate(byte_count)?;
        if byte_count < SECTOR_BYTES as u64 {
            self.active = None;
        }
        Ok(())
    }

    /// The length as far as there is something to be rolled back.
    pub(super) fn byte_count(&mut self) -> Result<u64, Error> {
        self.look()?;
        self.active.as_ref().map_or_else(|| self.file.byte_count(), |active| Ok(active.end))
    }

    /// Collects the parts of a record, and writes it with the last of them.
    fn write_record(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        let unexpected = || format!("writes {} bytes at offset {offset} of the journal", bytes.len());
        let Some(active) = &mut self.active else { return Err(self.file.unexpected(&unexpected())) };
        match part_of_record(offset, bytes.len()) {
            Some((Part::PageNumber, record_offset)) if record_offset == active.end => {
                self.record_offset = record_offset;
                self.record[..IMAGE].copy_from_slice(bytes);
            }
            Some((Part::Image, record_offset)) if record_offset == self.record_offset => {
                let number = number_at(self.record.as_slice(), 0);
                let mut page: Page = [0; PAGE_BYTES];
                page.copy_from_slice(bytes);
                page_seal::seal(&mut page, number);
                self.record[IMAGE..CHECKSUM].copy_from_slice(&page);
            }
            Some((Part::Checksum, record_offset)) if record_offset == self.record_offset => {
                self.record[CHECKSUM..].copy_from_slice(bytes);
                self.file.write_at(self.record.as_slice(), record_offset)?;
                active.end = record_offset + RECORD_BYTES as u64;
            }
            _ => return Err(self.file.unexpected(&unexpected())),
        }
        Ok(())
    }

    /// Finds out whether the file asks for a rollback, unless this handle knows.
    fn look(&mut self) -> Result<(), Error> {
        if self.active.is_some() {
            return Ok(());
        }
        let mut sector = [0; SECTOR_BYTES];
        self.file.read_at(&mut sector, 0)?;
        // The magic comes with the record count, after the records are on the disk. Before and after it the database is as it should be,
        // and the rest of the header may be of a write that failed half way.
        if sector[..MAGIC.len()].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let mut header = [0; HEADER_BYTES];
        header.copy_from_slice(&sector[..HEADER_BYTES]);
        if sector != sealed_header(&header) || header[..MAGIC.len()] != MAGIC {
            return Err(self.file.damaged("its header is neither empty nor right, so a change that was under way cannot be taken back"));
        }
        let record_count = u64::from(number_at(&header, RECORD_COUNT));
        let end = SECTOR_BYTES as u64 + record_count * RECORD_BYTES as u64;
        if self.file.byte_count()? < end {
            return Err(self.file.damaged(&format!("it ends before the last of its {record_count} records")));
        }
        self.active = Some(Active { header, end });
        Ok(())
    }

    fn check(&self, active: &Active, record: &[u8; RECORD_BYTES], offset: u64) -> Result<(), Error> {
        let number = number_at(record, 0);
        let mut page: Page = [0; PAGE_BYTES];
        page.copy_from_slice(&record[IMAGE..CHECKSUM]);
        let damaged = |reason| self.file.damaged(&format!("the record at offset {offset}, said to be of page {number}: {reason}"));
        page_seal::check(&page, number).map_err(|unsealed| damaged(unsealed.reason()))?;
        if number_at(record, CHECKSUM) != sqlite_checksum(&page, number_at(&active.header, CHECKSUM_START)) {
            return Err(damaged("it is not of this transaction, or its checksum is damaged"));
        }
        Ok(())
    }
}

/// The parts in which SQLite writes and reads a record.
enum Part {
    PageNumber,
    Image,
    Checksum,
}

/// Which part of which record these bytes are.
fn part_of_record(offset: u64, byte_count: usize) -> Option<(Part, u64)> {
    let within = offset.checked_sub(SECTOR_BYTES as u64)? as usize % RECORD_BYTES;
    let part = match (within, byte_count) {
        (0, 4) => Part::PageNumber,
        (IMAGE, PAGE_BYTES) => Part::Image,
        (CHECKSUM, 4) => Part::Checksum,
        _ => return None,
    };
    Some((part, offset - within as u64))
}

fn sealed_header(header: &[u8; HEADER_BYTES]) -> [u8; SECTOR_BYTES] {
    let mut sector = [0; SECTOR_BYTES];
    sector[..HEADER_BYTES].copy_from_slice(header);
    let checksum = crc32c::crc32c(&sector[..SECTOR_BYTES - 4]);
    sector[SECTOR_BYTES - 4..].copy_from_slice(&checksum.to_le_bytes());
    sector
}

/// SQLite's checksum of an image: every 200th byte, counted from the end, none of which is in the seal.
fn sqlite_checksum(page: &Page, start: u32) -> u32 {
    let places = (1..PAGE_BYTES / 200 + 1).map(|step| PAGE_BYTES - 200 * step).filter(|place| *place > 0);
    places.fold(start, |sum, place| sum.wrapping_add(u32::from(page[place])))
}

fn number_at(bytes: &[u8], offset: usize) -> u32 {
    bytes[offset..][..4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// What SQLite uses of the header, and clears when the transaction is over.
const HEADER_BYTES: usize = 28;

/// What it writes into the header when the records are on the disk: magic and record count.
const FINISHED_BYTES: usize = 12;

const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const RECORD_COUNT: usize = 8;
const CHECKSUM_START: usize = 12;

/// Where a record's image and checksum stand in it.
const IMAGE: usize = 4;
const CHECKSUM: usize = IMAGE + PAGE_BYTES;
const RECORD_BYTES: usize = CHECKSUM + 4;

#[cfg(test)]
#[path = "journal_file_tests.rs"]
mod tests;
