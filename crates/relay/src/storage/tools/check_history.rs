//! Checks history.db: every page's seal, SQLite's own idea of the file, and every segment: its checksum, and its place in its room.
//!
//! Writes nothing. Beside a server each look is a short read of its own. SQLite's check cannot be cut into such, so it is given up when the
//! server wants to write. What looks wrong is looked at again before it is called so: the server may have moved it. Next: `check_log.rs`.

use super::{
    report::{Finding, Progress, Report, Watch},
    source::{History, Source},
    unfolded::Unfolded,
};
use crate::storage::{
    disk::{Access, DiskFile},
    error::{OpenError, open_error},
    folder::HISTORY,
    history::{Database, DatabaseError, Entry, PAGE_BYTES, Segment, Stored, check_page},
    limits::{FINDINGS_LEN_MAX, PAGES_PER_LOOK},
    position::MessageId,
};
use std::io;

/// Checks the seals of all pages. `history` holds others off while a look is taken; without it nobody can write to the file.
pub(crate) fn check_pages(source: &Source, history: Option<&History>, report: &mut Report, watch: &mut Watch<'_>) -> Result<(), OpenError> {
    let path = source.history_path();
    let file = match source.disk.open(HISTORY, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(open_error("opening", path)(error)),
    };
    let mut number = 1;
    loop {
        let file_bytes = file.byte_count().map_err(open_error("looking at", &path))?;
        let page_count = file_bytes.div_ceil(PAGE_BYTES as u64);
        if number > page_count {
            return Ok(());
        }
        let end = (number + PAGES_PER_LOOK).min(page_count + 1);
        let look = || (number..end).filter_map(|number| wrong_page(source, file.as_ref(), number)).collect::<Vec<_>>();
        let wrong = match history {
            Some(history) => history.ask(|database| database.reading(|| Ok(look())))?,
            None => look(),
        };
        wrong.into_iter().for_each(|finding| report.find(finding));
        report.page_count += end - number;
        number = end;
        watch(Progress { what: "checking pages", done: number - 1, total: page_count });
    }
}

fn wrong_page(source: &Source, file: &dyn DiskFile, number: u64) -> Option<Finding> {
    let offset = (number - 1) * PAGE_BYTES as u64;
    let mut page = [0; PAGE_BYTES];
    let wrong = match read_page(file, &mut page, offset) {
        Ok(PAGE_BYTES) => match check_page(&page, number as u32) {
            Ok(()) => return None,
            Err(wrong) => wrong.reason().to_owned(),
        },
        // The server has made the file shorter.
        Ok(0) => return None,
        Ok(_) => "it is cut off".to_owned(),
        Err(error) => format!("it cannot be read: {error}"),
    };
    let meaning = format!("page {number} is damaged: {wrong}; what is on it, or is found through it, may be lost");
    Some(source.finding(source.history_path(), Some(offset), None, meaning))
}

