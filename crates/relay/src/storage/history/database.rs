//! The tables of history.db, and every statement that is run on them.
//!
//! Segments describe themselves: there is no table of rooms, so damage in one place loses one place. What is read back is checked, its
//! columns against its runs and all of it against its checksum; it is an error or right. Knows nothing of folding, and nothing of the file
//! under the connection. A look-up costs the pages of one path through an index and of the row. Next: `fold.rs`, which decides what is
//! written.
//!
//! Three rules that others rely on:
//!
//! - A row that is new, or holds a message that it did not hold before, has an id above that of every row before it, those that were
//!   deleted included (`AUTOINCREMENT`). Who has read all rows up to an id and goes on behind it misses nothing.
//! - In one room, ids grow as the messages do. So rows that are deleted from the lowest id on are the start of each room.
//! - A segment that loses its first messages keeps its id ([`Writing::trim`]), which is what keeps the rule above.

use super::segment::Segment;
use crate::storage::{
    contract::Loaded,
    limits::{STATEMENTS_MAX, STEPS_PER_LOOK},
    position::{LogPosition, MessageId},
};
use rusqlite::{
    Connection, ErrorCode, OptionalExtension, Params, Row, ToSql,
    config::DbConfig,
    ffi, params,
    types::{ToSqlOutput, ValueRef},
};
use std::{error::Error, fmt, time::Duration};

/// history.db, with its tables.
pub(crate) struct Database {
    connection: Connection,
}

/// A transaction that writes. Dropped with the call of [`Database::transaction`].
pub(crate) struct Writing<'a> {
    database: &'a Database,
}

/// A segment and its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) row: i64,
    pub(crate) segment: Segment,
}

/// What the columns of a row say of its segment, unchecked: cheap to read, because the messages are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) row: i64,
    pub(crate) room: String,
    pub(crate) first_number: u64,
    pub(crate) last_id: MessageId,
    pub(crate) first_ms: u64,
    pub(crate) last_ms: u64,
    pub(crate) message_count: u32,
    pub(crate) line_bytes: u64,
}

/// What the index by room says of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) row: i64,
    pub(crate) room: String,
    pub(crate) first_id: MessageId,
}

/// Why the history could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// Too little disk is free. Nothing was written.
    Full,
    /// Somebody else reads or writes for too long. Nothing was written.
    Busy,
    /// A change was cut off meanwhile, and this connection may only read.
    Unfinished,
    /// It does not hold what was once stored in it.
    Damaged {
        /// The row or page, and what is wrong with it.
        what: String,
    },
    /// It has no tables yet: the start that made the file was cut off, or is just making them.
    Empty,
    /// It is no history, or none that this relay understands: what it is instead.
    Refused(String),
    /// The disk or SQLite failed: what was said.
    Io(String),
}

impl Database {
    /// The history on this connection; its tables are made in a file that is empty.
    ///
    /// # Errors
    ///
    /// [`DatabaseError::Refused`] for a file that is something else or from a newer relay.
    pub(crate) fn create_or_check(connection: Connection) -> Result<Database, DatabaseError> {
        let empty = Database { connection };
        if empty.pragma("application_id")? == 0 && empty.pragma("user_version")? == 0 && empty.schema()?.is_empty() {
            empty.transaction(|writing| writing.create())?;
        }
        Database::check(empty.connection)
    }

