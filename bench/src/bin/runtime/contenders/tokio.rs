//! tokio: the current-thread runtime and its plain `spawn`. Next: `contenders/smol.rs`.

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{JoinHandle, JoinSet};

use crate::assume_send::AssumeSend;
use crate::contract::{Joined, Runtime};

pub(crate) struct Tokio;

impl Runtime for Tokio {
    type Task<T: Send + 'static> = Joined<JoinHandle<T>>;
    type Sender = mpsc::Sender<u64>;
    type Receiver = mpsc::Receiver<u64>;
    type Mutex = Mutex<()>;
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn block_on<F: Future>(future: F) -> F::Output {
        Builder::new_current_thread().enable_all().build().expect("a runtime can be made").block_on(future)
    }

    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        Joined(tokio::spawn(AssumeSend::new(future)))
    }

    fn detach(task: Self::Task<()>) {
        drop(task);
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        tokio::time::sleep(duration)
    }

    fn channel(capacity: usize) -> (Self::Sender, Self::Receiver) {
        mpsc::channel(capacity)
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("the receiver lives");
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
        let mut set = JoinSet::new();
        for member in members {
            set.spawn(AssumeSend::new(member));
        }
        let mut sum = 0;
        while let Some(value) = set.join_next().await {
            sum += value.expect("a task of a benchmark neither panics nor is cancelled");
        }
        sum
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
        let mut buffer = vec![0; buffer_len];
        while let Ok(len @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..len]).await.is_err() {
                return;
            }
        }
    }
}
