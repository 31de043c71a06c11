//! compio: io_uring, with the flags of its documentation that cost the least here. Next: `contenders/floor.rs`.
//!
//! Its mutex is that of synchrony, by the same authors; its channel is the fastest for one thread, local-sync's. Buffers are given and
//! come back.

use std::future::Future;
use std::time::Duration;

use compio::BufResult;
use compio::driver::ProactorBuilder;
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use compio::runtime::{JoinHandle, RuntimeBuilder};
use futures_util::stream::{FuturesUnordered, StreamExt};
use local_sync::mpsc::bounded;
use synchrony::unsync::mutex::Mutex;

use crate::contract::{Joined, Runtime};

pub(crate) struct Compio;

/// What it uses here.
pub(crate) fn driver() -> String {
    compio::runtime::Runtime::new().map_or_else(|error| error.to_string(), |runtime| format!("{:?}", runtime.driver_type()))
}

impl Runtime for Compio {
    type Task<T: Send + 'static> = Joined<JoinHandle<T>>;
    type Sender = bounded::Tx<u64>;
    type Receiver = bounded::Rx<u64>;
    type Mutex = Mutex<()>;
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn block_on<F: Future>(future: F) -> F::Output {
        let mut proactor = ProactorBuilder::new();
        proactor.single_issuer(true).defer_taskrun(true);
        RuntimeBuilder::new().with_proactor(proactor).build().expect("a runtime can be made").block_on(future)
    }

    /// Not as a task: one that waits for another one makes compio ask the kernel each time, which costs a hundred times as much.
    fn run<T: Send + 'static>(future: impl Future<Output = T> + 'static) -> T {
        Self::block_on(future)
    }

    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        Joined(compio::runtime::spawn(future))
    }

    fn detach(task: Self::Task<()>) {
        task.0.detach();
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        compio::time::sleep(duration)
    }

    fn channel(capacity: usize) -> (Self::Sender, Self::Receiver) {
        bounded::channel(capacity)
    }

    async fn send(sender: &Self::Sender, value: u64) {
        assert!(sender.send(value).await.is_ok(), "the receiver lives");
    }

    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await
    }

    fn mutex() -> Self::Mutex {
        Mutex::new(())
    }

    async fn locked<F: Future>(mutex: &Self::Mutex, body: F) -> F::Output {
        let _guard = mutex.lock().await;
        body.await
    }

    async fn group<F: Future<Output = u64> + 'static>(members: impl Iterator<Item = F>) -> u64 {
        members.collect::<FuturesUnordered<F>>().fold(0, async |sum, value| sum + value).await
    }

    fn listen(listener: std::net::TcpListener) -> TcpListener {
        TcpListener::from_std(listener).expect("the runtime can watch a listener")
    }

    async fn accept(listener: &TcpListener) -> TcpStream {
        let (stream, _) = listener.accept().await.expect("a connection can be accepted");
        let _ = stream.set_nodelay(true);
        stream
    }

    async fn echo(mut stream: TcpStream, buffer_len: usize) {
        let mut buffer = Vec::with_capacity(buffer_len);
        loop {
            let BufResult(read, filled) = stream.read(buffer).await;
            let Ok(1..) = read else { return };
            let BufResult(written, mut empty) = stream.write_all(filled).await;
            if written.is_err() {
                return;
            }
            empty.clear();
            buffer = empty;
        }
    }
}