    /// The history on this connection, which may only read.
    ///
    /// # Errors
    ///
    /// [`DatabaseError::Refused`] as above; [`DatabaseError::Empty`].
    pub(crate) fn check(connection: Connection) -> Result<Database, DatabaseError> {
        if rusqlite::version_number() < SQLITE_VERSION_MIN {
            let found = rusqlite::version();
            return Err(DatabaseError::Refused(format!(
                "SQLite {found} is older than 3.51.3, which relay needs: build it with a newer one"
            )));
        }
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        // Otherwise a statement is compiled again each time a room is bound to it, in case a better plan exists for that value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        let database = Database { connection };
        match (database.pragma("application_id")?, database.pragma("user_version")?) {
            (APPLICATION_ID, USER_VERSION) => {}
            (APPLICATION_ID, newer) if newer > USER_VERSION => {
                return Err(DatabaseError::Refused(format!(
                    "its format is {newer}, and this relay knows {USER_VERSION}: start a newer relay"
                )));
            }
            (0, 0) if database.schema()?.is_empty() => return Err(DatabaseError::Empty),
            _ => return Err(DatabaseError::Refused("it is a database of another program: move it elsewhere".to_owned())),
        }
        if database.schema()? != SCHEMA { Err(damaged("its tables are not those of a history")) } else { Ok(database) }
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How long to wait for another program that has the file locked before saying [`Busy`](DatabaseError::Busy).
    pub(crate) fn be_busy_for(&self, time: Duration) -> Result<(), DatabaseError> {
        Ok(self.connection.busy_timeout(time)?)
    }

    /// Up to where the log is in here.
    pub(crate) fn folded(&self) -> Result<LogPosition, DatabaseError> {
        let mut statement = self.connection.prepare_cached("SELECT sequence, checksum, file_number, offset, row_checksum FROM folded")?;
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else { return Err(damaged("table folded has no row")) };
        let position =
            LogPosition { sequence: number(row, 0)?, checksum: number(row, 1)?, file_number: number(row, 2)?, offset: number(row, 3)? };
        let checksum: u32 = number(row, 4)?;
        if checksum == position_checksum(&position) && rows.next()?.is_none() {
            Ok(position)
        } else {
            Err(damaged("table folded: its checksum does not match, or it has more than one row"))
        }
    }

    /// The newest segment of a room, without its messages.
    pub(crate) fn last_summary(&self, room: &str) -> Result<Option<Summary>, DatabaseError> {
        Ok(self.summaries_where(LAST_OF_ROOM, [room])?.pop())
    }

    /// The last messages of a room among the records up to this one, at most `count`. Reads only the segments that hold them.
    pub(crate) fn last_messages(&self, room: &str, count: u32, up_to_sequence: u64) -> Result<Loaded, DatabaseError> {
        let (mut segments, mut message_count) = (Vec::new(), 0);
        let mut before = MessageId { sequence: up_to_sequence.saturating_add(1), ordinal: 0 };
        while message_count < count
            && let Some(stored) = self.segment_where(
                "room = ?1 AND (first_sequence, first_ordinal) < (?2, ?3) ORDER BY first_sequence DESC, first_ordinal DESC LIMIT 1",
                params![room, column(before.sequence), before.ordinal],
            )?
        {
            before = stored.segment.first_id();
            let Some(mut segment) = stored.segment.up_to(up_to_sequence) else { break };
            let excess = segment.message_count().saturating_sub(count - message_count);
            if excess > 0 {
                let Some(rest) = segment.without_first(excess) else { break };
                segment = rest;
            }
            message_count += segment.message_count();
            segments.push(segment.lines);
        }
        segments.reverse();
        Ok(Loaded { lines: segments.concat(), message_count })
    }

    /// The oldest segment of a room that has a message behind the one of this id; without an id, its oldest segment.
    pub(crate) fn segment_of_room_after(&self, room: &str, id: Option<MessageId>) -> Result<Option<Stored>, DatabaseError> {
        let id = id.unwrap_or(MessageId { sequence: 0, ordinal: 0 });
        let values = params![room, column(id.sequence), id.ordinal];
        let holds = "room = ?1 AND (first_sequence, first_ordinal) <= (?2, ?3) ORDER BY first_sequence DESC, first_ordinal DESC LIMIT 1";
        if let Some(summary) = self.summaries_where(holds, values)?.pop()
            && summary.last_id > id
        {
            return self.segment(summary.row);
        }
        self.segment_where(
            "room = ?1 AND (first_sequence, first_ordinal) > (?2, ?3) ORDER BY first_sequence, first_ordinal LIMIT 1",
            values,
        )
    }

    /// The segment in this row.
    pub(crate) fn segment(&self, row: i64) -> Result<Option<Stored>, DatabaseError> {
        self.segment_where("id = ?1", [row])
    }

    /// The segment with the lowest row above this one.
    pub(crate) fn segment_after_row(&self, row: i64) -> Result<Option<Stored>, DatabaseError> {
        self.segment_where("id > ?1 ORDER BY id LIMIT 1", [row])
    }

    /// The lowest row above this one, whatever is in it.
    pub(crate) fn row_after(&self, row: i64) -> Result<Option<i64>, DatabaseError> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM segment WHERE id > ?1 ORDER BY id LIMIT 1")?;
        Ok(statement.query_row([row], |row| row.get(0)).optional()?)
    }

