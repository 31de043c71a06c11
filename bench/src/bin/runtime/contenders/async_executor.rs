//! async-executor: its `Executor`, leaked as its documentation advises for speed. What it does not have is as with smol.
//! Next: `contenders/monoio.rs`.

use std::future::Future;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use async_executor::{Executor, StaticExecutor, Task};
use async_io::{Async, Timer};
use async_lock::Mutex;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{AsyncReadExt, AsyncWriteExt};

use crate::assume_send::AssumeSend;
use crate::contract::{Runtime, prepare};

pub(crate) struct AsyncExecutor;

thread_local! {
    static EXECUTOR: &'static StaticExecutor = Executor::new().leak();
}

impl Runtime for AsyncExecutor {
    type Task<T: Send + 'static> = Task<T>;
    type Sender = async_channel::Sender<u64>;
    type Receiver = async_channel::Receiver<u64>;
    type Mutex = Mutex<()>;
    type Listener = Async<TcpListener>;
    type Stream = Async<TcpStream>;

    fn block_on<F: Future>(future: F) -> F::Output {
        let executor = EXECUTOR.with(|executor| *executor);
        async_io::block_on(executor.run(future))
    }

    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        EXECUTOR.with(|executor| executor.spawn(AssumeSend::new(future)))
    }

    fn detach(task: Self::Task<()>) {
        task.detach();
    }

    async fn sleep(duration: Duration) {
        Timer::after(duration).await;
    }

    fn channel(capacity: usize) -> (Self::Sender, Self::Receiver) {
        async_channel::bounded(capacity)
    }

    async fn send(sender: &Self::Sender, value: u64) {
        sender.send(value).await.expect("the receiver lives");
    }

    async fn receive(receiver: &mut Self::Receiver) -> Option<u64> {
        receiver.recv().await.ok()
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

    fn listen(listener: TcpListener) -> Self::Listener {
        Async::new(listener).expect("the reactor can watch a listener")
    }

    async fn accept(listener: &Self::Listener) -> Self::Stream {
        let (stream, _) = listener.accept().await.expect("a connection can be accepted");
        prepare(stream.get_ref());
        stream
    }

    async fn echo(mut stream: Self::Stream, buffer_len: usize) {
        let mut buffer = vec![0; buffer_len];
        while let Ok(len @ 1..) = stream.read(&mut buffer).await {
            if stream.write_all(&buffer[..len]).await.is_err() {
                return;
            }
        }
    }
}
