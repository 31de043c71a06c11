//! SQLite on files that a program provides: a safe trait, and the glue under it.
//!
//! SQLite reaches files through a table of C functions, its VFS. [`register`] makes such a table of an implementation of [`Files`], which
//! stays free of unsafe code: it gets slices and offsets, and answers with a [`Result`]. A rollback journal works; a write-ahead log,
//! memory maps and temporary files are not offered: `PRAGMA temp_store = MEMORY` keeps SQLite from asking for the latter.
//!
//! Two crates were there for this and did not fit: `sqlite-plugin` needs libclang wherever it is built, `rsqlite-vfs` is made for one
//! thread of WebAssembly.

mod files;
mod glue;

#[cfg(test)]
mod tests;

pub use files::{Access, Error, File, Files, Kind, Lock};
pub use glue::{RegisterError, register};