    /// The highest row, or the highest that there ever was when that cannot be read.
    pub(crate) fn last_row(&self) -> Result<i64, DatabaseError> {
        let ask = |sql| self.connection.query_row(sql, [], |row| row.get(0));
        let last = ask("SELECT coalesce(max(id), 0) FROM segment");
        Ok(last.or_else(|_| ask("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'segment'"))?)
    }

    /// How many segments there are. Reads an index, and no segment.
    pub(crate) fn segment_count(&self) -> Result<u64, DatabaseError> {
        Ok(self.connection.query_row("SELECT count(*) FROM segment", [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    /// The entry of the index by room that follows this one, in the order of rooms and ids. Reads nothing else, so it answers though the
    /// row cannot be read.
    pub(crate) fn entry_after(&self, entry: Option<&Entry>) -> Result<Option<Entry>, DatabaseError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, room, first_sequence, first_ordinal FROM segment INDEXED BY segment_of_room \
             WHERE (room, first_sequence, first_ordinal) > (?1, ?2, ?3) ORDER BY room, first_sequence, first_ordinal LIMIT 1",
        )?;
        // No room has an empty name.
        let (room, id) = entry.map_or(("", MessageId { sequence: 0, ordinal: 0 }), |entry| (&entry.room, entry.first_id));
        let mut rows = statement.query(params![room, column(id.sequence), id.ordinal])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let first_id = MessageId { sequence: number(row, 2)?, ordinal: number(row, 3)? };
        Ok(Some(Entry { row: row.get(0)?, room: row.get(1)?, first_id }))
    }

    /// What SQLite finds wrong with its trees, and where indexes and tables disagree, at most `limit` sentences. Reads the whole file in
    /// one transaction, so nobody can write meanwhile; `None` if [`give_way_to`](Database::give_way_to) ended it.
    pub(crate) fn check_trees(&self, limit: usize) -> Result<Option<Vec<String>>, DatabaseError> {
        let mut statement = self.connection.prepare(&format!("PRAGMA integrity_check({limit})"))?;
        match statement.query_map([], |row| row.get(0))?.collect::<Result<Vec<String>, _>>() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(None),
            answers => Ok(Some(answers?.into_iter().filter(|answer| answer != "ok").collect())),
        }
    }

    /// Ends what is asked as soon as `is_wanted`, which is called about every 20 microseconds while something is; `None`: nothing ends it.
    pub(crate) fn give_way_to(&mut self, is_wanted: Option<impl FnMut() -> bool + Send + 'static>) -> Result<(), DatabaseError> {
        Ok(self.connection.progress_handler(STEPS_PER_LOOK, is_wanted)?)
    }

    /// Calls `look` while nobody can write: what it sees is of one moment.
    pub(crate) fn reading<T>(&self, look: impl FnOnce() -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        self.connection.execute_batch("BEGIN")?;
        // The first read of a transaction takes the lock.
        let seen = self.pragma("schema_version").and_then(|_| look());
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        seen
    }

    /// The room that follows this name, in the order of their bytes. One look-up, however many segments a room has.
    pub(crate) fn room_after(&self, room: &str) -> Result<Option<String>, DatabaseError> {
        let mut statement = self.connection.prepare_cached("SELECT room FROM segment WHERE room > ?1 ORDER BY room LIMIT 1")?;
        Ok(statement.query_row([room], |row| row.get(0)).optional()?)
    }

    /// The first segments, at most `limit`, by row: those whose last message is the oldest, and the start of each of their rooms.
    pub(crate) fn oldest_rows(&self, limit: u32) -> Result<Vec<Summary>, DatabaseError> {
        self.summaries_where("TRUE ORDER BY id LIMIT ?1", [limit])
    }

    /// The first segments of a room, at most `limit`, oldest first. Whoever wants those below a number stops at the first that is not.
    pub(crate) fn rows_of_room(&self, room: &str, limit: u32) -> Result<Vec<Summary>, DatabaseError> {
        self.summaries_where("room = ?1 ORDER BY first_sequence, first_ordinal LIMIT ?2", params![room, limit])
    }

    /// Segments whose first message was committed before this time, at most `limit`, the oldest first; those behind `after`, a time and a
    /// row that an earlier call returned.
    ///
    /// Exact whatever the clock did, and reads nothing else: an index knows the time of each first message. A segment may stand behind one
    /// of its room whose first message has a later time (the clock was ahead then): what is deleted must still be the start of the room.
    pub(crate) fn rows_older_than(&self, unix_ms: u64, after: (u64, i64), limit: u32) -> Result<Vec<Summary>, DatabaseError> {
        self.summaries_where(
            "first_ms < ?1 AND (first_ms, id) > (?2, ?3) ORDER BY first_ms, id LIMIT ?4",
            params![column(unix_ms), column(after.0), after.1, limit],
        )
    }

    /// What the tables take of the file. The rest of it is free and used again.
    pub(crate) fn used_bytes(&self) -> Result<u64, DatabaseError> {
        let pages = self.pragma("page_count")?.saturating_sub(self.pragma("freelist_count")?);
        Ok(pages.saturating_mul(self.pragma("page_size")?).try_into().unwrap_or(0))
    }

    /// Runs `write` in a transaction: all of it is stored, durably, or, when an error is returned, nothing.
    pub(crate) fn transaction<T>(&self, write: impl FnOnce(&Writing<'_>) -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let written = write(&Writing { database: self }).and_then(|written| {
            self.connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(written)
        });
        // SQLite ends a transaction by itself after some errors, and not after others. Where it cannot be ended, the next one fails.
        if written.is_err() && !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
        written
    }

