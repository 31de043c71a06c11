//! A file that is written past the kernel's cache, where that is possible: what the log's bytes cost on their way to the disk.
//!
//! The cache is of no use to the log, whose bytes are written once, and read once by somebody who takes whole windows. Without it the disk
//! fetches them from our memory: a commit of 16 KiB takes a third less of the processor, one of 1.6 MiB two thirds, a file full of zeros
//! next to nothing. What is promised does not change, since a sync still asks the disk to empty its own cache; a write that fails says so
//! itself, and leaves no page that the kernel calls clean.
//!
//! The disk takes whole pages from memory that begins on a page. Any other write, and every read, goes through the cache, which the
//! kernel keeps in step. Next: `disk.rs`, which opens it.

use crate::storage::limits::PAGE_BYTES;
use std::{fs::File, io, os::unix::fs::FileExt};

/// Both ways to one file.
pub(crate) struct DirectFile {
    pub(crate) cached: File,
    pub(crate) direct: File,
}

impl DirectFile {
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let is_whole_pages = bytes.as_ptr().align_offset(PAGE_BYTES) == 0 && bytes.len().is_multiple_of(PAGE_BYTES);
        let file = if is_whole_pages && offset.is_multiple_of(PAGE_BYTES as u64) { &self.direct } else { &self.cached };
        file.write_at(bytes, offset)
    }
}

/// Empties a buffer and makes room for `len` bytes that begin on a page. Returns where they begin: what is pushed from here on.
pub(crate) fn begin_on_page(buffer: &mut Vec<u8>, len: usize) -> usize {
    buffer.clear();
    buffer.reserve(len + PAGE_BYTES);
    let begin = buffer.as_ptr().align_offset(PAGE_BYTES);
    buffer.resize(begin, 0);
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::{Disk, OsDisk};

    /// Writes so, and reads it back both ways.
    #[track_caller]
    fn check(offset: u64, len: usize, shift: usize) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let disk = OsDisk::open(folder.path()).unwrap();
        drop(disk.create("log").unwrap());
        let file = disk.open_direct("log").unwrap();
        let mut buffer = Vec::new();
        let begin = begin_on_page(&mut buffer, shift + len);
        buffer.extend((0..shift + len).map(|byte| (byte % 251) as u8));
        let bytes = &buffer[begin + shift..];
        assert_eq!(file.write_at(bytes, offset).unwrap(), len);
        file.sync_data().unwrap();
        let mut read = Vec::new();
        let begin = begin_on_page(&mut read, len);
        read.resize(begin + len, 0);
        assert_eq!(file.read_at(&mut read[begin..], offset).unwrap(), len);
        assert!(read[begin..] == *bytes);
        let cached = std::fs::read(folder.path().join("log")).unwrap();
        assert!(cached[offset as usize..] == *bytes);
    }

    #[test]
    fn what_is_not_whole_pages_is_written_and_read_all_the_same() {
        check(0, PAGE_BYTES, 0);
        check(2 * PAGE_BYTES as u64, 3 * PAGE_BYTES, 0);
        check(0, PAGE_BYTES, 8);
        check(0, 1_000, 0);
        check(512, PAGE_BYTES, 0);
    }

    #[test]
    fn a_buffer_begins_on_a_page_and_does_not_move_while_it_is_filled() {
        let mut buffer = vec![1; 10];
        for len in [0, 1, PAGE_BYTES, 5 * PAGE_BYTES] {
            let begin = begin_on_page(&mut buffer, len);
            assert_eq!(buffer.len(), begin);
            buffer.resize(begin + len, 2);
            assert_eq!(buffer[begin..].as_ptr().align_offset(PAGE_BYTES), 0, "{len}");
        }
    }
}
