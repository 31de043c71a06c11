//! The log: one file, written full of zeros ahead and overwritten from its start whenever its end is reached, one record for each commit.
//!
//! A record is relay's, byte for byte but for the field that says what it was written over (`crates/relay/src/storage/log/record.rs` draws
//! it). A commit is one copy and one checksum of its bytes, one `pwrite` and one `fdatasync`, which finds no block to allocate and no
//! length to change. relay moves what it has committed into a history before it overwrites it, and zeroes the file again; here nobody would
//! look. Next: `commit.rs`.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::batch::{Batch, Section};

/// The log, open for commits.
pub(crate) struct Log {
    file: File,
    /// Where the next record begins.
    offset: u64,
    /// How often the file was begun.
    file_number: u64,
    /// The last record, and its checksum.
    sequence: u64,
    checksum: u32,
    /// The record in the making. Kept, because a new one would cost page faults for each commit.
    record: Vec<u8>,
}

impl Log {
    /// Makes the file, so that the first commit costs what each later one does.
    pub(crate) fn create(folder: &Path) -> io::Result<Log> {
        fs::create_dir_all(folder)?;
        let file = File::create(folder.join("log"))?;
        let zeros = vec![0; ZEROED_AT_ONCE_BYTES];
        for offset in (0..FILE_BYTES).step_by(ZEROED_AT_ONCE_BYTES) {
            file.write_all_at(&zeros, offset)?;
        }
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(Log { file, offset: 0, file_number: 1, sequence: 0, checksum: 0, record: Vec::new() })
    }

    /// Makes a batch durable.
    pub(crate) fn commit(&mut self, batch: &Batch) -> io::Result<()> {
        let record_bytes = padded_bytes(&batch.sections);
        if record_bytes > FILE_BYTES {
            return Err(io::Error::other("the messages of one commit are more than a log file holds: there is no limit on senders here"));
        }
        if self.offset + record_bytes > FILE_BYTES {
            self.offset = 0;
            self.file_number += 1;
        }
        self.sequence += 1;
        self.encode(&batch.sections);
        self.file.write_all_at(&self.record, self.offset)?;
        self.file.sync_data()?;
        self.offset += record_bytes;
        Ok(())
    }

    fn encode(&mut self, sections: &[Section]) {
        let record = &mut self.record;
        record.clear();
        record.resize(HEADER_BYTES, 0);
        for section in sections {
            record.extend_from_slice(&(section.room_name.len() as u32).to_le_bytes());
            record.extend_from_slice(&section.message_count.to_le_bytes());
            record.extend_from_slice(&(section.lines.len() as u32).to_le_bytes());
            record.extend_from_slice(section.room_name.as_bytes());
            record.extend_from_slice(&section.lines);
        }
        let body_bytes = (record.len() - HEADER_BYTES) as u32;
        let message_count: u32 = sections.iter().map(|section| section.message_count).sum();
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);

        record[..4].copy_from_slice(b"\xffRLG");
        record[4..6].copy_from_slice(&VERSION.to_le_bytes());
        record[8..16].copy_from_slice(&self.file_number.to_le_bytes());
        record[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        record[24..32].copy_from_slice(&unix_ms.to_le_bytes());
        record[32..36].copy_from_slice(&message_count.to_le_bytes());
        record[36..40].copy_from_slice(&body_bytes.to_le_bytes());
        record[40..44].copy_from_slice(&self.checksum.to_le_bytes());
        let body_checksum = crc32c::crc32c(&record[HEADER_BYTES..]);
        record[44..48].copy_from_slice(&body_checksum.to_le_bytes());
        self.checksum = crc32c::crc32c(&record[..48]);
        record[48..HEADER_BYTES].copy_from_slice(&self.checksum.to_le_bytes());
        record.resize(record.len().next_multiple_of(ALIGNMENT_BYTES as usize), 0);
    }
}

/// What the record of these sections takes in the file.
fn padded_bytes(sections: &[Section]) -> u64 {
    let body_bytes: usize = sections.iter().map(|section| SECTION_HEADER_BYTES + section.room_name.len() + section.lines.len()).sum();
    ((HEADER_BYTES + body_bytes) as u64).next_multiple_of(ALIGNMENT_BYTES)
}

const VERSION: u16 = 1;
const HEADER_BYTES: usize = 52;
const SECTION_HEADER_BYTES: usize = 12;
/// The page of the kernel's cache: a commit never reads a page before it writes it.
const ALIGNMENT_BYTES: u64 = 4096;
const FILE_BYTES: u64 = 64 << 20;
const ZEROED_AT_ONCE_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn section(lines: &str) -> Section {
        Section { room: 0, room_name: "lobby".into(), message_count: lines.lines().count() as u32, lines: lines.into() }
    }

    #[test]
    fn a_record_names_the_one_before_it_and_fills_whole_pages() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        let batch = |text: &str| Batch { sections: vec![section(text)], quitting: Vec::new() };
        log.commit(&batch("MESSAGE ada hello\n")).unwrap();
        let first_checksum = log.checksum;
        log.commit(&batch(&"MESSAGE ada hello\n".repeat(300))).unwrap();
        let file = fs::read(folder.path().join("log")).unwrap();
        assert_eq!(file.len() as u64, FILE_BYTES);
        assert_eq!((&file[..4], &file[4096..4100]), (&b"\xffRLG"[..], &b"\xffRLG"[..]));
        assert_eq!(file[HEADER_BYTES + SECTION_HEADER_BYTES..][..23], *b"lobbyMESSAGE ada hello\n");
        assert_eq!(file[4096 + 40..][..4], first_checksum.to_le_bytes());
        assert_eq!(crc32c::crc32c(&file[HEADER_BYTES..HEADER_BYTES + 12 + 23]).to_le_bytes(), file[44..48]);
        assert_eq!(log.offset, 3 * 4096);
    }

    #[test]
    fn at_its_end_the_file_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::create(folder.path()).unwrap();
        log.offset = FILE_BYTES - ALIGNMENT_BYTES;
        let page = Batch { sections: vec![section("MESSAGE ada hello\n")], quitting: Vec::new() };
        log.commit(&page).unwrap();
        assert_eq!((log.file_number, log.offset), (1, FILE_BYTES));
        log.commit(&page).unwrap();
        assert_eq!((log.file_number, log.offset), (2, ALIGNMENT_BYTES));
    }
}
