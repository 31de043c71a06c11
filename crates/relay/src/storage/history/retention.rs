//! What is kept of the history, and how the rest is deleted: by age, by count in each room, by what the folder takes on disk.
//!
//! The oldest messages of a room go first, so that what is left of it is always its end. Everything happens in bounded steps between those
//! of folding: a step deletes or trims a few dozen segments in one transaction. Costs nothing where there is no rule.
//!
//! | Rule | When it is looked at | How exact it is |
//! |---|---|---|
//! | age | every hundredth of the time, a minute to a day | by message; late by that much |
//! | count | for a room when it has grown, for all rooms after the start | never fewer; up to a segment more |
//! | disk | after each fold | by segments, least recently written to first; what one fold adds is on top |
//!
//! Next: `archive.rs`.

use super::database::{Database, DatabaseError, Summary, Writing};
use crate::storage::{
    contract::Next,
    disk::{Access, Disk},
    folder::HISTORY,
    limits::{CROWDED_ROOMS_MAX, RETENTION_STEP_ROOMS, RETENTION_STEP_SEGMENTS},
};
use std::{collections::VecDeque, io, sync::Arc, time::Duration};

/// What to keep; by default everything.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Messages not older than this.
    pub keep_for: Option<Duration>,
    /// So many messages of each room.
    pub keep_messages: Option<u64>,
    /// As many as fit into so many bytes, all files of the data folder together.
    pub disk_budget_bytes: Option<u64>,
}

/// The two folders whose files take the disk.
#[derive(Clone)]
pub(crate) struct Disks {
    pub(crate) data: Arc<dyn Disk>,
    pub(crate) log: Arc<dyn Disk>,
}

/// How far the deleting is.
pub(crate) struct Retaining {
    rules: Retention,
    disks: Disks,
    /// Rooms that may have more messages than are kept, and the number of the first that is.
    crowded: VecDeque<(String, u64)>,
    /// The room up to which all were looked at since the start; `None` when all were.
    looked_at: Option<String>,
    /// Where a sweep by age stands, between two of its steps.
    sweep: Option<Sweep>,
    next_sweep_ms: u64,
    /// The history has grown since the budget was looked at.
    has_grown: bool,
}

/// A walk over the segments that begin before a time.
#[derive(Clone, Copy)]
struct Sweep {
    before_ms: u64,
    after: (u64, i64),
}

impl Retaining {
    pub(crate) fn new(rules: Retention, disks: Disks) -> Retaining {
        Retaining {
            rules,
            disks,
            crowded: VecDeque::new(),
            looked_at: rules.keep_messages.map(|_| String::new()),
            sweep: None,
            next_sweep_ms: 0,
            has_grown: true,
        }
    }

    /// Rooms that were written to, with the number that the next message of each will have.
    pub(crate) fn rooms_grew(&mut self, rooms: Vec<(String, u64)>) {
        if let Some(keep) = self.rules.keep_messages {
            let first_kept = |next_number: u64| next_number.saturating_sub(keep);
            let crowded = rooms.into_iter().map(|(room, next_number)| (room, first_kept(next_number)));
            self.crowded.extend(crowded.filter(|(_, first_kept)| *first_kept > 1));
            if self.crowded.len() > CROWDED_ROOMS_MAX {
                self.crowded = VecDeque::new();
                self.looked_at = Some(String::new());
            }
        }
    }

    /// A fold is over.
    pub(crate) fn history_grew(&mut self) {
        self.has_grown = true;
    }

    /// Deletes a few segments. Returns when there is more to do, or `None` when only another fold can bring more.
    pub(crate) fn step(&mut self, database: &Database, now_ms: u64) -> Result<Option<Next>, DatabaseError> {
        if self.step_by_count(database)? {
            return Ok(Some(Next::Now));
        }
        if self.step_by_budget(database)? {
            return Ok(Some(Next::Now));
        }
        self.step_by_age(database, now_ms)
    }

    /// True when there may be more to do.
    fn step_by_count(&mut self, database: &Database) -> Result<bool, DatabaseError> {
        if self.crowded.is_empty() {
            return self.look_at_rooms(database);
        }
        let (mut rows, mut done_len) = (Vec::new(), 0);
        for (room, first_kept) in self.crowded.iter().take(RETENTION_STEP_ROOMS) {
            let is_below = |summary: &Summary| summary.end_number() <= *first_kept;
            // Mostly none is, and the first one tells.
            if database.rows_of_room(room, 1)?.first().is_some_and(is_below) {
                let first = database.rows_of_room(room, RETENTION_STEP_SEGMENTS - rows.len() as u32)?;
                rows.extend(first.iter().take_while(|summary| is_below(summary)).map(|summary| summary.row));
                if rows.len() == RETENTION_STEP_SEGMENTS as usize {
                    break;
                }
            }
            done_len += 1;
        }
        if !rows.is_empty() {
            database.transaction(|writing| rows.iter().try_for_each(|row| writing.delete(*row)))?;
        }
        self.crowded.drain(..done_len);
        Ok(true)
    }

