//! `relay history` and `relay export`: a room's messages, as they were shown and as JSON.
//!
//! Next: `verify.rs`.

use super::progress::Bar;
use crate::cli::RoomOptions;
use crate::error::Failed;
use crate::storage::{HistoryError, export_room, print_history};
use std::io::{self, BufWriter, Write};

/// Prints a room's messages as the lines that were broadcast.
///
/// # Errors
/// There are none, or they cannot be read to the end.
pub fn history(options: &RoomOptions) -> Result<(), Failed> {
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = print_history(&options.data.folder, &options.room, &mut out);
    seen(printed.and_then(|_| out.flush().map_err(HistoryError::Output)))
}

/// Prints a room's messages as one JSON object a line.
///
/// # Errors
/// There are none, or they cannot be read to the end.
pub fn export(options: &RoomOptions) -> Result<(), Failed> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut bar = Bar::new();
    let printed = export_room(&options.data.folder, &options.room, &mut out, &mut |progress| bar.report(progress));
    drop(bar);
    seen(printed.and_then(|_| out.flush().map_err(HistoryError::Output)))
}

fn seen(printed: Result<(), HistoryError>) -> Result<(), Failed> {
    match printed {
        // `relay history lobby | head` has seen enough.
        Err(HistoryError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed.map_err(|error| Failed::new(error.to_string())),
    }
}
