//! A stream that is written to without waiting, until its peer is too slow.
//!
//! ```text
//!         close                    sent, flushed, write side shut down
//! Open ----------> Closing ------------------------------------------> Closed
//!   |                 |
//!   +-----------------+----- the stream fails ------> Failed: what is queued is dropped, the error is remembered
//! ```
//!
//! Bytes stand in a queue that belongs to the writer, so a dropped future loses none and tears none apart. There is no task that sends them
//! behind the user's back: a conversation calls `flush` before it waits for an answer. It knows nothing of descriptors.
//!
//! Cost: up to 64 pieces go into one system call; large pieces are not copied. Next: `copy.rs`.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;
use futures_io::{AsyncRead, AsyncWrite};

use super::operation::Operation;
use super::write_queue::{Chunk, WriteQueue};
use crate::config::{SLICES_PER_WRITE, WRITE_HIGH_WATER_LEN, WRITE_QUEUE_LEN_MAX};
use crate::engine::context;

/// Writes to a stream through a queue.
///
/// | | waits | sends |
/// |---|---|---|
/// | [`write`](Self::write) | never; refuses when the queue is full | nothing |
/// | [`write_all`](Self::write_all) | while too much is queued | as much as is needed for that |
/// | [`drain`](Self::drain) | while too much is queued | what the stream takes now |
/// | [`flush`](Self::flush), [`close`](Self::close) | until nothing is queued | everything |
///
/// "Too much" begins above the high-water mark, 64 KiB unless set, or when a write is refused, and ends at a quarter of that mark.
///
/// ```
/// use miniloop::io::BufWriter;
///
/// # miniloop::run(async {
/// let mut sent = Vec::new();
/// let mut writer = BufWriter::new(&mut sent);
/// writer.write_all("hello ").await?;
/// writer.write_all(b"world").await?;
/// assert_eq!(writer.queued_len(), 11);
/// writer.close().await?;
/// assert_eq!(sent, b"hello world");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// It is an `AsyncWrite` itself, with the patience of [`write_all`](Self::write_all), and passes reads through to a stream that has both
/// directions.
///
/// # Dropping it
/// What is still queued is lost, since a destructor cannot wait: end with [`close`](Self::close).
#[doc(alias = "StreamWriter")]
pub struct BufWriter<W> {
    writer: W,
    queue: WriteQueue,
    /// Above it the user has to wait, ..
    high_water: usize,
    /// .. down to it.
    low_water: usize,
    limit: usize,
    /// The high-water mark was passed or a write refused, and the low one has not been reached since.
    is_paused: bool,
    state: State,
}

enum State {
    Open,
    Closing,
    Closed,
    Failed(Failure),
}

impl<W> BufWriter<W> {
    /// A writer that makes its user wait above 64 KiB, and refuses what is not waited for above 1 MiB.
    pub fn new(writer: W) -> BufWriter<W> {
        BufWriter::with_limits(WRITE_HIGH_WATER_LEN, WRITE_QUEUE_LEN_MAX, writer)
    }

    /// A writer that makes its user wait when more than `high_water` bytes are queued, until a quarter of that is left, and never queues
    /// more than `limit`. The one exception is a single piece that is longer: it goes in when nothing else is queued.
    ///
    /// After a [`drain`](Self::drain) there is room for a piece of `limit - high_water` bytes. Who writes longer ones waits with
    /// [`write_all`](Self::write_all), or drains once more after [`write`](Self::write) has refused one.
    #[doc(alias = "set_write_buffer_limits")]
    pub fn with_limits(high_water: usize, limit: usize, writer: W) -> BufWriter<W> {
        BufWriter {
            writer,
            queue: WriteQueue::default(),
            high_water,
            low_water: high_water / 4,
            limit: limit.max(high_water),
            is_paused: false,
            state: State::Open,
        }
    }

