//! Files that are made, and files that are used again: which calls that takes, what may go wrong, and how many are kept.

use super::*;
use crate::storage::{
    contract::Storage,
    limits::RECORD_ALIGNMENT_BYTES,
    log::Log,
    memory_disk::{Fault, MemoryDisk, Random},
    position::LogPosition,
};
use relay_core::{Batch, Section};

/// A file holds two records of [`batch`].
const FILE_BYTES: u64 = 2 * RECORD_ALIGNMENT_BYTES;

fn batch(text: &str) -> Batch {
    let lines = format!("MESSAGE ada {}\n", text.repeat(3000)).into_bytes();
    Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] }
}

/// A log of so many records, all of which are in the history but for the last.
fn folded(record_count: usize) -> (MemoryDisk, Log, LogPosition) {
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("an empty folder opens");
    for _ in 0..record_count {
        log.commit(&batch("a")).expect("the disk works");
    }
    let mut reader = log.reader(LogPosition::START);
    for _ in 1..record_count {
        reader.next_record().expect("nothing is damaged").expect("it is there");
    }
    let position = reader.position();
    (disk, log, position)
}

fn names(disk: &MemoryDisk) -> Vec<String> {
    disk.names().expect("the disk is on")
}

/// The messages behind the position, shortened to a letter each.
#[track_caller]
fn check_stored(disk: &MemoryDisk, position: LogPosition, expected: &str) {
    let (log, _) = disk.open_log(FILE_BYTES, position).expect("the log opens");
    let (mut letters, mut reader) = (String::new(), log.reader(position));
    while let Some(record) = reader.next_record_up_to(log.committed()).expect("nothing is damaged") {
        letters.extend(record.sections().map(|section| char::from(section.lines[12])));
    }
    assert_eq!(letters, expected);
}

#[test]
fn a_free_file_is_zeroed_under_another_name_before_it_is_used_again() {
    let (disk, mut log, position) = folded(4);
    log.preparer().free_below(position.file_number);
    let earlier = disk.trace().len();
    log.preparer().prepare().expect("the disk works");
    assert_eq!(
        disk.trace()[earlier..],
        [
            "rename 00000001.log 00000003.log.new",
            "write 00000003.log.new 0+8192",
            "sync 00000003.log.new",
            "rename 00000003.log.new 00000003.log",
            "sync folder",
        ]
    );
    assert_eq!(names(&disk), ["00000002.log", "00000003.log"]);
    assert_eq!(disk.content("00000003.log"), vec![0; FILE_BYTES as usize]);
    assert_eq!(log.preparer().recycled_count(), 1);
    log.commit(&batch("b")).expect("the disk works");
    check_stored(&disk, position, "ab");
}

#[test]
fn the_file_that_the_history_has_come_to_is_not_free() {
    let (disk, mut log, position) = folded(3);
    assert_eq!((position.file_number, position.offset), (1, FILE_BYTES));
    log.preparer().free_below(position.file_number);
    for text in ["b", "c"] {
        log.commit(&batch(text)).expect("the disk works");
    }
    assert_eq!(log.preparer().recycled_count(), 0);
    check_stored(&disk, position, "abc");
}

#[test]
fn a_commit_that_finds_no_file_uses_a_free_one() {
    let (disk, mut log, position) = folded(4);
    log.preparer().free_below(position.file_number);
    log.commit(&batch("b")).expect("the disk works");
    assert_eq!(names(&disk), ["00000002.log", "00000003.log"]);
    check_stored(&disk, position, "ab");
}

#[test]
fn a_commit_finishes_the_file_that_is_being_made() {
    let step_bytes = PREPARE_STEP_BYTES as u64;
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(3 * step_bytes, LogPosition::START).expect("an empty folder opens");
    let preparer = log.preparer();
    for _ in 0..2 {
        preparer.prepare_step().expect("the disk works");
        assert!(preparer.is_due());
    }
    let earlier = disk.trace().len();
    log.commit(&batch("a")).expect("the disk works");
    assert_eq!(
        disk.trace()[earlier..],
        [
            "write 00000001.log.new 2097152+1048576",
            "sync 00000001.log.new",
            "rename 00000001.log.new 00000001.log",
            "sync folder",
            "write 00000001.log 0+4096",
            "sync 00000001.log",
        ]
    );
    // A step is all that a commit may have to wait for besides.
    preparer.prepare_step().expect("the disk works");
    assert_eq!(disk.trace()[earlier + 6..], ["create 00000002.log.new", "write 00000002.log.new 0+1048576", "sync 00000002.log.new"]);
}

