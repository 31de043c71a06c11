//! `relay verify`: says what is wrong with a data folder, for people or for programs.
//!
//! Next: `repair.rs`.

use super::progress::Bar;
use crate::cli::VerifyOptions;
use crate::error::Failed;
use crate::storage::{Finding, Report, verify_folder};
use std::io::{self, Write};
use std::process::ExitCode;

/// Checks everything and prints the findings. Ends with 1 when there are any.
///
/// # Errors
/// There is no such folder, or the operating system does not let us look.
pub fn verify(options: &VerifyOptions) -> Result<ExitCode, Failed> {
    let mut bar = Bar::new();
    let report = verify_folder(&options.data.folder, &mut |progress| bar.report(progress));
    drop(bar);
    let report = report.map_err(|error| Failed::new(error.to_string()))?;
    let printed = if options.json { print_json(&report) } else { print_report(&mut io::stdout().lock(), &report) };
    match printed {
        // Whoever reads has seen enough; the exit status is still an answer.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failed::new(format!("writing the report failed: {error}"))),
        _ => Ok(if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
    }
}

fn print_json(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, report)?;
    out.write_all(b"\n")
}

/// The report in words: each finding on two lines, then what was looked at.
pub(crate) fn print_report(out: &mut dyn Write, report: &Report) -> io::Result<()> {
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
