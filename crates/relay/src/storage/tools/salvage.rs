//! Reads everything that is intact in a damaged data folder, in the order in which it may be folded, and says what is lost.
//!
//! Every row of the history through its trees, or, if not all can be read so, from its pages; then every page of the log: what cannot be
//! read costs itself. What can is what was committed: rows and records are covered by checksums. Nobody may write to the folder meanwhile.
//! Holds one segment or record, and what `scattered.rs` says. Next: `repair.rs`.

use super::{
    check_log::gap_meaning,
    report::{Losses, Progress, Watch},
    room_reader::{behind, segment_of},
    scattered::{Hole, Scattered},
    source::{History, Source},
};
use crate::storage::{
    error::OpenError,
    history::{Database, Entry, Segment, Stored},
    limits::LOST_ROWS_MAX,
    log::{Gap, Salvage, Salvaged, Scan, unfinished_commits},
    position::{LogPosition, MessageId},
};

/// Gives `take` all intact messages. Returns the last commit of which anything is left, behind which the log goes on.
///
/// # Errors
///
/// Those of `take`; or a file cannot be opened.
pub(crate) fn salvage(
    source: &Source,
    losses: &mut Losses,
    take: &mut dyn FnMut(Segment) -> Result<(), OpenError>,
    watch: &mut Watch<'_>,
) -> Result<LogPosition, OpenError> {
    let (history, wrong) = match open_history(source, losses) {
        Ok(history) => (history, None),
        Err(wrong) => (None, Some(wrong)),
    };
    let scattered = match &history {
        Some(history) if is_whole(history, watch) => None,
        Some(history) => Scattered::find(history.disk.as_ref(), watch)?,
        None if wrong.is_some() => Scattered::find(source.disk.as_ref(), watch)?,
        None => None,
    };
    let mut last = LogPosition::START;
    let mut folded = Some(LogPosition::START);
    if let Some(mut scattered) = scattered {
        salvage_scattered(source, history.as_ref(), wrong, &mut scattered, losses, take, watch)?;
        folded = scattered.folded;
        keep_later(&mut last, LogPosition { sequence: scattered.last_sequence(), ..LogPosition::START });
        salvage_log(source, folded, &|room| scattered.last_id(room), &mut last, losses, take, watch)?;
        return Ok(last);
    }
    if let Some(wrong) = wrong {
        losses.lose(&source.history_path(), &format!("{wrong}; only what is still in the log is left"), None);
    }
    if let Some(history) = &history {
        let mut rows = history.rows();
        while let Some((_, found)) = rows.next() {
            let Stored { segment, .. } = found?;
            keep_later(&mut last, LogPosition { sequence: segment.last_id().sequence, ..LogPosition::START });
            take(segment)?;
            let (done, total) = rows.progress();
            watch(Progress { what: "reading rooms", done, total });
        }
        folded = history.ask(Database::folded).ok();
    }
    salvage_log(source, folded, &|room| last_in(history.as_ref(), room), &mut last, losses, take, watch)?;
    Ok(last)
}

/// What the log has behind `folded`, or behind what there is of each room.
fn salvage_log(
    source: &Source,
    folded: Option<LogPosition>,
    last_in: &dyn Fn(&str) -> Option<MessageId>,
    last: &mut LogPosition,
    losses: &mut Losses,
    take: &mut dyn FnMut(Segment) -> Result<(), OpenError>,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    if folded.is_none() {
        let what = "up to where the log is in it cannot be read; the log is read from its first file on";
        losses.lose(&source.history_path(), what, Some(0));
    }
    let position = folded.unwrap_or(LogPosition::START);
    keep_later(last, position);
    let mut salvage = Salvage::start(source.log.clone(), source.file_bytes, position)?;
    let mut tail = None;
    while let Some(salvaged) = salvage.next()? {
        match salvaged {
            Salvaged::Record(record) => {
                watch(Progress { what: "reading the log", done: record.sequence(), total: record.sequence() });
                for section in record.sections() {
                    let segment = segment_of(&record, section.room, section.message_count, section.lines);
                    if let Err(wrong) = segment.check() {
                        let what = format!("commit {}, room {:?}: its {wrong}", record.sequence(), section.room);
                        losses.lose(source.log.path(), &what, Some(u64::from(section.message_count)));
                    } else if let Some(segment) = behind(segment, last_in(section.room)) {
                        take(segment)?;
                    }
                }
            }
            Salvaged::Gap(gap) => match gap.before_sequence {
                None => tail = Some(gap),
                Some(before) if gap.after_sequence == 0 && folded.is_none() => {
                    let what = format!("what was committed before {before} is left as far as it is in history.db and intact there");
                    losses.lose(source.log.path(), &what, None);
                }
                Some(_) => lose_gap(losses, &gap),
            },
        }
    }
    if let Some(gap) = tail {
        let mut scan = Scan::start(source.log.clone(), source.file_bytes, salvage.position());
        // A commit that was cut off was shown to nobody.
        if scan.check_files(scan.position().file_number).and_then(|()| unfinished_commits(&mut scan)).is_err() {
            lose_gap(losses, &gap);
        }
    }
    keep_later(last, salvage.position());
    Ok(())
}

