//! The public face of a [`ByteStream`](crate::byte_stream::ByteStream), the same for every type that hides one.
//!
//! These are macros because methods of public types cannot come from a private trait. Each expects a private method `os`, which lends the
//! `ByteStream`, and hidden lines of an example that make `reader` and `writer`, the two ends of a connection, the type's own among them.

/// `readable`, `read`, `read_vectored`, their `try_` and `poll_` variants, and `AsyncRead`.
macro_rules! read_methods {
    ($type:ty, $fence:literal, $ends:literal) => {
        const _: () = {
            use std::io::{IoSliceMut, Result};
            use std::task::{Context, Poll};

            use futures_core::FusedFuture;

            use crate::driver::Direction;
            use crate::registration::Place;

            impl $type {
                /// Reads some bytes, at most as many as `buffer` holds. Zero: the other side has ended this direction, or `buffer` is
                /// empty. Into an empty one, too, it waits until there is something to read, as the system does.
                ///
                #[doc = concat!("```", $fence, "\n# miniloop::run(async {\n", $ends, "
writer.write(b\"hello\").await?;
let mut buffer = [0; 16];
let len = reader.read(&mut buffer).await?;
assert_eq!(&buffer[..len], b\"hello\");
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// Those who read at the same time wait in line; each gets a piece of the stream that the others do not get.
                ///
                /// # Errors
                /// What the system call says, `ConnectionReset` for instance.
                ///
                /// # Cancellation
                /// Nothing is lost: bytes are taken only in the poll that returns them.
                pub fn read<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = Result<usize>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Read, || os.read(buffer))
                }

                /// [`read`](Self::read) into several places, one after the other. Buffers beyond the 1,024th wait for the next call.
                ///
                /// # Errors
                /// As [`read`](Self::read).
                ///
                /// # Cancellation
                /// As [`read`](Self::read).
                pub fn read_vectored<'a, 'b>(
                    &'a self,
                    buffers: &'a mut [IoSliceMut<'b>],
                ) -> impl FusedFuture<Output = Result<usize>> + Unpin + use<'a, 'b> {
                    let os = self.os();
                    os.registration.io(Direction::Read, || os.read_vectored(buffers))
                }

                /// Waits until [`try_read`](Self::try_read) is worth trying: there are bytes, the end, or an error. It may be wrong once.
                ///
                #[doc = concat!("```", $fence, "\n# miniloop::run(async {\n", $ends, "
# writer.write(b\"hello\").await?;
use std::io::ErrorKind::WouldBlock;

let mut buffer = [0; 16];
let len = loop {
    reader.readable().await?;
    match reader.try_read(&mut buffer) {
        Err(error) if error.kind() == WouldBlock => {}
        result => break result?,
    }
};
assert_eq!(&buffer[..len], b\"hello\");
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// The loop has been closed.
                ///
                /// # Cancellation
                /// Nothing is lost: nothing has been read.
                pub fn readable(&self) -> impl FusedFuture<Output = Result<()>> + Unpin + '_ {
                    self.os().registration.io(Direction::Read, || Ok(()))
                }

                /// [`readable`](Self::readable) for hand-written futures. The last caller is woken, and `AsyncRead` counts as one.
                pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    self.os().registration.poll_io(Direction::Read, Place::Alone, cx, || Ok(()))
                }

                /// Reads what is there now, by one system call. Zero: the other side has ended this direction, or `buffer` is empty.
                ///
                /// # Errors
                /// `WouldBlock` if nothing is there; else as [`read`](Self::read).
                pub fn try_read(&self, buffer: &mut [u8]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || os.read(buffer))
                }

                /// [`try_read`](Self::try_read) into several places. Buffers beyond the 1,024th wait for the next call.
                ///
                /// # Errors
                /// As [`try_read`](Self::try_read).
                pub fn try_read_vectored(&self, buffers: &mut [IoSliceMut<'_>]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || os.read_vectored(buffers))
                }
            }
        };
        crate::byte_stream_methods::delegate_read!([] $type, |this| this.os());
        crate::byte_stream_methods::delegate_read!([] &$type, |this| this.os());
    };
}

