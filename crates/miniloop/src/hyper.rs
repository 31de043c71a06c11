//! hyper 1.x on the loop: its streams, its timers, and who runs the tasks of HTTP/2. Feature `hyper`.
//!
//! ```
//! use http_body_util::{BodyExt, Empty, Full};
//! use hyper::body::Bytes;
//! use hyper::service::service_fn;
//! use hyper::{Request, Response, client, server};
//! use miniloop::hyper::{HyperIo, HyperTimer};
//! use miniloop::net::{TcpListener, TcpStream};
//!
//! miniloop::run(async {
//!     let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
//!     let address = listener.local_addr()?;
//!     miniloop::spawn(async move {
//!         let (stream, _) = listener.accept().await.unwrap();
//!         let greet = service_fn(async |_: Request<_>| Ok::<_, std::convert::Infallible>(Response::new(Full::new(Bytes::from("hello")))));
//!         server::conn::http1::Builder::new().timer(HyperTimer::new()).serve_connection(HyperIo::new(stream), greet).await
//!     })
//!     .detach();
//!
//!     let (mut sender, connection) = client::conn::http1::handshake(HyperIo::new(TcpStream::connect(address).await?)).await?;
//!     miniloop::spawn(connection).detach();
//!     let request = Request::get("/").header("host", "localhost").body(Empty::<Bytes>::new())?;
//!     let response = sender.send_request(request).await?;
//!     assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
//!     Ok::<(), Box<dyn std::error::Error>>(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ::hyper::rt::{Executor, Read, ReadBufCursor, Sleep, Timer, Write};
use futures_io::{AsyncRead, AsyncWrite};

use crate::clock;
use crate::config::HYPER_READ_LEN;
use crate::engine::context;
use crate::engine::word::Word;
use crate::instant::Instant;
use crate::task::spawn;

/// A stream of miniloop, or any with the traits of `futures-io`, as hyper wants it.
///
/// After an upgrade the stream comes back by `without_shutdown` of hyper's connection, along with what has been read of the new protocol:
/// `with_upgrades` wants streams that may leave their thread. On a stream of another crate that cannot write several slices at once, have
/// hyper put each answer together first (`writev(false)`), or head and body go out apart.
///
/// # Cancellation
/// As that of the stream: this holds no bytes.
#[derive(Clone, Copy, Default)]
pub struct HyperIo<S> {
    stream: S,
}

impl<S> HyperIo<S> {
    /// Wraps a stream.
    pub const fn new(stream: S) -> HyperIo<S> {
        HyperIo { stream }
    }

    /// The stream.
    pub const fn get_ref(&self) -> &S {
        &self.stream
    }

    /// The stream, to keep.
    pub fn into_inner(self) -> S {
        self.stream
    }
}

thread_local! {
    /// Where bytes arrive before hyper takes them, which costs copying what has come; the alternative is to zero all of hyper's buffer. One
    /// for all connections of the thread. It is taken out while it is used, since a stream is foreign code.
    static ARRIVALS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl<S: AsyncRead + Unpin> Read for HyperIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut arrivals = ARRIVALS.take();
        arrivals.resize(HYPER_READ_LEN, 0);
        let len = buffer.remaining().min(arrivals.len());
        let polled = Pin::new(&mut self.stream).poll_read(cx, &mut arrivals[..len]);
        if let Poll::Ready(Ok(filled)) = polled {
            // A stream that says that it has filled more than it was given is not believed.
            buffer.put_slice(&arrivals[..filled.min(len)]);
        }
        ARRIVALS.set(arrivals);
        polled.map_ok(|_| ())
    }
}

impl<S: AsyncWrite + Unpin> Write for HyperIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }

    /// `futures-io` does not say. The sockets of this crate, and TLS over them, write several slices at once; a stream that does not writes
    /// the first.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}

impl<S: fmt::Debug> fmt::Debug for HyperIo<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HyperIo").field(&self.stream).finish()
    }
}

/// Runs the tasks of hyper's HTTP/2 on the running loop, to which they belong: a panic of one is reported. A request that is being answered
/// ends with its connection.
///
/// # Panics
/// Outside a loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct HyperExecutor;

impl<F: Future<Output = ()> + 'static> Executor<F> for HyperExecutor {
    fn execute(&self, future: F) {
        spawn(future).named("hyper").detach();
    }
}

/// hyper's timeouts in the time of the running loop: in virtual time where that is virtual, of the loop on which it was made.
#[derive(Clone, Copy, Debug)]
pub struct HyperTimer {
    /// One moment on both clocks: hyper counts in the standard library's instants.
    std_origin: std::time::Instant,
    origin: Instant,
}

impl HyperTimer {
    /// # Panics
    /// Outside a loop.
    #[expect(clippy::new_without_default, reason = "it reads a clock, and may panic")]
    #[track_caller]
    pub fn new() -> HyperTimer {
        HyperTimer { std_origin: clock::std_now(), origin: context::current().now() }
    }
}

impl Timer for HyperTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        Box::pin(Nap { deadline: context::current().now() + duration, armed: None })
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Nap { deadline: self.origin + deadline.saturating_duration_since(self.std_origin), armed: None })
    }

    fn now(&self) -> std::time::Instant {
        self.std_origin + (context::current().now() - self.origin)
    }
}

/// A sleep that may be sent, as hyper wants it, though it is used by one loop: it owns numbers only. Dropped on another thread it leaves
/// its deadline to pass.
struct Nap {
    deadline: Instant,
    /// The number of its loop, and its timer there.
    armed: Option<(u64, Word)>,
}

impl Sleep for Nap {}

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let core = context::current();
        let polled = match self.armed {
            None => {
                self.armed = Some((core.number, core.arm_waker(self.deadline, cx.waker().clone())));
                Poll::Pending
            }
            Some((home, word)) => {
                context::check_home(home, "time limit of hyper");
                core.poll_armed(word, self.deadline, cx)
            }
        };
        context::waiting_for(&"a time limit of hyper", polled)
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        if let Some((_, word)) = self.armed {
            let removed = context::resident(word.loop_id()).map(|core| core.remove(word));
            drop(removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::rt::ReadBuf;

    use super::*;

    #[test]
    fn one_read_brings_16_kib_at_most() {
        let mut io = HyperIo::new(&[7; 64 * 1_024][..]);
        let mut bytes = [0; 64 * 1_024];
        let mut buffer = ReadBuf::new(&mut bytes);
        assert!(Pin::new(&mut io).poll_read(&mut Context::from_waker(std::task::Waker::noop()), buffer.unfilled()).is_ready());
        assert_eq!(buffer.filled().len(), 16 * 1_024);
    }
}
