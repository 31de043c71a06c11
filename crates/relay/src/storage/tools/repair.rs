//! `relay repair`: says what is wrong and what would be lost; when it is told to, puts a folder with everything intact in the place of the
//! damaged one, which is kept beside it.
//!
//! Needs the folder for itself. Nothing of the damaged folder is changed but its name. Next: `mod.rs`.

use super::{
    finding::Report,
    losses::Losses,
    new_folder::{free_name, make_folder, sync_name},
    progress::Watch,
    salvage::salvage,
    source::Source,
    verify::verify_folder,
};
use crate::storage::{
    error::{OpenError, open_error},
    folder::Folder,
};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::{
    fs,
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
}

/// Looks at a data folder that no server uses; with `write`, replaces it by one with everything that is intact, if anything is wrong.
///
/// # Errors
///
/// There is no data folder, a server uses it, or the operating system refuses. Then it is as it was.
pub fn repair_folder(data_dir: &Path, write: bool, watch: &mut Watch<'_>) -> Result<Repair, OpenError> {
    // Its real name, because it is to be renamed and not what points to it.
    let data_dir = &fs::canonicalize(data_dir).map_err(|_| OpenError::NoData { path: data_dir.to_owned() })?;
    if Source::open(data_dir)?.is_none() && fs::read_dir(data_dir).map_err(open_error("listing", data_dir))?.next().is_none() {
        return Err(OpenError::NoData { path: data_dir.to_owned() });
    }
    let _lock = Folder::open(data_dir)?;
    let report = verify_folder(data_dir, watch)?;
    let Some(source) = Source::open(data_dir)? else { return Err(OpenError::NoData { path: data_dir.to_owned() }) };
    let mut losses = Losses::default();
    let mut message_count = 0;
    if !write || report.is_right() {
        salvage(
            &source,
            &mut losses,
            &mut |segment| {
                message_count += u64::from(segment.message_count());
                Ok(())
            },
            watch,
        )?;
        return Ok(Repair { report, losses, message_count, original: None });
    }

    let watch = std::cell::RefCell::new(watch);
    let folder = make_folder(
        free_name(data_dir, "repair")?,
        |new| salvage(&source, &mut losses, &mut |segment| new.add(segment), &mut |progress| (watch.borrow_mut())(progress)),
        &mut |progress| (watch.borrow_mut())(progress),
    )?;
    let original = free_name(data_dir, "damaged")?;
    // In one step, so that at no moment a server finds nothing there and begins anew. The locks of both folders are held.
    renameat_with(CWD, &folder.path, CWD, data_dir, RenameFlags::EXCHANGE)
        .map_err(|error| open_error("exchanging the folders", &folder.path)(error.into()))?;
    fs::rename(&folder.path, &original).map_err(open_error("renaming", &folder.path))?;
    sync_name(data_dir)?;
    Ok(Repair { message_count: folder.report.message_count, report, losses, original: Some(original) })
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
