//! What stands behind the last record when the log is opened: nothing, an unfinished commit, or a last record that decayed.
//!
//! A commit that a power cut or `kill -9` interrupted was shown to nobody: it is dropped and its bytes are overwritten. But a record that
//! is whole and wrong was shown, and dropping it would lose it silently. The two can be told apart because a disk writes a sector whole or
//! not at all, and every file holds zeros before its records, those that are used again as well: an unfinished record lacks a sector, which
//! then is all zeros; a decayed one lacks none. The header stands in the first sector and has a checksum of its own: it is there and right,
//! or it has decayed. So its length can be trusted, and how many sectors there must be is known.
//!
//! Costs a read of what a record may take, and a rewrite of the last record. Next: `prepare.rs`.

use super::{
    file_names::file_name,
    record::{Header, Invalid},
    scan::{Place, Scan},
    window::Window,
};
use crate::storage::{
    disk::{Access, Disk, PartlyWritten, write_all_at},
    error::{OpenError, open_error},
    limits::{READ_BYTES, RECORD_BYTES_MAX, SECTOR_BYTES},
};

/// Makes the end of a log durable and clean, which was read to its end from the file `first_number` on. Returns whether an unfinished
/// commit was dropped.
///
/// # Errors
///
/// The last record decayed, a file that was read has another length than it was made with, or the disk refuses.
pub(crate) fn settle(scan: &mut Scan, first_number: u64) -> Result<bool, OpenError> {
    scan.check_files(first_number)?;
    let unfinished = unfinished_commits(scan)?;
    make_last_durable(scan)?;
    for place in &unfinished {
        let byte_count = (scan.file_bytes - place.offset).min(RECORD_BYTES_MAX);
        overwrite(scan.window.disk().as_ref(), *place, &vec![0; byte_count as usize])?;
    }
    Ok(!unfinished.is_empty())
}

/// Where unfinished commits stand behind the last record of a log that was read to its end. Writes nothing.
///
/// # Errors
///
/// What stands there is no unfinished commit, so the last record decayed; or the disk refuses.
pub(crate) fn unfinished_commits(scan: &mut Scan) -> Result<Vec<Place>, OpenError> {
    let mut unfinished = Vec::new();
    for place in scan.next_places() {
        if place.offset < scan.file_bytes && scan.window.select(place.file_number)? {
            match judge(scan, place)? {
                Ok(Found::Unfinished) => unfinished.push(place),
                Ok(Found::Nothing) => {}
                Err(invalid) => {
                    let reason = format!("{invalid}, and no interrupted commit leaves such bytes");
                    return Err(scan.damaged(place, reason));
                }
            }
        }
    }
    Ok(unfinished)
}

enum Found {
    Nothing,
    Unfinished,
}

/// Judges what stands at a place of the selected file where a record would begin, but no valid one does.
fn judge(scan: &mut Scan, place: Place) -> Result<Result<Found, Invalid>, OpenError> {
    let link = scan.link(place.file_number);
    let sector = scan.window.bytes(place.offset, SECTOR_BYTES)?;
    if is_zero(sector) {
        let end = (place.offset + RECORD_BYTES_MAX).min(scan.file_bytes);
        return Ok(Ok(if is_zero_until(&mut scan.window, place.offset, end)? { Found::Nothing } else { Found::Unfinished }));
    }
    let header = match Header::read(sector) {
        Ok(header) if header.fits(&link) => header,
        Ok(_) => return Ok(Err(Invalid::OutOfPlace)),
        Err(invalid) => return Ok(Err(invalid)),
    };
    let record = scan.window.bytes(place.offset, header.record_bytes())?;
    // No sector of a whole record is all zeros, because texts hold no zero byte.
    if record.len() == header.record_bytes() && record.chunks(SECTOR_BYTES).any(is_zero) {
        return Ok(Ok(Found::Unfinished));
    }
    Ok(Err(header.check(record).err().unwrap_or(Invalid::OutOfPlace)))
}

/// The last record may be in the kernel's cache only: its writer was killed before its sync returned, or the sync failed, after which the
/// kernel calls the pages clean. It is about to be shown, so it is written once more and synced. Without one that was read here the last is
/// in the history, which is durable.
fn make_last_durable(scan: &mut Scan) -> Result<(), OpenError> {
    let Some((place, byte_count)) = scan.last else { return Ok(()) };
    let disk = scan.window.disk().clone();
    scan.window.select(place.file_number)?;
    overwrite(disk.as_ref(), place, scan.window.bytes(place.offset, byte_count as usize)?)
}

fn overwrite(disk: &dyn Disk, place: Place, bytes: &[u8]) -> Result<(), OpenError> {
    let name = file_name(place.file_number);
    let path = disk.path().join(&name);
    let file = disk.open(&name, Access::ReadWrite).map_err(open_error("opening", &path))?;
    let written = write_all_at(file.as_ref(), bytes, place.offset).map_err(|PartlyWritten { error, .. }| error);
    written.and_then(|()| file.sync_data()).map_err(open_error("writing to", path))
}

fn is_zero_until(window: &mut Window, mut offset: u64, end: u64) -> Result<bool, OpenError> {
    while offset < end {
        let step = window.bytes(offset, READ_BYTES.min((end - offset) as usize))?;
        if step.is_empty() {
            break;
        }
        if !is_zero(step) {
            return Ok(false);
        }
        offset += step.len() as u64;
    }
    Ok(true)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(SECTOR_BYTES).all(|sector| *sector == [0; SECTOR_BYTES][..sector.len()])
}
