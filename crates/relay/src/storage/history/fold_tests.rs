//! Folding: what comes out of a room is what went in, once and in order, however often and in whatever pieces it is folded.

use super::*;
use crate::storage::history::segment::Message;
use proptest::prelude::*;
use rusqlite::Connection;

/// The sections of a record: room and texts.
type Sections = Vec<(&'static str, Vec<String>)>;

fn database() -> Database {
    Database::create_or_check(Connection::open_in_memory().expect("SQLite works")).expect("tables are made")
}

fn position(sequence: u64) -> LogPosition {
    LogPosition { sequence, checksum: sequence as u32, file_number: 1 + sequence, offset: 4096 * sequence }
}

fn lines(texts: &[String]) -> Vec<u8> {
    texts.iter().flat_map(|text| format!("MESSAGE ada {text}\n").into_bytes()).collect()
}

/// A window of the records with the sequences `from + 1` and on, at most `count` of them.
fn window(records: &[Sections], from: u64, count: usize) -> Window {
    let mut window = Window::default();
    for (sequence, sections) in (1..).zip(records).skip(from as usize).take(count) {
        for (room, texts) in sections {
            let run =
                Run { id: MessageId { sequence, ordinal: 0 }, unix_ms: 1000 + sequence, message_count: texts.len() as u32, line_bytes: 0 };
            window.add_run(room, run, &lines(texts));
        }
        window.behind = Some(position(sequence));
    }
    window
}

fn fold_all(database: &Database, window: &mut Window, budget_bytes: usize) -> usize {
    let mut transactions = 0;
    loop {
        transactions += 1;
        let (left, written) = (window.line_bytes(), window.write_some(database, budget_bytes).expect("it is written"));
        assert_eq!(left - window.line_bytes(), written.line_bytes);
        assert_eq!(written.finished, window.is_empty());
        if written.finished {
            assert_eq!(window.line_bytes(), 0);
            return transactions;
        }
    }
}

/// Each message of each room: room, number, sequence, ordinal, time, line.
type Content = Vec<(String, u64, MessageId, u64, String)>;

fn expected(records: &[Sections]) -> Content {
    let mut content = Content::new();
    for (sequence, sections) in (1..).zip(records) {
        for (room, texts) in sections {
            for (ordinal, text) in (0..).zip(texts) {
                let number = 1 + content.iter().filter(|message| message.0 == *room).count() as u64;
                let line = format!("MESSAGE ada {text}\n");
                content.push(((*room).to_owned(), number, MessageId { sequence, ordinal }, 1000 + sequence, line));
            }
        }
    }
    content.sort();
    content
}

fn content(database: &Database) -> Content {
    let mut content = Content::new();
    let mut room = String::new();
    while let Some(next) = database.room_after(&room).expect("rooms are read") {
        room = next;
        let mut id = None;
        while let Some(stored) = database.segment_of_room_after(&room, id).expect("the room is read") {
            id = Some(stored.segment.last_id());
            for (number, Message { id, unix_ms, line }) in (stored.segment.first_number..).zip(stored.segment.messages()) {
                content.push((room.clone(), number, id, unix_ms, String::from_utf8_lossy(line).into_owned()));
            }
        }
    }
    content
}

/// Every row as it is, ids included.
fn rows(database: &Database) -> Vec<(i64, Segment)> {
    let mut rows = Vec::new();
    while let Some(stored) = database.segment_after_row(rows.last().map_or(0, |(row, _)| *row)).expect("the row is read") {
        rows.push((stored.row, stored.segment));
    }
    rows
}

fn records(shape: &[&[(&'static str, usize, usize)]]) -> Vec<Sections> {
    let texts = |count: usize, bytes: usize| (0..count).map(|at| format!("{at:0bytes$}")).collect();
    shape.iter().map(|sections| sections.iter().map(|(room, count, bytes)| (*room, texts(*count, *bytes))).collect()).collect()
}

/// Some rooms with a few messages, one with many, over some records.
fn example() -> Vec<Sections> {
    records(&[
        &[("b", 3, 10), ("a", 1, 10)],
        &[("big", 2000, 80), ("a", 2, 10), ("d", 30, 3000)],
        &[("c", 40, 100), ("big", 1000, 80)],
        &[("a", 1, 10)],
    ])
}

#[test]
fn folding_again_changes_nothing() {
    let (database, records) = (database(), example());
    fold_all(&database, &mut window(&records, 0, 9), 1 << 20);
    let before = rows(&database);
    for count in 1..=records.len() {
        let mut again = window(&records, 0, count);
        again.behind = Some(position(4));
        fold_all(&database, &mut again, 50_000);
        assert_eq!(rows(&database), before, "the first {count} records, again");
    }
    assert_eq!(content(&database), expected(&records));
}

#[test]
fn an_interruption_after_any_transaction_is_made_good() {
    let records = example();
    let all = fold_all(&database(), &mut window(&records, 0, 9), 30_000);
    assert!(all > 10, "{all} transactions");
    for interrupted_after in 0..=all {
        let database = database();
        let mut first = window(&records, 0, 9);
        for _ in 0..interrupted_after {
            first.write_some(&database, 30_000).expect("it is written");
        }
        let folded = if interrupted_after == all { position(4) } else { LogPosition::START };
        assert_eq!(database.folded(), Ok(folded));
        fold_all(&database, &mut window(&records, 0, 9), 100_000);
        assert_eq!(content(&database), expected(&records));
        assert_eq!(database.folded(), Ok(position(4)));
    }
}

#[test]
fn a_room_larger_than_a_transaction_is_written_in_several() {
    let mut shape = vec![&[("big", 100, 80)][..]; 50];
    shape.insert(0, &[("big", 10, 80)]);
    shape.push(&[("small", 1, 1)]);
    let (database, records) = (database(), records(&shape));
    fold_all(&database, &mut window(&records, 0, 1), 1 << 20);
    let (mut window, budget_bytes) = (window(&records, 1, 99), 100_000);
    let mut rooms = Vec::new();
    let mut transactions = 0;
    while !window.is_empty() {
        let written = window.write_some(&database, budget_bytes).expect("it is written");
        assert!(written.line_bytes > 0 && written.line_bytes <= budget_bytes + SEGMENT_BYTES, "{written:?}");
        rooms.extend(written.rooms);
        transactions += 1;
    }
    assert!(transactions >= 4);
    assert_eq!(rooms, [("big".to_owned(), 5011), ("small".to_owned(), 2)]);
    assert_eq!(content(&database), expected(&records));
    let lengths: Vec<usize> = rows(&database).iter().map(|(_, segment)| segment.lines.len()).collect();
    let full = |length: &&usize| **length > SEGMENT_BYTES - 100 && **length <= SEGMENT_BYTES;
    assert_eq!(lengths.iter().filter(full).count(), lengths.len() - 2, "{lengths:?}");
}

#[test]
fn small_segments_are_extended_and_large_ones_are_not() {
    let cases =
        [(4096, 1, true), (4097, 1, false), (4097, 2048, false), (4097, 2049, true), (16_383, 8192, true), (16_384, 100_000, false)];
    for (last_bytes, new_bytes, extended) in cases {
        assert_eq!(is_extended(last_bytes, new_bytes), extended, "{last_bytes} with {new_bytes} more");
    }
    // 500 folds of one message: a room's segments are neither tiny nor written over and over.
    let (database, records) = (database(), records(&vec![&[("a", 1, 80)][..]; 500]));
    for from in 0..500 {
        fold_all(&database, &mut window(&records, from, 1), 1 << 20);
    }
    let rows = rows(&database);
    assert!(rows.iter().rev().skip(1).all(|(_, segment)| segment.lines.len() > SEGMENT_SMALL_BYTES), "{}", rows.len());
    assert_eq!(content(&database), expected(&records));
}

#[test]
fn a_transaction_that_fails_leaves_the_window_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.db");
    let open = || {
        let connection = Connection::open(&path).expect("it opens");
        connection.busy_timeout(std::time::Duration::ZERO).expect("it is set");
        connection
    };
    let (database, records) = (Database::create_or_check(open()).expect("tables are made"), example());
    let mut window = window(&records, 0, 9);
    window.write_some(&database, 50_000).expect("it is written");
    let left_bytes = window.line_bytes();

    // A writer refuses the beginning, a reader the end.
    for lock in ["BEGIN IMMEDIATE", "BEGIN; SELECT * FROM folded"] {
        let other = open();
        other.execute_batch(lock).expect("it is locked");
        assert_eq!(window.write_some(&database, 50_000), Err(DatabaseError::Busy), "{lock}");
        assert_eq!(window.line_bytes(), left_bytes);
    }
    let pages: i64 = database.connection().pragma_query_value(None, "page_count", |row| row.get(0)).expect("it is read");
    database.connection().pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).expect("it is set");
    assert_eq!(window.write_some(&database, 50_000), Err(DatabaseError::Full));
    assert_eq!(window.line_bytes(), left_bytes);
    assert_eq!(database.folded(), Ok(LogPosition::START));

    database.connection().pragma_update_and_check(None, "max_page_count", 1 << 30, |_| Ok(())).expect("it is set");
    fold_all(&database, &mut window, 50_000);
    assert_eq!(content(&database), expected(&records));
}

#[test]
fn runs_from_elsewhere_leave_the_place_alone() {
    let (database, records) = (database(), example());
    let mut window = window(&records, 0, 9);
    window.behind = None;
    fold_all(&database, &mut window, 50_000);
    assert_eq!(database.folded(), Ok(LogPosition::START));
    assert!(window.is_empty());
}

#[test]
fn a_record_without_messages_moves_the_place() {
    let database = database();
    let mut empty = window(&[Sections::new()], 0, 1);
    assert!(!empty.is_empty());
    assert_eq!(fold_all(&database, &mut empty, 50_000), 1);
    assert_eq!(database.folded(), Ok(position(1)));
}

#[test]
fn a_window_is_full_of_rooms_as_it_is_full_of_lines() {
    let mut count = 0u64;
    let mut window = Window::default();
    while !window.is_full() {
        count += 1;
        let run = Run { id: MessageId { sequence: count, ordinal: 0 }, unix_ms: 0, message_count: 1, line_bytes: 0 };
        window.add_run(&format!("{count:064}"), run, b"MESSAGE a b\n");
    }
    assert!(count < 120_000, "{count} rooms");
    assert!(window.line_bytes() < FOLD_WINDOW_BYTES / 10);
}

fn some_records() -> impl Strategy<Value = Vec<Sections>> {
    let length = prop_oneof![8 => 0..100usize, 3 => 0..5000usize, 1 => 30_000..40_000usize];
    let texts = proptest::collection::vec(length.prop_map(|bytes| "z".repeat(bytes)), 1..12);
    let record = proptest::collection::btree_map(prop_oneof![Just("a"), Just("b"), Just("c")], texts, 0..3);
    proptest::collection::vec(record.prop_map(|sections| sections.into_iter().collect()), 1..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn however_it_is_cut_and_interrupted_the_history_is_the_log(
        records in some_records(),
        window_len in 1..12usize,
        budget_bytes in prop_oneof![1..60_000usize, Just(1 << 20)],
        interrupted_after in 1..6usize,
    ) {
        let database = database();
        // Each attempt lasts longer than the one before, so that the last one ends.
        for transactions in interrupted_after.. {
            let folded = database.folded().expect("it is read").sequence;
            if folded == records.len() as u64 {
                break;
            }
            let mut window = window(&records, folded, window_len);
            for _ in 0..transactions {
                if window.write_some(&database, budget_bytes).expect("it is written").finished {
                    break;
                }
            }
        }
        prop_assert_eq!(content(&database), expected(&records));
        let before = rows(&database);
        prop_assert!(before.iter().all(|(_, segment)| segment.lines.len() <= SEGMENT_BYTES || segment.message_count() == 1));
        fold_all(&database, &mut window(&records, 0, window_len), budget_bytes);
        prop_assert_eq!(rows(&database), before);
    }
}
