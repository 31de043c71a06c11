//! Reads everything that is intact in a damaged data folder, in the order in which it may be folded, and says what is lost.
//!
//! Every row by its own look-up, then every page of the log: what cannot be read costs itself. What can is what was committed: rows and
//! records are covered by checksums. Nobody may write to the folder meanwhile. Holds one segment or record. Next: `repair.rs`.

use super::{
    check_log::gap_meaning,
    report::{Losses, Progress, Watch},
    room_reader::{behind, segment_of},
    source::{History, Source},
};
use crate::storage::{
    error::OpenError,
    history::{Database, Entry, Segment, Stored},
    limits::LOST_ROWS_MAX,
    log::{Gap, Salvage, Salvaged, Scan, unfinished_commits},
    position::{LogPosition, MessageId},
};
use std::collections::BTreeSet;

/// Gives `take` all intact messages. Returns the last commit of which anything is left, behind which the log goes on.
///
/// # Errors
///
/// Those of `take`; or the log cannot be opened.
pub(crate) fn salvage(
    source: &Source,
    losses: &mut Losses,
    take: &mut dyn FnMut(Segment) -> Result<(), OpenError>,
    watch: &mut Watch<'_>,
) -> Result<LogPosition, OpenError> {
    let history = open_history(source, losses);
    let mut last = LogPosition::START;
    let (mut position, mut is_position_known) = (LogPosition::START, true);
    if let Some(history) = &history {
        salvage_rows(source, history, losses, &mut last, take, watch)?;
        match history.ask(Database::folded) {
            Ok(folded) => position = folded,
            Err(error) => {
                is_position_known = false;
                losses.lose(&source.history_path(), &format!("{}; the log is read from its first file on", reason(error)), Some(0));
            }
        }
    }
    keep_later(&mut last, position);
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
                    } else if let Some(segment) = behind(segment, last_in(history.as_ref(), section.room)) {
                        take(segment)?;
                    }
                }
            }
            Salvaged::Gap(gap) => match gap.before_sequence {
                None => tail = Some(gap),
                Some(before) if gap.after_sequence == 0 && !is_position_known => {
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
    keep_later(&mut last, salvage.position());
    Ok(last)
}

/// The history as far as it can be opened at all.
fn open_history(source: &Source, losses: &mut Losses) -> Option<History> {
    let history = match source.history() {
        Err(OpenError::Unfinished { .. }) => source.history_rolled_back(),
        history => history,
    };
    let without_journal = |error| match source.history_without_journal() {
        Ok(Some(history)) => {
            let what = format!("{}; what this change had half done may be lost", reason(error));
            Ok((Some(history), Some(what)))
        }
        _ => Err(error),
    };
    match history.map(|history| (history, None)).or_else(without_journal) {
        Ok((history, what)) => {
            if let Some(what) = what {
                losses.lose(&source.history_path(), &what, None);
            }
            history
        }
        Err(error) => {
            let what = format!("{}; nothing in it can be read, and only what is still in the log is left", reason(error));
            losses.lose(&source.history_path(), &what, None);
            None
        }
    }
}

fn salvage_rows(
    source: &Source,
    history: &History,
    losses: &mut Losses,
    last: &mut LogPosition,
    take: &mut dyn FnMut(Segment) -> Result<(), OpenError>,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    let mut lost_rows = BTreeSet::new();
    let mut unnamed_count = 0u64;
    let mut rows = history.rows();
    while let Some((row, found)) = rows.next() {
        match found {
            Ok(Stored { segment, .. }) => {
                let sequence = segment.last_id().sequence;
                if sequence > last.sequence {
                    *last = LogPosition { sequence, checksum: 0, ..LogPosition::START };
                }
                take(segment)?;
            }
            Err(_) if lost_rows.len() < LOST_ROWS_MAX => {
                lost_rows.insert(row);
            }
            Err(_) => unnamed_count += 1,
        }
        let (done, total) = rows.progress();
        watch(Progress { what: "reading rooms", done, total });
    }
    // A row that the index does not know either is one that was deleted, or never there.
    let is_index_readable = name_lost_rows(source, history, &lost_rows, losses);
    if !is_index_readable {
        let what = format!("{} rows cannot be read, and the index does not say of which rooms", lost_rows.len() as u64 + unnamed_count);
        losses.lose(&source.history_path(), &what, None);
    } else if unnamed_count > 0 {
        losses.lose(&source.history_path(), &format!("{unnamed_count} more rows cannot be read"), None);
    }
    Ok(())
}

/// Says of which rooms these rows were. False if the index cannot be read to its end.
fn name_lost_rows(source: &Source, history: &History, rows: &BTreeSet<i64>, losses: &mut Losses) -> bool {
    if rows.is_empty() {
        return true;
    }
    let mut before: Option<Entry> = None;
    let Ok(mut entry) = history.database.entry_after(None) else { return false };
    while let Some(current) = entry {
        let Ok(after) = history.database.entry_after(Some(&current)) else { return false };
        if rows.contains(&current.row) {
            let of_room = |entry: &Option<Entry>| entry.as_ref().filter(|entry| entry.room == current.room).map(|entry| entry.row);
            let neighbour = |entry: &Option<Entry>| of_room(entry).and_then(|row| history.database.segment(row).ok().flatten());
            let end_number = neighbour(&before).map(|stored| stored.segment.end_number());
            let next = neighbour(&after).map(|stored| stored.segment);
            // Numbers count the messages of a room without gaps.
            let messages = end_number.zip(next.as_ref()).and_then(|(end, next)| next.first_number.checked_sub(end));
            let count = messages.map_or("messages".to_owned(), |count| format!("{count} messages"));
            let until = next.map_or(String::new(), |next| format!(" and before {}", text(next.first_id())));
            let what = format!("row {}: {count} of room {:?}, from {} on{until}", current.row, current.room, text(current.first_id));
            losses.lose(&source.history_path(), &what, messages);
        }
        before = Some(current);
        entry = after;
    }
    true
}

/// The last message that the history has of a room.
fn last_in(history: Option<&History>, room: &str) -> Option<MessageId> {
    history?.database.last_summary(room).ok().flatten().map(|summary| summary.last_id)
}

fn lose_gap(losses: &mut Losses, gap: &Gap) {
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
