//! The traits of `futures-io` for types that stand for a stream: all do what `&TcpStream` does. `|this| stream` says how to get there.

/// Implements `AsyncRead`.
macro_rules! delegate_read {
    ($type:ty, |$this:ident| $stream:expr) => {
        const _: () = {
            use std::io::{IoSliceMut, Result};
            use std::pin::Pin;
            use std::task::{Context, Poll};

            impl futures_io::AsyncRead for $type {
                fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    Pin::new(&mut &*$stream).poll_read(cx, buffer)
                }

                fn poll_read_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    Pin::new(&mut &*$stream).poll_read_vectored(cx, buffers)
                }
            }
        };
    };
}

/// Implements `AsyncWrite`.
macro_rules! delegate_write {
    ($type:ty, |$this:ident| $stream:expr) => {
        const _: () = {
            use std::io::{IoSlice, Result};
            use std::pin::Pin;
            use std::task::{Context, Poll};

            impl futures_io::AsyncWrite for $type {
                fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    Pin::new(&mut &*$stream).poll_write(cx, bytes)
                }

                fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<Result<usize>> {
                    let $this = &*self;
                    Pin::new(&mut &*$stream).poll_write_vectored(cx, slices)
                }

                fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    let $this = &*self;
                    Pin::new(&mut &*$stream).poll_flush(cx)
                }

                fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    let $this = &*self;
                    Pin::new(&mut &*$stream).poll_close(cx)
                }
            }
        };
    };
}

pub(super) use {delegate_read, delegate_write};
