//! The tables: what is read is what was stored or an error, look-ups end where they should, and rows keep the rules that others rely on.

use super::*;
use crate::storage::history::segment::Run;
use rusqlite::StatementStatus;
use std::path::Path;

fn database() -> Database {
    Database::create_or_check(Connection::open_in_memory().expect("SQLite works")).expect("tables are made")
}

fn id(sequence: u64, ordinal: u32) -> MessageId {
    MessageId { sequence, ordinal }
}

/// A segment of the records from `from` to `to`, each with two messages that say its sequence and ordinal.
fn segment(room: &str, from: u64, to: u64) -> Segment {
    let mut segment = Segment::new(room, 2 * from - 1);
    for sequence in from..=to {
        let lines = format!("MESSAGE ada {sequence}-0\nMESSAGE ada {sequence}-1\n");
        let line_bytes = lines.len() as u32;
        segment.runs.push(Run { id: id(sequence, 0), unix_ms: 1000 * sequence, message_count: 2, line_bytes });
        segment.lines.extend_from_slice(lines.as_bytes());
    }
    segment
}

fn insert(database: &Database, segments: &[Segment]) {
    database.transaction(|writing| segments.iter().try_for_each(|segment| writing.insert(segment))).expect("they are stored");
}

/// The newest segment of room "a".
fn last_segment(database: &Database) -> Result<Option<Stored>, DatabaseError> {
    database.last_summary("a")?.map_or(Ok(None), |last| database.segment(last.row))
}

/// Room "a" in three segments, the records 1 to 3, 4, and 6 to 8, with another room before and behind it.
fn example() -> Database {
    let database = database();
    let segments = [segment("Z", 1, 9), segment("a", 1, 3), segment("a", 4, 4), segment("aa", 2, 4), segment("a", 6, 8)];
    insert(&database, &segments);
    database
}

#[track_caller]
fn check_last(count: u32, up_to: u64, expected: &[&str]) {
    let loaded = example().last_messages("a", count, up_to).expect("it is read");
    let lines: String = expected.iter().map(|text| format!("MESSAGE ada {text}\n")).collect();
    assert_eq!((String::from_utf8_lossy(&loaded.lines).into_owned(), loaded.message_count), (lines, expected.len() as u32));
}

#[test]
fn the_last_messages_come_from_as_many_segments_as_it_takes() {
    check_last(3, 99, &["7-1", "8-0", "8-1"]);
    check_last(9, 99, &["3-1", "4-0", "4-1", "6-0", "6-1", "7-0", "7-1", "8-0", "8-1"]);
    check_last(3, 7, &["6-1", "7-0", "7-1"]);
    check_last(3, 6, &["4-1", "6-0", "6-1"]);
    check_last(3, 5, &["3-1", "4-0", "4-1"]);
    check_last(1, 1, &["1-1"]);
    check_last(50, 2, &["1-0", "1-1", "2-0", "2-1"]);
    check_last(50, 0, &[]);
    check_last(0, 99, &[]);
    assert_eq!(example().last_messages("b", 50, 99), Ok(Loaded::default()));
    assert_eq!(example().last_messages("a", u32::MAX, u64::MAX).map(|loaded| loaded.message_count), Ok(14));
}

#[test]
fn a_room_is_walked_in_order_from_any_message() {
    let database = example();
    let first_behind = |id| database.segment_of_room_after("a", id).expect("it is read").map(|stored| stored.segment.first_id());
    assert_eq!(first_behind(None), Some(id(1, 0)));
    assert_eq!(first_behind(Some(id(3, 0))), Some(id(1, 0)));
    assert_eq!(first_behind(Some(id(3, 1))), Some(id(4, 0)));
    assert_eq!(first_behind(Some(id(4, 1))), Some(id(6, 0)));
    assert_eq!(first_behind(Some(id(5, 7))), Some(id(6, 0)));
    assert_eq!(first_behind(Some(id(8, 0))), Some(id(6, 0)));
    assert_eq!(first_behind(Some(id(8, 1))), None);
    assert_eq!(database.segment_of_room_after("b", None), Ok(None));

    let stored = Stored { row: 5, segment: segment("a", 6, 8) };
    assert_eq!(last_segment(&database), Ok(Some(stored.clone())));
    assert_eq!(database.segment_after_row(4), Ok(Some(stored)));
    assert_eq!((database.row_after(0), database.row_after(5)), (Ok(Some(1)), Ok(None)));
    let rooms = ["", "Z", "a", "aa"].map(|room| database.room_after(room).expect("it is read"));
    assert_eq!(rooms, [Some("Z".to_owned()), Some("a".to_owned()), Some("aa".to_owned()), None]);
    let last = database.last_summary("a").expect("it is read").expect("there is one");
    assert_eq!((last.row, last.last_id, last.end_number(), last.line_bytes), (5, id(8, 1), 17, 6 * 16));
}

