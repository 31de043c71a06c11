//! The bytes and the jobs of an open file: one job at a time moves its cursor.
//!
//! ```text
//!            read, write, seek: the job takes the buffer with it
//!  Idle(buffer) -----------------------------------------------> Busy(job)
//!       ^                                                           |
//!       +-------- whoever polls next, for whatever, takes it back --+
//! ```
//!
//! So a dropped read leaves its bytes for the next one, and operations take effect in the order in which they were begun.

use std::fs;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::report::log_error;
use crate::thread::Blocking;
use crate::thread::pool::spawn_blocking;

/// Bytes on their way from the file, or to it.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// How many of them have been given to the reader.
    read_len: usize,
}

impl Buffer {
    pub(super) fn unread_len(&self) -> usize {
        self.bytes.len() - self.read_len
    }

    /// Gives the reader what fits.
    pub(super) fn give(&mut self, to: &mut [u8]) -> usize {
        let len = to.len().min(self.unread_len());
        to[..len].copy_from_slice(&self.bytes[self.read_len..][..len]);
        self.read_len += len;
        len
    }

    /// Puts other bytes in.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(bytes);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.read_len = 0;
    }

    fn fill(&mut self, mut from: &fs::File, len: usize) -> io::Result<u64> {
        self.read_len = 0;
        self.bytes.resize(len, 0);
        let result = loop {
            match from.read(&mut self.bytes) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.bytes.truncate(result.as_ref().map_or(0, |len| *len));
        result.map(|len| len as u64)
    }
}

/// The state of a file's cursor.
pub(super) enum Cursor {
    Idle(Buffer),
    Busy(Operation, Blocking<Finished>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read {
        len: usize,
    },
    /// Writes the buffer, behind what its reader has had.
    Write {
        unread_len: usize,
    },
    Seek {
        asked: SeekFrom,
        target: SeekFrom,
    },
}

/// What a job gives back.
pub(super) struct Finished {
    operation: Operation,
    buffer: Buffer,
    /// `None` once somebody has read it.
    result: Option<io::Result<u64>>,
}

impl Cursor {
    /// Waits for the job that is under way, if one is, and tells what it was and what came of it.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Operation, io::Result<u64>)>> {
        let Cursor::Busy(operation, job) = self else { return Poll::Ready(None) };
        let operation = *operation;
        let (buffer, result) = match ready!(Pin::new(job).poll(cx)) {
            Ok(finished) => finished.take(),
            Err(error) => (Buffer::default(), Err(error.into())),
        };
        *self = Cursor::Idle(buffer);
        Poll::Ready(Some((operation, result)))
    }

    /// The buffer of an idle cursor.
    pub(super) fn buffer(&mut self) -> &mut Buffer {
        match self {
            Cursor::Idle(buffer) => buffer,
            Cursor::Busy(..) => unreachable!("it was polled until it was idle"),
        }
    }

    /// Begins a job of an idle cursor.
    pub(super) fn begin(&mut self, file: &Arc<fs::File>, operation: Operation) {
        let mut buffer = mem::take(self.buffer());
        let file = file.clone();
        let job = spawn_blocking(move || {
            let result = operation.run(&file, &mut buffer);
            Finished { operation, buffer, result: Some(result) }
        });
        *self = Cursor::Busy(operation, job);
    }

    /// The file is dropped. Bytes that it has accepted are written all the same.
    pub(super) fn leave(&mut self) {
        if let Cursor::Busy(Operation::Write { .. }, job) = mem::replace(self, Cursor::Idle(Buffer::default())) {
            job.leave();
        }
    }
}

impl Operation {
    /// On the thread.
    fn run(self, mut file: &fs::File, buffer: &mut Buffer) -> io::Result<u64> {
        match self {
            Operation::Read { len } => buffer.fill(file, len),
            Operation::Write { unread_len } => {
                let written = rewind(file, unread_len).and_then(|()| file.write_all(&buffer.bytes));
                buffer.clear();
                written.map(|()| 0)
            }
            Operation::Seek { target, .. } => {
                let position = file.seek(target)?;
                buffer.clear();
                Ok(position)
            }
        }
    }
}

/// Takes the cursor back to where the reader is.
fn rewind(mut file: &fs::File, unread_len: usize) -> io::Result<()> {
    match i64::try_from(unread_len) {
        Ok(0) => Ok(()),
        Ok(len) => file.seek(SeekFrom::Current(-len)).map(drop),
        Err(error) => Err(io::Error::other(error)),
    }
}

impl Finished {
    fn take(mut self) -> (Buffer, io::Result<u64>) {
        (mem::take(&mut self.buffer), self.result.take().unwrap_or(Ok(0)))
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        if let (Operation::Write { .. }, Some(Err(error))) = (self.operation, &self.result) {
            log_unread(error);
        }
    }
}

pub(super) fn log_unread(error: &io::Error) {
    log_error(&format!(
        "writing to a file failed after the file had been dropped, so nobody was told: {error}; flush it to hear of errors"
    ));
}
