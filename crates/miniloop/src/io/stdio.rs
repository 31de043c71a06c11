//! Standard input, output and error on the loop, without harm to those who share them.
//!
//! That a descriptor does not block is a flag of its *open file*, and the open files of the standard streams belong to the shell and to
//! every other program of the terminal or pipeline, too: a flag that we set makes their reads fail, also after we have ended. So the flag
//! stays as it is, and each stream is used in the way that its kind allows:
//!
//! ```text
//! socket                    calls that say "do not block" themselves
//! pipe, terminal            opened once more through /proc: another open file of the same thing, with a flag of its own
//! the same, if that fails   poll(2) says that there is something, then a call that blocks and finds it: of so few bytes that there is
//!                           room for them if there is any. If another process takes it in between, we wait with it
//! file, /dev/null           cannot be watched, and never makes anybody wait but for the disk: plain calls
//! ```
//!
//! Reading and writing itself comes from `byte_stream_methods.rs`.

use std::io::{self, IoSlice, IoSliceMut, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, major, minor, open};

use crate::byte_stream::{ByteStream, ReadCalls, WriteCalls};
use crate::byte_stream_methods::{delegate_write, descriptor_traits, read_methods, write_methods};
use crate::driver::{Direction, Kind};
use crate::net::system_calls;
use crate::readiness::look;
use crate::registration::Registration;

/// Standard input: a terminal, a pipe, a socket or a file.
///
/// A file cannot be watched: it is read at once, and a slow disk holds up the loop.
///
/// It is read without the buffer of [`std::io::stdin`]: what that has taken already is not seen here, so use one of the two. It belongs to
/// the loop under which it was made.
///
/// ```no_run
/// use miniloop::io::{BufReader, stdin, stdout, write_all};
///
/// miniloop::run(async {
///     let (mut lines, mut output) = (BufReader::new(stdin()?), stdout()?);
///     while let Some(line) = lines.read_line().await? {
///         write_all(&mut output, format!("you said {line}\n").as_bytes()).await?;
///     }
///     Ok::<(), Box<dyn std::error::Error>>(())
/// }).unwrap().unwrap();
/// ```
#[doc(alias = "connect_read_pipe")]
pub struct Stdin {
    inner: Inner,
}

/// Standard output: a terminal, a pipe, a socket or a file.
///
/// A file cannot be watched: it is written at once, and a slow disk holds up the loop.
///
/// It is written without the buffer of [`std::io::stdout`], which `print!` uses. Closing it as an `AsyncWrite` does nothing. It belongs to
/// the loop under which it was made.
#[doc(alias = "connect_write_pipe")]
pub struct Stdout {
    inner: Inner,
}

/// Standard error: a terminal, a pipe, a socket or a file. As [`Stdout`].
pub struct Stderr {
    inner: Inner,
}

/// Standard input.
///
/// # Errors
/// It has been closed, or the process has no descriptor left.
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn stdin() -> io::Result<Stdin> {
    Ok(Stdin { inner: Inner::Os(stream(io::stdin().as_fd(), Direction::Read)?) })
}

/// Standard output.
///
/// ```
/// # miniloop::run(async {
/// let output = miniloop::io::stdout()?;
/// output.write(b"hello\n").await?;
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// It has been closed, or the process has no descriptor left.
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn stdout() -> io::Result<Stdout> {
    Ok(Stdout { inner: Inner::Os(stream(io::stdout().as_fd(), Direction::Write)?) })
}

/// Standard error.
///
/// # Errors
/// It has been closed, or the process has no descriptor left.
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn stderr() -> io::Result<Stderr> {
    Ok(Stderr { inner: Inner::Os(stream(io::stderr().as_fd(), Direction::Write)?) })
}

/// Where bytes go. A simulated terminal will be the second variant (decision 0007).
enum Inner {
    Os(ByteStream<Standard>),
}

/// A descriptor of ours for a standard stream, and the way to use it.
#[derive(Debug)]
struct Standard {
    fd: OwnedFd,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Socket,
    /// An open file of our own, which does not block.
    Own,
    /// An open file that others share, which may block.
    Shared,
    /// The same of a terminal.
    SharedTerminal,
    /// Nothing that makes anybody wait.
    File,
}

#[track_caller]
fn stream(fd: BorrowedFd<'_>, direction: Direction) -> io::Result<ByteStream<Standard>> {
    // A number of our own: the loop watches it, whatever happens to the one that everybody knows.
    let shared = fd.try_clone_to_owned()?;
    let (fd, way) = match FileType::from_raw_mode(fstat(&shared)?.st_mode) {
        FileType::Socket => (shared, Way::Socket),
        FileType::Fifo | FileType::CharacterDevice => match open_again(shared.as_fd(), direction) {
            Some(own) => (own, Way::Own),
            None if shared.is_terminal() => (shared, Way::SharedTerminal),
            None => (shared, Way::Shared),
        },
        _ => (shared, Way::File),
    };
    if way != Way::File {
        match Registration::new(fd.as_fd(), Kind::Other, true) {
            // What epoll says of files that have no readiness.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            registration => return Ok(ByteStream { registration: registration?, bytes: Standard { fd, way } }),
        }
    }
    Ok(ByteStream { registration: Registration::always_ready(), bytes: Standard { fd, way: Way::File } })
}