    /// Queues `bytes` and returns at once. Whoever writes much calls [`drain`](Self::drain) in between.
    ///
    /// ```
    /// use miniloop::io::BufWriter;
    /// use std::rc::Rc;
    ///
    /// # miniloop::run(async {
    /// let line: Rc<str> = Rc::from("the same for everybody\n");
    /// let mut writers = [BufWriter::new(Vec::new()), BufWriter::new(Vec::new())];
    /// for writer in &mut writers {
    ///     writer.write(line.clone())?;
    ///     writer.drain().await?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) when the queue would pass its limit: nothing was queued.
    /// [`NotConnected`](io::ErrorKind::NotConnected) after [`close`](Self::close). The stream's error, once it has failed.
    pub fn write<'b>(&mut self, bytes: impl Into<Chunk<'b>>) -> io::Result<()> {
        let chunk = bytes.into();
        self.check_open()?;
        if !self.has_room_for(chunk.as_slice().len()) {
            // Below the high-water mark, too, when the piece is long or the limit near: `drain` has something to wait for.
            self.is_paused = true;
            let text = format!("{} bytes wait to be written, {} are allowed: await `drain` between writes", self.queue.len(), self.limit);
            return Err(io::Error::new(io::ErrorKind::WouldBlock, text));
        }
        self.push(chunk);
        Ok(())
    }

    /// How many bytes have been taken and not been sent.
    #[doc(alias = "get_write_buffer_size")]
    pub fn queued_len(&self) -> usize {
        self.queue.len()
    }

    /// The stream.
    pub fn get_ref(&self) -> &W {
        &self.writer
    }

    /// The stream. What is written to it directly overtakes what is queued.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// The stream, and what was to be written to it.
    pub fn into_parts(self) -> (W, Vec<u8>) {
        (self.writer, self.queue.into_bytes())
    }

    fn has_room_for(&self, len: usize) -> bool {
        self.queue.len() == 0 || self.queue.len().saturating_add(len) <= self.limit
    }

    fn push(&mut self, chunk: Chunk<'_>) {
        self.queue.push(chunk);
        self.is_paused |= self.queue.len() > self.high_water;
    }

    /// Whether it may still be written to.
    fn check_open(&self) -> io::Result<()> {
        match &self.state {
            State::Open => Ok(()),
            State::Closing | State::Closed => Err(io::Error::new(io::ErrorKind::NotConnected, "this writer has been closed")),
            State::Failed(failure) => Err(failure.to_error()),
        }
    }

    /// Keeps a copy of the error for whoever comes later. What is queued has nowhere to go.
    fn fail(&mut self, error: io::Error) -> io::Error {
        self.state = State::Failed(Failure::of(&error));
        self.queue = WriteQueue::default();
        self.is_paused = false;
        error
    }
}

