//! Makes a data folder, fills it with messages, and checks it: what backup and repair have in common.
//!
//! The folder has a name of its own until all of that is done, so that nobody takes a half of it for the whole. Next: `backup.rs`.

use super::{
    finding::Report,
    progress::Watch,
    target::{Target, write_error},
    verify::verify_folder,
};
use crate::storage::{
    disk::{Access, OsDisk},
    error::{OpenError, open_error},
    folder::{Folder, HISTORY, parent_of},
    history::{ConnectError, Database, open_connection},
    limits::FOLDER_NAMES_MAX,
    position::LogPosition,
};
use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder that was made, filled and checked. This process holds its lock.
pub(crate) struct NewFolder {
    pub(crate) path: PathBuf,
    pub(crate) report: Report,
    _lock: Folder,
}

/// Makes a folder at `path`, where nothing is. If anything goes wrong it is removed again.
pub(crate) fn make_folder(
    path: PathBuf,
    fill: impl FnOnce(&mut Target) -> Result<LogPosition, OpenError>,
    watch: &mut Watch<'_>,
) -> Result<NewFolder, OpenError> {
    let made = (|| {
        let lock = Folder::open(&path)?;
        let mut target = Target::new(new_history(&path)?, path.join(HISTORY));
        let last = fill(&mut target)?;
        target.finish(last)?;
        sync(&path)?;
        let report = verify_folder(&path, watch)?;
        match report.findings.first() {
            None => Ok((lock, report)),
            Some(finding) => Err(OpenError::Io {
                action: "checking what was written to",
                path: path.clone(),
                source: io::Error::other(format!("{}: {}", finding.path, finding.meaning)),
            }),
        }
    })();
    match made {
        Ok((lock, report)) => Ok(NewFolder { path, report, _lock: lock }),
        Err(error) => {
            // It is ours and holds nothing that is not elsewhere. If it stays, its name says what it is.
            let _ = fs::remove_dir_all(&path);
            Err(error)
        }
    }
}

/// A name beside `path` that nothing has: `NAME.what-1`, `NAME.what-2`, ..
pub(crate) fn free_name(path: &Path, what: &str) -> Result<PathBuf, OpenError> {
    for number in 1..=FOLDER_NAMES_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{what}-{number}"));
        let name = PathBuf::from(name);
        match fs::symlink_metadata(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(name),
            Err(error) => return Err(open_error("looking at", name)(error)),
            Ok(_) => {}
        }
    }
    let source = io::Error::other(format!("{FOLDER_NAMES_MAX} folders with such a name stand beside it already: remove some"));
    Err(OpenError::Io { action: "choosing a name beside", path: path.to_owned(), source })
}

/// Makes the names in a folder durable.
pub(crate) fn sync(path: &Path) -> Result<(), OpenError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(open_error("syncing", path))
}

/// Makes the folder's own name durable.
pub(crate) fn sync_name(path: &Path) -> Result<(), OpenError> {
    sync(parent_of(path))
}

fn new_history(path: &Path) -> Result<Database, OpenError> {
    let disk = OsDisk::open(path).map_err(open_error("opening", path))?;
    let connection = open_connection(Arc::new(disk), HISTORY, Access::ReadWrite).map_err(|error| {
        let source = match error {
            ConnectError::Full { .. } => io::ErrorKind::StorageFull.into(),
            error => io::Error::other(error.to_string()),
        };
        OpenError::Io { action: "making", path: path.join(HISTORY), source }
    })?;
    Database::create_or_check(connection.connection).map_err(|error| write_error(&path.join(HISTORY), error))
}
