//! A log whose first files are in the history: what opening, reading and following it from there must and must not look at.

use super::*;
use crate::storage::{
    limits::RECORD_ALIGNMENT_BYTES,
    memory_disk::{MemoryDisk, Random},
};
use relay_core::Section;

/// A file holds four records of one page.
const FILE_BYTES: u64 = 4 * RECORD_ALIGNMENT_BYTES;
const PAGE: usize = RECORD_ALIGNMENT_BYTES as usize;
const TEXTS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

fn batch(text: &str) -> Batch {
    let lines = format!("MESSAGE ada {}\n", text.repeat(3000)).into_bytes();
    Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] }
}

/// `a` to `d` fill the first file, `e` to `h` the second, `i` and `j` stand in the third.
fn disk_with_ten_records() -> MemoryDisk {
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("an empty folder opens");
    for text in TEXTS {
        log.commit(&batch(text)).expect("the disk works");
    }
    disk
}

/// Behind so many records.
fn position(disk: &MemoryDisk, sequence: u64) -> LogPosition {
    let mut reader = reader(disk, LogPosition::START);
    while reader.next_record_up_to(sequence).expect("nothing is damaged").is_some() {}
    reader.position()
}

fn reader(disk: &MemoryDisk, position: LogPosition) -> Scan {
    Scan::start(Arc::new(disk.clone()), FILE_BYTES, position)
}

fn letter(record: &Record<'_>) -> char {
    record.sections().map(|section| char::from(section.lines[12])).next().expect("there is one")
}

fn open_at(disk: &MemoryDisk, position: LogPosition) -> Result<String, OpenError> {
    let (log, recovered) = disk.open_log(FILE_BYTES, position)?;
    let (mut letters, mut reader) = (String::new(), log.reader(position));
    while let Some(record) = reader.next_record_up_to(log.committed())? {
        letters.push(letter(&record));
    }
    assert_eq!(recovered.record_count, letters.len() as u64);
    Ok(letters)
}

/// Opens behind the position, and goes on with one more message, which must be there at the next opening.
#[track_caller]
fn check_opens(disk: &MemoryDisk, position: LogPosition, expected: &str) {
    assert_eq!(open_at(disk, position).expect("the log opens"), expected);
    let (mut log, _) = disk.open_log(FILE_BYTES, position).expect("the log opens again");
    let committed = log.commit(&batch("z")).expect("the disk works");
    assert_eq!(committed.sequence, position.sequence + expected.len() as u64 + 1);
    assert_eq!(open_at(disk, position).expect("the log opens"), format!("{expected}z"));
}

#[track_caller]
fn check_refused(disk: &MemoryDisk, position: LogPosition, expected: &str) {
    let error = open_at(disk, position).expect_err("the log is refused").to_string();
    assert!(error.starts_with(&format!("memory/log/{expected}")), "{error}");
}

fn change(disk: &MemoryDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut content = disk.content(name);
    change(&mut content);
    disk.put(name, content);
}

#[test]
fn a_log_opens_behind_any_of_its_records() {
    for sequence in 0..=10 {
        let disk = disk_with_ten_records();
        let position = position(&disk, sequence);
        assert_eq!(position.sequence, sequence);
        check_opens(&disk, position, &TEXTS.concat()[sequence as usize..]);
    }
}

#[test]
fn files_below_the_position_may_be_anything() {
    for (sequence, file_number) in [(5, 2), (8, 2), (9, 3), (10, 3)] {
        let changes: [fn(&MemoryDisk, &str); 5] = [
            |disk, name| disk.take_away(name),
            |disk, name| disk.put(name, vec![0; FILE_BYTES as usize]),
            |disk, name| disk.put(name, vec![0xff; FILE_BYTES as usize]),
            |disk, name| disk.put(name, vec![7; 100]),
            |disk, name| disk.put(name, Vec::new()),
        ];
        for spoil in changes {
            for spoilt in 1..1 << (file_number - 1) {
                let disk = disk_with_ten_records();
                let position = position(&disk, sequence);
                assert_eq!(position.file_number, file_number);
                for number in (1..file_number).filter(|number| spoilt & 1 << (number - 1) != 0) {
                    spoil(&disk, &file_name(number));
                }
                check_opens(&disk, position, &TEXTS.concat()[sequence as usize..]);
            }
        }
    }
}

