//! Each kind of damage is found and named, and nothing else is.

use super::*;
use crate::storage::{
    disk::Disk,
    folder::{HISTORY, JOURNAL},
    history::{Database, PAGE_BYTES, open_connection},
    memory_disk::{Fault, MemoryDisk, Random},
    position::MessageId,
    tools::test_world::{World, last_record, many_rooms, source_of},
};
use std::sync::Arc;

fn verify(disk: &MemoryDisk) -> Report {
    verify_or_refuse(disk).expect("it can be looked at")
}

fn verify_or_refuse(disk: &MemoryDisk) -> Result<Report, OpenError> {
    let mut report = Report::new(Path::new("memory"));
    verify_source(&source_of(disk), &mut report, &mut |_| {}).map(|()| report)
}

/// A history of two rooms with several segments each, and a log that goes on behind it in the second file or later.
fn world() -> World {
    let mut world = World::new();
    for _ in 0..10 {
        world.commit(["kitchen", "lounge"], 4, 4000);
    }
    world.fold();
    for _ in 0..3 {
        world.commit(["lounge"], 2, 100);
    }
    world
}

/// A statement that relay would never run, by a connection that seals what it writes.
fn with_statement(world: &World, sql: &str) -> MemoryDisk {
    let disk = world.disk.copy();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, crate::storage::disk::Access::ReadWrite).expect("the disk works");
    connection.connection.execute_batch(sql).expect("it is a statement");
    disk
}

/// Every finding has a command; one of them says all of this.
#[track_caller]
fn check_found(disk: &MemoryDisk, expected: &[&str]) {
    let report = verify(disk);
    let texts: Vec<String> = report
        .findings
        .iter()
        .map(|finding| format!("{}:{:?}:{:?}: {}", finding.path, finding.offset, finding.row, finding.meaning))
        .collect();
    assert!(texts.iter().any(|text| expected.iter().all(|part| text.contains(part))), "{expected:?} is not in {texts:#?}");
    assert_eq!(report.finding_count, texts.len() as u64);
    assert!(report.findings.iter().all(|finding| finding.command.starts_with("relay repair --data memory")));
}

#[test]
fn an_intact_folder_is_right_and_everything_in_it_was_looked_at() {
    let world = world();
    let report = verify(&world.disk);
    assert_eq!((report.finding_count, &report.findings, &report.notes), (0, &Vec::new(), &Vec::new()));
    let said: usize = world.said.values().map(Vec::len).sum();
    assert_eq!((report.message_count, report.room_count, report.record_count), (said as u64, 2, 3));
    assert!(report.segment_count > 4, "{report:?}");
    assert_eq!(report.page_count, world.disk.content(HISTORY).len() as u64 / PAGE_BYTES as u64);
    assert!(verify(&MemoryDisk::default()).is_right(), "an empty one");
}

#[test]
fn verify_writes_nothing() {
    let world = world();
    let disk = world.disk_with_change(HISTORY, |content| content[3 * PAGE_BYTES + 10] ^= 1);
    let before = disk.trace();
    verify(&disk);
    assert_eq!(disk.trace(), before);
}

#[test]
fn a_flip_in_any_page_is_found_and_its_page_is_named() {
    let world = world();
    let page_count = world.disk.content(HISTORY).len() / PAGE_BYTES;
    let mut random = Random(1);
    for page in 0..page_count {
        let disk = world.disk_with_change(HISTORY, |content| {
            content[page * PAGE_BYTES + random.below(PAGE_BYTES as u64) as usize] ^= 1 << random.below(8);
        });
        check_found(&disk, &["history.db", &format!("Some({})", page * PAGE_BYTES), &format!("page {} ", page + 1)]);
    }
}

