//! Two walks over the rows of a history that may be damaged: in the order of the index, for verify, and by row id, for what can be saved.
//!
//! Both go on behind what cannot be read where that is possible at all, and hold one row. They ask the connection themselves, because what
//! they ask makes sense only where the tables may be wrong. Next: `check_history.rs`.

use crate::storage::{
    history::{Database, DatabaseError, Stored},
    limits::UNREADABLE_ROWS_MAX,
    position::MessageId,
};
use rusqlite::{OptionalExtension, params};

/// What the index says of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) row: i64,
    pub(crate) room: String,
    pub(crate) first_id: MessageId,
}

/// The entry of the index that follows this one, in the order of rooms and ids. It reads nothing but the index.
pub(crate) fn entry_after(database: &Database, entry: Option<&Entry>) -> Result<Option<Entry>, DatabaseError> {
    let sql = "SELECT id, room, first_sequence, first_ordinal FROM segment INDEXED BY segment_of_room \
               WHERE (room, first_sequence, first_ordinal) > (?1, ?2, ?3) ORDER BY room, first_sequence, first_ordinal LIMIT 1";
    let mut statement = database.connection().prepare_cached(sql)?;
    // No room has an empty name, and no message has such an id.
    let (room, sequence, ordinal) =
        entry.map_or(("", -1, 0), |entry| (&*entry.room, entry.first_id.sequence as i64, entry.first_id.ordinal));
    let found = statement.query_row(params![room, sequence, ordinal], |row| {
        let first_id = MessageId { sequence: row.get::<_, i64>(2)? as u64, ordinal: row.get::<_, i64>(3)? as u32 };
        Ok(Entry { row: row.get(0)?, room: row.get(1)?, first_id })
    });
    Ok(found.optional()?)
}

/// A walk over all rows by their ids.
pub(crate) struct RowWalk {
    row: i64,
    /// No row has a higher id; `None` when that cannot be read.
    last_row: Option<i64>,
    unreadable_len: u32,
}

impl RowWalk {
    pub(crate) fn new(database: &Database) -> RowWalk {
        let sql = ["SELECT seq FROM sqlite_sequence WHERE name = 'segment'", "SELECT max(id) FROM segment"];
        let last_row = sql.iter().filter_map(|sql| database.connection().query_row(sql, [], |row| row.get(0)).ok()).max();
        RowWalk { row: 0, last_row, unreadable_len: 0 }
    }

    /// How far it is, and how far it has to go.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.row as u64, self.last_row.unwrap_or(self.row) as u64)
    }

    /// The next row and its segment, or what is wrong with it. A page that cannot be read costs the rows on it, one by one.
    pub(crate) fn next(&mut self, database: &Database) -> Option<(i64, Result<Stored, DatabaseError>)> {
        loop {
            let row = match database.row_after(self.row) {
                Ok(next) => next?,
                // The way to it is damaged: perhaps not the way to the one after it.
                Err(_) => self.row.checked_add(1)?,
            };
            let is_beyond = self.last_row.map_or(self.unreadable_len >= UNREADABLE_ROWS_MAX, |last_row| row > last_row);
            if is_beyond {
                return None;
            }
            self.row = row;
            match database.segment(row) {
                Ok(Some(stored)) => {
                    self.unreadable_len = 0;
                    return Some((row, Ok(stored)));
                }
                Ok(None) => {}
                Err(error) => {
                    self.unreadable_len = self.unreadable_len.saturating_add(1);
                    return Some((row, Err(error)));
                }
            }
        }
    }
}
