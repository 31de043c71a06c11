//! `relay repair`: says what is wrong, what is lost, and what was done about it.
//!
//! Next: `backup.rs`.

use super::{progress::Bar, verify::print_report};
use crate::cli::RepairOptions;
use crate::error::Failed;
use crate::storage::{Losses, Repair, repair_folder};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Looks, and with `--write` repairs. Ends with 1 when the folder is still damaged.
///
/// # Errors
/// There is no such folder, a server uses it, or the operating system refuses.
pub fn repair(options: &RepairOptions) -> Result<ExitCode, Failed> {
    let mut bar = Bar::new();
    let repaired = repair_folder(&options.data.folder, options.write, &mut |progress| bar.report(progress));
    drop(bar);
    let repaired = repaired.map_err(|error| Failed::new(error.to_string()))?;
    let is_damaged = !repaired.report.is_right() && repaired.original.is_none();
    match print(&mut io::stdout().lock(), &options.data.folder, &repaired) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failed::new(format!("writing the report failed: {error}"))),
        _ => Ok(if is_damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS }),
    }
}

fn print(out: &mut dyn Write, data_dir: &Path, repaired: &Repair) -> io::Result<()> {
    let Repair { report, losses, message_count, original } = repaired;
    print_report(out, report)?;
    if report.is_right() {
        return writeln!(out, "there is nothing to repair");
    }
    let (is_lost, are_kept) = if original.is_some() { ("is lost", "are kept") } else { ("would be lost", "would be kept") };
    print_losses(out, losses, is_lost)?;
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

fn print_losses(out: &mut dyn Write, losses: &Losses, is_lost: &str) -> io::Result<()> {
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
    let more = if *are_more { "at least " } else { "" };
    writeln!(out, "{more}{known_messages} messages {}", if is_lost == "is lost" { "are lost" } else { "would be lost" })
}
