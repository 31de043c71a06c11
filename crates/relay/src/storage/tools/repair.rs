//! `relay repair`: says what is wrong and what would be lost; when it is told to, puts a folder with everything intact in the place of the
//! damaged one, which is kept beside it.
//!
//! Needs the folder for itself. Nothing of the damaged folder is changed but its name. Next: `mod.rs`.

use super::{
    new_folder::{Target, first_free_name, make_folder, sync_name},
    report::{Losses, Report, Watch},
    salvage::salvage,
    source::Source,
    verify::verify_folder,
};
use crate::storage::{
    error::{OpenError, open_error, quoted},
    folder::{Folder, parent_of},
    history::Segment,
    limits::FINDINGS_LEN_MAX,
};
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// What a repair has found, and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// What was wrong.
    pub report: Report,
    /// What is lost, or would be.
    pub losses: Losses,
    /// How many messages are kept, or would be.
    pub message_count: u64,
    /// Where the damaged folder is now, if it was replaced.
    pub original: Option<PathBuf>,
    /// Folders of earlier repairs that were cut off, or could not take their place.
    pub left_over: Vec<PathBuf>,
}

/// Looks at a data folder that no server uses; with `write`, replaces it by one with everything that is intact, if anything is wrong.
///
/// # Errors
///
/// There is no data folder, a server uses it, or the operating system refuses. Then it is as it was.
pub fn repair_folder(data_dir: &Path, write: bool, watch: &mut Watch<'_>) -> Result<Repair, OpenError> {
    // Its real name, because it is to be renamed and not what points to it.
    let data_dir = &fs::canonicalize(data_dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::NoData { path: data_dir.to_owned() },
        _ => open_error("looking at", data_dir)(error),
    })?;
    // The lock would be made in it.
    if fs::read_dir(data_dir).map_err(open_error("listing", data_dir))?.next().is_none() {
        return Err(OpenError::NoData { path: data_dir.to_owned() });
    }
    let _lock = Folder::open(data_dir)?;
    let source = Source::open(data_dir)?;
    let report = verify_folder(data_dir, watch)?;
    let mut repair =
        Repair { message_count: report.message_count, report, losses: Losses::default(), original: None, left_over: left_over(data_dir) };
    if repair.report.is_right() {
        return Ok(repair);
    }
    if !write {
        repair.message_count = 0;
        let mut count = |segment: Segment| {
            repair.message_count += u64::from(segment.message_count());
            Ok(())
        };
        salvage(&source, &mut repair.losses, &mut count, watch)?;
        return Ok(repair);
    }

    let fill = |new: &mut Target, watch: &mut Watch<'_>| salvage(&source, &mut repair.losses, &mut |segment| new.add(segment), watch);
    let folder = make_folder(data_dir, "repair", fill, watch)?;
    repair.message_count = folder.report.message_count;
    // In one step, so that at no moment a server finds nothing there and begins anew. The locks of both folders are held.
    renameat_with(CWD, &folder.path, CWD, data_dir, RenameFlags::EXCHANGE)
        .map_err(|error| cannot_exchange(&folder.path, data_dir, error))?;
    let keep = |name: &Path| Ok(renameat_with(CWD, &folder.path, CWD, name, RenameFlags::NOREPLACE)?);
    repair.original = Some(first_free_name(data_dir, "damaged", "naming the damaged folder", keep)?);
    sync_name(data_dir)?;
    Ok(repair)
}

/// What earlier repairs have left beside the folder. Nobody writes to it: the folder's lock is ours.
fn left_over(data_dir: &Path) -> Vec<PathBuf> {
    let mut prefix = data_dir.file_name().unwrap_or_default().to_owned();
    prefix.push(".repair-");
    let names = fs::read_dir(parent_of(data_dir)).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_one = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()));
    let mut found: Vec<PathBuf> = names.filter(is_one).take(FINDINGS_LEN_MAX).collect();
    found.sort();
    found
}

/// Not every file system can, and no folder changes its place that another file system is mounted on.
fn cannot_exchange(new: &Path, data_dir: &Path, error: Errno) -> OpenError {
    let way_out = format!(
        "{error}; {new} is repaired and checked: move what is in {data_dir} elsewhere and what is in {new} there, or start \
         `relay serve --data {new}`",
        new = quoted(new),
        data_dir = quoted(data_dir)
    );
    OpenError::Io { action: "exchanging the folders at", path: data_dir.to_owned(), source: io::Error::other(way_out) }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
