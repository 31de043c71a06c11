//! What may lie in the folder when the log is opened, and the answer to each.

use crate::storage::{
    OpenError, Storage,
    disk::Disk,
    limits::{READ_BYTES, RECORD_BYTES_MAX},
    log::file_names::file_name,
    log::record::{self, HEADER_BYTES, Link},
    memory_disk::{MemoryDisk, Random},
    position::LogPosition,
    tools::print_room,
};
use relay_core::{Batch, Section};
use std::sync::Arc;

pub(crate) const FILE_BYTES: u64 = 16 << 10;
pub(crate) const PAGE: usize = 4096;

pub(crate) fn batch(text: &str) -> Batch {
    let lines = format!("MESSAGE ada {text}\n").into_bytes();
    Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] }
}

/// Texts of one page each: `a` to `d` fill the first file, `e` and `f` stand in the second, the third is prepared.
pub(crate) fn disk_with_six_records() -> MemoryDisk {
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("an empty folder opens");
    for text in ["a", "b", "c", "d", "e", "f"] {
        log.commit(&batch(&text.repeat(2000))).expect("the disk works");
    }
    log.preparer().prepare().expect("the disk works");
    disk
}

/// The first letters of the messages, or why the log does not open.
pub(crate) fn open(disk: &MemoryDisk) -> Result<String, OpenError> {
    open_at(disk, LogPosition::START)
}

/// The same for what stands behind a position.
fn open_at(disk: &MemoryDisk, position: LogPosition) -> Result<String, OpenError> {
    let (log, recovered) = disk.open_log(FILE_BYTES, position)?;
    let mut letters = String::new();
    let mut reader = log.reader(position);
    while let Some(record) = reader.next_record_up_to(log.committed())? {
        letters.extend(record.sections().map(|section| char::from(section.lines[12])));
    }
    assert_eq!(recovered.message_count, letters.len() as u64);
    Ok(letters)
}