    fn segment_where(&self, condition: &str, values: impl Params) -> Result<Option<Stored>, DatabaseError> {
        let mut statement = self.connection.prepare_cached(&format!("SELECT {SEGMENT_COLUMNS} FROM segment WHERE {condition}"))?;
        let mut rows = statement.query(values)?;
        rows.next()?.map(stored).transpose()
    }

    fn summaries_where(&self, condition: &str, values: impl Params) -> Result<Vec<Summary>, DatabaseError> {
        let mut statement = self.connection.prepare_cached(&format!("SELECT {SUMMARY_COLUMNS} FROM segment WHERE {condition}"))?;
        let mut rows = statement.query(values)?;
        let mut summaries = Vec::new();
        while let Some(row) = rows.next()? {
            summaries.push(summary(row)?);
        }
        Ok(summaries)
    }

    fn pragma(&self, name: &str) -> Result<i64, DatabaseError> {
        Ok(self.connection.pragma_query_value(None, name, |row| row.get(0))?)
    }

    /// The statements that made the tables and indexes; those that SQLite adds for itself have none.
    fn schema(&self) -> Result<Vec<String>, DatabaseError> {
        let sql = "SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid";
        let mut statement = self.connection.prepare(sql)?;
        let statements = statement.query_map([], |row| row.get(0))?;
        Ok(statements.collect::<Result<_, _>>()?)
    }
}

impl Summary {
    /// The number in the room of the message that follows its last one.
    pub(crate) fn end_number(&self) -> u64 {
        self.first_number.saturating_add(u64::from(self.message_count))
    }
}

