//! A doorbell made of a pipe, as every Unix has them: each ring is a byte. Two descriptors instead of one.

use std::io::{self, PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::{ioctl_fionbio, read, write};

#[derive(Debug)]
pub(super) struct Bell {
    inside: PipeReader,
    button: PipeWriter,
}

impl Bell {
    pub(super) fn new() -> io::Result<Bell> {
        let (inside, button) = pipe()?; // closed when a child starts
        ioctl_fionbio(&inside, true)?;
        ioctl_fionbio(&button, true)?;
        Ok(Bell { inside, button })
    }

    pub(super) fn ring(&self) {
        // The only error that can come is EAGAIN, "the pipe is full": then it is readable.
        let _ = write(&self.button, &[1]);
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inside.as_fd()
    }
}

pub(super) fn drain(bell: BorrowedFd<'_>) {
    let mut rings = [0; 64];
    // Few rings are unread at any time; as many as fill this leave it ringing, and somebody comes again.
    let _ = read(bell, &mut rings);
}