#[test]
fn the_file_of_the_position_must_be_there_if_it_was_written_to() {
    let disk = disk_with_ten_records();
    let behind_all = position(&disk, 10);
    disk.take_away("00000003.log");
    check_refused(&disk, behind_all, "00000003.log is damaged at offset 0: the file is missing, though record 10 was written to it");
    let behind_six = position(&disk, 6);
    check_opens(&disk.copy(), behind_six, "gh");
    disk.take_away("00000002.log");
    check_refused(&disk, behind_six, "00000002.log is damaged at offset 0: the file is missing, though record 6 was written to it");
    disk.put("00000003.log", vec![0; FILE_BYTES as usize]);
    check_refused(&disk, behind_six, "00000002.log is damaged at offset 0: the file is missing, though 00000003.log is there");
}

#[test]
fn a_restored_folder_goes_on_in_an_empty_log() {
    // As a backup and a repair leave it: the numbers go on, the files begin anew.
    let position = LogPosition { sequence: 1000, checksum: 0x1234_5678, ..LogPosition::START };
    check_opens(&MemoryDisk::default(), position, "");
}

#[test]
fn files_from_the_position_on_are_checked() {
    let disk = disk_with_ten_records();
    let position = position(&disk, 6);
    type Damage = fn(&mut Vec<u8>);
    let checks: [(&str, Damage, &str); 4] = [
        ("00000002.log", |content| content.push(0), "00000002.log is damaged at offset 16384: the file is 16385 bytes long"),
        (
            "00000002.log",
            |content| content[2 * PAGE + 100] ^= 1,
            "00000002.log is damaged at offset 8192: the record's checksum does not match",
        ),
        ("00000003.log", |content| content[100] ^= 1, "00000003.log is damaged at offset 0: the record's checksum does not match"),
        (
            "00000003.log",
            |content| content[PAGE + 100] ^= 1,
            "00000003.log is damaged at offset 4096: the record's checksum does not match",
        ),
    ];
    for (name, damage, expected) in checks {
        let disk = disk.copy();
        change(&disk, name, damage);
        check_refused(&disk, position, expected);
    }
    // What stands before it in the same file is in the history.
    change(&disk, "00000002.log", |content| content[100] ^= 1);
    check_opens(&disk, position, "ghij");
}

#[test]
fn a_position_of_another_log_is_refused() {
    let disk = disk_with_ten_records();
    let position = LogPosition { checksum: 1, ..position(&disk, 6) };
    check_refused(&disk, position, "00000002.log is damaged at offset 8192: the history goes on behind record 6");
}

/// A log whose third file was the first one before: `i` is its first record, `j` its last.
fn disk_with_a_recycled_file() -> (MemoryDisk, LogPosition) {
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("an empty folder opens");
    for text in &TEXTS[..8] {
        log.commit(&batch(text)).expect("the disk works");
    }
    let position = position(&disk, 5);
    log.preparer().free_below(position.file_number);
    for text in &TEXTS[8..] {
        log.commit(&batch(text)).expect("the disk works");
    }
    assert_eq!(log.preparer().recycled_count(), 1);
    (disk, position)
}

#[test]
fn a_last_record_that_decayed_in_a_recycled_file_is_refused() {
    let (disk, position) = disk_with_a_recycled_file();
    let record_bytes = record::HEADER_BYTES + 12 + "lounge".len() + "MESSAGE ada \n".len() + 3000;
    for bit in (0..8 * record::HEADER_BYTES).chain((8 * record::HEADER_BYTES..8 * record_bytes).step_by(101)) {
        let flipped = disk.copy();
        change(&flipped, "00000003.log", |content| content[PAGE + bit / 8] ^= 1 << (bit % 8));
        check_refused(&flipped, position, "00000003.log is damaged at offset 4096: ");
    }
    check_opens(&disk, position, "fghij");
}

#[test]
fn an_interrupted_commit_in_a_recycled_file_is_dropped_whatever_arrived_of_it() {
    let (disk, position) = disk_with_a_recycled_file();
    // The last record, as if its sectors had arrived in part.
    for arrived in 0..63u32 {
        let torn = disk.copy();
        change(&torn, "00000003.log", |content| {
            for sector in (0..6).filter(|sector| arrived & 1 << sector == 0) {
                content[PAGE + 512 * sector..PAGE + 512 * (sector + 1)].fill(0);
            }
        });
        check_opens(&torn, position, "fghi");
    }
}