/// Changes a file of the six records.
pub(crate) fn with_change(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> MemoryDisk {
    let disk = disk_with_six_records();
    let mut content = disk.content(name);
    change(&mut content);
    disk.put(name, content);
    disk
}

/// Opens, and goes on with one more message, which must be there at the next opening.
#[track_caller]
pub(crate) fn check_opens(disk: &MemoryDisk, expected: &str) {
    assert_eq!(open(disk).expect("the log opens"), expected);
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("the log opens again");
    log.commit(&batch("z")).expect("the disk works");
    assert_eq!(open(disk).expect("the log opens"), format!("{expected}z"));
}

#[track_caller]
fn check_refused(disk: &MemoryDisk, expected: &str) {
    let error = open(disk).expect_err("the log is refused").to_string();
    assert!(error.contains(expected), "{error}");
}

/// The record that would stand behind `f`, in the bytes that the log would write.
fn seventh_record(link: impl FnOnce(&mut Link)) -> Vec<u8> {
    let disk = disk_with_six_records();
    let last = disk.content("00000002.log");
    let previous_checksum = u32::from_le_bytes([last[PAGE + 48], last[PAGE + 49], last[PAGE + 50], last[PAGE + 51]]);
    let mut right = Link { file_number: 2, sequence: 7, previous_checksum };
    link(&mut right);
    let mut bytes = Vec::new();
    record::encode(&mut bytes, &right, 0, &batch(&"g".repeat(3000)));
    bytes
}

pub(crate) fn put(content: &mut [u8], offset: usize, bytes: &[u8]) {
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
}

#[test]
fn what_a_running_log_leaves_opens() {
    check_opens(&MemoryDisk::default(), "");
    check_opens(&disk_with_six_records(), "abcdef");
    check_opens(&with_change("00000002.log", |content| put(content, 2 * PAGE, &seventh_record(|_| {}))), "abcdefg");
}

#[test]
fn records_of_every_length_come_back() {
    let file_bytes = RECORD_BYTES_MAX + PAGE as u64;
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(file_bytes, LogPosition::START).expect("an empty folder opens");
    let overhead = HEADER_BYTES + 12 + "lounge".len() + "MESSAGE ada \n".len();
    // Around one page, around one read, the longest of all, which needs a file of its own, and one more.
    let lengths = [0, 1, PAGE, READ_BYTES - PAGE, READ_BYTES, READ_BYTES + 1, RECORD_BYTES_MAX as usize - overhead, 5];
    for length in lengths {
        log.commit(&batch(&"x".repeat(length))).expect("the disk works");
    }
    let (log, recovered) = disk.open_log(file_bytes, LogPosition::START).expect("the log opens");
    assert_eq!(recovered.record_count, lengths.len() as u64);
    let (mut found, mut reader) = (Vec::new(), log.reader(LogPosition::START));
    while let Some(record) = reader.next_record().expect("nothing is damaged") {
        found.extend(record.sections().map(|section| section.lines.len() - "MESSAGE ada \n".len()));
    }
    assert_eq!(found, lengths);
}

#[test]
fn foreign_files_are_left_alone() {
    let disk = disk_with_six_records();
    let foreign = ["notes.txt", "1.log", "00000000.log", "00000001.log.bak", "000000004.log", "x.log", "-0000001.log", ".log"];
    for name in foreign {
        disk.put(name, b"something".to_vec());
    }
    check_opens(&disk, "abcdef");
    for name in foreign {
        assert_eq!(disk.content(name), b"something");
    }
}

#[test]
fn a_file_that_was_being_made_is_removed() {
    let disk = disk_with_six_records();
    disk.put("00000004.log.new", vec![0; 100]);
    check_opens(&disk, "abcdef");
    assert!(!disk.names().expect("the disk is on").contains(&"00000004.log.new".to_owned()));
}

#[test]
fn files_of_another_length_are_refused() {
    check_refused(
        &with_change("00000003.log", Vec::clear),
        "00000003.log is damaged at offset 0: the file is 0 bytes long instead of 16384",
    );
    check_refused(&with_change("00000001.log", |content| content.truncate(5000)), "the file is 5000 bytes long");
    check_refused(&with_change("00000002.log", |content| content.push(0)), "the file is 16385 bytes long");
}

#[test]
fn a_missing_file_is_refused() {
    for name in ["00000001.log", "00000002.log"] {
        let disk = disk_with_six_records();
        disk.take_away(name);
        check_refused(&disk, &format!("{name} is damaged at offset 0: the file is missing"));
    }
}

#[test]
fn a_file_of_another_log_is_refused() {
    let other = MemoryDisk::default();
    let (mut log, _) = other.open_log(FILE_BYTES, LogPosition::START).expect("an empty folder opens");
    for _ in 0..6 {
        log.commit(&batch("other")).expect("the disk works");
    }
    let disk = with_change("00000002.log", |content| *content = other.content("00000002.log"));
    check_refused(&disk, "00000002.log is damaged at offset 0: the record does not follow the one before it");
}

#[test]
fn an_unfinished_commit_is_dropped_and_overwritten() {
    #[track_caller]
    fn check(change: impl FnOnce(&mut Vec<u8>)) {
        let mut record = seventh_record(|_| {});
        change(&mut record);
        let disk = with_change("00000002.log", |content| put(content, 2 * PAGE, &record));
        let (_, recovered) = disk.open_log(FILE_BYTES, LogPosition::START).expect("the log opens");
        assert!(recovered.dropped_unfinished);
        assert_eq!(disk.content("00000002.log")[2 * PAGE..], vec![0; 2 * PAGE]);
        check_opens(&disk, "abcdef");
    }
    check(|record| record[..512].fill(0));
    check(|record| record[512..1024].fill(0));
    check(|record| record[1024..].fill(0));
    check(|record| record[2560..3072].fill(0));
}

#[test]
fn an_unfinished_commit_at_the_start_of_the_next_file_is_dropped() {
    let mut record = seventh_record(|link| link.file_number = 3);
    record[1024..].fill(0);
    check_opens(&with_change("00000003.log", |content| put(content, 0, &record)), "abcdef");
}

#[test]
fn a_decayed_header_is_found_where_it_stands() {
    // The last record of the first file, before an intact one at the start of the second.
    for offset in [0, 20, 44, 48, 100] {
        let disk = with_change("00000001.log", |content| content[3 * PAGE + offset] ^= 1);
        check_refused(&disk, "00000001.log is damaged at offset 12288: ");
    }
}

#[test]
fn a_last_record_that_decayed_is_refused() {
    for offset in [0, 20, 44, 48, 54, 1000, 2060] {
        let disk = with_change("00000002.log", |content| content[PAGE + offset] ^= 1);
        check_refused(&disk, "00000002.log is damaged at offset 4096: ");
    }
}

#[test]
fn a_flipped_bit_anywhere_is_refused_or_changes_nothing() {
    let disk = disk_with_six_records();
    let record_bytes = HEADER_BYTES + 12 + "lounge".len() + "MESSAGE ada \n".len() + 2000;
    // The first, one in the middle, the last of a file, the first of the next, the last of all.
    for (name, start) in
        [("00000001.log", 0), ("00000001.log", PAGE), ("00000001.log", 3 * PAGE), ("00000002.log", 0), ("00000002.log", PAGE)]
    {
        // Every bit of the header, some of the body, some of the padding.
        for bit in (0..8 * HEADER_BYTES).chain((8 * HEADER_BYTES..8 * PAGE).step_by(101)) {
            let flipped = disk.copy();
            let mut content = disk.content(name);
            content[start + bit / 8] ^= 1 << (bit % 8);
            flipped.put(name, content);
            match open(&flipped) {
                Ok(letters) => assert!(letters == "abcdef" && bit >= 8 * record_bytes, "bit {bit} at {start} of {name}: {letters}"),
                Err(error) => assert!(error.to_string().contains(&format!("{name} is damaged at offset {start}: ")), "bit {bit}: {error}"),
            }
        }
    }
}

#[test]
fn a_header_over_zeros_that_is_not_right_has_decayed_whatever_is_missing_behind_it() {
    // Shorter and longer than it was: the length would find zeros, or leave them out.
    for at in [HEADER_BYTES - 1, 36, 37, 38] {
        let mut record = seventh_record(|_| {});
        record[at] ^= 1;
        record[1024..].fill(0);
        let disk = with_change("00000002.log", |content| put(content, 2 * PAGE, &record));
        check_refused(&disk, "00000002.log is damaged at offset 8192: what stands there is not the header of a record, and no interrupted");
    }
}

#[test]
fn a_decayed_record_before_others_is_refused_with_the_way_out() {
    let disk = with_change("00000001.log", |content| content[PAGE + 100] ^= 1);
    let error = open(&disk).expect_err("the log is refused").to_string();
    assert_eq!(
        error,
        "memory/log/00000001.log is damaged at offset 4096: the record's checksum does not match, but a later record is intact \
         (00000001.log at offset 8192); relay does not go on, because messages that people saw would be missing. `relay verify --data \
         memory` says what else is wrong; restore the folder from a backup, or let `relay repair --data memory` save what can be read"
    );
}

#[test]
fn an_intact_record_that_is_not_the_next_is_refused() {
    for link in [
        |link: &mut Link| link.sequence = 1_000_000,
        |link: &mut Link| link.sequence = 8,
        |link: &mut Link| link.sequence = 6,
        |link: &mut Link| link.file_number = 3,
        |link: &mut Link| link.previous_checksum ^= 1,
    ] {
        let disk = with_change("00000002.log", |content| put(content, 2 * PAGE, &seventh_record(link)));
        check_refused(&disk, "00000002.log is damaged at offset 8192: the record does not follow the one before it");
    }
}

#[test]
fn a_record_without_messages_counts_as_a_record() {
    let mut empty = Vec::new();
    let disk = disk_with_six_records();
    let (_, recovered) = disk.open_log(FILE_BYTES, LogPosition::START).expect("the log opens");
    assert_eq!((recovered.record_count, recovered.message_count, recovered.record_bytes), (6, 6, 6 * PAGE as u64));
    record::encode(&mut empty, &Link { file_number: 1, sequence: 1, previous_checksum: 0 }, 0, &Batch::default());
    empty.resize(FILE_BYTES as usize, 0);
    let disk = MemoryDisk::default();
    disk.put("00000001.log", empty);
    check_opens(&disk, "");
}

#[test]
fn an_absurd_length_is_refused() {
    for length in [u32::MAX, 17 << 20, FILE_BYTES as u32] {
        let mut record = seventh_record(|_| {});
        put(&mut record, 36, &length.to_le_bytes());
        record::seal_header(&mut record);
        let disk = with_change("00000002.log", |content| put(content, 2 * PAGE, &record));
        check_refused(&disk, "00000002.log is damaged at offset 8192: the record's length is impossible");
    }
}

#[test]
fn a_record_of_a_newer_format_names_the_version() {
    let mut record = seventh_record(|_| {});
    record[4] = 9;
    record::seal_header(&mut record);
    let disk = with_change("00000002.log", |content| put(content, 2 * PAGE, &record));
    check_refused(&disk, "00000002.log holds at offset 8192 a record of format version 9");
}

#[test]
fn a_disk_that_cannot_be_read_is_not_an_empty_log() {
    let disk = disk_with_six_records();
    disk.fail_reads();
    check_refused(&disk, "reading memory/log/00000001.log failed");
}

#[test]
fn random_content_neither_panics_nor_shows_anything_wrong() {
    let mut random = Random(1);
    for round in 0..300u32 {
        let number = 1 + random.below(3);
        let disk = with_change(&file_name(number), |content| {
            let start = random.below(FILE_BYTES) as usize;
            let end = start + random.below(FILE_BYTES - start as u64) as usize;
            for byte in &mut content[start..end] {
                *byte = if round % 2 == 0 { 0 } else { random.next() as u8 };
            }
        });
        if let Ok(letters) = open(&disk) {
            assert!("abcdef".starts_with(&letters), "{letters}");
        }
    }
}

#[test]
fn history_is_what_was_stored_in_that_room() {
    let disk = disk_with_six_records();
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("the log opens");
    let section = |room: &str, lines: &str| Section { room: room.into(), message_count: 2, lines: lines.into() };
    let sections = vec![section("kitchen", "MESSAGE ada 1\nMESSAGE bob 2\n"), section("kitchen2", "MESSAGE ada 3\nMESSAGE bob 4\n")];
    log.commit(&Batch { sections }).expect("the disk works");
    let mut printed = Vec::new();
    assert_eq!(print_room(Arc::new(disk.clone()), FILE_BYTES, "kitchen", &mut printed).expect("the room is there"), 2);
    assert_eq!(printed, b"MESSAGE ada 1\nMESSAGE bob 2\n");

    let error = print_room(Arc::new(disk), FILE_BYTES, "Kitchen", &mut printed).expect_err("no such room");
    assert!(error.to_string().starts_with("nothing is stored of room \"Kitchen\""), "{error}");
}

#[test]
fn history_of_a_damaged_log_is_what_stands_before_the_damage() {
    let disk = with_change("00000002.log", |content| content[100] ^= 1);
    let mut printed = Vec::new();
    let error = print_room(Arc::new(disk), FILE_BYTES, "lounge", &mut printed).expect_err("the log is damaged");
    assert!(error.to_string().contains("00000002.log is damaged at offset 0"), "{error}");
    assert_eq!(printed.iter().filter(|byte| **byte == b'\n').count(), 4);
}

#[test]
fn history_beside_a_writer_takes_a_second_look_before_it_says_damaged() {
    // The reader's first look finds `f` incomplete; when it looks for later records, `f` is complete and `g` follows.
    let f = disk_with_six_records().content("00000002.log")[PAGE..2 * PAGE].to_vec();
    let disk = with_change("00000002.log", |content| {
        content[PAGE + HEADER_BYTES..2 * PAGE].fill(0);
        put(content, 2 * PAGE, &seventh_record(|_| {}));
    });
    disk.take_away("00000003.log");
    disk.write_behind_read("00000002.log", PAGE as u64, &f);
    let mut printed = Vec::new();
    print_room(Arc::new(disk), FILE_BYTES, "lounge", &mut printed).expect("nothing is damaged");
    assert_eq!(printed.iter().filter(|byte| **byte == b'\n').count(), 7);
}

#[test]
fn history_leaves_out_what_is_being_written() {
    let mut record = seventh_record(|_| {});
    record[1024..].fill(0);
    let disk = with_change("00000002.log", |content| put(content, 2 * PAGE, &record));
    let mut printed = Vec::new();
    print_room(Arc::new(disk), FILE_BYTES, "lounge", &mut printed).expect("nothing is damaged");
    assert_eq!(printed.iter().filter(|byte| **byte == b'\n').count(), 6);
}
