//! The two directions of a stream in two hands.
//!
//! Lent halves are for two pieces of code of one task, owned halves for two tasks. Both are thin: they read and write as `&` of the stream
//! does, one waiting task per direction. The `&self` methods of the stream are reached through `as_ref`.

use std::error::Error;
use std::fmt;
use std::rc::Rc;

use super::socket::Stream;
use super::tcp_stream::TcpStream;
use super::unix_stream::UnixStream;
use crate::byte_stream_methods::{delegate_read, delegate_write};

/// The reading direction of a stream, lent by [`TcpStream::split`] or [`UnixStream::split`].
#[derive(Debug)]
pub struct ReadHalf<'a, S = TcpStream>(&'a S);

/// The writing direction of a stream, lent by [`TcpStream::split`] or [`UnixStream::split`].
#[derive(Debug)]
pub struct WriteHalf<'a, S = TcpStream>(&'a S);

/// The reading direction of a stream, from [`TcpStream::into_split`] or [`UnixStream::into_split`].
#[derive(Debug)]
pub struct OwnedReadHalf<S = TcpStream>(Rc<S>);

/// The writing direction of a stream, from [`TcpStream::into_split`] or [`UnixStream::into_split`]. Dropping it ends this direction: the
/// peer reads to the end.
#[derive(Debug)]
pub struct OwnedWriteHalf<S: Stream = TcpStream> {
    stream: Rc<S>,
    /// Nobody has made a whole of it again.
    is_half: bool,
}

/// The halves of [`OwnedReadHalf::reunite`] were of two streams. It gives them back.
#[derive(Debug)]
pub struct ReuniteError<S: Stream = TcpStream>(pub OwnedReadHalf<S>, pub OwnedWriteHalf<S>);

macro_rules! split {
    ($stream:ident, $ends:literal) => {
        impl $stream {
            /// Lends the two directions to two pieces of code of one task.
            ///
            /// `AsyncReadExt` of `futures-util` has a `split` of its own, which takes the stream; where that is imported, call this one by
            /// its full name.
            ///
            #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
# #[allow(unused)] use miniloop::net::UnixStream;
use futures_util::{AsyncReadExt, AsyncWriteExt, try_join};

let (mut reader, mut writer) = ", stringify!($stream), "::split(&mut ours);
let mut buffer = [0; 5];
try_join!(writer.write_all(b\"hello\"), reader.read_exact(&mut buffer), async { theirs.write(b\"world\").await.map(drop) })?;
assert_eq!(&buffer, b\"world\");
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
            pub fn split(&mut self) -> (ReadHalf<'_, Self>, WriteHalf<'_, Self>) {
                (ReadHalf(self), WriteHalf(self))
            }

            /// Gives the two directions to two tasks. The connection is closed when both are gone.
            ///
            #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
use futures_util::{AsyncReadExt, AsyncWriteExt};

let (mut reader, mut writer) = ours.into_split();
let writing = miniloop::spawn(async move { writer.write_all(b\"hello\").await });
writing.await.unwrap()?; // the writer is gone with its task: the other side reads to the end
let mut text = String::new();
theirs.read_to_string(&mut text).await?;
assert_eq!(text, \"hello\");
theirs.close().await?;
assert_eq!(reader.read_to_end(&mut Vec::new()).await?, 0);
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
            pub fn into_split(self) -> (OwnedReadHalf<Self>, OwnedWriteHalf<Self>) {
                let stream = Rc::new(self);
                (OwnedReadHalf(stream.clone()), OwnedWriteHalf { stream, is_half: true })
            }
        }

        delegate_read!([] ReadHalf<'_, $stream>, |half| half.0);
        delegate_read!([] OwnedReadHalf<$stream>, |half| half.0);
        delegate_write!([] WriteHalf<'_, $stream>, |half| half.0);
        delegate_write!([] OwnedWriteHalf<$stream>, |half| half.stream);
    };
}

split!(
    TcpStream,
    "# use miniloop::net::{TcpListener, TcpStream};
# let listener = TcpListener::bind(\"127.0.0.1:0\".parse().unwrap())?;
# let mut ours = TcpStream::connect(listener.local_addr()?).await?;
# let (mut theirs, _) = listener.accept().await?;"
);
split!(UnixStream, "# let (mut ours, mut theirs) = miniloop::net::UnixStream::pair()?;");

impl<S: Stream> OwnedReadHalf<S> {
    /// Makes a stream of its two halves again. Neither direction ends.
    ///
    /// ```
    /// # use miniloop::net::UnixStream;
    /// # miniloop::run(async {
    /// let (ours, theirs) = UnixStream::pair()?;
    /// let (reader, writer) = ours.into_split();
    /// let ours = reader.reunite(writer).unwrap();
    /// ours.write(b"hello").await?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// They are the halves of two streams.
    pub fn reunite(self, mut writer: OwnedWriteHalf<S>) -> Result<S, ReuniteError<S>> {
        if !Rc::ptr_eq(&self.0, &writer.stream) {
            return Err(ReuniteError(self, writer));
        }
        writer.is_half = false;
        drop(writer);
        Ok(Rc::into_inner(self.0).expect("nobody but its halves shares a stream"))
    }
}

impl<S: Stream> Drop for OwnedWriteHalf<S> {
    fn drop(&mut self) {
        if self.is_half {
            // It fails if the connection has gone: then this direction has ended already.
            let _ended_before = self.stream.end();
        }
    }
}

// For addresses, options and the methods over `&self`.

impl<S> AsRef<S> for ReadHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for WriteHalf<'_, S> {
    fn as_ref(&self) -> &S {
        self.0
    }
}

impl<S> AsRef<S> for OwnedReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S: Stream> AsRef<S> for OwnedWriteHalf<S> {
    fn as_ref(&self) -> &S {
        &self.stream
    }
}

impl<S: Stream> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("these are halves of two different streams")
    }
}

impl<S: Stream + fmt::Debug> Error for ReuniteError<S> {}
