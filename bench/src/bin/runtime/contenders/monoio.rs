//! monoio: io_uring where the kernel allows it, else epoll, as its `FusionDriver` chooses. Next: `contenders/compio.rs`.
//!
//! Its channel is that of local-sync, by the same authors, its mutex that of async-lock. Buffers are given and come back.

use std::future::Future;
use std::time::Duration;

use async_lock::Mutex;
use futures_util::stream::{FuturesUnordered, StreamExt};
use local_sync::mpsc::bounded;
use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};
use monoio::{FusionDriver, RuntimeBuilder};

use crate::contract::Runtime;

pub(crate) struct Monoio;

/// What it uses here.
pub(crate) fn driver() -> &'static str {
    if monoio::utils::detect_uring() { "io_uring" } else { "epoll" }
}

impl Runtime for Monoio {
    type Task<T: Send + 'static> = monoio::task::JoinHandle<T>;
    type Sender = bounded::Tx<u64>;
    type Receiver = bounded::Rx<u64>;
    type Mutex = Mutex<()>;
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn block_on<F: Future>(future: F) -> F::Output {
        let builder = RuntimeBuilder::<FusionDriver>::new().enable_timer();
        builder.build().expect("a runtime can be made").block_on(future)
    }

    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        monoio::spawn(future)
    }

    fn detach(task: Self::Task<()>) {
        drop(task);
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        monoio::time::sleep(duration)
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
            let (read, filled) = stream.read(buffer).await;
            let Ok(1..) = read else { return };
            let (written, mut empty) = stream.write_all(filled).await;
            if written.is_err() {
                return;
            }
            empty.clear();
            buffer = empty;
        }
    }
}