#[test]
fn a_flip_in_a_record_is_found_with_its_offset() {
    let world = world();
    let files: Vec<String> = world.disk.names().expect("the disk is on").into_iter().filter(|name| name.ends_with(".log")).collect();
    // The three records behind `folded` are somewhere in these files, and a flip in each of them is found.
    let mut found = 0;
    for name in &files {
        for page in 0..16 {
            if world.disk.content(name)[page * PAGE_BYTES..][..4] != *b"\xffRLG" {
                continue;
            }
            let disk = world.disk_with_change(name, |content| content[page * PAGE_BYTES + 60] ^= 1);
            let report = verify(&disk);
            if !report.is_right() {
                check_found(&disk, &[name, &format!("Some({})", page * PAGE_BYTES), "checksum"]);
                found += 1;
            }
        }
    }
    assert_eq!(found, 3, "what is folded may be anything, what is not must be right");
}

#[test]
fn missing_files_are_found() {
    let world = world();
    let disk = world.disk.copy();
    for name in disk.names().expect("the disk is on").iter().filter(|name| name.ends_with(".log")) {
        disk.take_away(name);
    }
    check_found(&disk, &[".log", "the file is missing"]);

    let disk = world.disk.copy();
    disk.take_away(HISTORY);
    disk.take_away(JOURNAL);
    check_found(&disk, &["is missing, though"]);
}

#[test]
fn a_foreign_database_is_found() {
    check_found(&with_statement(&world(), "CREATE TABLE notes (text TEXT)"), &["tables"]);
    let disk = world().disk;
    disk.put(HISTORY, b"not a database at all".repeat(300));
    check_found(&disk, &["history.db", "page 1"]);
}

/// A repair would drop what it does not understand, and keep the rest.
#[test]
fn what_a_newer_relay_or_another_program_wrote_is_no_damage_and_left_alone() {
    let refused = |disk: &MemoryDisk| verify_or_refuse(disk).expect_err("it is not ours").to_string();
    let other = refused(&with_statement(&world(), "PRAGMA application_id = 7"));
    assert!(other.contains("another program: move it elsewhere"), "{other}");
    let newer = refused(&with_statement(&world(), "PRAGMA user_version = 2"));
    assert!(newer.contains("start a newer relay"), "{newer}");

    let (name, page) = last_record(&world().disk);
    let disk = world().disk_with_change(&name, |content| {
        content[page * PAGE_BYTES + 4] += 1;
        let checksum = crc32c::crc32c(&content[page * PAGE_BYTES..][..48]);
        content[page * PAGE_BYTES + 48..][..4].copy_from_slice(&checksum.to_le_bytes());
    });
    let newer = refused(&disk);
    assert!(newer.contains("format version 2, written by a newer relay"), "{newer}");
}

#[test]
fn a_history_without_tables_is_none_yet() {
    let disk = MemoryDisk::default();
    drop(open_connection(Arc::new(disk.clone()), HISTORY, crate::storage::disk::Access::ReadWrite).expect("the disk works"));
    let report = verify(&disk);
    assert_eq!((report.findings, report.page_count), (Vec::new(), 1));
}

/// One connection has begun to write, and its commit would wait for the end of a read.
#[test]
fn the_check_of_sqlite_gives_way_to_whoever_writes() {
    let world = world();
    let disk = world.disk.copy();
    let writer = open_connection(Arc::new(disk.clone()), HISTORY, crate::storage::disk::Access::ReadWrite).expect("the disk works");
    let is_given_up = |disk: &MemoryDisk| verify(disk).notes.iter().any(|note| note.contains("was given up"));
    assert!(!is_given_up(&disk));
    writer.connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    assert!(is_given_up(&disk));
    writer.connection.execute_batch("ROLLBACK").expect("it is under way");
    assert!(!is_given_up(&disk));
}

#[test]
fn segments_that_contradict_each_other_are_found() {
    let world = world();
    // The second segment of the lounge, again with another row: the same messages twice.
    let again = "INSERT INTO segment (room, first_number, first_sequence, first_ordinal, last_sequence, last_ordinal, first_ms, last_ms, \
                 message_count, checksum, runs, lines) SELECT room, first_number, first_sequence, first_ordinal + 1, last_sequence, \
                 last_ordinal, \
                 first_ms, last_ms, message_count, checksum, runs, lines FROM segment WHERE room = 'lounge' LIMIT 1 OFFSET 1";
    check_found(&with_statement(&world, again), &["columns do not fit"]);

    let gap = "DELETE FROM segment WHERE id IN (SELECT id FROM segment WHERE room = 'lounge' ORDER BY first_sequence LIMIT 1 OFFSET 1)";
    check_found(&with_statement(&world, gap), &["lounge", "are missing"]);

    // What another relay said in the same room, with checksums that are right.
    let mut other = World::new();
    for _ in 0..7 {
        other.commit(["lounge"], 3, 7000);
    }
    other.fold();
    let disk = world.disk.copy();
    copy_rows(&other.disk, &disk);
    check_found(&disk, &["lounge", "are there twice"]);
}

