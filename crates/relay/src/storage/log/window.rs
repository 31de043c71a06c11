//! A view of one log file at a time that moves forward: the part of it that is in memory.
//!
//! Costs one `pread` per MiB, or two for a longer record; holds at most the longest record. What it shows is as old as the read: whoever
//! wants to see what was written since calls [`Window::forget`]. The first read after that takes little, and each further one twice as
//! much, so that a reader who follows the writer one record at a time does not read a MiB for each. Next: `scan.rs`.

use super::file_names::file_name;
use crate::storage::{
    disk::{Access, Disk, DiskFile},
    error::{OpenError, open_error},
    limits::{READ_BYTES, READ_BYTES_MIN},
};
use std::{io, sync::Arc};

pub(crate) struct Window {
    disk: Arc<dyn Disk>,
    file: Option<(u64, Box<dyn DiskFile>)>,
    /// Bytes of the file from `start` on.
    buffer: Vec<u8>,
    start: u64,
    /// How much the next read takes.
    read_bytes: usize,
}

impl Window {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Window {
        Window { disk, file: None, buffer: Vec::new(), start: 0, read_bytes: READ_BYTES_MIN }
    }

    pub(crate) fn disk(&self) -> &Arc<dyn Disk> {
        &self.disk
    }

    /// Moves to another file; false when there is none of that number.
    pub(crate) fn select(&mut self, number: u64) -> Result<bool, OpenError> {
        if self.file.as_ref().is_some_and(|(selected, _)| *selected == number) {
            return Ok(true);
        }
        let name = file_name(number);
        match self.disk.open(&name, Access::Read) {
            Ok(file) => {
                self.forget();
                self.file = Some((number, file));
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(open_error("opening", self.disk.path().join(name))(error)),
        }
    }

    /// Up to `count` bytes of the selected file from `offset` on: fewer only at its end.
    pub(crate) fn bytes(&mut self, offset: u64, count: usize) -> Result<&[u8], OpenError> {
        let end = offset.saturating_add(count as u64);
        if offset < self.start || end > self.start + self.buffer.len() as u64 {
            self.fill(offset, count)?;
        }
        let rest = &self.buffer[(offset - self.start) as usize..];
        Ok(&rest[..count.min(rest.len())])
    }

    /// Drops what was read, so that the next look is at the file as it is then.
    pub(crate) fn forget(&mut self) {
        self.buffer.clear();
        self.read_bytes = READ_BYTES_MIN;
    }

    /// Reads from `offset` on until `count` bytes are there or the file ends.
    fn fill(&mut self, offset: u64, count: usize) -> Result<(), OpenError> {
        self.buffer.clear();
        self.start = offset;
        let Some((number, file)) = &self.file else { return Ok(()) };
        let mut filled = 0;
        self.buffer.resize(count.max(self.read_bytes), 0);
        self.read_bytes = (2 * self.read_bytes).min(READ_BYTES);
        let read = loop {
            match file.read_at(&mut self.buffer[filled..], offset + filled as u64) {
                Ok(0) => break Ok(()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if filled >= count {
                break Ok(());
            }
        };
        self.buffer.truncate(filled);
        read.map_err(open_error("reading", self.disk.path().join(file_name(*number))))
    }
}
