//! A stream cut into lines, records and pieces of a known length.
//!
//! Nothing is lost when a future is dropped: bytes leave the reader in the poll that returns them, and not before. So each method can stand
//! in a `timeout`, a `race` or a `select!`, and the next call finds what the last one had gathered. What strangers can make it hold is
//! bounded: a record is at most as long as the limit, and about that much is read ahead.
//!
//! It knows nothing of descriptors: anything that implements `AsyncRead` will do. Cost: no allocation but the answers, beyond 8 KiB per
//! reader once it has read, or less if its limit is lower. Next: `buf_writer.rs`.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::stream::FusedStream;
use futures_core::{FusedFuture, Stream};
use futures_io::{AsyncBufRead, AsyncRead, AsyncWrite};

use super::operation::Operation;
use super::read_buffer::ReadBuffer;
use super::read_error::ReadError;
use super::search::{find_byte, find_first};
use crate::config::{READ_LEN, RECORD_LEN_MAX};
use crate::engine::context;

/// Reads lines, records and pieces of a known length from a stream.
///
/// ```
/// use miniloop::io::BufReader;
///
/// # miniloop::run(async {
/// let mut reader = BufReader::new(&b"GET /\r\n4:wiki rest"[..]);
/// assert_eq!(reader.read_line().await?.as_deref(), Some("GET /"));
/// assert_eq!(reader.read_until(b":").await?, b"4:");
/// assert_eq!(reader.read_exact(4).await?, b"wiki");
/// assert_eq!(reader.read_to_end(1_000).await?, b" rest");
/// assert_eq!(reader.read_line().await?, None);
/// # Ok::<(), miniloop::io::ReadError>(())
/// # }).unwrap().unwrap();
/// ```
///
/// Two reads at once, which would have to share what comes, do not compile:
///
/// ```compile_fail,E0499
/// # async fn both(reader: &mut miniloop::io::BufReader<&[u8]>) {
/// let first = reader.read_line();
/// let second = reader.read_line();
/// # first.await; second.await;
/// # }
/// ```
///
/// It is an `AsyncRead` and an `AsyncBufRead` itself, and passes writes through to a stream that has both directions.
///
/// # Cancellation
/// Dropping a future of any of its methods loses nothing: what had come stays in the reader, for the next call of whatever method.
#[doc(alias = "StreamReader")]
pub struct BufReader<R> {
    reader: R,
    buffer: ReadBuffer,
    limit: usize,
    /// A line was too long and has been refused, and its end has not been seen yet.
    is_inside_refused_line: bool,
}

impl<R> BufReader<R> {
    /// A reader whose lines and records are at most 64 KiB long.
    pub fn new(reader: R) -> BufReader<R> {
        BufReader::with_limit(RECORD_LEN_MAX, reader)
    }

    /// A reader whose lines and records are at most `limit` bytes long, without the line break or separator.
    ///
    /// ```
    /// use miniloop::io::{BufReader, ReadError};
    ///
    /// # miniloop::run(async {
    /// let mut reader = BufReader::with_limit(5, &b"hello\nhello world\nbye\n"[..]);
    /// assert_eq!(reader.read_line().await?.as_deref(), Some("hello"));
    /// assert!(matches!(reader.read_line().await, Err(ReadError::TooLong { limit: 5, .. })));
    /// assert_eq!(reader.read_line().await?.as_deref(), Some("bye"));
    /// # Ok::<(), ReadError>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn with_limit(limit: usize, reader: R) -> BufReader<R> {
        BufReader { reader, buffer: ReadBuffer::default(), limit, is_inside_refused_line: false }
    }

    /// What has been read from the stream and not from here.
    pub fn buffer(&self) -> &[u8] {
        self.buffer.unread()
    }

    /// The stream.
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// The stream. Bytes that are read from it directly are those behind [`buffer`](Self::buffer).
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// The stream, and what has been read from it and not from here: for a connection that goes on with another protocol.
    pub fn into_parts(mut self) -> (R, Vec<u8>) {
        let unread = self.buffer.take(usize::MAX);
        (self.reader, unread)
    }

    /// Takes `len` bytes of [`buffer`](Self::buffer) out, or all of it if it is shorter.
    pub fn consume(&mut self, len: usize) {
        self.take_out(len, |buffer, len| buffer.consume(len));
    }

    fn take(&mut self, len: usize) -> Vec<u8> {
        self.take_out(len, ReadBuffer::take)
    }

    /// Every way out of the buffer but the one of [`BufReader::poll_line`].
    fn take_out<T>(&mut self, len: usize, take: impl FnOnce(&mut ReadBuffer, usize) -> T) -> T {
        // Who reads the rest of a refused line by other means does not want to have it thrown away.
        self.is_inside_refused_line &= len == 0;
        take(&mut self.buffer, len)
    }
}