/// `writable`, `write`, `write_vectored`, and their `try_` and `poll_` variants.
macro_rules! write_methods {
    ($type:ty, $fence:literal, $ends:literal) => {
        const _: () = {
            use std::io::{IoSlice, Result};
            use std::task::{Context, Poll};

            use futures_core::FusedFuture;

            use crate::driver::Direction;
            use crate::registration::Place;

            impl $type {
                /// Writes some bytes, possibly not all, and says how many. [`io::write_all`](crate::io::write_all) writes all of them.
                ///
                #[doc = concat!("```", $fence, "\n# miniloop::run(async {\n", $ends, "
let mut bytes: &[u8] = b\"hello\";
while !bytes.is_empty() {
    let len = writer.write(bytes).await?;
    bytes = &bytes[len..];
}
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// What the system call says: `BrokenPipe` or `ConnectionReset` when the other side has gone.
                ///
                /// # Cancellation
                /// Nothing has been written if the future is dropped before it is done.
                pub fn write<'a>(&'a self, bytes: &'a [u8]) -> impl FusedFuture<Output = Result<usize>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Write, || os.write(bytes))
                }

                /// [`write`](Self::write) of bytes that lie in several places. Slices beyond the 1,024th wait for the next call.
                ///
                /// # Errors
                /// As [`write`](Self::write).
                ///
                /// # Cancellation
                /// As [`write`](Self::write).
                pub fn write_vectored<'a, 'b>(
                    &'a self,
                    slices: &'a [IoSlice<'b>],
                ) -> impl FusedFuture<Output = Result<usize>> + Unpin + use<'a, 'b> {
                    let os = self.os();
                    os.registration.io(Direction::Write, || os.write_vectored(slices))
                }

                /// Waits until [`try_write`](Self::try_write) is worth trying: there is room, or an error. It may be wrong once.
                ///
                #[doc = concat!("```", $fence, "\n# miniloop::run(async {\n", $ends, "
use std::io::ErrorKind::WouldBlock;

let mut bytes: &[u8] = b\"hello\";
while !bytes.is_empty() {
    match writer.try_write(bytes) {
        Ok(len) => bytes = &bytes[len..],
        Err(error) if error.kind() == WouldBlock => writer.writable().await?,
        Err(error) => return Err(error),
    }
}
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// The loop has been closed.
                ///
                /// # Cancellation
                /// Nothing is lost: nothing has been written.
                pub fn writable(&self) -> impl FusedFuture<Output = Result<()>> + Unpin + '_ {
                    self.os().registration.io(Direction::Write, || Ok(()))
                }

                /// [`writable`](Self::writable) for hand-written futures. The last caller is woken, and `AsyncWrite` counts as one.
                pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    self.os().registration.poll_io(Direction::Write, Place::Alone, cx, || Ok(()))
                }

                /// Writes what there is room for now, by one system call, and says how many bytes.
                ///
                /// # Errors
                /// `WouldBlock` if there is no room; else as [`write`](Self::write).
                pub fn try_write(&self, bytes: &[u8]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Write, || os.write(bytes))
                }

                /// [`try_write`](Self::try_write) of bytes that lie in several places. Slices beyond the 1,024th wait for the next call.
                ///
                /// # Errors
                /// As [`try_write`](Self::try_write).
                pub fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Write, || os.write_vectored(slices))
                }
            }
        };
    };
}

/// Implements `AsyncRead` as `&` of what `|this| stream` leads to does.
macro_rules! delegate_read {
    ([$($generics:tt)*] $type:ty, |$this:ident| $stream:expr) => {
        const _: () = {
            use std::io::{IoSliceMut, Result};
            use std::pin::Pin;
            use std::task::{Context, Poll};

            impl<$($generics)*> futures_io::AsyncRead for $type {
                fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    futures_io::AsyncRead::poll_read(Pin::new(&mut &*$stream), cx, buffer)
                }

                fn poll_read_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    futures_io::AsyncRead::poll_read_vectored(Pin::new(&mut &*$stream), cx, buffers)
                }
            }
        };
    };
}

/// Implements `AsyncWrite` in the same way.
macro_rules! delegate_write {
    ([$($generics:tt)*] $type:ty, |$this:ident| $stream:expr) => {
        const _: () = {
            use std::io::{IoSlice, Result};
            use std::pin::Pin;
            use std::task::{Context, Poll};

            impl<$($generics)*> futures_io::AsyncWrite for $type {
                fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    futures_io::AsyncWrite::poll_write(Pin::new(&mut &*$stream), cx, bytes)
                }

                fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    futures_io::AsyncWrite::poll_write_vectored(Pin::new(&mut &*$stream), cx, slices)
                }

                fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    let $this = &*self;
                    futures_io::AsyncWrite::poll_flush(Pin::new(&mut &*$stream), cx)
                }

                fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    let $this = &*self;
                    futures_io::AsyncWrite::poll_close(Pin::new(&mut &*$stream), cx)
                }
            }
        };
    };
}

/// `AsFd`, `AsRawFd` and `Debug`, as what `|this| owner` leads to has them.
macro_rules! descriptor_traits {
    ($type:ty, |$this:ident| $owner:expr) => {
        const _: () = {
            use std::fmt;
            use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

            impl AsFd for $type {
                fn as_fd(&self) -> BorrowedFd<'_> {
                    let $this = self;
                    $owner.as_fd()
                }
            }

            impl AsRawFd for $type {
                fn as_raw_fd(&self) -> RawFd {
                    self.as_fd().as_raw_fd()
                }
            }

            impl fmt::Debug for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    let $this = self;
                    $owner.fmt(f)
                }
            }
        };
    };
}

pub(crate) use {delegate_read, delegate_write, descriptor_traits, read_methods, write_methods};
