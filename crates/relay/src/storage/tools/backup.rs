//! `relay backup TARGET`: a new data folder with everything that was committed when it began, checked.
//!
//! Works beside a server that folds and uses log files again meanwhile, which it holds up no more than any reader: a row that is new has a
//! higher id than all before it, so what was folded since is found behind the last row, and the rest in the log. What was committed later
//! is left out, so that the copy is what a crash at the beginning would have left. Stops at damage. Holds one segment or record, and for
//! each room its name and how far it is. Next: `salvage.rs`.

use super::{
    new_folder::{make_folder, sync_name},
    report::{Progress, Report, Watch},
    room_reader::{behind, segment_of},
    source::{History, Source},
};
use crate::storage::{
    error::{OpenError, open_error},
    folder::parent_of,
    history::{Database, Segment, Stored},
    log::{Record, Scan, last_file_number},
    position::{LogPosition, MessageId},
};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Copies a data folder, also beside a running server. Returns what the check of the copy found it to hold.
///
/// # Errors
///
/// The target exists; the source is damaged; or the operating system refuses. Then there is no target.
pub fn back_up(data_dir: &Path, target: &Path, watch: &mut Watch<'_>) -> Result<Report, OpenError> {
    let source = Source::open(data_dir)?;
    // Without a slash at its end, behind which another name would stand within it.
    let target: PathBuf = target.components().collect();
    check_target(data_dir, &target)?;
    let end = end_of_log(&source)?;
    // Nobody takes it for a backup before it is one.
    let folder = make_folder(
        &target,
        "unfinished",
        |new, watch| {
            let mut take = |copied| match copied {
                Copied::Messages(segment) => new.add(segment),
                Copied::Forget(room) => new.forget(&room),
            };
            copy_up_to(&source, end, &mut take, watch)?;
            Ok(end)
        },
        watch,
    )?;
    if let Err(error) = fs::rename(&folder.path, &target) {
        let _ = fs::remove_dir_all(&folder.path);
        return Err(open_error("naming the finished backup", target)(error));
    }
    sync_name(&target)?;
    Ok(Report { data: target.display().to_string(), ..folder.report })
}

/// A backup replaces nothing, and stands nowhere in what it is a copy of.
fn check_target(data_dir: &Path, target: &Path) -> Result<(), OpenError> {
    let refused = |text: &str| Err(OpenError::Io { action: "making the backup", path: target.to_owned(), source: io::Error::other(text) });
    match fs::symlink_metadata(target) {
        Ok(_) => return refused("it is there already: choose a folder that does not exist yet"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(open_error("looking at", target)(error)),
    }
    let real = |path: &Path| fs::canonicalize(path).map_err(open_error("looking at", path));
    if real(parent_of(target))?.starts_with(real(data_dir)?) {
        return refused("it is within the data folder, which no server would use then: choose another place");
    }
    Ok(())
}

/// The last commit of all.
fn end_of_log(source: &Source) -> Result<LogPosition, OpenError> {
    let mut history = source.history()?;
    let last_file_number = last_file_number(source.log.as_ref())?;
    loop {
        let folded = source.folded(&mut history)?;
        let mut scan = Scan::start(source.log.clone(), source.file_bytes, folded).until_file(last_file_number.max(folded.file_number));
        let read = loop {
            match scan.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if source.folded(&mut history)?.file_number <= scan.position().file_number {
            return read.map(|()| scan.position());
        }
    }
}

/// What a copy gives to its target.
pub(crate) enum Copied {
    /// Messages that follow those before of their room, or repeat them.
    Messages(Segment),
    /// What was given of this room before is not to be kept: the server has deleted something behind it meanwhile.
    Forget(String),
}

/// Gives everything up to the commit `end`, in the order in which it may be folded: by row, then from the log.
///
/// # Errors
///
/// Those of `take`; or what is stored is damaged, or cannot be read.
fn copy_up_to(
    source: &Source,
    end: LogPosition,
    take: &mut dyn FnMut(Copied) -> Result<(), OpenError>,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    let mut copy = Copy { end_sequence: end.sequence, row: 0, rooms: BTreeMap::new(), take };
    let mut history = None;
    loop {
        // In this order: what is folded after the first question is found by the second one, or it is still in the log.
        let position = source.folded(&mut history)?;
        if let Some(history) = &history {
            copy.rows(history, watch)?;
        }
        let mut scan = Scan::start(source.log.clone(), source.file_bytes, position);
        let read = loop {
            if scan.position().sequence >= end.sequence {
                return Ok(());
            }
            match scan.next_record() {
                Ok(Some(record)) => copy.record(&record, watch)?,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        // What was there when this began is there; or its file was used again meanwhile, and it is in the history.
        if source.folded(&mut history)?.file_number <= scan.position().file_number {
            read?;
        }
    }
}

/// A copy under way.
struct Copy<'a> {
    /// The last commit that is copied.
    end_sequence: u64,
    /// The last row that was read.
    row: i64,
    rooms: BTreeMap<String, Given>,
    take: &'a mut dyn FnMut(Copied) -> Result<(), OpenError>,
}

/// How far a room is.
struct Given {
    last_id: MessageId,
    /// The number that its next message has, unless something before that is deleted.
    next_number: u64,
}

impl Copy<'_> {
    /// Gives what stands in rows that were not read yet.
    fn rows(&mut self, history: &History, watch: &mut Watch<'_>) -> Result<(), OpenError> {
        let mut last_row = 0;
        while let Some(Stored { row, segment }) = history.ask(|database| database.segment_after_row(self.row))? {
            self.row = row;
            if row > last_row {
                last_row = history.ask(Database::last_row)?;
            }
            watch(Progress { what: "copying rooms", done: row.unsigned_abs(), total: last_row.unsigned_abs() });
            let Some(segment) = segment.up_to(self.end_sequence) else { continue };
            if let Some(before) = self.rooms.get(&segment.room) {
                if segment.last_id() <= before.last_id {
                    continue;
                }
                // Numbers count without gaps, and begin again in a room of which nothing was left.
                if segment.first_id() > before.last_id && segment.first_number != before.next_number {
                    (self.take)(Copied::Forget(segment.room.clone()))?;
                }
            }
            self.rooms.insert(segment.room.clone(), Given { last_id: segment.last_id(), next_number: segment.end_number() });
            (self.take)(Copied::Messages(segment))?;
        }
        Ok(())
    }

    /// Gives what a record has beyond that.
    fn record(&mut self, record: &Record<'_>, watch: &mut Watch<'_>) -> Result<(), OpenError> {
        for section in record.sections() {
            let given = self.rooms.get(section.room);
            // In a room that has nothing in the history, numbers begin at 1.
            let next_number = given.map_or(1, |given| given.next_number);
            let segment = segment_of(record, section.room, section.message_count, section.lines);
            if let Some(segment) = behind(segment, given.map(|given| given.last_id)) {
                let next_number = next_number + u64::from(segment.message_count());
                self.rooms.insert(segment.room.clone(), Given { last_id: segment.last_id(), next_number });
                (self.take)(Copied::Messages(segment))?;
            }
        }
        watch(Progress { what: "copying the log", done: record.sequence(), total: self.end_sequence });
        Ok(())
    }
}

#[cfg(test)]
#[path = "backup_tests.rs"]
mod tests;