/// The history, if it can be opened, or what is wrong with it.
fn open_history(source: &Source, losses: &mut Losses) -> Result<Option<History>, String> {
    let history = match source.history() {
        Err(OpenError::Unfinished { .. }) => source.history_rolled_back(),
        history => history,
    };
    history.or_else(|error| match source.history_without_journal() {
        Ok(Some(history)) => {
            let what = format!("{}; what this change had half done may be lost", reason(error));
            losses.lose(&source.history_path(), &what, None);
            Ok(Some(history))
        }
        _ => Err(reason(error)),
    })
}

/// Whether every row can be read through the trees.
fn is_whole(history: &History, watch: &mut Watch<'_>) -> bool {
    let mut rows = history.rows();
    let mut count = 0;
    while let Some((_, found)) = rows.next() {
        if found.is_err() {
            return false;
        }
        count += 1;
        let (done, total) = rows.progress();
        watch(Progress { what: "looking at rooms", done, total });
    }
    // The index is another tree, which may be damaged itself.
    history.ask(Database::last_row).is_ok() && history.ask(Database::segment_count).map_or(true, |known| known == count)
}

/// Everything that stands on the pages of the history, with what the log has between.
fn salvage_scattered(
    source: &Source,
    history: Option<&History>,
    wrong: Option<String>,
    scattered: &mut Scattered,
    losses: &mut Losses,
    take: &mut dyn FnMut(Segment) -> Result<(), OpenError>,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    scattered.add_log(&source.log, source.file_bytes)?;
    let path = source.history_path();
    let missing = history.and_then(|history| missing_rows(history, scattered));
    let mut lose = |hole: Hole| {
        let Hole { room, from, after, before, message_count } = hole;
        let what = format!("{message_count} messages of room {room:?}, behind {} and before {}", text(after), text(before));
        match &missing {
            // What no row of the index was is no loss: it was deleted.
            Some(missing) if missing.is_one_in(&room, from, before) => losses.lose(&path, &what, Some(message_count)),
            Some(_) => {}
            None if scattered.wrong_page_count > 0 => losses.lose(&path, &format!("{what}, unless they were deleted"), None),
            None => {}
        }
    };
    scattered.take_all(&source.log, source.file_bytes, take, &mut lose, watch)?;
    match missing {
        Some(Missing { entries, unnamed_count }) => {
            for entry in entries.iter().filter(|entry| !scattered.is_between_rows(&entry.room, entry.first_id)) {
                let what = format!("row {}: messages of room {:?}, from {} on", entry.row, entry.room, text(entry.first_id));
                losses.lose(&path, &what, None);
            }
            if unnamed_count > 0 {
                losses.lose(&path, &format!("{unnamed_count} more rows cannot be read"), None);
            }
        }
        // Where all pages are right but those through which others are found, nothing is lost.
        None if scattered.wrong_page_count > 0 && scattered.log_whole_from > 1 => {
            let (count, all) = (scattered.wrong_page_count, scattered.page_count);
            let why = wrong.map_or(String::new(), |wrong| format!("{wrong}; "));
            let left = if scattered.has_rows() { "" } else { ": only what is still in the log is left" };
            let what = format!("{why}{count} of its {all} pages are damaged, and nobody knows which messages were on them{left}");
            losses.lose(&path, &what, None);
        }
        None => {}
    }
    Ok(())
}

/// Rows that the index knows and that were not found.
struct Missing {
    /// In the order of the index: by room and first message.
    entries: Vec<Entry>,
    unnamed_count: u64,
}

impl Missing {
    /// Whether a row of the room that begins from here on and before there is missing.
    fn is_one_in(&self, room: &str, from: MessageId, before: MessageId) -> bool {
        let at = self.entries.partition_point(|entry| (entry.room.as_str(), entry.first_id) < (room, from));
        self.entries.get(at).is_some_and(|entry| entry.room == room && entry.first_id < before)
    }
}

/// Compares with the index what was found; `None` if it cannot be read to its end.
fn missing_rows(history: &History, scattered: &Scattered) -> Option<Missing> {
    let mut missing = Missing { entries: Vec::new(), unnamed_count: 0 };
    let mut entry = history.ask(|database| database.entry_after(None)).ok()?;
    while let Some(current) = entry {
        entry = history.ask(|database| database.entry_after(Some(&current))).ok()?;
        if scattered.has_row(current.row) || current.first_id.sequence >= scattered.log_whole_from {
            continue;
        }
        if missing.entries.len() < LOST_ROWS_MAX {
            missing.entries.push(current);
        } else {
            missing.unnamed_count += 1;
        }
    }
    Some(missing)
}

/// The last message that the history has of a room.
fn last_in(history: Option<&History>, room: &str) -> Option<MessageId> {
    history?.database.last_summary(room).ok().flatten().map(|summary| summary.last_id)
}

fn lose_gap(losses: &mut Losses, gap: &Gap) {
    if gap.is_nothing_missing() {
        return;
    }
    let messages = (gap.known_messages > 0).then_some(gap.known_messages);
    losses.lose(&gap.path, &format!("offset {}: {}", gap.offset, gap_meaning(gap)), messages);
    losses.are_more = true;
}

fn keep_later(last: &mut LogPosition, other: LogPosition) {
    if other.sequence >= last.sequence {
        *last = other;
    }
}

/// What is wrong, without what a server would say about it.
fn reason(error: OpenError) -> String {
    match error {
        OpenError::Damaged { reason, .. } | OpenError::DamagedHistory { reason, .. } => reason,
        error => error.to_string(),
    }
}

fn text(id: MessageId) -> String {
    format!("{}-{}", id.sequence, id.ordinal)
}