impl Writing<'_> {
    /// Adds a segment, with a row above all that ever were.
    pub(crate) fn insert(&self, segment: &Segment) -> Result<(), DatabaseError> {
        self.write_segment(
            "INSERT INTO segment (room, first_number, first_sequence, first_ordinal, last_sequence, last_ordinal, first_ms, last_ms, \
             message_count, checksum, runs, lines) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            segment,
            &[],
        )
    }

    /// Replaces a segment by one that has lost its first messages.
    pub(crate) fn trim(&self, row: i64, segment: &Segment) -> Result<(), DatabaseError> {
        self.write_segment(
            "UPDATE segment SET (room, first_number, first_sequence, first_ordinal, last_sequence, last_ordinal, first_ms, last_ms, \
             message_count, checksum, runs, lines) = (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) WHERE id = ?13",
            segment,
            &[&row],
        )
    }

    /// Deletes a segment.
    pub(crate) fn delete(&self, row: i64) -> Result<(), DatabaseError> {
        self.database.connection.prepare_cached("DELETE FROM segment WHERE id = ?1")?.execute([row])?;
        Ok(())
    }

    /// Says up to where the log is in here.
    pub(crate) fn set_folded(&self, position: LogPosition) -> Result<(), DatabaseError> {
        self.database
            .connection
            .prepare_cached("UPDATE folded SET (sequence, checksum, file_number, offset, row_checksum) = (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                column(position.sequence),
                position.checksum,
                column(position.file_number),
                column(position.offset),
                position_checksum(&position)
            ])?;
        Ok(())
    }

    fn create(&self) -> Result<(), DatabaseError> {
        let connection = &self.database.connection;
        for statement in SCHEMA {
            connection.execute(statement, [])?;
        }
        connection.execute("INSERT INTO folded VALUES (0, 0, 0, 0, 0)", [])?;
        self.set_folded(LogPosition::START)?;
        connection.pragma_update(None, "user_version", USER_VERSION)?;
        Ok(connection.pragma_update(None, "application_id", APPLICATION_ID)?)
    }

    /// Runs a statement whose first parameters are the columns of this segment, which must be right: what is stored wrong is found when it
    /// is too late.
    fn write_segment(&self, sql: &str, segment: &Segment, more: &[&dyn ToSql]) -> Result<(), DatabaseError> {
        if let Err(wrong) = segment.check() {
            let id = segment.first_id();
            return Err(damaged(format!("messages of room {} from {}-{} on: the {wrong}", segment.room, id.sequence, id.ordinal)));
        }
        let mut statement = self.database.connection.prepare_cached(sql)?;
        let [first_number, first_sequence, first_ordinal, last_sequence, last_ordinal, first_ms, last_ms, message_count] = columns(segment);
        let (runs, lines) = (segment.encode_runs(), Text(&segment.lines));
        let checksum = segment.checksum();
        let values: [&dyn ToSql; 12] = [
            &segment.room,
            &first_number,
            &first_sequence,
            &first_ordinal,
            &last_sequence,
            &last_ordinal,
            &first_ms,
            &last_ms,
            &message_count,
            &checksum,
            &runs,
            &lines,
        ];
        for (at, value) in values.iter().chain(more).enumerate() {
            statement.raw_bind_parameter(at + 1, *value)?;
        }
        statement.raw_execute()?;
        Ok(())
    }
}

impl fmt::Display for DatabaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DatabaseError::Full => f.write_str("too little disk is free"),
            DatabaseError::Busy => f.write_str("another program has it locked for too long"),
            DatabaseError::Empty => f.write_str("it is empty"),
            DatabaseError::Unfinished => f.write_str("a change of it was cut off"),
            DatabaseError::Damaged { what } | DatabaseError::Refused(what) | DatabaseError::Io(what) => f.write_str(what),
        }
    }
}

impl Error for DatabaseError {}

impl From<rusqlite::Error> for DatabaseError {
    fn from(error: rusqlite::Error) -> DatabaseError {
        let text = error.to_string();
        match error {
            rusqlite::Error::SqliteFailure(failure, _) => match (failure.code, failure.extended_code) {
                (ErrorCode::DiskFull, _) => DatabaseError::Full,
                (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => DatabaseError::Busy,
                (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) | (_, ffi::SQLITE_IOERR_DATA | ffi::SQLITE_IOERR_CORRUPTFS) => {
                    damaged(text)
                }
                (_, ffi::SQLITE_READONLY_ROLLBACK | ffi::SQLITE_READONLY_RECOVERY) => DatabaseError::Unfinished,
                _ => DatabaseError::Io(text),
            },
            // The tables are strict: a value of another type was not stored by a statement.
            rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..) => damaged(text),
            _ => DatabaseError::Io(text),
        }
    }
}

/// Lines for a TEXT column, without a check that they are UTF-8 and without a copy.
struct Text<'a>(&'a [u8]);

impl ToSql for Text<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

/// The segment in a row of [`SEGMENT_COLUMNS`], checked.
fn stored(row: &Row<'_>) -> Result<Stored, DatabaseError> {
    let id: i64 = row.get(0)?;
    let wrong = |what: &str| damaged(format!("table segment, row {id}: its {what}"));
    let (ValueRef::Text(room), ValueRef::Blob(runs), ValueRef::Text(lines)) = (row.get_ref(1)?, row.get_ref(11)?, row.get_ref(12)?) else {
        return Err(wrong("columns are of wrong types"));
    };
    let Ok(room) = str::from_utf8(room) else { return Err(wrong("room is not UTF-8")) };
    let Some(runs) = Segment::decode_runs(runs) else { return Err(wrong("runs have an impossible length")) };
    let segment = Segment { room: room.to_owned(), first_number: number(row, 2)?, runs, lines: lines.to_vec() };
    if row.get::<_, i64>(10)? != i64::from(segment.checksum()) {
        return Err(wrong("checksum does not match"));
    }
    segment.check().map_err(wrong)?;
    for (at, expected) in columns(&segment).into_iter().enumerate() {
        if row.get::<_, i64>(2 + at)? != expected {
            return Err(wrong("columns do not fit its messages"));
        }
    }
    Ok(Stored { row: id, segment })
}