fn read_page(file: &dyn DiskFile, page: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < page.len() {
        match file.read_at(&mut page[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Has SQLite check its trees, and that its indexes agree with the tables.
pub(crate) fn check_trees(source: &Source, history: &mut History, report: &mut Report, watch: &mut Watch<'_>) -> Result<(), OpenError> {
    // SQLite does not say how far it is.
    watch(Progress { what: "checking trees", done: 0, total: 1 });
    let answers = match history.ask_until_somebody_writes(source, |database| database.check_trees(FINDINGS_LEN_MAX)) {
        Err(OpenError::DamagedHistory { reason, .. }) => Some(vec![reason]),
        answers => answers?,
    };
    let Some(answers) = answers else {
        report.notes.push(format!(
            "SQLite's own check of {} was given up, because it would hold up the server that writes to it; all pages and segments are \
             checked all the same. To have it too, run this while no server does",
            source.history_path().display()
        ));
        return Ok(());
    };
    for answer in answers {
        let meaning = format!("SQLite finds its trees wrong: {}; messages may be missing or not be found", answer.trim());
        report.find(source.finding(source.history_path(), None, None, meaning));
    }
    Ok(())
}

/// The segment before another of the same room.
struct Previous {
    row: i64,
    last_id: MessageId,
    end_number: u64,
}

/// Checks every segment and its place in its room. What is not folded yet is collected, to be compared with the log.
pub(crate) fn check_segments(
    source: &Source,
    history: &History,
    unfolded: &mut Unfolded,
    report: &mut Report,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    let total = history.ask(Database::segment_count).unwrap_or(0);
    let mut entry: Option<Entry> = None;
    let mut previous: Option<Previous> = None;
    loop {
        let next = match history.ask(|database| database.entry_after(entry.as_ref())) {
            Ok(Some(next)) => next,
            Ok(None) => return Ok(()),
            Err(OpenError::DamagedHistory { reason, .. }) => {
                let place = entry.map_or(String::new(), |entry| format!(" behind room {:?}", entry.room));
                let meaning = format!("index segment_of_room cannot be read{place}: {reason}; rooms cannot be found through it");
                report.find(source.finding(source.history_path(), None, None, meaning));
                return check_rows(source, history, report, watch);
            }
            Err(error) => return Err(error),
        };
        if entry.as_ref().is_none_or(|entry| entry.room != next.room) {
            previous = None;
            report.room_count += 1;
        }
        match history.ask(|database| database.segment(next.row)) {
            Ok(Some(Stored { row, segment })) => {
                if let Some(wrong) = previous.as_ref().and_then(|previous| contradiction(previous, &segment))
                    && let Some(previous) = &previous
                    && history.ask(|database| are_both_there(database, previous, row, &segment))?
                {
                    let meaning = format!("messages of room {:?} {wrong} (the row before is {})", segment.room, previous.row);
                    report.find(source.finding(source.history_path(), None, Some(row), meaning));
                }
                previous = Some(Previous { row, last_id: segment.last_id(), end_number: segment.end_number() });
                report.segment_count += 1;
                report.message_count += u64::from(segment.message_count());
                unfolded.add(row, &segment);
            }
            // The server has moved it on.
            Ok(None) => {}
            Err(OpenError::DamagedHistory { reason, .. }) => {
                report.find(damaged_segment(source, &next, &reason));
                previous = None;
            }
            Err(error) => return Err(error),
        }
        entry = Some(next);
        watch(Progress { what: "checking rooms", done: report.segment_count, total: total.max(report.segment_count) });
    }
}

/// The same without the index, so without the order in rooms.
fn check_rows(source: &Source, history: &History, report: &mut Report, watch: &mut Watch<'_>) -> Result<(), OpenError> {
    report.segment_count = 0;
    report.message_count = 0;
    let mut rows = history.rows();
    while let Some((row, found)) = rows.next() {
        match found {
            Ok(stored) => {
                report.segment_count += 1;
                report.message_count += u64::from(stored.segment.message_count());
            }
            Err(OpenError::DamagedHistory { reason, .. }) => {
                let meaning = format!("it cannot be read ({reason}); its messages are lost, if there were any");
                report.find(source.finding(source.history_path(), None, Some(row), meaning));
            }
            Err(error) => return Err(error),
        }
        let (done, total) = rows.progress();
        watch(Progress { what: "checking rows", done, total });
    }
    Ok(())
}

fn damaged_segment(source: &Source, entry: &Entry, reason: &str) -> Finding {
    let Entry { row, room, first_id } = entry;
    let meaning = format!(
        "messages of room {room:?} from {}-{} on cannot be read: {reason}; the room's history is not complete",
        first_id.sequence, first_id.ordinal
    );
    source.finding(source.history_path(), None, Some(*row), meaning)
}

/// What is wrong between two segments that follow each other in a room.
fn contradiction(previous: &Previous, segment: &Segment) -> Option<String> {
    let Previous { last_id, end_number, .. } = previous;
    let (first_id, first_number) = (segment.first_id(), segment.first_number);
    if first_id <= *last_id {
        Some(format!(
            "are there twice: they begin at {}-{}, and those before end at {}-{}",
            first_id.sequence, first_id.ordinal, last_id.sequence, last_id.ordinal
        ))
    } else if first_number > *end_number {
        Some(format!("are missing: number {first_number} follows number {}", end_number.saturating_sub(1)))
    } else if first_number < *end_number {
        Some(format!("have a number twice: number {first_number} follows number {}", end_number.saturating_sub(1)))
    } else {
        None
    }
}

/// Whether both rows are still as they were: between two looks the server may have extended, shortened or deleted one of them.
fn are_both_there(database: &Database, previous: &Previous, row: i64, segment: &Segment) -> Result<bool, DatabaseError> {
    database.reading(|| {
        let before = database.segment(previous.row)?.is_some_and(|stored| stored.segment.last_id() == previous.last_id);
        Ok(before && database.segment(row)?.is_some_and(|stored| stored.segment == *segment))
    })
}
