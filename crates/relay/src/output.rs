//! Saying something to a person without ever waiting for one.
//!
//! The log and the greeting go to descriptors that others own: a terminal that was stopped or hung up, a pipe whose reader is slow or gone,
//! a file on a full disk. None of that may stop a server. So a write is made only when the descriptor takes it at once, and what cannot
//! be said is counted. Costs two system calls a line. Next: `server/mod.rs`.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::limits::LINE_OF_LOG_MAX_BYTES;

/// Lines of the log that could not be written since the last one that could.
static LOST_LEN: AtomicU64 = AtomicU64::new(0);

/// All that could not be written since the start.
static LOST_TOTAL: AtomicU64 = AtomicU64::new(0);

/// Standard error, for one line of the log at a time.
#[derive(Debug)]
pub struct Log;

impl Write for Log {
    /// Takes the whole line whatever becomes of it: there is nobody to tell.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost_len = LOST_LEN.load(Ordering::Relaxed);
        let note = format!("{lost_len} lines of the log could not be written\n");
        if (lost_len == 0 || write_at_once(io::stderr(), note.as_bytes())) && write_at_once(io::stderr(), line) {
            LOST_LEN.fetch_sub(lost_len, Ordering::Relaxed);
        } else {
            LOST_LEN.fetch_add(1, Ordering::Relaxed);
            LOST_TOTAL.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many lines of the log could not be written since the start.
pub(crate) fn lost_total() -> u64 {
    LOST_TOTAL.load(Ordering::Relaxed)
}

/// Writes text if that can be done without waiting; false if not, or if it fails.
///
/// A pipe that can be written takes as much as fits into its smallest buffer, so longer text is cut there.
pub(crate) fn write_at_once(stream: impl AsFd, text: &[u8]) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let can_be_written = poll(&mut [PollFd::new(&stream, PollFlags::OUT)], Some(&now)).is_ok_and(|ready_len| ready_len > 0);
    can_be_written && rustix::io::write(&stream, &text[..text.len().min(LINE_OF_LOG_MAX_BYTES)]).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_reader_that_does_not_read_is_not_waited_for() {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        let mut written_len = 0;
        while write_at_once(&writer, b"a line\n") {
            written_len += 1;
        }
        assert!(written_len > 0);
        let mut read = vec![0; written_len * b"a line\n".len()];
        reader.read_exact(&mut read).unwrap();
        assert!(write_at_once(&writer, b"a line\n"), "it reads again");
    }

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let (reader, writer) = UnixStream::pair().unwrap();
        drop(reader);
        assert!(!write_at_once(&writer, b"a line\n"));
    }

    #[test]
    fn a_line_is_cut_where_a_pipe_might_block() {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        assert!(write_at_once(&writer, &[b'x'; LINE_OF_LOG_MAX_BYTES + 1]));
        drop(writer);
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), LINE_OF_LOG_MAX_BYTES);
    }
}
