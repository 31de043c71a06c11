//! A new history that is filled with messages of another one, through the same fold that writes them live.
//!
//! Takes the messages of each room in the order of their ids; those that it has already are left out, so that a segment which was extended
//! while it was read may come again. Holds what a fold gathers. Next: `copy.rs`.

use super::room_reader::behind;
use crate::storage::{
    error::OpenError,
    history::{Database, DatabaseError, Segment, Window},
    limits::FOLD_TRANSACTION_BYTES,
    position::{LogPosition, MessageId},
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

pub(crate) struct Target {
    database: Database,
    /// The file, for messages.
    path: PathBuf,
    window: Window,
    /// The last message of each room in the window.
    last_ids: BTreeMap<String, MessageId>,
    pub(crate) message_count: u64,
}

impl Target {
    pub(crate) fn new(database: Database, path: PathBuf) -> Target {
        Target { database, path, window: Window::default(), last_ids: BTreeMap::new(), message_count: 0 }
    }

    /// Takes messages that follow those before of their room, or repeat them.
    pub(crate) fn add(&mut self, segment: Segment) -> Result<(), OpenError> {
        if !self.last_ids.contains_key(&segment.room)
            && let Some(last) = self.database.last_summary(&segment.room).map_err(|error| write_error(&self.path, error))?
        {
            self.last_ids.insert(segment.room.clone(), last.last_id);
        }
        let last_id = self.last_ids.get(&segment.room).copied();
        let Some(segment) = behind(segment, last_id) else { return Ok(()) };
        let mut at = 0;
        for run in &segment.runs {
            let lines = &segment.lines[at..at + run.line_bytes as usize];
            at += run.line_bytes as usize;
            self.window.add_run(&segment.room, *run, lines);
        }
        self.message_count += u64::from(segment.message_count());
        let last_id = segment.last_id();
        self.last_ids.insert(segment.room, last_id);
        if self.window.is_full() { self.write() } else { Ok(()) }
    }

    /// Drops what it has of a room, because something between that and what follows was deleted where it comes from.
    pub(crate) fn forget(&mut self, room: &str) -> Result<(), OpenError> {
        self.write()?;
        loop {
            let rows = self.database.rows_of_room(room, ROWS_PER_TRANSACTION).map_err(|error| write_error(&self.path, error))?;
            if rows.is_empty() {
                return Ok(());
            }
            let deleted = self.database.transaction(|writing| rows.iter().try_for_each(|summary| writing.delete(summary.row)));
            deleted.map_err(|error| write_error(&self.path, error))?;
            self.message_count -= rows.iter().map(|row| u64::from(row.message_count)).sum::<u64>();
        }
    }

    /// Writes everything, and says up to where of the log that is. The log goes on in a folder without files.
    pub(crate) fn finish(mut self, last: LogPosition) -> Result<u64, OpenError> {
        self.write()?;
        let position = LogPosition { file_number: LogPosition::START.file_number, offset: LogPosition::START.offset, ..last };
        self.database.transaction(|writing| writing.set_folded(position)).map_err(|error| write_error(&self.path, error))?;
        Ok(self.message_count)
    }

    fn write(&mut self) -> Result<(), OpenError> {
        while !self.window.is_empty() {
            self.window.write_some(&self.database, FOLD_TRANSACTION_BYTES).map_err(|error| write_error(&self.path, error))?;
        }
        self.last_ids.clear();
        Ok(())
    }
}

/// Rows that one transaction deletes: each is at most 32 KiB.
const ROWS_PER_TRANSACTION: u32 = 64;

/// What happened to a history that is written.
pub(crate) fn write_error(path: &Path, error: DatabaseError) -> OpenError {
    let source = match error {
        DatabaseError::Full => io::ErrorKind::StorageFull.into(),
        error => io::Error::other(error.to_string()),
    };
    OpenError::Io { action: "writing to", path: path.to_owned(), source }
}
