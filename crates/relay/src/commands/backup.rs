//! `relay backup TARGET`: copies a data folder and says what the copy holds.
//!
//! Next: `mod.rs`.

use super::{progress::Bar, verify::print_report};
use crate::cli::BackupOptions;
use crate::error::Failed;
use crate::storage::back_up;
use std::io;

/// Copies everything into a new folder, and checks it.
///
/// # Errors
/// The source is damaged, the target is not free, or the operating system refuses.
pub fn backup(options: &BackupOptions) -> Result<(), Failed> {
    let mut bar = Bar::new();
    let report = back_up(&options.data.folder, &options.target, &mut |progress| bar.report(progress));
    drop(bar);
    let report = report.map_err(|error| Failed::new(error.to_string()))?;
    match print_report(&mut io::stdout().lock(), &report) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failed::new(format!("writing the report failed: {error}"))),
        _ => Ok(()),
    }
}
