//! What is in a folder, read ahead a batch at a time: a job for each entry would cost more than the entry.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, FileType, Metadata};
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::FusedStream;

use super::job::off_the_loop;
use crate::config::DIR_BATCH_LEN;
use crate::engine::context;
use crate::thread::Blocking;
use crate::thread::pool::spawn_blocking;

/// The entries of a folder, in no particular order and without `.` and `..`.
///
/// ```
/// miniloop::run(async {
///     let mut entries = miniloop::fs::read_dir("/proc/self").await?;
///     let mut names = Vec::new();
///     while let Some(entry) = entries.next_entry().await? {
///         names.push(entry.file_name());
///     }
///     assert!(names.contains(&"stat".into()));
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// Nothing is lost.
#[doc(alias = "listdir")]
#[doc(alias = "scandir")]
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    let batch = off_the_loop(move || Ok(Batch::next(fs::read_dir(path)?))).await?;
    Ok(ReadDir { state: State::Here(batch) })
}

/// The entries of a folder; see [`read_dir`]. After an error it goes on with the next entry, if the system can.
///
/// # Cancellation
/// An entry is taken only in the poll that returns it.
#[must_use = "streams do nothing unless polled"]
pub struct ReadDir {
    state: State,
}

enum State {
    Here(Batch),
    Coming(Blocking<Batch>),
}

/// Entries that have been read, and where the others come from unless these were the last.
struct Batch {
    entries: VecDeque<io::Result<DirEntry>>,
    more: Option<fs::ReadDir>,
}

impl Batch {
    fn next(mut from: fs::ReadDir) -> Batch {
        let entries: VecDeque<_> = from.by_ref().take(DIR_BATCH_LEN).map(|entry| entry.map(DirEntry::new)).collect();
        let more = (entries.len() == DIR_BATCH_LEN).then_some(from);
        Batch { entries, more }
    }
}

impl ReadDir {
    /// The next entry, or `None` at the end.
    ///
    /// # Errors
    /// What the system says of one entry.
    ///
    /// # Cancellation
    /// No entry is lost.
    ///
    /// # Panics
    /// Outside a loop.
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await.transpose()
    }

    fn poll_entry(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<DirEntry>>> {
        loop {
            match &mut self.state {
                State::Here(batch) => {
                    if let Some(entry) = batch.entries.pop_front() {
                        return Poll::Ready(Some(entry));
                    }
                    let Some(more) = batch.more.take() else { return Poll::Ready(None) };
                    self.state = State::Coming(spawn_blocking(move || Batch::next(more)));
                }
                State::Coming(job) => {
                    let batch = ready!(Pin::new(job).poll(cx));
                    self.state = State::Here(batch.unwrap_or_else(|error| Batch { entries: [Err(error.into())].into(), more: None }));
                }
            }
        }
    }
}

impl Stream for ReadDir {
    type Item = io::Result<DirEntry>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        context::poll_operation(cx, |cx| self.get_mut().poll_entry(cx))
    }
}

impl FusedStream for ReadDir {
    fn is_terminated(&self) -> bool {
        matches!(&self.state, State::Here(Batch { entries, more: None }) if entries.is_empty())
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir").finish_non_exhaustive()
    }
}

/// One entry of a folder.
#[derive(Clone, Debug)]
pub struct DirEntry {
    entry: Arc<fs::DirEntry>,
    /// Most file systems tell it with the name.
    file_type: Option<FileType>,
}

impl DirEntry {
    fn new(entry: fs::DirEntry) -> DirEntry {
        DirEntry { file_type: entry.file_type().ok(), entry: Arc::new(entry) }
    }

    /// The path that was read, with this name.
    pub fn path(&self) -> PathBuf {
        self.entry.path()
    }

    /// The name without the path.
    pub fn file_name(&self) -> OsString {
        self.entry.file_name()
    }

    /// Whether it is a file, a folder or something else. Symbolic links are not followed.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn file_type(&self) -> io::Result<FileType> {
        match self.file_type {
            Some(file_type) => {
                context::at_once().await;
                Ok(file_type)
            }
            None => Ok(self.metadata().await?.file_type()),
        }
    }

    /// What the system knows of it. Symbolic links are not followed.
    ///
    /// ```
    /// # miniloop::run(async {
    /// let mut entries = miniloop::fs::read_dir("/").await?;
    /// while let Some(entry) = entries.next_entry().await? {
    ///     if entry.file_type().await?.is_file() {
    ///         println!("{:>12} {}", entry.metadata().await?.len(), entry.path().display());
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// # })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        let entry = self.entry.clone();
        off_the_loop(move || entry.metadata()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_reads_64_entries_at_most() {
        let folder = std::env::temp_dir().join(format!("miniloop-read-dir-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        (0..65).for_each(|number| drop(fs::File::create(folder.join(number.to_string())).unwrap()));
        let first = Batch::next(fs::read_dir(&folder).unwrap());
        let second = Batch::next(first.more.expect("it knows of no end"));
        assert_eq!((first.entries.len(), second.entries.len(), second.more.is_none()), (64, 1, true));
        fs::remove_dir_all(&folder).unwrap();
    }
}