impl<W: AsyncWrite + Unpin> BufWriter<W> {
    /// Queues `bytes`, after it has waited until no more than the low-water mark is queued, if too much was.
    ///
    /// # Errors
    /// As [`write`](Self::write), but for the full queue.
    ///
    /// # Cancellation
    /// Nothing of `bytes` has been queued if the future is dropped before it is done.
    #[doc(alias = "writelines")]
    pub fn write_all<'b, B: Into<Chunk<'b>>>(&mut self, bytes: B) -> impl FusedFuture<Output = io::Result<()>> + Unpin + use<'_, 'b, W, B> {
        let mut chunk = Some(bytes.into());
        Operation::new(self, &"room in a writer's queue", move |writer, cx| {
            let len = chunk.as_ref().map_or(0, |chunk| chunk.as_slice().len());
            ready!(writer.poll_room(len, cx))?;
            if let Some(chunk) = chunk.take() {
                writer.push(chunk);
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Sends what the stream takes now, and waits only if too much is queued, until no more than the low-water mark is. What is left goes
    /// with the next call that sends.
    ///
    /// # Errors
    /// The stream's error, now and whenever it is called again; [`NotConnected`](io::ErrorKind::NotConnected) after
    /// [`close`](Self::close). Such a call gives way once, so that a loop that does not look at errors cannot hold the event loop.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub fn drain(&mut self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + use<'_, W> {
        let mut has_given_way = false;
        Operation::new(self, &"a writer to drain", move |writer, cx| {
            if let Err(error) = writer.check_open() {
                if has_given_way {
                    return Poll::Ready(Err(error));
                }
                has_given_way = true;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match writer.poll_send(0, cx) {
                Poll::Pending if !writer.is_paused => Poll::Ready(Ok(())),
                polled => polled,
            }
        })
    }

    /// Sends everything that is queued, and has the stream send what it keeps itself.
    ///
    /// # Errors
    /// The stream's error, now and whenever it is called again; [`NotConnected`](io::ErrorKind::NotConnected) after
    /// [`close`](Self::close).
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub fn flush(&mut self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + use<'_, W> {
        Operation::new(self, &"a writer to send all", |writer, cx| {
            writer.check_open()?;
            writer.poll_flush_all(cx)
        })
    }

    /// Sends everything that is queued, then ends this direction of the stream: the peer reads to the end. Closing again does nothing.
    ///
    /// # Errors
    /// The stream's error: not everything has arrived.
    ///
    /// # Cancellation
    /// Nothing is lost; it refuses further writes already, and the next call goes on.
    #[doc(alias = "write_eof")]
    #[doc(alias = "wait_closed")]
    pub fn close(&mut self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + use<'_, W> {
        Operation::new(self, &"a writer to close", Self::poll_close_all)
    }

    /// Sends until at most `len_left` bytes are queued.
    fn poll_send(&mut self, len_left: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.queue.len() > len_left {
            let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
            let count = self.queue.slices(&mut slices);
            let stream = Pin::new(&mut self.writer);
            let written = ready!(context::poll_operation(cx, |cx| match &slices[..count] {
                [slice] => stream.poll_write(cx, slice),
                slices => stream.poll_write_vectored(cx, slices),
            }));
            match written {
                Ok(0) => return Poll::Ready(Err(self.fail(io::ErrorKind::WriteZero.into()))),
                Ok(len) => self.queue.advance(len),
                Err(error) => return Poll::Ready(Err(self.fail(error))),
            }
            self.is_paused &= self.queue.len() > self.low_water;
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until `len` more bytes may be queued.
    fn poll_room(&mut self, len: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check_open()?;
        if self.is_paused {
            ready!(self.poll_send(self.low_water, cx))?;
        }
        if !self.has_room_for(len) {
            ready!(self.poll_send(self.limit.saturating_sub(len), cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(0, cx))?;
        let polled = ready!(Pin::new(&mut self.writer).poll_flush(cx));
        Poll::Ready(polled.map_err(|error| self.fail(error)))
    }

    fn poll_close_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &self.state {
            State::Open => self.state = State::Closing,
            State::Closing => {}
            State::Closed => return Poll::Ready(Ok(())),
            State::Failed(failure) => return Poll::Ready(Err(failure.to_error())),
        }
        ready!(self.poll_flush_all(cx))?;
        let polled = ready!(Pin::new(&mut self.writer).poll_close(cx));
        Poll::Ready(match polled {
            Ok(()) => {
                self.state = State::Closed;
                Ok(())
            }
            Err(error) => Err(self.fail(error)),
        })
    }
}

/// What remains of the error that ended a stream: an [`io::Error`] cannot be cloned.
enum Failure {
    Os(i32),
    Other(io::ErrorKind, String),
}

impl Failure {
    fn of(error: &io::Error) -> Failure {
        match error.raw_os_error() {
            Some(number) => Failure::Os(number),
            None => Failure::Other(error.kind(), error.to_string()),
        }
    }

    fn to_error(&self) -> io::Error {
        match self {
            Failure::Os(number) => io::Error::from_raw_os_error(*number),
            Failure::Other(kind, text) => io::Error::new(*kind, text.clone()),
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for BufWriter<W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(context::poll_operation(cx, |cx| self.poll_room(bytes.len(), cx)))?;
        self.push(Chunk::from(bytes));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let len = slices.iter().map(|slice| slice.len()).sum();
        ready!(context::poll_operation(cx, |cx| self.poll_room(len, cx)))?;
        slices.iter().for_each(|slice| self.push(Chunk::from(&**slice)));
        Poll::Ready(Ok(len))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        context::poll_operation(cx, |cx| {
            self.check_open()?;
            self.poll_flush_all(cx)
        })
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        context::poll_operation(cx, |cx| self.poll_close_all(cx))
    }
}

/// Reads come from the stream as they are: see [`BufReader`](super::BufReader).
impl<W: AsyncRead + Unpin> AsyncRead for BufWriter<W> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.writer).poll_read(cx, buffer)
    }
}

impl<W: fmt::Debug> fmt::Debug for BufWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("BufWriter");
        debug.field("writer", &self.writer).field("queued_len", &self.queue.len()).field("is_paused", &self.is_paused).finish()
    }
}
