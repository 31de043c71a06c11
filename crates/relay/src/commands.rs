//! The commands that read or rescue a data folder, for a person at a terminal: what they print, and how they end.
//!
//! Results go to standard output, what goes wrong to standard error. Who reads only the beginning, as `relay history lobby | head`, has
//! seen enough. Knows nothing of files. Next: `bench_report.rs`.

use crate::cli::{BackupOptions, RepairOptions, RoomOptions, VerifyOptions};
use crate::error::Failed;
use crate::progress_bar::Bar;
use crate::storage::{
    Finding, HistoryError, Losses, OpenError, Repair, Report, Watch, back_up, export_room, print_history, repair_folder, verify_folder,
};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

/// Prints a room's messages as the lines that were broadcast.
///
/// # Errors
/// There are none, or they cannot be read to the end.
pub fn history(options: &RoomOptions) -> Result<ExitCode, Failed> {
    print_room(&mut |out| print_history(&options.data.folder, &options.room, out))
}

/// Prints a room's messages as one JSON object a line.
///
/// # Errors
/// There are none, or they cannot be read to the end.
pub fn export(options: &RoomOptions) -> Result<ExitCode, Failed> {
    print_room(&mut |out| {
        let mut bar = Bar::new();
        export_room(&options.data.folder, &options.room, out, &mut |progress| bar.report(progress))
    })
}

/// Checks everything and prints the findings. Ends with 1 when there are any.
///
/// # Errors
/// There is no such folder, or the operating system does not let us look.
pub fn verify(options: &VerifyOptions) -> Result<ExitCode, Failed> {
    let report = watched(|watch| verify_folder(&options.data.folder, watch))?;
    let printed = if options.json { print_json(&report) } else { print_report(&mut io::stdout().lock(), &report) };
    printed_all(printed, "report")?;
    Ok(if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says what is wrong and what is lost, and with `--write` repairs. Ends with 1 when the folder is still damaged.
///
/// # Errors
/// There is no such folder, a server uses it, or the operating system refuses.
pub fn repair(options: &RepairOptions) -> Result<ExitCode, Failed> {
    let repaired = watched(|watch| repair_folder(&options.data.folder, options.write, watch))?;
    printed_all(print_repair(&mut io::stdout().lock(), &options.data.folder, &repaired), "report")?;
    let is_damaged = !repaired.report.is_right() && repaired.original.is_none();
    Ok(if is_damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Copies everything into a new folder, and says what the check of the copy found it to hold.
///
/// # Errors
/// The source is damaged, the target is not free, or the operating system refuses.
pub fn backup(options: &BackupOptions) -> Result<ExitCode, Failed> {
    let report = watched(|watch| back_up(&options.data.folder, &options.target, watch))?;
    printed_all(print_report(&mut io::stdout().lock(), &report), "report")?;
    Ok(ExitCode::SUCCESS)
}

fn print_room(print: &mut dyn FnMut(&mut dyn Write) -> Result<u64, HistoryError>) -> Result<ExitCode, Failed> {
    let mut out = BufWriter::new(io::stdout().lock());
    match print(&mut out) {
        Err(HistoryError::Output(error)) => printed_all(Err(error), "messages")?,
        printed => _ = printed.map_err(|error| Failed::new(error.to_string()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn watched<T>(work: impl FnOnce(&mut Watch<'_>) -> Result<T, OpenError>) -> Result<T, Failed> {
    let mut bar = Bar::new();
    work(&mut |progress| bar.report(progress)).map_err(|error| Failed::new(error.to_string()))
}

/// Whoever reads has seen enough if the pipe is closed; the exit status is still an answer.
pub(crate) fn printed_all(printed: io::Result<()>, what: &str) -> Result<(), Failed> {
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failed::new(format!("writing the {what} failed: {error}"))),
        _ => Ok(()),
    }
}

fn print_json(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, report)?;
    out.write_all(b"\n")
}

/// The report in words: each finding on two lines, then what was looked at.
fn print_report(out: &mut dyn Write, report: &Report) -> io::Result<()> {
    for Finding { path, offset, row, meaning, command } in &report.findings {
        let offset = offset.map_or(String::new(), |offset| format!(" at offset {offset}"));
        let row = row.map_or(String::new(), |row| format!(" in row {row} of table segment"));
        writeln!(out, "{path}{offset}{row}: {meaning}\n    run `{command}`")?;
    }
    let unshown = report.finding_count - report.findings.len() as u64;
    if unshown > 0 {
        writeln!(out, "and {unshown} more findings")?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    let Report { data, finding_count, message_count, room_count, page_count, segment_count, record_count, .. } = report;
    writeln!(
        out,
        "{data}: {message_count} messages of {room_count} rooms are right: {segment_count} segments on {page_count} pages of history.db, \
         {record_count} records of the log"
    )?;
    match finding_count {
        0 => writeln!(out, "everything is right"),
        _ => writeln!(out, "{finding_count} findings: relay does not serve a damaged folder"),
    }
}

fn print_repair(out: &mut dyn Write, data_dir: &Path, repaired: &Repair) -> io::Result<()> {
    let Repair { report, losses, message_count, original, left_over } = repaired;
    print_report(out, report)?;
    for path in left_over {
        writeln!(out, "note: {} is left from an earlier repair: remove it when you are done", path.display())?;
    }
    if report.is_right() {
        return writeln!(out, "there is nothing to repair");
    }
    let [is_lost, are_lost, are_kept] = match original {
        Some(_) => ["is lost", "are lost", "are kept"],
        None => ["would be lost", "would be lost", "would be kept"],
    };
    print_losses(out, losses, is_lost, are_lost)?;
    writeln!(out, "{message_count} messages {are_kept}")?;
    match original {
        Some(original) => writeln!(
            out,
            "{} is repaired and checked; what it was before is in {}: keep that until nobody misses anything",
            data_dir.display(),
            original.display()
        ),
        None => writeln!(out, "nothing was changed: run it again with `--write` to do it; the damaged folder is kept beside the new one"),
    }
}

fn print_losses(out: &mut dyn Write, losses: &Losses, is_lost: &str, are_lost: &str) -> io::Result<()> {
    let Losses { place_count, places, known_messages, are_more } = losses;
    if *place_count == 0 {
        return writeln!(out, "no message {is_lost}");
    }
    writeln!(out, "what {is_lost}:")?;
    places.iter().try_for_each(|place| writeln!(out, "    {place}"))?;
    let unshown = place_count - places.len() as u64;
    if unshown > 0 {
        writeln!(out, "    and {unshown} more places")?;
    }
    match (are_more, known_messages) {
        (true, 0) => writeln!(out, "an unknown number of messages {are_lost}"),
        (true, known) => writeln!(out, "at least {known} messages {are_lost}"),
        (false, 0) => writeln!(out, "no message {is_lost}"),
        (false, known) => writeln!(out, "{known} messages {are_lost}"),
    }
}
