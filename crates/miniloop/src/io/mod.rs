//! Buffered reading and writing, over any stream that has the traits of `futures-io`; pipes and the standard streams, which have them.
//!
//! A [`BufReader`] cuts a stream into lines, records and pieces of a known length. A [`BufWriter`] gathers what is written and makes its
//! user wait when the peer is slow. [`copy()`] and [`copy_bidirectional`] move bytes without looking at them. The two directions of one
//! connection are read and written through two references to it:
//!
//! ```
//! use miniloop::io::{BufReader, BufWriter};
//! use miniloop::net::{TcpListener, TcpStream};
//!
//! /// Answers each line of a client.
//! async fn serve(stream: TcpStream) -> std::io::Result<()> {
//!     let mut reader = BufReader::new(&stream);
//!     let mut writer = BufWriter::new(&stream);
//!     while let Some(line) = reader.read_line().await? {
//!         writer.write_all(format!("you said {line}\n")).await?;
//!         writer.flush().await?;
//!     }
//!     writer.close().await
//! }
//!
//! miniloop::run(async {
//!     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
//!     let client = TcpStream::connect(listener.local_addr()?).await?;
//!     let (server, _) = listener.accept().await?;
//!     let served = miniloop::spawn(serve(server));
//!
//!     miniloop::io::write_all(&client, b"hello\n").await?;
//!     let mut answers = BufReader::new(&client);
//!     assert_eq!(answers.read_line().await?.as_deref(), Some("you said hello"));
//!     drop(client);
//!     served.await.expect("it was not cancelled")
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod read_error;
mod search;
mod read_buffer;
mod operation;
mod buf_reader;
mod write_queue;
mod buf_writer;
mod copy;
mod pipe;
mod stdio;

pub use self::buf_reader::{BufReader, Lines};
pub use self::buf_writer::BufWriter;
pub use self::copy::{copy, copy_bidirectional, write_all};
pub use self::pipe::{PipeReader, PipeWriter, pipe};
pub use self::read_error::ReadError;
pub use self::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
pub use self::write_queue::Chunk;