    /// Looks which of the next rooms have too many messages. False when all rooms were looked at.
    fn look_at_rooms(&mut self, database: &Database) -> Result<bool, DatabaseError> {
        let Some(mut room) = self.looked_at.take() else { return Ok(false) };
        let mut rooms = Vec::new();
        while rooms.len() < RETENTION_STEP_ROOMS {
            let Some(next) = database.room_after(&room)? else { break };
            room = next;
            if let Some(last) = database.last_summary(&room)? {
                rooms.push((room.clone(), last.end_number()));
            }
        }
        if rooms.len() == RETENTION_STEP_ROOMS {
            self.looked_at = Some(room);
        }
        self.rooms_grew(rooms);
        Ok(true)
    }

    fn step_by_age(&mut self, database: &Database, now_ms: u64) -> Result<Option<Next>, DatabaseError> {
        let Some(keep_for) = self.rules.keep_for else { return Ok(None) };
        let interval = (keep_for / 100).clamp(Duration::from_secs(60), Duration::from_secs(24 * 60 * 60));
        let Some(sweep) = self.sweep else {
            let wait = Duration::from_millis(self.next_sweep_ms.saturating_sub(now_ms));
            // Longer than an interval it is when the clock was ahead at the last sweep: that one does not count.
            if !wait.is_zero() && wait <= interval {
                return Ok(Some(Next::In(wait)));
            }
            self.next_sweep_ms = now_ms.saturating_add(interval.as_millis() as u64);
            let before_ms = now_ms.saturating_sub(u64::try_from(keep_for.as_millis()).unwrap_or(u64::MAX));
            self.sweep = Some(Sweep { before_ms, after: (0, 0) });
            return Ok(Some(Next::Now));
        };
        let old = database.rows_older_than(sweep.before_ms, sweep.after, RETENTION_STEP_SEGMENTS)?;
        let Some(last) = old.last() else {
            self.sweep = None;
            return Ok(Some(Next::In(interval)));
        };
        let after = (last.first_ms, last.row);
        database.transaction(|writing| {
            for summary in &old {
                // Behind another one of its room, whose first message has a later time because the clock was ahead then: that goes first.
                if is_first_of_room(database, summary)? {
                    delete_older_than(database, writing, summary, sweep.before_ms)?;
                }
            }
            Ok(())
        })?;
        self.sweep = Some(Sweep { after, ..sweep });
        Ok(Some(Next::Now))
    }

    /// True when it has deleted something.
    fn step_by_budget(&mut self, database: &Database) -> Result<bool, DatabaseError> {
        let Some(budget_bytes) = self.rules.disk_budget_bytes.filter(|_| self.has_grown) else { return Ok(false) };
        // Out of descriptors or the like: it is asked again after the next fold.
        let Ok(files_bytes) = self.disks.files_bytes() else { return Ok(false) };
        let over_bytes = (database.used_bytes()? + files_bytes).saturating_sub(budget_bytes);
        let oldest = if over_bytes == 0 { Vec::new() } else { database.oldest_rows(RETENTION_STEP_SEGMENTS)? };
        if oldest.is_empty() {
            self.has_grown = false;
            return Ok(false);
        }
        let mut deleted_bytes = 0;
        database.transaction(|writing| {
            for summary in oldest.iter().take_while(|summary| {
                let is_over = deleted_bytes < over_bytes;
                deleted_bytes += summary.line_bytes;
                is_over
            }) {
                writing.delete(summary.row)?;
            }
            Ok(())
        })?;
        Ok(true)
    }
}

fn is_first_of_room(database: &Database, summary: &Summary) -> Result<bool, DatabaseError> {
    Ok(database.rows_of_room(&summary.room, 1)?.first().is_some_and(|first| first.row == summary.row))
}

fn delete_older_than(database: &Database, writing: &Writing<'_>, summary: &Summary, before_ms: u64) -> Result<(), DatabaseError> {
    let Some(stored) = database.segment(summary.row)? else { return Ok(()) };
    match stored.segment.without_first(stored.segment.count_older_than(before_ms)) {
        Some(rest) => writing.trim(stored.row, &rest),
        None => writing.delete(stored.row),
    }
}

impl Disks {
    /// What all files but the database itself take.
    fn files_bytes(&self) -> io::Result<u64> {
        let data = self.data.names()?.into_iter().filter(|name| name != HISTORY).map(|name| (&self.data, name));
        let log = self.log.names()?.into_iter().map(|name| (&self.log, name));
        let mut bytes = 0;
        for (disk, name) in data.chain(log) {
            // Folders are none of them, and a file may be renamed meanwhile.
            if let Ok(file) = disk.open(&name, Access::Read) {
                bytes += file.byte_count()?;
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
