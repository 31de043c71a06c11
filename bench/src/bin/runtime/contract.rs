//! What a program may ask of a contender: the least that all of them have, so that everybody runs the same source text.
//!
//! A method is what the contender's own documentation names for the purpose; where it has nothing (a channel, say), what its users take.
//! Generic code costs nothing here: each program is compiled once for each contender. Next: `assume_send.rs`.

use std::future::{Future, poll_fn};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A runtime whose tasks run on one thread, from inside. All but the first two are called inside those.
pub(crate) trait Runtime: 'static {
    /// Awaiting it gives what the task has returned.
    type Task<T: Send + 'static>: Future<Output = T>;

    type Sender: 'static;
    type Receiver: 'static;

    type Mutex: 'static;

    type Listener: 'static;
    type Stream: 'static;

    /// Runs a future to its end, and meanwhile what it spawns, on a runtime of this thread.
    fn block_on<F: Future>(future: F) -> F::Output;

    /// Runs what measures: as a task, since what runs beside it is tasks too.
    fn run<T: Send + 'static>(future: impl Future<Output = T> + 'static) -> T {
        Self::block_on(async { Self::spawn(future).await })
    }

    /// `Send` is what some ask of the output though nothing leaves the thread; what they ask of the future: see `assume_send.rs`.
    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future + 'static,
        F::Output: Send + 'static;

    /// Lets a task go on without anybody who waits for it.
    fn detach(task: Self::Task<()>);

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static;

    /// Bounded, with one producer and one consumer.
    fn channel(capacity: usize) -> (Self::Sender, Self::Receiver);
    async fn send(sender: &Self::Sender, value: u64);
    async fn receive(receiver: &mut Self::Receiver) -> Option<u64>;

    fn mutex() -> Self::Mutex;
    /// Runs a future while the lock is held.
    async fn locked<F: Future>(mutex: &Self::Mutex, body: F) -> F::Output;

    /// Runs all members at once and returns the sum of what they return, when all have ended.
    async fn group<F: Future<Output = u64> + 'static>(members: impl Iterator<Item = F>) -> u64;

    /// The listener does not block.
    fn listen(listener: TcpListener) -> Self::Listener;
    async fn accept(listener: &Self::Listener) -> Self::Stream;
    /// Sends back what it receives, through one buffer of this length, until the peer is done or gone.
    async fn echo(stream: Self::Stream, buffer_len: usize);
}

/// Is woken by itself and polled again, as with `yield_now` of futures-lite.
///
/// `tokio::task::yield_now` is not this: it polls the driver before the task runs again, which costs it a system call where nobody else
/// runs, and would compare different things. monoio polls who has woken itself at once; everybody else lets the others run first.
pub(crate) async fn give_way() {
    let mut is_first = true;
    poll_fn(|cx| {
        if std::mem::take(&mut is_first) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// The handle of a task that cannot fail here, for contenders whose handles say that it could.
pub(crate) struct Joined<H>(pub(crate) H);

impl<T, E: std::fmt::Debug, H: Future<Output = Result<T, E>> + Unpin> Future for Joined<H> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        Pin::new(&mut self.0).poll(cx).map(|result| result.expect("a task of a benchmark neither panics nor is cancelled"))
    }
}

/// What every contender does with a connection that it has accepted, so that small answers leave at once.
pub(crate) fn prepare(stream: &TcpStream) {
    // The peer may have gone already, which the first read says as well.
    let _ = stream.set_nodelay(true);
}
