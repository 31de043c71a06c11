//! Checks the log behind `folded`: its files, the chain of its records, its end, and that the history says the same where it is ahead.
//!
//! Writes nothing. Beside a server the log may be folded and its files used again meanwhile; then it is checked from where `folded` is by
//! then. Next: `verify.rs`.

use super::{
    report::{Progress, Report, Watch},
    source::{History, Source},
    unfolded::{Contradiction, Unfolded},
};
use crate::storage::{
    error::OpenError,
    limits::LOOKS_AT_END_MAX,
    log::{Gap, Place, Salvage, Salvaged, Scan, last_file_number, log_file_name, unfinished_commits},
    position::LogPosition,
};

/// Checks the log of a history that can be read, or that is not there yet.
pub(crate) fn check_log(
    source: &Source,
    history: &mut Option<History>,
    unfolded: &mut Unfolded,
    report: &mut Report,
    watch: &mut Watch<'_>,
) -> Result<(), OpenError> {
    let mut contradictions = Vec::new();
    let last_file_number = last_file_number(source.log.as_ref())?;
    'from_folded: loop {
        let position = source.folded(history)?;
        unfolded.folded(position.sequence);
        let message_count = report.message_count;
        report.record_count = 0;
        contradictions.clear();
        let mut scan = Scan::start(source.log.clone(), source.file_bytes, position).until_file(last_file_number.max(position.file_number));
        let mut looks = Looks::at(position);
        let end = match scan.check_position() {
            Err(error) => Err(error),
            Ok(()) => loop {
                match read_to_end(&mut scan, unfolded, &mut contradictions, report, watch) {
                    // A record in the making looks like one that has decayed, for a moment.
                    Err(_) if looks.is_another_due(scan.position()) => {
                        scan.window.forget();
                        std::thread::yield_now();
                    }
                    end => break end,
                }
            },
        };
        if source.folded(history)?.file_number > scan.position().file_number {
            report.message_count = message_count;
            continue 'from_folded;
        }
        match end {
            Ok(unfinished) => {
                for Place { file_number, offset } in unfinished {
                    report.notes.push(format!(
                        "{} at offset {offset}: a commit is not complete, as while it is written or after a crash: nobody was shown it",
                        source.log.path().join(log_file_name(file_number)).display()
                    ));
                }
                unfolded.rest(&mut contradictions);
            }
            Err(error) => {
                source.find(report, error)?;
                check_behind(source, scan.position(), report)?;
            }
        }
        break;
    }
    if unfolded.are_too_many {
        report.notes.push("history.db is further ahead of the log than can be compared with it".to_owned());
    }
    for contradiction in contradictions {
        let (room, id) = (contradiction.room, contradiction.first_id);
        let meaning = format!("message {}-{} of room {room:?} is not what the log has under that id", id.sequence, id.ordinal);
        report.find(source.finding(source.history_path(), None, Some(contradiction.row), meaning));
    }
    Ok(())
}

/// How often something wrong was looked at in one place. Whoever has come further since has not stood before damage.
struct Looks {
    position: LogPosition,
    left: u32,
}

impl Looks {
    fn at(position: LogPosition) -> Looks {
        Looks { position, left: LOOKS_AT_END_MAX }
    }

    /// Whether to look once more before what is wrong here is called damage.
    fn is_another_due(&mut self, position: LogPosition) -> bool {
        if position != self.position {
            *self = Looks::at(position);
        }
        let is_due = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_due
    }
}

/// Checks the log alone, when nobody knows how much of it is folded.
pub(crate) fn check_log_alone(source: &Source, report: &mut Report) -> Result<(), OpenError> {
    report.notes.push("history.db does not say which records it has: of the log only its own chain was checked".to_owned());
    check_behind(source, LogPosition::START, report)
}

/// Reads on from where the scan stands. Returns where unfinished commits stand.
fn read_to_end(
    scan: &mut Scan,
    unfolded: &mut Unfolded,
    contradictions: &mut Vec<Contradiction>,
    report: &mut Report,
    watch: &mut Watch<'_>,
) -> Result<Vec<Place>, OpenError> {
    while let Some(record) = scan.next_record()? {
        report.record_count += 1;
        // Those that the history has too are counted there.
        let known = unfolded.compare(&record, contradictions);
        report.message_count += u64::from(record.message_count()).saturating_sub(known);
        watch(Progress { what: "checking the log", done: report.record_count, total: report.record_count });
    }
    if scan.is_at_its_bound() {
        return Ok(Vec::new());
    }
    scan.check_files(scan.position().file_number)?;
    unfinished_commits(scan)
}

/// Finds what else is damaged behind the first damage.
fn check_behind(source: &Source, position: LogPosition, report: &mut Report) -> Result<(), OpenError> {
    let is_start = position == LogPosition::START;
    let mut salvage = Salvage::start(source.log.clone(), source.file_bytes, position)?;
    let mut is_first = true;
    while let Some(salvaged) = salvage.next()? {
        match salvaged {
            Salvaged::Record(record) => {
                report.record_count += 1;
                report.message_count += u64::from(record.message_count());
            }
            // The first one was found before; of the last one nothing is known but that something is wrong.
            Salvaged::Gap(gap) if !is_first || (is_start && gap.after_sequence > 0) => {
                report.find(source.finding(gap.path.clone(), Some(gap.offset), None, gap_meaning(&gap)));
            }
            Salvaged::Gap(_) => {}
        }
        is_first = false;
    }
    Ok(())
}

/// What a gap means.
pub(crate) fn gap_meaning(gap: &Gap) -> String {
    let known = match gap.known_messages {
        0 => "the number of their messages is unknown".to_owned(),
        count => format!("at least {count} messages were in them"),
    };
    match gap.before_sequence {
        Some(before) if gap.is_nothing_missing() => format!("what stands before commit {before} is no commit; none is missing"),
        Some(before) if before == gap.after_sequence + 2 => format!("commit {} is lost; {known}", before - 1),
        Some(before) => format!("commits {} to {} are lost; {known}", gap.after_sequence + 1, before - 1),
        None => format!("what stands behind commit {} is no commit that can be read; {known}", gap.after_sequence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_goes_on_is_looked_at_again_and_one_that_stands_still_is_judged() {
        let at = |sequence| LogPosition { sequence, ..LogPosition::START };
        let mut looks = Looks::at(at(1));
        for sequence in 2..10 {
            assert!((0..LOOKS_AT_END_MAX).all(|_| looks.is_another_due(at(sequence))), "record {sequence} is new");
        }
        assert!(!looks.is_another_due(at(9)));
    }
}
