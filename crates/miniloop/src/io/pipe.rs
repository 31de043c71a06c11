//! Anonymous pipes: bytes in one direction, within a process or to a child.
//!
//! All reading and writing comes from `byte_stream_methods.rs`. The kernel ends a read where a packet of a pipe in packet mode ends, so a
//! short read does not mean that nothing is left. The flag that a pipe does not block belongs to the open file, which a child shares: an
//! end that a child gets must be one of [`std::io::pipe`], or have the flag taken away.
//!
//! Next: `stdio.rs`.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::AsyncWrite;
use rustix::io::ioctl_fionbio;

use crate::byte_stream::{ByteStream, ReadCalls, WriteCalls};
use crate::byte_stream_methods::{descriptor_traits, read_methods, write_methods};
use crate::driver::Kind;
use crate::os;
use crate::registration::Registration;

/// A pipe: what is written to one end is read from the other.
///
/// ```
/// use futures_util::{AsyncReadExt, AsyncWriteExt};
///
/// miniloop::run(async {
///     let (mut reader, mut writer) = miniloop::io::pipe()?;
///     writer.write_all(b"hello").await?;
///     writer.close().await?; // or drop it
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The process or the system has no descriptor left.
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let (reader, writer) = os::pipe()?;
    Ok((PipeReader::new(reader)?, PipeWriter::new(writer)?))
}

/// The end of a pipe to read from. Dropping it lets those who write find out: `BrokenPipe`.
///
/// It belongs to the loop under which it was made.
#[doc(alias = "connect_read_pipe")]
pub struct PipeReader {
    inner: Inner,
}

/// The end of a pipe to write to. Dropping or closing it lets those who read read to the end.
///
/// Writing to a pipe that nobody reads raises `SIGPIPE`, which Rust programs ignore from their start; the error is `BrokenPipe`.
///
/// It belongs to the loop under which it was made.
#[doc(alias = "connect_write_pipe")]
pub struct PipeWriter {
    inner: Inner,
}

/// Where bytes go. A simulated process will be the second variant (decision 0007).
enum Inner {
    Os(ByteStream<PipeEnd>),
}

/// A descriptor that reads and writes by the plain calls, and does not block.
#[derive(Debug)]
struct PipeEnd(OwnedFd);

impl Inner {
    #[track_caller]
    fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self::Os(ByteStream::new(PipeEnd(fd), Kind::Other, true)?))
    }

    /// Of an open file that may block, which is changed for all that share it.
    #[track_caller]
    fn of_any(fd: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&fd, true)?;
        Self::new(fd)
    }

    fn into_fd(self) -> OwnedFd {
        let Self::Os(os) = self;
        os.into_bytes().0
    }
}

impl PipeReader {
    #[track_caller]
    fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::new(fd)? })
    }

    fn os(&self) -> &ByteStream<PipeEnd> {
        let Inner::Os(os) = &self.inner;
        os
    }
}

impl PipeWriter {
    #[track_caller]
    fn new(fd: OwnedFd) -> io::Result<Self> {
        Ok(Self { inner: Inner::new(fd)? })
    }

    fn os(&self) -> &ByteStream<PipeEnd> {
        let Inner::Os(os) = &self.inner;
        os
    }

    /// Closes the pipe. In its place comes the end of another that nobody reads: what is written from now on fails as it should, and there
    /// is a descriptor still.
    fn close(&mut self) -> io::Result<()> {
        let (nobody, writer) = os::pipe().map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("a pipe is still open, since its end needs two more descriptors: drop it instead ({error})"),
            )
        })?;
        drop(nobody);
        self.inner = Inner::Os(ByteStream { registration: Registration::always_ready(), bytes: PipeEnd(writer) });
        Ok(())
    }
}

impl AsyncWrite for PipeWriter {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.os()).poll_write(cx, bytes)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.os()).poll_write_vectored(cx, slices)
    }

    /// Does nothing: the kernel has every byte that was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Closes the pipe: who reads reads to the end, unless another process has this end too. It is an error if no descriptors are left:
    /// then the pipe is still open, and can be dropped, which needs none.
    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.close())
    }
}

impl AsFd for PipeEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl ReadCalls for PipeEnd {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self, buffer)?)
    }

    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        Ok(rustix::io::readv(self, buffers)?)
    }
}

impl WriteCalls for PipeEnd {
    /// It may be the end of something else.
    const IS_SHORT_WRITE_PROOF: bool = false;

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(self, bytes)?)
    }

    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Ok(rustix::io::writev(self, slices)?)
    }
}

read_methods!(PipeReader, "", "# let (reader, writer) = miniloop::io::pipe()?;");
write_methods!(PipeWriter, "", "# let (_reader, writer) = miniloop::io::pipe()?;");
descriptor_traits!(PipeReader, |reader| reader.os().bytes);
descriptor_traits!(PipeWriter, |writer| writer.os().bytes);

/// Conversions from and to what has such an end.
macro_rules! from_and_into {
    ($end:ty: $($other:ty),+) => {$(
        impl TryFrom<$other> for $end {
            type Error = io::Error;

            /// Makes it non-blocking, for every process that has the same open file, and has the current loop watch it.
            ///
            /// # Panics
            /// Outside a loop.
            #[track_caller]
            fn try_from(end: $other) -> io::Result<Self> {
                Ok(Self { inner: Inner::of_any(end.into())? })
            }
        }
    )+

        impl From<$end> for OwnedFd {
            /// It is still non-blocking.
            fn from(end: $end) -> Self {
                end.inner.into_fd()
            }
        }
    };
}

from_and_into!(PipeReader: OwnedFd, io::PipeReader, std::process::ChildStdout, std::process::ChildStderr);
from_and_into!(PipeWriter: OwnedFd, io::PipeWriter, std::process::ChildStdin);
