//! What a salvage keeps of six damaged records, and what it says of the others.

use super::super::scan::tests::{FILE_BYTES, PAGE, disk_with_six_records, with_change};
use super::*;
use crate::storage::memory_disk::{MemoryDisk, Random};

/// The first letter of each intact record, and `[after-before:messages@file+offset]` for each gap.
fn salvage_from(disk: &MemoryDisk, position: LogPosition) -> String {
    let mut salvage = Salvage::start(Arc::new(disk.clone()), FILE_BYTES, position).expect("the disk is on");
    let mut seen = String::new();
    while let Some(salvaged) = salvage.next().expect("the disk is on") {
        match salvaged {
            Salvaged::Record(record) => seen.extend(record.sections().map(|section| char::from(section.lines[12]))),
            Salvaged::Gap(gap) => {
                let Gap { path, offset, after_sequence, before_sequence, known_messages } = gap;
                let before = before_sequence.map_or(String::new(), |before| before.to_string());
                let file = path.file_name().expect("it is a file").to_string_lossy().into_owned();
                seen.push_str(&format!("[{after_sequence}-{before}:{known_messages}@{}+{offset}]", &file[7..8]));
            }
        }
    }
    seen
}

#[track_caller]
fn check(disk: &MemoryDisk, expected: &str) {
    assert_eq!(salvage_from(disk, LogPosition::START), expected);
}

#[test]
fn an_intact_log_has_no_gaps() {
    check(&disk_with_six_records(), "abcdef");
    check(&MemoryDisk::default(), "");
}

#[test]
fn a_decayed_record_costs_what_it_holds_and_is_named() {
    check(&with_change("00000001.log", |content| content[PAGE + 100] ^= 1), "a[1-3:1@1+4096]cdef");
    check(&with_change("00000001.log", |content| content[100] ^= 1), "[0-2:1@1+0]bcdef");
    // Its header says how many messages it had; a decayed header does not.
    check(&with_change("00000001.log", |content| content[PAGE] ^= 1), "a[1-3:0@1+4096]cdef");
    check(&with_change("00000002.log", |content| content[PAGE + 100] ^= 1), "abcde[5-:1@2+4096]");
}

#[test]
fn zeros_and_missing_files_are_gaps_though_nothing_wrong_is_seen() {
    check(&with_change("00000001.log", |content| content[PAGE..3 * PAGE].fill(0)), "a[1-4:0@1+4096]def");
    let disk = disk_with_six_records();
    disk.take_away("00000001.log");
    check(&disk, "[0-5:0@1+0]ef");
    check(&with_change("00000001.log", |content| content.truncate(PAGE + 1000)), "a[1-5:1@1+4096]ef");
}

#[test]
fn a_record_of_another_log_is_not_taken_for_one_of_this() {
    let other = MemoryDisk::default();
    let (mut log, _) = other.open_log(FILE_BYTES, LogPosition { sequence: 1000, ..LogPosition::START }).expect("an empty folder opens");
    for _ in 0..2 {
        crate::storage::Storage::commit(&mut log, &super::super::scan::tests::batch("x")).expect("the disk works");
    }
    // Its sequence is higher than this log can have come to in the pages before it.
    check(
        &with_change("00000001.log", |content| content[PAGE..3 * PAGE].copy_from_slice(&other.content("00000001.log")[..2 * PAGE])),
        "a[1-4:0@1+4096]def",
    );
    // Its sequence follows, but it names another record before it.
    let disk = disk_with_six_records();
    let position = LogPosition { sequence: 0, checksum: 1, ..LogPosition::START };
    assert_eq!(salvage_from(&disk, position), "[0-2:0@1+0]bcdef");
}

#[test]
fn files_with_wrong_names_are_read_in_the_order_of_their_records() {
    let disk = disk_with_six_records();
    let [first, second] = ["00000001.log", "00000002.log"].map(|name| disk.content(name));
    disk.put("00000001.log", second.clone());
    disk.put("00000002.log", first.clone());
    check(&disk, "abcdef");

    // The other one of two has nothing in its first page, or nothing at all.
    let mut damaged = second.clone();
    damaged[..PAGE].fill(1);
    disk.put("00000001.log", damaged);
    check(&disk, "abcd[4-6:0@1+0]f");
    disk.put("00000001.log", vec![0; FILE_BYTES as usize]);
    check(&disk, "abcd");

    let disk = disk_with_six_records();
    disk.take_away("00000001.log");
    disk.put("00000099.log", first);
    check(&disk, "abcdef");

    // A copy is no second log.
    disk.put("00000050.log", second);
    let seen = salvage_from(&disk, LogPosition::START);
    assert!(seen.starts_with("abcdef["), "{seen}");
}

#[test]
fn a_log_that_begins_behind_a_backup_is_read_though_nothing_is_known_of_what_was_before() {
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition { sequence: 1000, ..LogPosition::START }).expect("an empty folder opens");
    for letter in ["a", "b"] {
        crate::storage::Storage::commit(&mut log, &super::super::scan::tests::batch(letter)).expect("the disk works");
    }
    check(&disk, "[0-1001:0@1+0]ab");
}

#[test]
fn whatever_is_damaged_what_is_kept_is_right_and_what_is_lost_is_within_a_gap() {
    let mut random = Random(3);
    for _ in 0..500 {
        let disk = disk_with_six_records();
        let mut flipped = Vec::new();
        for _ in 0..1 + random.below(2) {
            let record = random.below(6) as usize;
            let (name, page) = if record < 4 { ("00000001.log", record) } else { ("00000002.log", record - 4) };
            let mut content = disk.content(name);
            content[page * PAGE + random.below(2000) as usize] ^= 1 << random.below(8);
            disk.put(name, content);
            flipped.push(record);
        }
        let seen = salvage_from(&disk, LogPosition::START);
        let kept: String = seen.split(['[', ']']).step_by(2).collect();
        // A bit that was flipped twice is right again.
        let expected: String = "abcdef".chars().enumerate().filter(|(at, _)| !flipped.contains(at)).map(|(_, letter)| letter).collect();
        assert!(kept == expected || flipped.len() == 2 && kept == "abcdef", "{seen} after flips in {flipped:?}");
    }
}