impl<R: AsyncRead + Unpin> BufReader<R> {
    /// Reads some bytes, as soon as there is one. Zero: the stream has ended, or `buffer` is empty.
    ///
    /// # Errors
    /// What the stream says.
    pub fn read<'a>(&'a mut self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = io::Result<usize>> + Unpin + use<'a, R> {
        Operation::new(self, &"bytes of a stream", |reader, cx| reader.poll_some(cx, buffer))
    }

    /// Reads a line, without its line break (`\n` or `\r\n`). `None`: the stream has ended. What stands between the last line break and the
    /// end is a line as well.
    ///
    /// # Errors
    /// [`TooLong`](ReadError::TooLong) as soon as the line is longer than the limit, [`NotUtf8`](ReadError::NotUtf8): it is lost, and the
    /// next call gives the line after it. [`Io`](ReadError::Io): what the stream says; then nothing is lost.
    #[doc(alias = "readline")]
    pub fn read_line(&mut self) -> impl FusedFuture<Output = Result<Option<String>, ReadError>> + Unpin + use<'_, R> {
        let mut searched_len = 0;
        Operation::new(self, &"a line", move |reader, cx| reader.poll_line(&mut searched_len, cx))
    }

    /// The lines as a stream: [`read_line`](Self::read_line) again and again. It goes on after a line that was refused, and ends with the
    /// stream and after an error of it. [`Lines::into_reader`] gives the reader back.
    ///
    /// ```
    /// use futures_util::TryStreamExt;
    /// use miniloop::io::BufReader;
    ///
    /// # miniloop::run(async {
    /// let reader = BufReader::new(&b"one\ntwo"[..]);
    /// assert_eq!(reader.lines().try_collect::<Vec<_>>().await?, ["one", "two"]);
    /// # Ok::<(), miniloop::io::ReadError>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn lines(self) -> Lines<R> {
        Lines { reader: self, searched_len: 0, is_done: false }
    }

    /// Reads until `separator`, which is the end of what is returned.
    ///
    /// # Errors
    /// [`Incomplete`](ReadError::Incomplete) when the stream ends first: the error has what came, the reader no longer.
    /// [`TooLong`](ReadError::TooLong) when the separator does not come within the limit, [`Io`](ReadError::Io) when the stream fails: then
    /// all is still in the reader.
    ///
    /// # Panics
    /// When the separator is empty.
    #[doc(alias = "readuntil")]
    pub fn read_until<'a>(&'a mut self, separator: &'a [u8]) -> impl FusedFuture<Output = Result<Vec<u8>, ReadError>> + Unpin + use<'a, R> {
        assert!(!separator.is_empty(), "{EMPTY}");
        let mut searched_len = 0;
        Operation::new(self, &"a separator", move |reader, cx| reader.poll_until(&[separator], &mut searched_len, cx))
    }

    /// Reads until one of the separators. The one that ends first counts, however the bytes come.
    ///
    /// ```
    /// use miniloop::io::BufReader;
    ///
    /// # miniloop::run(async {
    /// let mut reader = BufReader::new(&b"a;b\r\nc"[..]);
    /// assert_eq!(reader.read_until_any(&["\r\n", ";"]).await?, b"a;");
    /// assert_eq!(reader.read_until_any(&["\r\n", ";"]).await?, b"b\r\n");
    /// # Ok::<(), miniloop::io::ReadError>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`read_until`](Self::read_until).
    ///
    /// # Panics
    /// Without a separator, and when one is empty.
    #[doc(alias = "readuntil")]
    pub fn read_until_any<'a, S: AsRef<[u8]>>(
        &'a mut self,
        separators: &'a [S],
    ) -> impl FusedFuture<Output = Result<Vec<u8>, ReadError>> + Unpin + use<'a, R, S> {
        assert!(!separators.is_empty() && separators.iter().all(|separator| !separator.as_ref().is_empty()), "{EMPTY}");
        let mut searched_len = 0;
        Operation::new(self, &"a separator", move |reader, cx| reader.poll_until(separators, &mut searched_len, cx))
    }

    /// Reads `len` bytes, which may be more than the limit. Memory is taken as they come, so a peer that announces much and sends little
    /// costs little; whether `len` is reasonable is for the caller to say.
    ///
    /// # Errors
    /// [`Incomplete`](ReadError::Incomplete) when the stream ends first: the error has what came, the reader no longer.
    /// [`Io`](ReadError::Io) when it fails: then all is still in the reader.
    #[doc(alias = "readexactly")]
    pub fn read_exact(&mut self, len: usize) -> impl FusedFuture<Output = Result<Vec<u8>, ReadError>> + Unpin + use<'_, R> {
        Operation::new(self, &"more bytes of a stream", move |reader, cx| reader.poll_exact(len, cx))
    }

    /// Reads until the stream ends, at most `limit` bytes, which may be more than the reader's own limit.
    ///
    /// # Errors
    /// [`TooLong`](ReadError::TooLong) when there are more, [`Io`](ReadError::Io) when the stream fails: all is still in the reader.
    pub fn read_to_end(&mut self, limit: usize) -> impl FusedFuture<Output = Result<Vec<u8>, ReadError>> + Unpin + use<'_, R> {
        Operation::new(self, &"the end of a stream", move |reader, cx| reader.poll_to_end(limit, cx))
    }

    /// What is there, without taking it out: [`consume`](Self::consume) does that. Waits if there is nothing; empty at the end of the
    /// stream.
    ///
    /// # Errors
    /// What the stream says.
    pub async fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Operation::new(self, &"bytes of a stream", |reader, cx| reader.poll_filled(cx)).await?;
        Ok(self.buffer())
    }

    /// Takes more bytes in, about as many as are wanted and at least one. Zero: the stream has ended.
    fn poll_more(&mut self, wanted_len: usize, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // More than usual only for a stream that has given as much already: what nobody has sent gets no memory.
        let usual_len = READ_LEN.min(self.limit).max(1);
        let len_max = wanted_len.clamp(usual_len, usual_len.max(self.buffer.len()));
        let polled = context::poll_operation(cx, |cx| Pin::new(&mut self.reader).poll_read(cx, self.buffer.room(len_max)));
        if polled.is_pending() {
            self.buffer.shrink_to(READ_LEN);
        }
        // A stream that says that it has filled more than it was given is not believed.
        let len = ready!(polled)?.min(len_max);
        self.buffer.filled(len);
        Poll::Ready(Ok(len))
    }

    fn poll_filled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.buffer.is_empty() {
            ready!(self.poll_more(0, cx))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_some(&mut self, cx: &mut Context<'_>, target: &mut [u8]) -> Poll<io::Result<usize>> {
        if target.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.buffer.is_empty() && target.len() >= READ_LEN {
            let len = ready!(context::poll_operation(cx, |cx| Pin::new(&mut self.reader).poll_read(cx, target)))?;
            self.is_inside_refused_line &= len == 0;
            return Poll::Ready(Ok(len.min(target.len())));
        }
        ready!(self.poll_filled(cx))?;
        let len = target.len().min(self.buffer.len());
        target[..len].copy_from_slice(&self.buffer()[..len]);
        self.consume(len);
        Poll::Ready(Ok(len))
    }

    /// `searched_len`: so many bytes are known to have no line break.
    fn poll_line(&mut self, searched_len: &mut usize, cx: &mut Context<'_>) -> Poll<Result<Option<String>, ReadError>> {
        loop {
            let unread = self.buffer.unread();
            let found = find_byte(b'\n', &unread[*searched_len..]).map(|index| *searched_len + index);
            let seen = &unread[..found.unwrap_or(unread.len())];
            let (line, end) = (seen.strip_suffix(b"\r").unwrap_or(seen), found.map(|index| index + 1));
            if self.is_inside_refused_line {
                self.buffer.consume(end.unwrap_or(usize::MAX));
                self.is_inside_refused_line = end.is_none();
                *searched_len = 0;
                if end.is_some() {
                    continue;
                }
            } else if line.len() > self.limit {
                let error = ReadError::TooLong { seen: line.len(), limit: self.limit };
                self.buffer.consume(end.unwrap_or(usize::MAX));
                self.is_inside_refused_line = end.is_none();
                return Poll::Ready(Err(error));
            } else if let Some(end) = end {
                let line = line.to_vec();
                self.buffer.consume(end);
                return Poll::Ready(text(line).map(Some));
            } else {
                *searched_len = unread.len();
            }
            if ready!(self.poll_more(0, cx))? == 0 {
                self.is_inside_refused_line = false;
                *searched_len = 0;
                let rest = self.buffer.take(usize::MAX);
                return Poll::Ready(match rest.len() {
                    0 => Ok(None),
                    // A `\r` that turns out to be the last byte of the line, and not half of its end.
                    len if len > self.limit => Err(ReadError::TooLong { seen: len, limit: self.limit }),
                    _ => text(rest).map(Some),
                });
            }
        }
    }

    /// `searched_len`: no separator begins among so many bytes.
    fn poll_until<S: AsRef<[u8]>>(
        &mut self,
        separators: &[S],
        searched_len: &mut usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Vec<u8>, ReadError>> {
        let longest_len = separators.iter().map(|separator| separator.as_ref().len()).max().unwrap_or(0);
        loop {
            let found = find_first(separators, self.buffer(), *searched_len);
            // The beginning of a separator may be here already.
            *searched_len = found.as_ref().map_or((self.buffer.len() + 1).saturating_sub(longest_len), |found| found.start);
            if *searched_len > self.limit {
                return Poll::Ready(Err(ReadError::TooLong { seen: *searched_len, limit: self.limit }));
            }
            if let Some(found) = found {
                return Poll::Ready(Ok(self.take(found.end)));
            }
            if ready!(self.poll_more(0, cx))? == 0 {
                return Poll::Ready(Err(ReadError::Incomplete { partial: self.take(usize::MAX), expected: None }));
            }
        }
    }

    fn poll_exact(&mut self, len: usize, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, ReadError>> {
        while self.buffer.len() < len {
            if ready!(self.poll_more(len - self.buffer.len(), cx))? == 0 {
                return Poll::Ready(Err(ReadError::Incomplete { partial: self.take(usize::MAX), expected: Some(len) }));
            }
        }
        Poll::Ready(Ok(self.take(len)))
    }

    fn poll_to_end(&mut self, limit: usize, cx: &mut Context<'_>) -> Poll<Result<Vec<u8>, ReadError>> {
        loop {
            if self.buffer.len() > limit {
                return Poll::Ready(Err(ReadError::TooLong { seen: self.buffer.len(), limit }));
            }
            if ready!(self.poll_more(limit - self.buffer.len(), cx))? == 0 {
                return Poll::Ready(Ok(self.take(usize::MAX)));
            }
        }
    }
}

fn text(line: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(line).map_err(|error| ReadError::NotUtf8 { line: error.into_bytes() })
}

const EMPTY: &str = "nothing ends where an empty separator stands: give one byte at least";

/// The lines of a reader, from [`BufReader::lines`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct Lines<R> {
    reader: BufReader<R>,
    searched_len: usize,
    is_done: bool,
}

impl<R> Lines<R> {
    /// The reader, with all that has not been returned as a line.
    pub fn into_reader(self) -> BufReader<R> {
        self.reader
    }
}

impl<R: AsyncRead + Unpin> Stream for Lines<R> {
    type Item = Result<String, ReadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let polled = context::poll_operation(cx, |cx| match this.is_done {
            true => Poll::Ready(Ok(None)),
            false => this.reader.poll_line(&mut this.searched_len, cx),
        });
        let Poll::Ready(result) = polled else {
            context::waits_for(&"a line");
            return Poll::Pending;
        };
        this.searched_len = 0;
        this.is_done = matches!(result, Ok(None) | Err(ReadError::Io(_)));
        Poll::Ready(result.transpose())
    }
}

impl<R: AsyncRead + Unpin> FusedStream for Lines<R> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BufReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        context::poll_operation(cx, |cx| self.poll_some(cx, buffer))
    }
}

impl<R: AsyncRead + Unpin> AsyncBufRead for BufReader<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        ready!(context::poll_operation(cx, |cx| this.poll_filled(cx)))?;
        Poll::Ready(Ok(this.buffer()))
    }

    fn consume(mut self: Pin<&mut Self>, len: usize) {
        BufReader::consume(&mut self, len);
    }
}

/// Writes go to the stream as they are: see [`BufWriter`](super::BufWriter).
impl<R: AsyncWrite + Unpin> AsyncWrite for BufReader<R> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.reader).poll_write(cx, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.reader).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_close(cx)
    }
}

impl<R: fmt::Debug> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("BufReader");
        debug.field("reader", &self.reader).field("unread_len", &self.buffer.len()).field("limit", &self.limit).finish()
    }
}