/// What a row of [`SUMMARY_COLUMNS`] says.
fn summary(row: &Row<'_>) -> Result<Summary, DatabaseError> {
    Ok(Summary {
        row: row.get(0)?,
        room: row.get(1)?,
        first_number: number(row, 2)?,
        last_id: MessageId { sequence: number(row, 3)?, ordinal: number(row, 4)? },
        first_ms: number(row, 5)?,
        last_ms: number(row, 6)?,
        message_count: number(row, 7)?,
        line_bytes: number(row, 8)?,
    })
}

/// The columns that repeat, so that they can be searched, what is in a segment, from `first_number` to `message_count`.
pub(crate) fn columns(segment: &Segment) -> [i64; 8] {
    let (first, last) = (segment.first_id(), segment.last_id());
    [
        column(segment.first_number),
        column(first.sequence),
        i64::from(first.ordinal),
        column(last.sequence),
        i64::from(last.ordinal),
        column(segment.first_ms()),
        column(segment.last_ms()),
        i64::from(segment.message_count()),
    ]
}

/// Sequences, offsets and numbers never come near the limit of SQLite's integers. A clock may; then the runs know better.
fn column(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn number<T: TryFrom<i64>>(row: &Row<'_>, at: usize) -> Result<T, DatabaseError> {
    let value: i64 = row.get(at)?;
    value.try_into().map_err(|_| damaged(format!("column {} is {value}", row.as_ref().column_name(at).unwrap_or_default())))
}

pub(crate) fn position_checksum(position: &LogPosition) -> u32 {
    let numbers = [position.sequence, u64::from(position.checksum), position.file_number, position.offset];
    numbers.iter().fold(0, |checksum, number| crc32c::crc32c_append(checksum, &number.to_le_bytes()))
}

fn damaged(what: impl Into<String>) -> DatabaseError {
    DatabaseError::Damaged { what: what.into() }
}

/// "rlay": tells a history from another program's database, for `file` too.
const APPLICATION_ID: i64 = 0x726c_6179;

const USER_VERSION: i64 = 1;

/// Older ones corrupt a database in rare cases.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// What is short stands before what is long, which SQLite keeps on pages of its own: searching does not read those.
const SCHEMA: [&str; 4] = [
    "CREATE TABLE segment (id INTEGER PRIMARY KEY AUTOINCREMENT, room TEXT NOT NULL, first_number INTEGER NOT NULL, \
     first_sequence INTEGER NOT NULL, first_ordinal INTEGER NOT NULL, last_sequence INTEGER NOT NULL, last_ordinal INTEGER NOT NULL, \
     first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, message_count INTEGER NOT NULL, checksum INTEGER NOT NULL, \
     runs BLOB NOT NULL, lines TEXT NOT NULL) STRICT",
    "CREATE UNIQUE INDEX segment_of_room ON segment (room, first_sequence, first_ordinal)",
    "CREATE INDEX segment_of_time ON segment (first_ms)",
    "CREATE TABLE folded (sequence INTEGER NOT NULL, checksum INTEGER NOT NULL, file_number INTEGER NOT NULL, offset INTEGER NOT NULL, \
     row_checksum INTEGER NOT NULL) STRICT",
];

const SEGMENT_COLUMNS: &str = "id, room, first_number, first_sequence, first_ordinal, last_sequence, last_ordinal, first_ms, last_ms, \
                               message_count, checksum, runs, lines";

const SUMMARY_COLUMNS: &str = "id, room, first_number, last_sequence, last_ordinal, first_ms, last_ms, message_count, octet_length(lines)";

const LAST_OF_ROOM: &str = "room = ?1 ORDER BY first_sequence DESC, first_ordinal DESC LIMIT 1";

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
