//! Why a line, a record or a piece of a known length could not be read.

use std::fmt;
use std::io;

/// Why a [`BufReader`](super::BufReader) cannot give what it was asked for.
///
/// In a function that returns [`io::Error`], `?` turns it into one: [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) for
/// [`Incomplete`](ReadError::Incomplete), [`InvalidData`](io::ErrorKind::InvalidData) for a record that is too long or no text, with this
/// error inside.
///
/// ```
/// use miniloop::io::{BufReader, ReadError};
///
/// # miniloop::run(async {
/// let mut reader = BufReader::new(&b"key=val"[..]);
/// assert_eq!(reader.read_until(b"=").await?, b"key=");
/// match reader.read_until(b"\n").await {
///     Err(ReadError::Incomplete { partial, .. }) => assert_eq!(partial, b"val"),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), ReadError>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The stream ended first.
    #[doc(alias = "IncompleteReadError")]
    Incomplete {
        /// What had come. The reader no longer has it.
        partial: Vec<u8>,
        /// How many bytes were asked for, if it was a number.
        expected: Option<usize>,
    },
    /// There are more bytes than the limit allows before the separator, or before the end.
    #[doc(alias = "LimitOverrunError")]
    TooLong {
        /// How many bytes are known to stand before it.
        seen: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// A line is not UTF-8.
    NotUtf8 {
        /// Its bytes, without the line break. The reader no longer has them.
        line: Vec<u8>,
    },
    /// The stream failed. What it had given before is still in the reader.
    Io(io::Error),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Incomplete { partial, expected: Some(expected) } => {
                write!(f, "the stream ended after {} of {expected} bytes", partial.len())
            }
            ReadError::Incomplete { partial, expected: None } => {
                write!(f, "the stream ended after {} bytes, before the separator", partial.len())
            }
            ReadError::TooLong { seen, limit } => write!(f, "too long: {seen} bytes or more, {limit} are allowed"),
            ReadError::NotUtf8 { line } => write!(f, "a line of {} bytes is not UTF-8", line.len()),
            ReadError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // It shows itself as the I/O error that it is, so what comes next is that one's source.
            ReadError::Io(error) => std::error::Error::source(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> io::Error {
        let kind = match error {
            ReadError::Io(error) => return error,
            ReadError::Incomplete { .. } => io::ErrorKind::UnexpectedEof,
            ReadError::TooLong { .. } | ReadError::NotUtf8 { .. } => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}
