//! A stream that does what a script says, and futures that are polled by hand: whoever drops one in the middle and asks again must find
//! every byte.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use futures_util::{AsyncRead, AsyncWrite};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// So many bytes, at most.
    Move(usize),
    Pend,
    Fail(ErrorKind),
}

/// A stream that moves bytes as its script says; without a script, as many as are asked for.
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    /// What a reader gets, and what a writer has given.
    pub(crate) bytes: VecDeque<u8>,
    steps: VecDeque<Step>,
    /// What was called beside reads and writes.
    pub(crate) calls: String,
}

impl Scripted {
    pub(crate) fn new(bytes: &[u8], steps: impl IntoIterator<Item = Step>) -> Scripted {
        Scripted { bytes: bytes.iter().copied().collect(), steps: steps.into_iter().collect(), calls: String::new() }
    }

    /// How many of `asked` bytes move now.
    fn step(&mut self, cx: &mut Context<'_>, asked: usize) -> Poll<io::Result<usize>> {
        match self.steps.pop_front() {
            Some(Step::Pend) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Step::Fail(kind)) => Poll::Ready(Err(kind.into())),
            Some(Step::Move(len)) => Poll::Ready(Ok(len.min(asked))),
            None => Poll::Ready(Ok(asked)),
        }
    }
}

impl AsyncRead for Scripted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let asked = buffer.len().min(self.bytes.len());
        self.step(cx, asked).map_ok(|len| {
            buffer.iter_mut().zip(self.bytes.drain(..len)).for_each(|(place, byte)| *place = byte);
            len
        })
    }
}

impl AsyncWrite for Scripted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.step(cx, bytes.len()).map_ok(|len| {
            self.bytes.extend(&bytes[..len]);
            len
        })
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let bytes = slices.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<_>>();
        self.as_mut().poll_write(cx, &bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let asked = self.bytes.len();
        self.step(cx, asked).map_ok(|_| self.calls.push_str("flush "))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let asked = self.bytes.len();
        self.step(cx, asked).map_ok(|_| self.calls.push_str("close "))
    }
}

/// Polls once, outside any task.
pub(crate) fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

pub(crate) fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
    poll(future).is_pending()
}

/// The value of a future that does not wait.
#[track_caller]
pub(crate) fn now<T>(mut future: impl Future<Output = T> + Unpin) -> T {
    match poll(&mut future) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

/// Polls a future at most `patience` times, then drops it and makes it anew, until one is done. (A function could not borrow again.)
macro_rules! impatiently {
    ($patience:expr, $make:expr) => {
        'done: loop {
            let mut future = $make;
            for _ in 0..$patience {
                if let std::task::Poll::Ready(value) = crate::scripted::poll(&mut future) {
                    break 'done value;
                }
            }
        }
    };
}

pub(crate) use impatiently;

/// Random scripts that do not fail.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(prop_oneof![(1..9_usize).prop_map(Step::Move), Just(Step::Pend)], 0..40)
}
