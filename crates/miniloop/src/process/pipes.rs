//! Our ends of the pipes to a child process: those of [`io::pipe`](crate::io::pipe) by the names under which one looks for them here.
//!
//! Next: `child.rs`, which has them.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::io::ioctl_fionbio;

use crate::io::{PipeReader, PipeWriter};

/// The standard input of a child process. The child reads to the end of it once this is closed or dropped. Writing to a child that has
/// closed its end, or has ended, is a [`BrokenPipe`](io::ErrorKind::BrokenPipe).
pub type ChildStdin = PipeWriter;

/// The standard output of a child process. What the child wrote can still be read when it has ended.
pub type ChildStdout = PipeReader;

/// The standard error of a child process. What the child wrote can still be read when it has ended.
pub type ChildStderr = PipeReader;

impl TryFrom<PipeReader> for Stdio {
    type Error = io::Error;

    /// Gives it to a child process, as its standard input for instance. It blocks from now on, as other programs expect.
    ///
    /// ```
    /// use miniloop::process::{Command, Stdio};
    ///
    /// # miniloop::run(async {
    /// // printf 'b\na\n' | sort
    /// let mut printf = Command::new("printf").arg("b\na\n").stdout(Stdio::piped()).spawn()?;
    /// let printed = printf.stdout.take().unwrap();
    /// let output = Command::new("sort").stdin(Stdio::try_from(printed)?).output().await?;
    /// assert_eq!(output.stdout, b"a\nb\n");
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    fn try_from(end: PipeReader) -> io::Result<Stdio> {
        blocking(end.into()).map(Stdio::from)
    }
}

impl TryFrom<PipeWriter> for Stdio {
    type Error = io::Error;

    /// Gives it to a child process, as its standard output for instance. It blocks from now on, as other programs expect.
    fn try_from(end: PipeWriter) -> io::Result<Stdio> {
        blocking(end.into()).map(Stdio::from)
    }
}

fn blocking(end: OwnedFd) -> io::Result<OwnedFd> {
    ioctl_fionbio(&end, false)?;
    Ok(end)
}