/// Adds the rows of one history to another.
fn copy_rows(from: &MemoryDisk, to: &MemoryDisk) {
    let source = source_of(from).history().expect("it is right").expect("it is there");
    let target = open_connection(Arc::new(to.clone()), HISTORY, crate::storage::disk::Access::ReadWrite).expect("the disk works");
    let target = Database::create_or_check(target.connection).expect("it is right");
    let mut row = 0;
    while let Some(stored) = source.database.segment_after_row(row).expect("it is right") {
        row = stored.row;
        target
            .transaction(|writing| {
                // Where the index has the place already, the room cannot have both.
                let _ = writing.insert(&stored.segment);
                Ok(())
            })
            .expect("the disk works");
    }
}

#[test]
fn a_changed_row_is_found_though_its_pages_are_sealed() {
    let world = world();
    let change = "UPDATE segment SET lines = replace(lines, 'ada', 'eve') WHERE id = (SELECT min(id) FROM segment)";
    check_found(&with_statement(&world, change), &["Some(", "checksum"]);
    check_found(&with_statement(&world, "UPDATE folded SET offset = 0"), &["folded", "checksum"]);
    check_found(&with_statement(&world, "DELETE FROM folded"), &["folded"]);
}

#[test]
fn an_index_that_disagrees_with_its_table_is_found() {
    let world = world();
    let change = "PRAGMA writable_schema = ON; \
                  UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'segment_of_time') \
                  WHERE name = 'segment_of_room'; PRAGMA writable_schema = RESET";
    let report = verify(&with_statement(&world, change));
    assert!(!report.is_right(), "{report:?}");
}

#[test]
fn a_fold_that_was_cut_off_anywhere_is_no_damage() {
    let rooms = many_rooms();
    let mut notes = 0;
    for steps in 0.. {
        let mut world = World::new();
        world.commit(rooms.iter().map(String::as_str), 1, 20);
        let mut is_over = false;
        (0..steps).for_each(|_| is_over |= !world.step());
        let report = verify(&world.disk.copy());
        assert_eq!((report.findings, report.message_count), (Vec::new(), 401), "after {steps} steps");
        notes += report.notes.len();
        if is_over {
            break;
        }
    }
    assert_eq!(notes, 0);
}

#[test]
fn a_power_cut_at_any_call_leaves_no_damage() {
    let rooms = many_rooms();
    let mut random = Random(5);
    let mut seen = [0; 3];
    for call in (1..).step_by(9) {
        let mut world = World::new();
        let begin = world.disk.trace().len();
        world.disk.fail_at(begin + call, Fault::PowerCut);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            world.commit(rooms.iter().map(String::as_str), 1, 20);
            world.fold();
            world.commit(["lounge"], 2, 20);
        }));
        if done.is_ok() {
            break;
        }
        world.disk.power_cut(&mut random);
        let report = verify(&world.disk);
        assert_eq!(report.findings, Vec::new(), "at call {call}");
        let is_cut_off = |what: &str| report.notes.iter().any(|note| note.contains(what));
        seen[0] += u32::from(is_cut_off("a change of"));
        seen[1] += u32::from(is_cut_off("a commit is not complete"));
        seen[2] += u32::from(report.notes.is_empty());
    }
    assert!(seen[0] > 0 && seen[2] > 0, "{seen:?}");
}

