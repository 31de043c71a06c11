//! Prints what the log holds of one room: `relay history ROOM`.
//!
//! Takes no lock and writes nothing, so it runs beside a server; it shows what was committed when it gets there. Costs a read of the whole
//! log. Knows nothing of the command line. This is the last file of `storage`.

use crate::storage::{
    disk::{Disk, OsDisk},
    error::{HistoryError, OpenError, open_error},
    folder::log_dir,
    limits::FILE_BYTES,
    log::Scan,
    position::LogPosition,
};
use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
};

/// Writes every stored message of `room` to `out`, oldest first, as the `MESSAGE <name> <text>` lines that were broadcast. Returns their
/// number.
///
/// `out` gets few and large writes. A record that is being written at the moment is left out.
///
/// # Errors
///
/// [`HistoryError::RoomNotFound`] when nothing was ever stored in the room; [`HistoryError::NoLog`], or [`HistoryError::Log`] when it
/// is damaged, after what stands before the damage; [`HistoryError::Output`] when `out` refuses.
pub fn print_history(data_dir: &Path, room: &str, out: &mut dyn Write) -> Result<u64, HistoryError> {
    let path = log_dir(data_dir);
    match OsDisk::open(&path) {
        Ok(disk) => print_room(Arc::new(disk), FILE_BYTES, room, out),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(HistoryError::NoLog { path }),
        Err(error) => Err(open_error("opening", path)(error).into()),
    }
}

pub(crate) fn print_room(disk: Arc<dyn Disk>, file_bytes: u64, room: &str, out: &mut dyn Write) -> Result<u64, HistoryError> {
    let mut message_count = 0;
    let mut scan = Scan::start(disk, file_bytes, LogPosition::START);
    let end: Result<(), OpenError> = loop {
        match scan.next_record() {
            Ok(Some(record)) => {
                for section in record.sections().filter(|section| section.room == room) {
                    out.write_all(section.lines).map_err(HistoryError::Output)?;
                    message_count += u64::from(section.message_count);
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    out.flush().map_err(HistoryError::Output)?;
    end?;
    if message_count == 0 { Err(HistoryError::RoomNotFound { room: room.to_owned() }) } else { Ok(message_count) }
}
