//! A journal hands out what belongs to it, and takes what it understands.

use super::*;
use crate::storage::{
    disk::{Access, Disk},
    history::reported_file::LastFailure,
    memory_disk::MemoryDisk,
};

const NAME: &str = "history.db-journal";

fn open(disk: &MemoryDisk) -> JournalFile {
    let file = disk.open(NAME, Access::ReadWrite).unwrap();
    JournalFile::new(ReportedFile { file, path: NAME.into(), failure: LastFailure::default() })
}

/// A journal as one transaction left it behind: its records were of these pages, and it is over.
fn left_behind(numbers: &[u32]) -> MemoryDisk {
    let disk = MemoryDisk::default();
    disk.put(NAME, Vec::new());
    let mut journal = open(&disk);
    begin(&mut journal);
    numbers.iter().for_each(|number| add_record(&mut journal, *number));
    journal.write_at(&[0; HEADER_BYTES], 0).unwrap();
    disk
}

fn begin(journal: &mut JournalFile) {
    let mut sector = [0; SECTOR_BYTES];
    sector[CHECKSUM_START..HEADER_BYTES].fill(1);
    journal.write_at(&sector, 0).unwrap();
}

fn add_record(journal: &mut JournalFile, number: u32) {
    let offset = journal.byte_count().unwrap();
    journal.write_at(&number.to_be_bytes(), offset).unwrap();
    journal.write_at(&[7; PAGE_BYTES], offset + IMAGE as u64).unwrap();
    let checksum = sqlite_checksum(&[7; PAGE_BYTES], 0x0101_0101);
    journal.write_at(&checksum.to_be_bytes(), offset + CHECKSUM as u64).unwrap();
}

/// Marks it as on the disk, with this many records.
fn finish(journal: &mut JournalFile, record_count: u32) {
    let mut finished = MAGIC.to_vec();
    finished.extend(record_count.to_be_bytes());
    journal.write_at(&finished, 0).unwrap();
}

#[test]
fn records_of_earlier_transactions_are_not_there() {
    let disk = left_behind(&[1, 2, 3]);
    let mut writer = open(&disk);
    begin(&mut writer);
    add_record(&mut writer, 9);
    let check = |journal: &mut JournalFile| {
        assert_eq!(journal.byte_count(), Ok((SECTOR_BYTES + RECORD_BYTES) as u64));
        // Where SQLite looks for one more header.
        assert_eq!(journal.read_at(&mut [0; 8], 2 * RECORD_BYTES as u64), Ok(0));
        let mut number = [0; 4];
        assert_eq!((journal.read_at(&mut number, SECTOR_BYTES as u64), number), (Ok(4), [0, 0, 0, 9]));
    };
    check(&mut writer);
    finish(&mut writer, 1);
    check(&mut writer);
    check(&mut open(&disk));
}

#[test]
fn an_image_is_read_with_the_seal_of_its_page() {
    let disk = left_behind(&[]);
    let mut journal = open(&disk);
    begin(&mut journal);
    add_record(&mut journal, 9);
    let mut image = [0; PAGE_BYTES];
    assert_eq!(journal.read_at(&mut image, (SECTOR_BYTES + IMAGE) as u64), Ok(PAGE_BYTES));
    assert_eq!((image[0], page_seal::check(&image, 9)), (7, Ok(())));
}

#[test]
fn a_header_that_could_not_be_written_is_still_what_it_was_to_its_writer() {
    let disk = left_behind(&[]);
    let mut journal = open(&disk);
    begin(&mut journal);
    disk.fail_at(disk.trace().len() + 1, crate::storage::memory_disk::Fault::IoError);
    assert_eq!(journal.write_at(&[MAGIC.as_slice(), &[0, 0, 0, 1]].concat(), 0), Err(Error::Io));
    let mut header = [0xff; HEADER_BYTES];
    assert_eq!(journal.read_at(&mut header, 0), Ok(HEADER_BYTES));
    assert_eq!((&header[..CHECKSUM_START], &header[CHECKSUM_START..]), ([0; 12].as_slice(), [1; 16].as_slice()));
    journal.write_at(&[0; HEADER_BYTES], 0).unwrap();
    assert_eq!(disk.content(NAME), [0; SECTOR_BYTES]);
}

#[test]
fn what_sqlite_is_not_known_to_write_is_refused_and_named() {
    #[track_caller]
    fn check(bytes: &[u8], offset: u64) {
        let disk = left_behind(&[1]);
        let mut journal = open(&disk);
        begin(&mut journal);
        add_record(&mut journal, 9);
        let before = disk.content(NAME);
        assert_eq!(journal.write_at(bytes, offset), Err(Error::Io));
        assert_eq!(disk.content(NAME), before);
        let failure = journal.file.failure.take().unwrap();
        assert!(failure.contains(&format!("SQLite writes {} bytes at offset {offset} of the journal", bytes.len())), "{failure}");
    }
    let after = (SECTOR_BYTES + RECORD_BYTES) as u64;
    // A header of a journal that is not synced, one byte into it, another header, a record that leaves a gap, and an image of no page.
    check(&[0xff; SECTOR_BYTES], 0);
    check(&[0], 0);
    check(&[0; SECTOR_BYTES], after);
    check(&[0; 4], after + RECORD_BYTES as u64);
    check(&[0; PAGE_BYTES], after + IMAGE as u64);
}
