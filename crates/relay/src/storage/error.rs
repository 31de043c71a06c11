//! What can go wrong for people at the command line: opening the data folder, and printing a history.
//!
//! Each message names the file, the offset where there is one, and the way out. Next: `direct_file.rs`.

use std::{
    error::Error,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

/// Why the data folder cannot be opened.
#[derive(Debug)]
pub enum OpenError {
    /// The operating system refused a call.
    Io {
        /// What was being done, as "opening".
        action: &'static str,
        /// The file or folder it was done to.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// What is there is something else than a folder.
    NotAFolder {
        /// What should be one.
        path: PathBuf,
    },
    /// The folder holds what relay did not put there, so it is for something else.
    Foreign {
        /// The folder.
        path: PathBuf,
        /// One of the names in it.
        name: OsString,
    },
    /// Other users may read or change the folder.
    Exposed {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Another server runs on the folder.
    InUse {
        /// The folder.
        path: PathBuf,
        /// The process that holds the lock, where its lock file says so.
        pid: Option<u32>,
    },
    /// The log does not hold what was once stored in it.
    Damaged {
        /// The log file.
        path: PathBuf,
        /// Where in the file the log stops being right.
        offset: u64,
        /// What is wrong there.
        reason: String,
        /// The data folder, for the commands that say more and repair.
        data_dir: PathBuf,
    },
    /// The history does not hold what was once stored in it, or is something else.
    DamagedHistory {
        /// history.db.
        path: PathBuf,
        /// What is wrong, with the page or the row where that is known.
        reason: String,
        /// The data folder, for the commands that say more and repair.
        data_dir: PathBuf,
    },
    /// A change of the history was cut off, and only a server may take it back.
    Unfinished {
        /// history.db.
        path: PathBuf,
        /// The data folder.
        data_dir: PathBuf,
    },
    /// There is no data folder.
    NoData {
        /// Where it would be.
        path: PathBuf,
    },
    /// The log was written by a newer relay.
    NewerFormat {
        /// The log file.
        path: PathBuf,
        /// Where the record stands that this relay does not understand.
        offset: u64,
        /// Its format version.
        version: u16,
    },
}

/// Why a room's messages could not be printed to their end.
#[derive(Debug)]
pub enum HistoryError {
    /// There is no data, or it cannot be read, or not beyond some place: what was printed until then is right.
    Stored(OpenError),
    /// No message was ever stored in a room of that name.
    RoomNotFound {
        /// The room that was asked for.
        room: String,
    },
    /// The reader of the output went away, or the output is full.
    Output(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Io { action, path, source } => write!(f, "{action} {} failed: {source}", path.display()),
            OpenError::NotAFolder { path } => write!(f, "{} is not a folder: choose another one with `--data DIR`", path.display()),
            OpenError::Foreign { path, name } => write!(
                f,
                "{} holds {name:?}, which is not relay's, so the folder is left alone: choose with `--data DIR` one that is empty or does \
                 not exist yet",
                path.display()
            ),
            OpenError::Exposed { path, mode } => write!(
                f,
                "other users may open {} (its mode is {mode:o}), and it is to hold what people say in private: run `chmod 700 {}`",
                path.display(),
                quoted(path)
            ),
            OpenError::InUse { path, pid: Some(pid) } => write!(
                f,
                "another relay (process {pid}) is using {}: stop it with `kill {pid}`, or choose another folder with `--data DIR`",
                path.display()
            ),
            OpenError::InUse { path, pid: None } => write!(
                f,
                "another process is using {}: `fuser {}` says which; stop it, or choose another folder with `--data DIR`",
                path.display(),
                quoted(&path.join("lock"))
            ),
            OpenError::Damaged { path, offset, reason, data_dir } => write!(
                f,
                "{} is damaged at offset {offset}: {reason}; relay does not go on, because messages that people saw would be missing. \
                 `relay verify --data {data_dir}` says what else is wrong; restore the folder from a backup, or let \
                 `relay repair --data {data_dir}` save what can be read",
                path.display(),
                data_dir = quoted(data_dir)
            ),
            OpenError::DamagedHistory { path, reason, data_dir } => {
                let path = path.display().to_string();
                let named = if reason.contains(&path) { String::new() } else { format!("{path} is damaged: ") };
                write!(
                    f,
                    "{named}{reason}; relay does not go on, because messages that people saw would be missing. \
                     `relay verify --data {data_dir}` says what else is wrong; restore the folder from a backup, or let \
                     `relay repair --data {data_dir}` save what can be read",
                    data_dir = quoted(data_dir)
                )
            }
            OpenError::Unfinished { path, data_dir } => write!(
                f,
                "a change of {} was cut off, as by a crash: start `relay serve --data {}` once, which takes it back, then try again",
                path.display(),
                quoted(data_dir)
            ),
            OpenError::NoData { path } => {
                write!(f, "there is no data in {}: `--data DIR` says where relay keeps it", path.display())
            }
            OpenError::NewerFormat { path, offset, version } => write!(
                f,
                "{} holds at offset {offset} a record of format version {version}, written by a newer relay: start that one",
                path.display()
            ),
        }
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryError::Stored(error) => error.fmt(f),
            HistoryError::RoomNotFound { room } => {
                write!(
                    f,
                    "nothing is stored of room {room:?}: nothing was ever said there, or it is not kept any more; names are compared \
                     letter by letter, `--data DIR` says where to look"
                )
            }
            HistoryError::Output(error) => write!(f, "writing the history failed: {error}"),
        }
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OpenError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl Error for HistoryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            HistoryError::Stored(error) => error.source(),
            HistoryError::RoomNotFound { .. } => None,
            HistoryError::Output(error) => Some(error),
        }
    }
}

impl From<OpenError> for HistoryError {
    fn from(error: OpenError) -> HistoryError {
        HistoryError::Stored(error)
    }
}

/// Gives an `io::Error` the action and the path that a person needs to understand it.
pub(crate) fn open_error(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.into();
    move |source| OpenError::Io { action, path, source }
}

/// The path as a shell reads it, for commands that people copy.
pub(crate) fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |char: char| char.is_alphanumeric() || "/._-+:@,%".contains(char);
    // What begins with a dash would be taken for an option.
    let path = if path.starts_with('-') { format!("./{path}") } else { path };
    if !path.is_empty() && path.chars().all(is_plain) { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_would_not_read_it_as_one_word() {
        #[track_caller]
        fn check(path: &str, expected: &str) {
            assert_eq!(quoted(Path::new(path)), expected);
        }
        check("/var/lib/relay-1.0/größe", "/var/lib/relay-1.0/größe");
        check("relay data", "'relay data'");
        check("it's", r"'it'\''s'");
        check("$HOME/`x`;*", "'$HOME/`x`;*'");
        check("-data", "./-data");
        check("", "''");
    }
}
