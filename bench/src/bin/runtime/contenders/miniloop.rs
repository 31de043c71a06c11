//! miniloop, as its documentation says. Next: `contenders/tokio.rs`.

use std::cell::Cell;
use std::future::Future;
use std::time::Duration;

use miniloop::net::{TcpListener, TcpStream};
use miniloop::sync::Mutex;
use miniloop::sync::channel::{Receiver, Sender};

use crate::contract::{Joined, Runtime};

pub(crate) struct Miniloop;

impl Runtime for Miniloop {
    type Task<T: Send + 'static> = Joined<miniloop::Task<T>>;
    type Sender = Sender<u64>;
    type Receiver = Receiver<u64>;
    type Mutex = Mutex<()>;
    type Listener = TcpListener;
    type Stream = TcpStream;

    fn block_on<F: Future>(future: F) -> F::Output {
        miniloop::run(future).expect("an event loop can be made and nobody stops it")
    }

    fn spawn<F>(future: F) -> Self::Task<F::Output>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        Joined(miniloop::spawn(future))
    }

    fn detach(task: Self::Task<()>) {
        task.0.detach();
    }

    fn sleep(duration: Duration) -> impl Future<Output = ()> + 'static {
        miniloop::sleep(duration)
    }

    fn channel(capacity: usize) -> (Self::Sender, Self::Receiver) {
        miniloop::sync::channel(capacity)
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
        let sum = Cell::new(0);
        let add = async |member: F| {
            let value = member.await;
            sum.set(sum.get() + value);
        };
        miniloop::task_group(async |group| {
            for member in members {
                group.spawn(add(member));
            }
        })
        .await;
        sum.get()
    }

    fn listen(listener: std::net::TcpListener) -> TcpListener {
        TcpListener::from_std(listener).expect("the loop can watch a listener")
    }

    async fn accept(listener: &TcpListener) -> TcpStream {
        let (stream, _) = listener.accept().await.expect("a connection can be accepted");
        let _ = stream.set_nodelay(true);
        stream
    }

    async fn echo(stream: TcpStream, buffer_len: usize) {
        let mut buffer = vec![0; buffer_len];
        while let Ok(len @ 1..) = stream.read(&mut buffer).await {
            if miniloop::io::write_all(&stream, &buffer[..len]).await.is_err() {
                return;
            }
        }
    }
}