#[test]
fn a_flipped_bit_is_refused_or_changes_nothing_though_files_are_used_again() {
    let (disk, position) = disk_with_a_recycled_file();
    let mut random = Random(7);
    let (mut refused, mut right) = (0, 0);
    for _ in 0..2000 {
        let flipped = disk.copy();
        let name = file_name(2 + random.below(2));
        change(&flipped, &name, |content| content[random.below(FILE_BYTES) as usize] ^= 1 << random.below(8));
        match open_at(&flipped, position) {
            Ok(letters) => {
                assert_eq!(letters, "fghij");
                right += 1;
            }
            Err(error) => {
                assert!(error.to_string().starts_with(&format!("memory/log/{name} is damaged")), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 100 && right > 100, "{refused} refused, {right} right");
}

#[test]
fn a_follower_looks_at_nothing_that_is_not_committed() {
    let disk = disk_with_ten_records();
    let mut follower = reader(&disk, position(&disk, 9));
    disk.fail_reads();
    for committed in [0, 8, 9] {
        assert!(follower.next_record_up_to(committed).expect("nothing is read").is_none());
    }
    follower.next_record_up_to(10).expect_err("it is read now");
}

#[test]
fn a_follower_sees_a_record_whose_place_it_has_read_before_it_was_written() {
    let disk = disk_with_ten_records();
    let whole = [disk.content("00000002.log"), disk.content("00000003.log")];
    let name = |record: usize| if record < 4 { "00000002.log" } else { "00000003.log" };
    // The second and third file as they were after so many records of them, the next of which has arrived in part.
    let show = |record_count: usize| {
        for (file, whole) in whole.iter().enumerate() {
            let written = record_count.saturating_sub(4 * file).min(4) * PAGE;
            let mut content = whole.clone();
            content[written..].fill(0);
            if file == record_count / 4 && written < content.len() {
                content[written..written + 1024].copy_from_slice(&whole[written..written + 1024]);
            }
            // The same file, so that who has it open sees it.
            let file = disk.open(name(4 * file), crate::storage::disk::Access::ReadWrite).expect("it is there");
            assert!(write_all_at(file.as_ref(), &content, 0).is_ok());
        }
    };
    show(0);
    let mut follower = reader(&disk, position(&disk, 4));
    for record in 0..6 {
        let committed = record as u64 + 4;
        assert!(follower.next_record_up_to(committed).expect("nothing is damaged").is_none());
        show(record + 1);
        let found = follower.next_record_up_to(committed + 1).expect("nothing is damaged").map(|record| letter(&record));
        assert_eq!(found, TEXTS[record + 4].chars().next());
    }
    assert_eq!(follower.position(), position(&disk, 10));
}

#[test]
fn a_committed_record_that_a_follower_does_not_find_is_damage() {
    #[track_caller]
    fn check(sequence: u64, spoil: impl FnOnce(&MemoryDisk), expected: &str) {
        let disk = disk_with_ten_records();
        let mut follower = reader(&disk, position(&disk, sequence));
        spoil(&disk);
        let error = follower.next_record_up_to(10).map(|record| record.map(|record| record.sequence())).expect_err("it is damaged");
        assert!(error.to_string().starts_with(&format!("memory/log/{expected}")), "{error}");
    }
    let flip = |name: &'static str, at: usize| move |disk: &MemoryDisk| change(disk, name, |content| content[at] ^= 1);
    check(5, flip("00000002.log", PAGE + 60), "00000002.log is damaged at offset 4096: the record's checksum does not match, but record 6");
    check(8, flip("00000003.log", 60), "00000003.log is damaged at offset 0: the record's checksum does not match, but record 9 was");
    check(9, flip("00000003.log", PAGE + 1), "00000003.log is damaged at offset 4096: what stands there is not the header of a record");
    let zero = |disk: &MemoryDisk| change(disk, "00000003.log", |content| content[PAGE..].fill(0));
    check(9, zero, "00000003.log is damaged at offset 4096: there is no record, but record 10 was committed");
    check(8, |disk| disk.take_away("00000003.log"), "00000003.log is damaged at offset 0: there is no record, but record 9 was committed");
    check(5, |disk| disk.take_away("00000002.log"), "00000002.log is damaged at offset 0: the file is missing, though 00000003.log");
}

#[test]
fn a_reader_whose_file_is_used_again_gets_an_error_and_nothing_wrong() {
    let (mut error_count, mut end_count) = (0, 0);
    // It stands anywhere in the first two files when these are zeroed, and when they are written to again.
    for sequence in 0..8 {
        for new_records in 0..9 {
            let disk = MemoryDisk::default();
            let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("an empty folder opens");
            for text in TEXTS {
                log.commit(&batch(text)).expect("the disk works");
            }
            let mut reader = log.reader(position(&disk, sequence));
            let mut letters = String::new();
            // It has the file open, and has read ahead.
            letters.extend(reader.next_record().expect("nothing is damaged").map(|record| letter(&record)));
            let folded = position(&disk, 10);
            log.preparer().free_below(folded.file_number);
            log.preparer().prepare().expect("the disk works");
            for _ in 0..new_records {
                log.commit(&batch("n")).expect("the disk works");
                log.preparer().prepare().expect("the disk works");
            }

            let all = TEXTS.concat()[sequence as usize..].to_owned() + &"n".repeat(new_records);
            loop {
                match reader.next_record() {
                    Ok(Some(record)) => letters.push(letter(&record)),
                    Ok(None) => {
                        assert_eq!(letters, all, "the file was not used again yet");
                        break end_count += 1;
                    }
                    Err(error) => {
                        assert!(all.starts_with(&letters), "{letters} of {all}");
                        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
                        // That is how a reader tells that it is none.
                        assert!(reader.position().file_number < folded.file_number);
                        break error_count += 1;
                    }
                }
            }
        }
    }
    assert!(error_count > 40 && end_count > 10, "{error_count} errors, {end_count} ends");
}

#[test]
fn a_reader_that_is_not_in_the_way_is_not_disturbed() {
    let (disk, position) = disk_with_a_recycled_file();
    let mut reader = reader(&disk, position);
    let mut letters = String::new();
    while let Some(record) = reader.next_record().expect("nothing is damaged") {
        letters.push(letter(&record));
    }
    assert_eq!(letters, "fghij");
    // The end is no end for ever, and that the first files are gone meanwhile does not matter.
    let (mut log, _) = disk.open_log(FILE_BYTES, position).expect("the log opens");
    log.preparer().free_below(reader.position().file_number);
    log.preparer().prepare().expect("the disk works");
    log.commit(&batch("k")).expect("the disk works");
    assert_eq!(reader.next_record().expect("nothing is damaged").map(|record| letter(&record)), Some('k'));
    assert!(reader.next_record().expect("nothing is damaged").is_none());
}

#[test]
fn a_history_and_a_log_of_different_times_are_refused() {
    // Behind `j`, of which the log of an earlier time has nothing; and behind `i`, where another `i` of the same length ends.
    for sequence in [9, 10] {
        let disk = disk_with_ten_records();
        let later = position(&disk, sequence);
        let name = file_name(later.file_number);
        let mut content = disk.content(&name);
        content.fill(0);
        disk.take_away(&name);
        disk.put(&name, content);
        if sequence == 9 {
            let (mut log, _) = disk.open_log(FILE_BYTES, position(&disk, 8)).expect("the log opens");
            log.commit(&batch("y")).expect("the disk works");
        }
        let error = open_at(&disk, later).expect_err("they do not fit").to_string();
        assert!(error.contains("they are of different times") && error.contains(&name), "{error}");
    }
}

#[test]
fn a_reader_that_is_told_where_to_end_reads_no_file_behind_that() {
    let disk = disk_with_ten_records();
    let mut reader = reader(&disk, LogPosition::START).until_file(1);
    let mut letters = String::new();
    while let Some(record) = reader.next_record().expect("nothing is damaged") {
        letters.push(letter(&record));
    }
    // The record that shows that the file is over is one more.
    assert_eq!((letters.as_str(), reader.is_at_its_bound()), ("abcde", true));
}
