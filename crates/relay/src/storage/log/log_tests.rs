//! Commits on a disk in memory: what they cost, and what happens when the disk refuses.

use super::*;
use crate::storage::memory_disk::{Fault, MemoryDisk};
use relay_core::Section;

const FILE_BYTES: u64 = 16 << 10;

fn open(disk: &MemoryDisk) -> Log {
    disk.open_log(FILE_BYTES, LogPosition::START).expect("the log opens").0
}

/// A batch of one room whose record takes `pages` times 4 KiB.
fn batch(text: &str, pages: usize) -> Batch {
    let lines = format!("MESSAGE ada {text}{}\n", "x".repeat((pages - 1) * 4096)).into_bytes();
    Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] }
}

/// The first letter of each message in the log.
fn stored(disk: &MemoryDisk) -> String {
    letters(open(disk).reader(LogPosition::START))
}

/// The first letter of each message up to the end.
fn letters(mut reader: Scan) -> String {
    let mut letters = String::new();
    while let Some(record) = reader.next_record().expect("nothing is damaged") {
        letters.extend(record.sections().map(|section| char::from(section.lines[12])));
    }
    letters
}

#[track_caller]
fn check_trace_since(disk: &MemoryDisk, earlier: usize, expected: &[&str]) {
    assert_eq!(disk.trace()[earlier..], *expected);
}

#[test]
fn a_commit_is_one_write_and_one_sync() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    log.preparer().prepare().expect("there is room");
    let earlier = disk.trace().len();
    log.commit(&batch("a", 1)).expect("the disk works");
    log.commit(&batch("b", 2)).expect("the disk works");
    check_trace_since(
        &disk,
        earlier,
        &["write 00000001.log 0+4096", "sync 00000001.log", "write 00000001.log 4096+8192", "sync 00000001.log"],
    );
}

#[test]
fn a_file_is_durable_under_its_name_before_its_first_record() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    let earlier = disk.trace().len();
    log.commit(&batch("a", 1)).expect("the disk works");
    check_trace_since(
        &disk,
        earlier,
        &[
            "create 00000001.log.new",
            "write 00000001.log.new 0+16384",
            "sync 00000001.log.new",
            "rename 00000001.log.new 00000001.log",
            "sync folder",
            "write 00000001.log 0+4096",
            "sync 00000001.log",
        ],
    );
}

#[test]
fn the_preparer_is_due_when_no_file_waits() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    let preparer = log.preparer();
    assert!(preparer.is_due());
    preparer.prepare().expect("there is room");
    assert!(!preparer.is_due());
    log.commit(&batch("a", 1)).expect("the disk works");
    assert!(preparer.is_due());
    preparer.prepare().expect("there is room");
    preparer.prepare().expect("nothing to do");
    // Three more pages fill the first file; the fifth takes the second.
    for text in ["b", "c", "d"] {
        log.commit(&batch(text, 1)).expect("the disk works");
        assert!(!preparer.is_due());
    }
    let earlier = disk.trace().len();
    log.commit(&batch("e", 1)).expect("the disk works");
    check_trace_since(&disk, earlier, &["write 00000002.log 0+4096", "sync 00000002.log"]);
    assert!(preparer.is_due());
    assert_eq!(stored(&disk), "abcde");
}

#[test]
fn a_record_that_does_not_fit_begins_the_next_file() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    for (text, pages) in [("a", 3), ("b", 2), ("c", 2), ("d", 4)] {
        log.commit(&batch(text, pages)).expect("the disk works");
    }
    assert_eq!(stored(&disk), "abcd");
    assert_eq!(disk.names().expect("the disk is on"), ["00000001.log", "00000002.log", "00000003.log"]);
}

#[test]
fn a_short_write_is_continued() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    log.preparer().prepare().expect("there is room");
    disk.fail_at(disk.trace().len() + 1, Fault::ShortWrite);
    let earlier = disk.trace().len();
    log.commit(&batch("a", 1)).expect("the rest is written");
    check_trace_since(&disk, earlier, &["write 00000001.log 0+4096", "write 00000001.log 2048+2048", "sync 00000001.log"]);
    assert_eq!(stored(&disk), "a");
}

#[test]
fn a_full_disk_leaves_no_trace_of_the_batch_and_is_tried_again() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    log.commit(&batch("a", 1)).expect("there is room");
    let before = disk.content("00000001.log");
    disk.fail_at(disk.trace().len() + 1, Fault::Full);
    assert!(matches!(log.commit(&batch("b", 2)), Err(StorageError::Full { .. })));
    assert_eq!(disk.content("00000001.log"), before);
    log.commit(&batch("c", 1)).expect("there is room again");
    assert_eq!(stored(&disk), "ac");
}

#[test]
fn a_new_file_that_finds_the_disk_full_is_removed_and_made_later() {
    // Creating it, its first half, its sync, its name, the folder's sync.
    for call in 1..=5 {
        let disk = MemoryDisk::default();
        let mut log = open(&disk);
        disk.fail_at(disk.trace().len() + call, Fault::Full);
        assert!(matches!(log.commit(&batch("a", 1)), Err(StorageError::Full { .. })), "call {call}");
        assert!(!disk.names().expect("the disk is on").contains(&"00000001.log.new".to_owned()), "call {call}");
        log.commit(&batch("b", 1)).expect("there is room again");
        assert_eq!(stored(&disk), "b", "call {call}");
    }
}

