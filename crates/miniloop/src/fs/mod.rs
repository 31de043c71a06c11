//! Files, off the loop.
//!
//! No system can say when a disk will answer: a file is always "ready", and reading it blocks all the same. So each call here is the one of
//! [`std::fs`] as a [blocking job](crate::spawn_blocking()) of the loop's pool. That costs some 10 µs more than the call itself: read and
//! write in large pieces, wrap a [`File`] into an [`io::BufReader`](crate::io::BufReader) where the pieces are small, and make one job of
//! many calls where they belong together:
//!
//! ```
//! miniloop::run(async {
//!     let lens = miniloop::spawn_blocking(|| {
//!         let entries = std::fs::read_dir("/proc/self")?.flatten(); // one job, many calls
//!         Ok::<_, std::io::Error>(entries.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum::<u64>())
//!     });
//!     println!("{} bytes", lens.await??);
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A log that is written in order, or a database, is better kept by a [`Worker`](crate::thread::Worker).
//!
//! A call that does not return keeps its thread: that of a named pipe whose other end nobody has, for instance, which is a case for
//! [`Readiness`](crate::Readiness).
//!
//! # Cancellation
//!
//! Dropping the future of a call withdraws it if no thread has begun it. If one has, the call runs to its end, and nobody hears of its
//! result: a dropped `remove_file` may still remove the file, a moment later. Bytes that a [`File`] has accepted are written in any case.
//!
//! # Panics
//!
//! Outside a loop.

mod job;
mod paths;
mod read_dir;
mod file_jobs;
mod file;
mod open_options;

pub use self::file::File;
pub use self::open_options::OpenOptions;
pub use self::paths::{
    canonicalize, copy, create_dir, create_dir_all, metadata, read, read_to_string, remove_dir, remove_dir_all, remove_file, rename,
    symlink_metadata, try_exists, write,
};
pub use self::read_dir::{DirEntry, ReadDir, read_dir};