#[test]
fn two_free_files_are_kept_and_the_others_removed() {
    let (disk, log, position) = folded(12);
    assert_eq!(position.file_number, 6);
    log.preparer().free_below(position.file_number);
    assert_eq!(names(&disk), ["00000004.log", "00000005.log", "00000006.log"]);

    // So it is at the next start.
    let (disk, _, position) = folded(12);
    disk.open_log(FILE_BYTES, position).expect("the log opens");
    assert_eq!(names(&disk), ["00000004.log", "00000005.log", "00000006.log"]);
    check_stored(&disk, position, "a");
}

#[test]
fn a_file_that_cannot_be_removed_is_no_reason_to_stop() {
    let (disk, mut log, position) = folded(12);
    disk.fail_at(disk.trace().len() + 1, Fault::IoError);
    log.preparer().free_below(position.file_number);
    assert_eq!(names(&disk), ["00000001.log", "00000004.log", "00000005.log", "00000006.log"]);
    log.commit(&batch("b")).expect("the disk works");
    check_stored(&disk, position, "ab");
}

#[test]
fn what_became_of_a_free_file_does_not_matter() {
    #[track_caller]
    fn check(change: impl FnOnce(&MemoryDisk), recycled_count: u64) {
        let (disk, mut log, position) = folded(6);
        log.preparer().free_below(position.file_number);
        change(&disk);
        log.commit(&batch("b")).expect("the disk works");
        assert_eq!(log.preparer().recycled_count(), recycled_count);
        assert_eq!(disk.content("00000004.log").len() as u64, FILE_BYTES);
        check_stored(&disk, position, "ab");
    }
    check(|_| {}, 1);
    check(|disk| disk.take_away("00000001.log"), 1);
    check(|disk| disk.put("00000001.log", vec![1; 100]), 1);
    check(|disk| disk.put("00000001.log", vec![1; FILE_BYTES as usize + 1]), 1);
    check(|disk| disk.put("00000001.log", vec![1; FILE_BYTES as usize]), 1);
    let spoil = |disk: &MemoryDisk| {
        disk.take_away("00000001.log");
        disk.put("00000002.log", Vec::new());
    };
    check(spoil, 0);
}

#[test]
fn using_a_file_again_asks_for_no_space() {
    let (disk, log, position) = folded(4);
    disk.set_free_bytes(0);
    log.preparer().prepare().expect_err("there is no room for a new file");
    log.preparer().free_below(position.file_number);
    log.preparer().prepare().expect("there is a free one");
    assert_eq!(names(&disk), ["00000002.log", "00000003.log"]);
}

#[test]
fn a_file_that_cannot_be_used_again_is_tried_again_or_made_new() {
    // Its first name, its zeros, its sync, its last name, the folder's sync: on a file system that copies on write each may find it full.
    for call in 1..=5 {
        let (disk, mut log, position) = folded(4);
        log.preparer().free_below(position.file_number);
        disk.fail_at(disk.trace().len() + call, Fault::Full);
        assert!(matches!(log.commit(&batch("b")), Err(StorageError::Full { .. })), "call {call}");
        assert!(!names(&disk).contains(&"00000003.log.new".to_owned()), "call {call}");
        log.commit(&batch("c")).expect("there is room again");
        check_stored(&disk, position, "ac");
    }
}

#[test]
fn a_start_finishes_what_a_power_cut_left_of_a_file_that_was_being_used_again() {
    // Three steps of zeros, so that it is left at each.
    let file_bytes = 3 * PREPARE_STEP_BYTES as u64;
    let long = |letter: &str| {
        let lines = format!("MESSAGE ada {}\n", letter.repeat(2 * PREPARE_STEP_BYTES)).into_bytes();
        Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] }
    };
    for call in 1..=9 {
        for seed in 0..4 {
            let disk = MemoryDisk::default();
            let (mut log, _) = disk.open_log(file_bytes, LogPosition::START).expect("an empty folder opens");
            for _ in 0..2 {
                log.commit(&long("a")).expect("the disk works");
            }
            let mut reader = log.reader(LogPosition::START);
            for _ in 0..2 {
                reader.next_record().expect("nothing is damaged").expect("it is there");
            }
            let position = reader.position();
            log.preparer().free_below(position.file_number);
            disk.fail_at(disk.trace().len() + call, Fault::PowerCut);
            log.preparer().prepare().expect_err("the power is gone");
            disk.power_cut(&mut Random(seed));

            let (mut log, recovered) = disk.open_log(file_bytes, position).expect("the log opens");
            assert_eq!((recovered.record_count, recovered.dropped_unfinished), (0, false));
            log.commit(&long("b")).expect("the disk works");
            assert!(names(&disk).iter().all(|name| ["00000001.log", "00000002.log", "00000003.log"].contains(&name.as_str())));
            let mut reader = log.reader(position);
            let record = reader.next_record().expect("nothing is damaged").expect("it is there");
            assert_eq!((record.sequence(), record.message_count()), (3, 1));
        }
    }
}