/// Another open file of the same pipe or terminal, which does not block. It may not be had: no `/proc`, a terminal of another user, a pipe
/// that nobody reads any more.
fn open_again(fd: BorrowedFd<'_>, direction: Direction) -> Option<OwnedFd> {
    let stat = fstat(fd).ok()?;
    let is_pipe = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    if !is_pipe && (!fd.is_terminal() || is_multiplexer(&stat)) {
        return None;
    }
    let access = match direction {
        Direction::Read => OFlags::RDONLY,
        Direction::Write => OFlags::WRONLY,
    };
    let flags = access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = open(format!("/proc/self/fd/{}", fd.as_raw_fd()), flags, Mode::empty()).ok()?;
    let same = fstat(&own).ok()?;
    ((same.st_dev, same.st_ino, same.st_rdev) == (stat.st_dev, stat.st_ino, stat.st_rdev)).then_some(own)
}

/// `/dev/ptmx`, the other side of a terminal: who opens it again gets a new terminal.
fn is_multiplexer(stat: &Stat) -> bool {
    (major(stat.st_rdev), minor(stat.st_rdev)) == (5, 2)
}

impl Standard {
    /// Asks first where the call would block.
    fn may_call(&self, direction: Direction) -> io::Result<()> {
        if matches!(self.way, Way::Shared | Way::SharedTerminal) { look(self.as_fd(), direction) } else { Ok(()) }
    }
}

impl AsFd for Standard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl ReadCalls for Standard {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.may_call(Direction::Read)?;
        match self.way {
            Way::Socket => system_calls::receive(self, buffer),
            _ => Ok(rustix::io::read(self, buffer)?),
        }
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.may_call(Direction::Read)?;
        match self.way {
            // There is no call for several places that does not block by itself.
            Way::Socket => match buffers.iter_mut().find(|buffer| !buffer.is_empty()) {
                Some(buffer) => system_calls::receive(self, buffer),
                None => Ok(0),
            },
            _ => Ok(rustix::io::readv(self, buffers)?),
        }
    }
}

impl WriteCalls for Standard {
    /// A signal cuts writes to terminals short.
    const IS_SHORT_WRITE_PROOF: bool = false;

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.may_call(Direction::Write)?;
        match self.way {
            Way::Socket => system_calls::send(self, bytes),
            Way::Shared => Ok(rustix::io::write(self, &bytes[..bytes.len().min(PIPE_BUF)])?),
            Way::SharedTerminal => Ok(rustix::io::write(self, &bytes[..terminal_len(bytes)])?),
            Way::Own | Way::File => Ok(rustix::io::write(self, bytes)?),
        }
    }

    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.way {
            Way::Socket => system_calls::send_vectored(self, slices),
            Way::Shared | Way::SharedTerminal => self.write(slices.iter().find(|slice| !slice.is_empty()).map_or(&[], |slice| slice)),
            Way::Own | Way::File => Ok(rustix::io::writev(self, slices)?),
        }
    }
}

/// A pipe that has room has room for this many bytes, pipe(7).
const PIPE_BUF: usize = 4_096;

/// How many bytes a terminal that has room takes for certain. Linux gives its buffer out in blocks of 256, and asks for room anew before
/// each character that it may make several of: a line break, a tab.
fn terminal_len(bytes: &[u8]) -> usize {
    let plain_len = bytes.iter().take(TERMINAL_BLOCK_LEN).take_while(|byte| !byte.is_ascii_control()).count();
    plain_len.max(1).min(bytes.len())
}

const TERMINAL_BLOCK_LEN: usize = 256;

macro_rules! standard {
    ($($type:ident),+) => {$(
        impl $type {
            fn os(&self) -> &ByteStream<Standard> {
                let Inner::Os(os) = &self.inner;
                os
            }
        }

        descriptor_traits!($type, |standard| standard.os().bytes);
    )+};
}

standard!(Stdin, Stdout, Stderr);
read_methods!(Stdin, "no_run", "# let (reader, writer) = (miniloop::io::stdin()?, miniloop::io::stdout()?);");
write_methods!(Stdout, "", "# let writer = miniloop::io::stdout()?;");
write_methods!(Stderr, "", "# let writer = miniloop::io::stderr()?;");
delegate_write!([] Stdout, |standard| standard.os());
delegate_write!([] & Stdout, |standard| standard.os());
delegate_write!([] Stderr, |standard| standard.os());
delegate_write!([] & Stderr, |standard| standard.os());

#[cfg(test)]
mod tests;