#[test]
fn below_64_mib_of_free_space_nothing_is_committed() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    log.preparer().prepare().expect("there is room");
    disk.set_free_bytes(FREE_BYTES_MIN - 1);
    let earlier = disk.trace().len();
    for _ in 0..2 {
        assert!(matches!(log.commit(&batch("a", 1)), Err(StorageError::Full { .. })));
    }
    check_trace_since(&disk, earlier, &[]);
    disk.set_free_bytes(FREE_BYTES_MIN);
    log.commit(&batch("b", 1)).expect("there is room again");

    // A new file must leave that much free.
    log.preparer().prepare().expect_err("64 MiB would not be left");
    disk.set_free_bytes(FREE_BYTES_MIN + FILE_BYTES);
    log.preparer().prepare().expect("64 MiB are left");
}

#[test]
fn free_space_is_asked_for_once_per_mib() {
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(2 << 20, LogPosition::START).expect("the log opens");
    log.commit(&batch("a", 255)).expect("there is room");
    disk.set_free_bytes(0);
    log.commit(&batch("b", 1)).expect("not asked yet");
    assert!(matches!(log.commit(&batch("c", 1)), Err(StorageError::Full { .. })));
}

#[test]
fn a_failed_write_or_sync_is_final() {
    // The write, then the sync; a full disk at the sync is no way back either.
    for (call, fault, action) in [(1, Fault::IoError, "writing to"), (2, Fault::IoError, "syncing"), (2, Fault::Full, "syncing")] {
        let disk = MemoryDisk::default();
        let mut log = open(&disk);
        log.commit(&batch("a", 1)).expect("the disk works");
        disk.fail_at(disk.trace().len() + call, fault);
        let error = log.commit(&batch("b", 1)).expect_err("the disk failed").to_string();
        assert!(error.starts_with(&format!("{action} memory/log/00000001.log at offset 4096 failed: ")), "{error}");
        let earlier = disk.trace().len();
        assert_eq!(log.commit(&batch("c", 1)).expect_err("it is final").to_string(), error);
        check_trace_since(&disk, earlier, &[]);
    }
}

#[test]
fn a_write_or_sync_that_fails_while_a_file_is_prepared_fails_the_commit_that_needs_it() {
    // Its first half, its sync, the folder's sync.
    for call in [2, 3, 5] {
        let disk = MemoryDisk::default();
        let mut log = open(&disk);
        log.commit(&batch("a", 2)).expect("the disk works");
        disk.fail_at(disk.trace().len() + call, Fault::IoError);
        for _ in 0..2 {
            let error = log.preparer().prepare().expect_err("the disk failed");
            assert!(matches!(error, StorageError::Failed(_)), "{error}");
        }
        log.commit(&batch("b", 2)).expect("the current file has room");
        let earlier = disk.trace().len();
        for _ in 0..2 {
            assert!(matches!(log.commit(&batch("c", 1)), Err(StorageError::Failed(_))), "call {call}");
        }
        check_trace_since(&disk, earlier, &[]);
        assert_eq!(stored(&disk), "ab");
    }
}

#[test]
fn what_is_refused_before_anything_is_written_is_tried_again() {
    #[track_caller]
    fn check(refuse: impl Fn(&MemoryDisk), expected: &str) {
        let disk = MemoryDisk::default();
        let mut log = open(&disk);
        log.commit(&batch("a", 2)).expect("the disk works");
        refuse(&disk);
        let error = log.preparer().prepare().expect_err("it is refused").to_string();
        assert!(error.starts_with(&format!("{expected} failed: ")), "{error}");
        disk.set_free_bytes(u64::MAX);
        log.commit(&batch("b", 2)).expect("the current file has room");

        // The same while a commit waits for the file.
        refuse(&disk);
        let error = log.commit(&batch("c", 1)).expect_err("there is no file");
        assert!(matches!(error, StorageError::Refused(_)), "{error}");
        assert!(error.to_string().starts_with(&format!("{expected} failed: ")), "{error}");
        disk.set_free_bytes(u64::MAX);
        log.commit(&batch("d", 1)).expect("it works again");
        assert_eq!(stored(&disk), "abd");
    }
    check(|disk| disk.fail_at(disk.trace().len() + 1, Fault::IoError), "creating memory/log/00000002.log.new");
    check(|disk| disk.fail_at(disk.trace().len() + 4, Fault::IoError), "renaming memory/log/00000002.log.new");
    check(MemoryDisk::refuse_free_bytes, "asking for the free space of memory/log");
}

#[test]
fn a_commit_that_cannot_ask_for_free_space_is_refused_and_tried_again() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    log.preparer().prepare().expect("the disk works");
    disk.refuse_free_bytes();
    assert!(matches!(log.commit(&batch("a", 1)), Err(StorageError::Refused(_))));
    disk.set_free_bytes(u64::MAX);
    log.commit(&batch("b", 1)).expect("it works again");
    assert_eq!(stored(&disk), "b");
}

#[test]
fn a_batch_longer_than_a_record_is_refused() {
    let disk = MemoryDisk::default();
    let mut log = open(&disk);
    let error = log.commit(&batch("a", 5)).expect_err("it is longer than a file");
    assert!(error.to_string().contains("longer than the 16777216 bytes"), "{error}");
}