/// The server is killed after this process has opened the file.
#[test]
fn a_change_that_is_cut_off_under_a_reader_is_told_as_such() {
    let rooms = many_rooms();
    let mut random = Random(5);
    let mut seen = 0;
    for call in (1..200).step_by(9) {
        let mut world = World::new();
        world.commit(["lounge"], 1, 20);
        world.fold();
        let beside = world.disk.copy();
        let history = source_of(&beside).history().expect("it is right").expect("it is there");
        world.disk.fail_at(world.disk.trace().len() + call, Fault::PowerCut);
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            world.commit(rooms.iter().map(String::as_str), 1, 20);
            world.fold();
        }));
        world.disk.power_cut(&mut random);
        if !matches!(source_of(&world.disk).history(), Err(OpenError::Unfinished { .. })) {
            continue;
        }
        seen += 1;
        for name in [HISTORY, JOURNAL] {
            beside.put(name, world.disk.content(name));
        }
        let answer = history.ask(Database::folded);
        assert!(matches!(answer, Err(OpenError::Unfinished { .. })), "{answer:?}");
    }
    assert!(seen > 0, "no call left a journal that is hot");
}

#[test]
fn a_log_of_another_time_than_the_history_is_found() {
    let mut world = World::new();
    world.commit(["lounge"], 1, 20);
    let early = world.disk.copy();
    world.commit(["lounge"], 1, 20);
    world.fold();
    let disk = world.disk.copy();
    for name in early.names().expect("the disk is on").into_iter().filter(|name| name.ends_with(".log")) {
        disk.put(&name, early.content(&name));
    }
    let report = verify(&disk);
    assert!(report.findings.iter().any(|finding| finding.meaning.contains("of different times")), "{report:?}");
}

#[test]
fn an_unfinished_commit_is_a_note() {
    let mut world = world();
    world.commit(["lounge"], 2, 3000);
    let mut disk = None;
    for name in world.disk.names().expect("the disk is on").into_iter().filter(|name| name.ends_with(".log")) {
        let content = world.disk.content(&name);
        let last = (0..16).rfind(|page| content[page * PAGE_BYTES..][..4] == *b"\xffRLG");
        if let Some(page) = last {
            disk = Some(world.disk_with_change(&name, |content| content[page * PAGE_BYTES..][..512].fill(0)));
        }
    }
    let report = verify(&disk.expect("there is a last record"));
    assert_eq!(report.findings, Vec::new());
    assert!(report.notes.iter().any(|note| note.contains("a commit is not complete")), "{:?}", report.notes);
}

#[test]
fn what_the_history_has_ahead_of_the_log_must_be_what_the_log_says() {
    let rooms = many_rooms();
    let mut world = World::new();
    world.commit(rooms.iter().map(String::as_str), 1, 20);
    // Until the first transaction is written, and `folded` has not moved.
    let stored = loop {
        assert!(world.step(), "the first transaction is not the last");
        let history = world.source().history().expect("it is right").expect("it is there");
        assert_eq!(history.database.folded().expect("it is right").sequence, 0);
        if let Some(stored) = history.database.segment_after_row(0).expect("it is right") {
            break stored;
        }
    };
    let mut segment = stored.segment;
    let at = segment.lines.iter().rposition(|byte| *byte == b'x').expect("it is the text");
    segment.lines[at] = b'y';
    let disk = world.disk.copy();
    let connection = open_connection(Arc::new(disk.clone()), HISTORY, crate::storage::disk::Access::ReadWrite).expect("the disk works");
    let database = Database::create_or_check(connection.connection).expect("it is right");
    database.transaction(|writing| writing.trim(stored.row, &segment)).expect("the disk works");
    drop(database);
    let id = MessageId { sequence: 1, ordinal: 0 };
    check_found(&disk, &["is not what the log has", &format!("{}-{}", id.sequence, id.ordinal)]);
}

#[test]
fn more_findings_than_are_shown_are_counted() {
    let mut report = Report::new(Path::new("memory"));
    for offset in 0..150 {
        report.find(source_of(&MemoryDisk::default()).finding("x".into(), Some(offset), None, "wrong".to_owned()));
    }
    assert_eq!((report.finding_count, report.findings.len()), (150, 100));
}
