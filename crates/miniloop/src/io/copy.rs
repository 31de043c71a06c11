//! Moving bytes without looking at them: from memory to a stream, from one stream to another, and both ways at once.
//!
//! None of these gives back what it holds when it is dropped half-way: they are for streams that end with the transfer. Cost: 16 KiB per
//! direction, for as long as it takes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncWrite};

use crate::config::COPY_BUFFER_LEN;
use crate::engine::context;

/// Writes all of `bytes` to a stream. Whoever writes often, or small pieces, wants a [`BufWriter`](super::BufWriter).
///
/// ```
/// # miniloop::run(async {
/// # let (server, client) = miniloop::net::UnixStream::pair()?;
/// miniloop::io::write_all(&client, b"hello").await?; // `&mut stream` where a stream is none by reference
/// # let mut buffer = [0; 8];
/// # assert_eq!(server.read(&mut buffer).await?, 5);
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// What the stream says, [`WriteZero`](io::ErrorKind::WriteZero) if it takes nothing more.
///
/// # Cancellation
/// If the future is dropped, a part may have been written, and nobody knows how much: [`BufWriter`](super::BufWriter) does better.
#[doc(alias = "sendall")]
pub async fn write_all<W: AsyncWrite + Unpin>(mut writer: W, mut bytes: &[u8]) -> io::Result<()> {
    let mut step = |cx: &mut Context<'_>| {
        while !bytes.is_empty() {
            let len = ready!(context::poll_operation(cx, |cx| Pin::new(&mut writer).poll_write(cx, bytes)))?;
            bytes = &bytes[nonzero(len, bytes.len())?..];
        }
        Poll::Ready(Ok(()))
    };
    poll_fn(|cx| context::poll_operation(cx, &mut step)).await
}

/// Reads `reader` to its end, writes everything to `writer`, and flushes it. Returns how many bytes that were. The writer is
/// not closed: given as `&mut writer`, or a socket as `&socket`, it goes on.
///
/// While nothing comes, what has come is not held back: the writer is flushed.
///
/// ```
/// # miniloop::run(async {
/// let mut sent = Vec::new();
/// assert_eq!(miniloop::io::copy(&b"hello"[..], &mut sent).await?, 5);
/// assert_eq!(sent, b"hello");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// The first error of either stream.
///
/// # Cancellation
/// If the future is dropped, up to 16 KiB that were read and not yet written are lost.
pub async fn copy<R, W>(mut reader: R, mut writer: W) -> io::Result<u64>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut transfer = Transfer::new();
    poll_fn(|cx| transfer.poll(&mut reader, &mut writer, cx)).await?;
    Ok(transfer.copied_len)
}

/// Copies in both directions at once, until both have ended: what a proxy does. Returns how many bytes went from `a` to `b`, and from `b`
/// to `a`.
///
/// When one stream has said all it wants to say, the other is told so by `close`, which ends one direction of a connection only; its answer
/// still comes back.
///
/// ```
/// use miniloop::net::{TcpListener, TcpStream};
///
/// /// Connects a client with the server for which it has called.
/// async fn proxy(client: TcpStream, server: std::net::SocketAddr) -> std::io::Result<()> {
///     let server = TcpStream::connect(server).await?;
///     let (up, down) = miniloop::io::copy_bidirectional(&client, &server).await?;
///     println!("{up} bytes up, {down} bytes down");
///     Ok(())
/// }
/// # miniloop::run(async {
/// #     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
/// #     let (far, near) = (listener.local_addr()?, TcpListener::bind("127.0.0.1:0".parse().unwrap())?);
/// #     let client = TcpStream::connect(near.local_addr()?).await?;
/// #     client.shutdown(std::net::Shutdown::Write)?;
/// #     let proxied = miniloop::spawn(proxy(near.accept().await?.0, far));
/// #     drop(listener.accept().await?);
/// #     proxied.await.expect("it was not cancelled")
/// # })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first error of either stream, in either direction. It ends both.
///
/// # Cancellation
/// If the future is dropped, up to 16 KiB per direction that were read and not yet written are lost.
pub async fn copy_bidirectional<A, B>(mut a: A, mut b: B) -> io::Result<(u64, u64)>
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let (mut there, mut back) = (Transfer::new(), Transfer::new());
    let (mut is_there_done, mut is_back_done) = (false, false);
    let mut is_back_first = false;
    poll_fn(|cx| {
        for is_back in [is_back_first, !is_back_first] {
            if is_back && !is_back_done {
                is_back_done = back.poll_and_close(&mut b, &mut a, cx)?.is_ready();
            } else if !is_back && !is_there_done {
                is_there_done = there.poll_and_close(&mut a, &mut b, cx)?.is_ready();
            }
        }
        // The one that goes first may use up the task's operations: they take turns.
        is_back_first = !is_back_first;
        if is_there_done && is_back_done { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
    .map(|()| (there.copied_len, back.copied_len))
}

/// One direction.
struct Transfer {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    is_at_end: bool,
    /// The writer has been given something since it was flushed.
    is_unflushed: bool,
    copied_len: u64,
}

impl Transfer {
    fn new() -> Transfer {
        let buffer = vec![0; COPY_BUFFER_LEN].into_boxed_slice();
        Transfer { buffer, start: 0, end: 0, is_at_end: false, is_unflushed: false, copied_len: 0 }
    }

    fn poll<R, W>(&mut self, reader: &mut R, writer: &mut W, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        loop {
            while self.start < self.end {
                let bytes = &self.buffer[self.start..self.end];
                let written = ready!(context::poll_operation(cx, |cx| Pin::new(&mut *writer).poll_write(cx, bytes)))?;
                let len = nonzero(written, bytes.len())?;
                self.start += len;
                self.copied_len += len as u64;
                self.is_unflushed = true;
            }
            if self.is_at_end {
                return Pin::new(&mut *writer).poll_flush(cx);
            }
            match context::poll_operation(cx, |cx| Pin::new(&mut *reader).poll_read(cx, &mut self.buffer))? {
                Poll::Ready(len) => {
                    (self.start, self.end) = (0, len.min(self.buffer.len()));
                    self.is_at_end = len == 0;
                }
                Poll::Pending => {
                    if self.is_unflushed {
                        self.is_unflushed = Pin::new(&mut *writer).poll_flush(cx)?.is_pending();
                    }
                    context::waits_for(&"bytes to copy");
                    return Poll::Pending;
                }
            }
        }
    }

    fn poll_and_close<R, W>(&mut self, reader: &mut R, writer: &mut W, cx: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        ready!(self.poll(reader, writer, cx))?;
        Pin::new(writer).poll_close(cx)
    }
}

/// How many of `len_max` bytes a writer has taken.
fn nonzero(len: usize, len_max: usize) -> io::Result<usize> {
    if len == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(len.min(len_max)) }
}
