//! What sockets, pipes and the standard streams have in common: bytes behind a descriptor that is watched.
//!
//! A [`ByteStream`] is the private part of `TcpStream`, `UnixStream`, `PipeReader` and the like. Those differ in their system calls, which
//! stand behind [`ReadCalls`] and [`WriteCalls`], and in what else they can do; reading, writing and waiting is here, once. Their public
//! methods come from the macros of `byte_stream_methods.rs`.
//!
//! It must not know sockets from pipes. Cost: that of [`Registration::poll_io`]. Next: `byte_stream_methods.rs`.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_io::{AsyncRead, AsyncWrite};

use crate::driver::{Direction, Kind};
use crate::registration::{Place, Registration};

/// System calls that take bytes out. None of them blocks.
pub(crate) trait ReadCalls: AsFd {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Gets at most [`SLICES_PER_CALL`] buffers.
    fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize>;
}

/// System calls that put bytes in. None of them blocks.
pub(crate) trait WriteCalls: AsFd {
    /// Fewer bytes written than asked: the kernel's buffer is full, and the call that would say so is saved. Not so where a signal can cut
    /// a call short, as on terminals.
    const IS_SHORT_WRITE_PROOF: bool;

    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Gets at most [`SLICES_PER_CALL`] slices.
    fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// What `AsyncWrite` means by closing. By default nothing: dropping is what ends it.
    fn end(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes behind a watched descriptor. The registration stands first: it is dropped before the descriptor is closed.
pub(crate) struct ByteStream<B> {
    pub(crate) registration: Registration,
    pub(crate) bytes: B,
}

impl<B: AsFd> ByteStream<B> {
    /// Has the current loop watch it. `is_ready`: its first system calls are worth trying at once.
    #[track_caller]
    pub(crate) fn new(bytes: B, kind: Kind, is_ready: bool) -> io::Result<Self> {
        Ok(Self { registration: Registration::new(bytes.as_fd(), kind, is_ready)?, bytes })
    }

    /// Ends the watching.
    pub(crate) fn into_bytes(self) -> B {
        drop(self.registration);
        self.bytes
    }
}

impl<B: ReadCalls> ByteStream<B> {
    /// One system call, with what it tells of the next.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.bytes.read(buffer)?;
        self.registration.moved(Direction::Read, len, buffer.len());
        Ok(len)
    }

    pub(crate) fn read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let clipped_len = buffers.len().min(SLICES_PER_CALL);
        let buffers = &mut buffers[..clipped_len];
        let len = self.bytes.read_vectored(buffers)?;
        self.registration.moved(Direction::Read, len, buffers.iter().map(|buffer| buffer.len()).sum());
        Ok(len)
    }
}

impl<B: WriteCalls> ByteStream<B> {
    /// One system call, with what it tells of the next.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.bytes.write(bytes)?;
        self.wrote(len, bytes.len());
        Ok(len)
    }

    pub(crate) fn write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let slices = &slices[..slices.len().min(SLICES_PER_CALL)];
        let len = self.bytes.write_vectored(slices)?;
        self.wrote(len, slices.iter().map(|slice| slice.len()).sum());
        Ok(len)
    }

    fn wrote(&self, len: usize, asked: usize) {
        if B::IS_SHORT_WRITE_PROOF {
            self.registration.moved(Direction::Write, len, asked);
        }
    }
}

impl<B: ReadCalls> AsyncRead for &ByteStream<B> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.registration.poll_io(Direction::Read, Place::Alone, cx, || self.read(buffer))
    }

    fn poll_read_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        self.registration.poll_io(Direction::Read, Place::Alone, cx, || self.read_vectored(buffers))
    }
}

impl<B: WriteCalls> AsyncWrite for &ByteStream<B> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.registration.poll_io(Direction::Write, Place::Alone, cx, || self.write(bytes))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.registration.poll_io(Direction::Write, Place::Alone, cx, || self.write_vectored(slices))
    }

    /// Does nothing: the kernel has every byte that was written.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.bytes.end())
    }
}

/// More places than this the kernel refuses with EMSGSIZE or EINVAL (its `UIO_MAXIOV`).
pub(crate) const SLICES_PER_CALL: usize = 1_024;
