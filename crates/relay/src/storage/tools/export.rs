//! `relay export ROOM`: a room's messages as lines of JSON.
//!
//! Streams: memory does not grow with the room. Next: `check_folder.rs`.

use super::{
    json_line::write_json_line,
    progress::{Progress, Watch},
    room_reader::each_segment,
    source::Source,
};
use crate::storage::{error::HistoryError, folder::log_dir};
use std::{io::Write, path::Path};

/// Writes every stored message of `room` to `out`, oldest first, as JSON with a line for each. Returns their number.
///
/// # Errors
///
/// As [`print_history`](super::print_history).
pub fn export_room(data_dir: &Path, room: &str, out: &mut dyn Write, watch: &mut Watch<'_>) -> Result<u64, HistoryError> {
    match Source::open(data_dir)? {
        Some(source) => export_from(source, room, out, watch),
        None => Err(HistoryError::NoLog { path: log_dir(data_dir) }),
    }
}

pub(crate) fn export_from(source: Source, room: &str, out: &mut dyn Write, watch: &mut Watch<'_>) -> Result<u64, HistoryError> {
    // What the log has beyond that is not counted before it is read.
    let last = match source.history()? {
        Some(history) => history.ask(|database| database.last_summary(room))?,
        None => None,
    };
    let total = last.map_or(0, |last| last.first_number.saturating_add(u64::from(last.message_count)));
    let mut done = 0;
    let exported = each_segment(source, room, &mut |segment| {
        for message in segment.messages() {
            let line = message.line.strip_suffix(b"\n").unwrap_or(message.line);
            write_json_line(out, message.id, message.unix_ms, line).map_err(HistoryError::Output)?;
        }
        done += u64::from(segment.message_count());
        watch(Progress { what: "exporting", done, total: total.max(done) });
        Ok(())
    });
    // Also what stands before damage.
    out.flush().map_err(HistoryError::Output)?;
    exported
}
