//! `relay backup TARGET`: a new data folder with everything that was committed when it began, checked.
//!
//! Works beside a server, which it holds up no more than any reader. Next: `repair.rs`.

use super::{
    copy::{Copied, Copy},
    finding::Report,
    new_folder::{free_name, make_folder, sync_name},
    progress::Watch,
    source::Source,
};
use crate::storage::error::{OpenError, open_error};
use std::{fs, io, path::Path};

/// Copies a data folder, also beside a running server. Returns what the check of the copy found it to hold.
///
/// # Errors
///
/// The target exists and is not an empty folder; the source is damaged; or the operating system refuses. Then the target is as it was.
pub fn back_up(data_dir: &Path, target: &Path, watch: &mut Watch<'_>) -> Result<Report, OpenError> {
    check_target(target)?;
    let Some(source) = Source::open(data_dir)? else { return Err(OpenError::NoData { path: data_dir.to_owned() }) };
    let mut copy = Copy::begin(source)?;
    // Nobody takes it for a backup before it is one.
    let unfinished = free_name(target, "unfinished")?;
    // What is told while the copy is made must not be told twice at once.
    let watch = std::cell::RefCell::new(watch);
    let folder = make_folder(
        unfinished,
        |new| {
            while let Some(copied) = copy.next(&mut |progress| (watch.borrow_mut())(progress))? {
                match copied {
                    Copied::Messages(segment) => new.add(segment)?,
                    Copied::Forget(room) => new.forget(&room)?,
                }
            }
            Ok(copy.end())
        },
        &mut |progress| (watch.borrow_mut())(progress),
    )?;
    if let Err(error) = fs::rename(&folder.path, target) {
        let _ = fs::remove_dir_all(&folder.path);
        return Err(open_error("naming the finished backup", target)(error));
    }
    sync_name(target)?;
    Ok(Report { data: target.display().to_string(), ..folder.report })
}

/// A backup replaces nothing.
fn check_target(target: &Path) -> Result<(), OpenError> {
    match fs::read_dir(target).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let source = io::Error::other("it is there and not empty: choose a folder that does not exist yet");
            Err(OpenError::Io { action: "making the backup", path: target.to_owned(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(open_error("looking at", target)(error)),
    }
}