#[test]
fn a_room_is_looked_up_without_a_scan_by_a_statement_that_is_compiled_once() {
    let database = example();
    for room in ["a", "aa", "Z", "b"].into_iter().cycle().take(100) {
        database.last_summary(room).expect("it is read");
    }
    let sql = format!("SELECT {SUMMARY_COLUMNS} FROM segment WHERE {LAST_OF_ROOM}");
    let statement = database.connection.prepare_cached(&sql).expect("it is cached");
    let [runs, compiled_again, scanned, sorted] =
        [StatementStatus::Run, StatementStatus::RePrepare, StatementStatus::FullscanStep, StatementStatus::Sort]
            .map(|status| statement.get_status(status));
    assert_eq!((runs, compiled_again, scanned, sorted), (100, 0, 0, 0));
}

#[test]
fn what_is_old_is_found_by_row_by_number_and_by_time() {
    let database = example();
    let rows = |found: Result<Vec<Summary>, DatabaseError>| found.expect("it is read").iter().map(|row| row.row).collect::<Vec<_>>();
    assert_eq!(rows(database.oldest_rows(3)), [1, 2, 3]);
    assert_eq!(rows(database.rows_of_room("a", 2)), [2, 3]);
    assert_eq!(rows(database.rows_of_room("a", 9)), [2, 3, 5]);
    assert_eq!(rows(database.rows_older_than(4000, (0, 0), 9)), [1, 2, 4]);
    assert_eq!(rows(database.rows_older_than(4001, (0, 0), 2)), [1, 2]);
    assert_eq!(rows(database.rows_older_than(4001, (1000, 2), 9)), [4, 3]);
    let oldest = &database.oldest_rows(1).expect("it is read")[0];
    assert_eq!((oldest.room.as_str(), oldest.first_number, oldest.message_count), ("Z", 1, 18));
    assert_eq!((oldest.first_ms, oldest.last_ms), (1000, 9000));
}

#[test]
fn rows_are_never_used_again_and_a_trimmed_segment_keeps_its_own() {
    let database = example();
    database
        .transaction(|writing| {
            writing.delete(5)?;
            writing.insert(&segment("a", 6, 10))
        })
        .expect("it is stored");
    database.transaction(|writing| writing.delete(6)).expect("it is deleted");
    insert(&database, &[segment("a", 11, 11)]);
    assert_eq!(database.last_summary("a").map(|last| last.map(|last| last.row)), Ok(Some(7)));

    let rest = segment("a", 1, 3).without_first(3).expect("something is left");
    database.transaction(|writing| writing.trim(2, &rest)).expect("it is stored");
    assert_eq!(database.segment(2), Ok(Some(Stored { row: 2, segment: rest })));
}

#[test]
fn a_transaction_is_stored_as_a_whole_or_not_at_all() {
    let database = example();
    let position = LogPosition { sequence: 8, checksum: u32::MAX, file_number: 3, offset: 1 << 25 };
    let failed: Result<(), _> = database.transaction(|writing| {
        writing.delete(1)?;
        writing.set_folded(position)?;
        Err(DatabaseError::Busy)
    });
    assert_eq!(failed, Err(DatabaseError::Busy));
    assert_eq!((database.row_after(0), database.folded()), (Ok(Some(1)), Ok(LogPosition::START)));
    database.transaction(|writing| writing.set_folded(position)).expect("it is stored");
    assert_eq!(database.folded(), Ok(position));
    // The same messages twice, and what is no segment, are refused.
    assert!(matches!(database.transaction(|writing| writing.insert(&segment("a", 1, 1))), Err(DatabaseError::Io(_))));
    let refused = database.transaction(|writing| writing.insert(&Segment::new("a", 1)));
    assert_eq!(refused, Err(damaged("messages of room a from 0-0 on: the runs are none")));
}

