//! Streams for crates that want tokio's I/O traits. Feature `tokio-io`; of tokio itself only the traits are compiled.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};
use tokio::io::ReadBuf;

/// A stream of miniloop, or any with the traits of `futures-io`, as one with the traits of tokio.
///
/// ```
/// use miniloop::net::UnixStream;
/// use miniloop::tokio_io::TokioIo;
///
/// fn wants_tokio(_: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin) {}
///
/// miniloop::run(async {
///     let (ours, _theirs) = UnixStream::pair()?;
///     wants_tokio(TokioIo::new(ours));
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cancellation
/// As that of the stream: this holds no bytes.
#[derive(Clone, Copy, Default)]
pub struct TokioIo<S> {
    stream: S,
}

impl<S> TokioIo<S> {
    /// Wraps a stream. `&TcpStream` is one, too.
    pub const fn new(stream: S) -> TokioIo<S> {
        TokioIo { stream }
    }

    /// The stream.
    pub const fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream, to keep.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> tokio::io::AsyncRead for TokioIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let len = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer.initialize_unfilled()))?;
        // A stream that says that it has filled more than it was given is not believed.
        buffer.advance(len.min(buffer.remaining()));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> tokio::io::AsyncWrite for TokioIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    /// `futures-io` does not say. The sockets of this crate write several slices at once; a stream that does not writes the first.
    fn is_write_vectored(&self) -> bool {
        true
    }
}

impl<S: fmt::Debug> fmt::Debug for TokioIo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokioIo").field(&self.stream).finish()
    }
}
