//! A new data folder that is filled with messages of another one and checked: what backup and repair have in common.
//!
//! Messages go through the same fold that writes them live; of each room they come in the order of their ids, and those that are there
//! already are left out, so that a segment which was extended while it was read may come again. The folder has a name of its own until all
//! is done, so that nobody takes a half of it for the whole. Holds what a fold gathers. Next: `backup.rs`.

use super::{
    report::{Report, Watch},
    room_reader::behind,
    verify::verify_folder,
};
use crate::storage::{
    disk::{Access, OsDisk},
    error::{OpenError, open_error},
    folder::{Folder, HISTORY, parent_of},
    history::{ConnectError, Database, DatabaseError, Segment, Window, open_connection},
    limits::{DELETED_ROWS_MAX, FOLD_TRANSACTION_BYTES, FOLDER_NAMES_MAX},
    position::{LogPosition, MessageId},
};
use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A folder that was made, filled and checked. This process holds its lock.
pub(crate) struct NewFolder {
    pub(crate) path: PathBuf,
    pub(crate) report: Report,
    _lock: Folder,
}

/// Its history.
pub(crate) struct Target {
    database: Database,
    /// The file, for messages.
    path: PathBuf,
    window: Window,
    /// The last message of each room in the window.
    last_ids: BTreeMap<String, MessageId>,
}

/// Makes a folder beside `path`, with `what` it is in its name. If anything goes wrong it is removed again.
pub(crate) fn make_folder(
    path: &Path,
    what: &str,
    fill: impl FnOnce(&mut Target, &mut Watch<'_>) -> Result<LogPosition, OpenError>,
    watch: &mut Watch<'_>,
) -> Result<NewFolder, OpenError> {
    // In one step with the choice of its name: of two backups at the same time, none takes the other's for its own.
    let path = first_free_name(path, what, "making the folder", |name| DirBuilder::new().mode(0o700).create(name))?;
    let made = (|| {
        sync_name(&path)?;
        let lock = Folder::open(&path)?;
        let mut target = Target::new(new_history(&path)?, path.join(HISTORY));
        let last = fill(&mut target, watch)?;
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

/// The first name beside `path` that `take` gets: `NAME.what-1`, `NAME.what-2`, ..
pub(crate) fn first_free_name(
    path: &Path,
    what: &str,
    action: &'static str,
    take: impl Fn(&Path) -> io::Result<()>,
) -> Result<PathBuf, OpenError> {
    for number in 1..=FOLDER_NAMES_MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{what}-{number}"));
        let name = PathBuf::from(name);
        match take(&name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(open_error(action, name)(error)),
        }
    }
    let source = io::Error::other(format!("{FOLDER_NAMES_MAX} folders with such a name stand beside it already: remove some"));
    Err(OpenError::Io { action: "choosing a name beside", path: path.to_owned(), source })
}

/// Makes the folder's own name durable.
pub(crate) fn sync_name(path: &Path) -> Result<(), OpenError> {
    sync(parent_of(path))
}

/// Makes the names in a folder durable.
fn sync(path: &Path) -> Result<(), OpenError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(open_error("syncing", path))
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

impl Target {
    pub(crate) fn new(database: Database, path: PathBuf) -> Target {
        Target { database, path, window: Window::default(), last_ids: BTreeMap::new() }
    }

    /// Takes messages that follow those before of their room, or repeat them.
    pub(crate) fn add(&mut self, segment: Segment) -> Result<(), OpenError> {
        if !self.last_ids.contains_key(&segment.room)
            && let Some(last) = self.database.last_summary(&segment.room).map_err(|error| self.error(error))?
        {
            self.last_ids.insert(segment.room.clone(), last.last_id);
        }
        let last_id = self.last_ids.get(&segment.room).copied();
        let Some(segment) = behind(segment, last_id) else { return Ok(()) };
        let mut at = 0;
        for run in &segment.runs {
            let lines = &segment.lines[at..at + run.line_bytes as usize];
            at += run.line_bytes as usize;
            self.window.add_run(&segment.room, *run, lines);
        }
        let last_id = segment.last_id();
        self.last_ids.insert(segment.room, last_id);
        if self.window.is_full() { self.write() } else { Ok(()) }
    }

    /// Drops what it has of a room, because something between that and what follows was deleted where it comes from.
    pub(crate) fn forget(&mut self, room: &str) -> Result<(), OpenError> {
        self.write()?;
        loop {
            let rows = self.database.rows_of_room(room, DELETED_ROWS_MAX).map_err(|error| self.error(error))?;
            if rows.is_empty() {
                return Ok(());
            }
            let deleted = self.database.transaction(|writing| rows.iter().try_for_each(|summary| writing.delete(summary.row)));
            deleted.map_err(|error| self.error(error))?;
        }
    }

    /// Writes everything, and says up to where of the log that is. The log goes on in a folder without files.
    pub(crate) fn finish(mut self, last: LogPosition) -> Result<(), OpenError> {
        self.write()?;
        let position = LogPosition { file_number: LogPosition::START.file_number, offset: LogPosition::START.offset, ..last };
        self.database.transaction(|writing| writing.set_folded(position)).map_err(|error| self.error(error))
    }

    fn write(&mut self) -> Result<(), OpenError> {
        while !self.window.is_empty() {
            self.window.write_some(&self.database, FOLD_TRANSACTION_BYTES).map_err(|error| write_error(&self.path, error))?;
        }
        self.last_ids.clear();
        Ok(())
    }

    fn error(&self, error: DatabaseError) -> OpenError {
        write_error(&self.path, error)
    }
}

/// What happened to a history that is written.
fn write_error(path: &Path, error: DatabaseError) -> OpenError {
    let source = match error {
        DatabaseError::Full => io::ErrorKind::StorageFull.into(),
        error => io::Error::other(error.to_string()),
    };
    OpenError::Io { action: "writing to", path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_thousand_names_are_tried_and_no_more() {
        let tried = Cell::new(0);
        let is_free_at = |number: u32| {
            tried.set(0);
            first_free_name(Path::new("data"), "damaged", "making", |_| {
                tried.set(tried.get() + 1);
                if tried.get() == number { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) }
            })
        };
        assert_eq!(is_free_at(1_000).unwrap(), Path::new("data.damaged-1000"));
        let error = is_free_at(1_001).unwrap_err().to_string();
        assert!(error.contains("data") && tried.get() == 1_000, "{error}");
    }
}
