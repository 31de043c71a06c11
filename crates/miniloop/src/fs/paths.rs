//! What is done to whole files and folders: the functions of `std::fs`, each as one job.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::job::off_the_loop;

/// Reads a whole file.
///
/// ```
/// # miniloop::run(async {
/// let bytes = miniloop::fs::read("/proc/self/stat").await?;
/// assert!(!bytes.is_empty());
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// Nothing is lost: see [`fs`](crate::fs#cancellation).
pub async fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::read(path)).await
}

/// Reads a whole file of UTF-8.
///
/// ```
/// # miniloop::run(async {
/// let own = miniloop::fs::read_to_string("/proc/self/comm").await?;
/// println!("this is {}", own.trim());
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says, and `InvalidData` for what is no UTF-8.
///
/// # Cancellation
/// As [`read`].
pub async fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::read_to_string(path)).await
}

/// Writes a whole file, in place of what it may have held. A `Vec` or a `String` is taken as it is, a slice is copied.
///
/// It is not written at once: a crash may leave a part. Write another file, [`sync_data`](super::File::sync_data) it and [`rename`] it over
/// the old one where that matters.
///
/// ```
/// # miniloop::run(async {
/// # let path = std::env::temp_dir().join(format!("miniloop-write-{}", std::process::id()));
/// miniloop::fs::write(&path, "hello").await?;
/// assert_eq!(miniloop::fs::read(&path).await?, b"hello");
/// miniloop::fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
pub async fn write(path: impl AsRef<Path>, contents: impl Into<Vec<u8>>) -> io::Result<()> {
    let (path, contents) = (path.as_ref().to_owned(), contents.into());
    off_the_loop(move || fs::write(path, contents)).await
}

/// Copies a file with its permissions, and says how many bytes that were.
///
/// ```
/// # miniloop::run(async {
/// # let copy = std::env::temp_dir().join(format!("miniloop-copy-{}", std::process::id()));
/// # let own = std::env::current_exe()?;
/// let len = miniloop::fs::copy(&own, &copy).await?;
/// assert_eq!(len, miniloop::fs::metadata(&own).await?.len());
/// # miniloop::fs::remove_file(&copy).await?;
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
pub async fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<u64> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    off_the_loop(move || fs::copy(from, to)).await
}

/// Gives a file or folder another name, in place of the file that may have it.
///
/// ```
/// # miniloop::run(async {
/// # let folder = std::env::temp_dir().join(format!("miniloop-rename-{}", std::process::id()));
/// # miniloop::fs::create_dir(&folder).await?;
/// # let (new, old) = (folder.join("new"), folder.join("old"));
/// miniloop::fs::write(&new, "all of it, or nothing").await?;
/// miniloop::fs::rename(&new, &old).await?;
/// assert!(!miniloop::fs::try_exists(&new).await?);
/// # miniloop::fs::remove_dir_all(&folder).await?;
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says, `CrossesDevices` for instance.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
pub async fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref().to_owned(), to.as_ref().to_owned());
    off_the_loop(move || fs::rename(from, to)).await
}

/// Removes a file.
///
/// ```
/// # miniloop::run(async {
/// # let path = std::env::temp_dir().join(format!("miniloop-remove-{}", std::process::id()));
/// miniloop::fs::write(&path, "").await?;
/// miniloop::fs::remove_file(&path).await?;
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
pub async fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::remove_file(path)).await
}

/// Makes a folder in one that is there.
///
/// ```
/// # miniloop::run(async {
/// # let folder = std::env::temp_dir().join(format!("miniloop-mkdir-{}", std::process::id()));
/// miniloop::fs::create_dir(&folder).await?;
/// miniloop::fs::remove_dir(&folder).await?;
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says, `AlreadyExists` for instance.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
#[doc(alias = "mkdir")]
pub async fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::create_dir(path)).await
}

/// Makes a folder and those above it, as far as they are not there.
///
/// ```
/// # miniloop::run(async {
/// # let folder = std::env::temp_dir().join(format!("miniloop-makedirs-{}", std::process::id()));
/// miniloop::fs::create_dir_all(folder.join("a/b")).await?;
/// miniloop::fs::create_dir_all(folder.join("a/b")).await?; // it is there: no error
/// miniloop::fs::remove_dir_all(&folder).await?;
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
#[doc(alias = "makedirs")]
pub async fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::create_dir_all(path)).await
}

/// Removes an empty folder; see [`create_dir`].
///
/// # Errors
/// What the system says, `DirectoryNotEmpty` for instance.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
#[doc(alias = "rmdir")]
pub async fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::remove_dir(path)).await
}

/// Removes a folder with all that is in it; see [`create_dir_all`]. It does not follow symbolic links.
///
/// # Errors
/// What the system says; some of it may be gone then.
///
/// # Cancellation
/// If it has begun it happens, perhaps only after what you do next: see [`fs`](crate::fs#cancellation).
#[doc(alias = "rmtree")]
pub async fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::remove_dir_all(path)).await
}

/// What the system knows of a file or folder: its size, its times, its owner. Symbolic links are followed.
///
/// ```
/// # miniloop::run(async {
/// assert!(miniloop::fs::metadata("/").await?.is_dir());
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// As [`read`].
#[doc(alias = "stat")]
pub async fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::metadata(path)).await
}

/// The same of a symbolic link itself.
///
/// ```
/// # miniloop::run(async {
/// assert!(miniloop::fs::symlink_metadata("/proc/self").await?.is_symlink());
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// As [`read`].
#[doc(alias = "lstat")]
pub async fn symlink_metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::symlink_metadata(path)).await
}

/// Whether there is something at the path. It may be gone by the time you read the answer.
///
/// ```
/// # miniloop::run(async {
/// assert!(miniloop::fs::try_exists("/").await?);
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When that cannot be known, because a folder on the way cannot be read for instance.
///
/// # Cancellation
/// As [`read`].
pub async fn try_exists(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::exists(path)).await
}

/// The absolute path without symbolic links and dots.
///
/// ```
/// # miniloop::run(async {
/// assert_eq!(miniloop::fs::canonicalize("/proc/..").await?.to_str(), Some("/"));
/// # Ok::<(), std::io::Error>(())
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the system says.
///
/// # Cancellation
/// As [`read`].
#[doc(alias = "realpath")]
pub async fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref().to_owned();
    off_the_loop(move || fs::canonicalize(path)).await
}