#[test]
fn one_flipped_bit_in_any_column_is_noticed() {
    let segment = segment("lounge", 7, 9);
    for column in SEGMENT_COLUMNS.split(", ").skip(1) {
        let stored = database();
        insert(&stored, std::slice::from_ref(&segment));
        let read = format!("SELECT CAST({column} AS BLOB), typeof({column}) FROM segment");
        let (bytes, kind): (Vec<u8>, String) =
            stored.connection.query_row(&read, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("it is read");
        let bits = if kind == "integer" { 63 } else { 8 * bytes.len() };
        for bit in 0..bits {
            let flip = |bytes: &mut Vec<u8>| bytes[bit / 8] ^= 1 << (bit % 8);
            let mut changed = bytes.clone();
            let value: Box<dyn ToSql> = match kind.as_str() {
                "integer" => Box::new(String::from_utf8_lossy(&bytes).parse::<i64>().expect("a number") ^ (1 << bit)),
                "text" => {
                    flip(&mut changed);
                    Box::new(ToSqlOutput::Borrowed(ValueRef::Text(&changed)))
                }
                _ => {
                    flip(&mut changed);
                    Box::new(changed)
                }
            };
            stored.connection.execute(&format!("UPDATE segment SET {column} = ?1"), [value]).expect("it is changed");
            let found = stored.segment(1);
            assert!(matches!(&found, Err(DatabaseError::Damaged { what }) if what.contains("row 1")), "{column}, bit {bit}: {found:?}");
        }
    }
}

#[test]
fn one_flipped_bit_in_the_place_is_noticed() {
    for column in ["sequence", "checksum", "file_number", "offset", "row_checksum"] {
        for bit in 0..63 {
            let database = database();
            database.connection.execute(&format!("UPDATE folded SET {column} = {column} + (1 << {bit})"), []).expect("it is changed");
            assert!(matches!(database.folded(), Err(DatabaseError::Damaged { .. })), "{column}, bit {bit}");
        }
    }
    let database = database();
    database.connection.execute("DELETE FROM folded", []).expect("it is deleted");
    assert_eq!(database.folded(), Err(damaged("table folded has no row")));
}

fn check_file(path: &Path, change: &str) -> Result<Database, DatabaseError> {
    let connection = Connection::open(path).expect("it opens");
    connection.execute_batch(change).expect("it is changed");
    Database::create_or_check(connection)
}

#[test]
fn only_a_history_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.db");
    let refused = |result: Result<Database, DatabaseError>| result.err().map(|error| error.to_string());

    let empty = Database::check(Connection::open(&path).expect("it opens"));
    assert_eq!(refused(empty), Some("it is empty".to_owned()));
    insert(&check_file(&path, "").expect("tables are made"), &[segment("a", 1, 1)]);
    let again = check_file(&path, "").expect("it is one");
    assert_eq!(last_segment(&again), Ok(Some(Stored { row: 1, segment: segment("a", 1, 1) })));
    assert_eq!(again.used_bytes(), Ok(std::fs::metadata(&path).expect("there is a file").len()));
    drop(again);

    let newer = check_file(&path, "PRAGMA user_version = 2");
    assert_eq!(refused(newer), Some("its format is 2, and this relay knows 1: start a newer relay".to_owned()));
    let damaged = check_file(&path, "PRAGMA user_version = 1; DROP INDEX segment_of_time");
    assert_eq!(refused(damaged), Some("its tables are not those of a history".to_owned()));
    let other = check_file(&folder.path().join("other.db"), "CREATE TABLE segment (id)");
    assert_eq!(refused(other), Some("it is a database of another program: move it elsewhere".to_owned()));
    std::fs::write(folder.path().join("text"), [b'x'; 5000]).expect("it is written");
    let text = Database::create_or_check(Connection::open(folder.path().join("text")).expect("it opens"));
    assert!(matches!(text.err(), Some(DatabaseError::Damaged { .. })));
}

#[test]
fn a_clock_beyond_what_sqlite_counts_is_kept() {
    let database = database();
    let mut late = segment("a", 1, 1);
    late.runs[0].unix_ms = u64::MAX;
    insert(&database, std::slice::from_ref(&late));
    assert_eq!(last_segment(&database), Ok(Some(Stored { row: 1, segment: late })));
}
