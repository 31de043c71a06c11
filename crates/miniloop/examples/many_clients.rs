//! Many conversations on one thread: 200 clients, each with a connection of its own, and their server.
//!
//! Nothing here is locked and nothing is shared between threads: there is one. A task runs until it waits, so between two `await`s it is
//! alone, and plain cells are enough to count.
//!
//! `cargo run -p miniloop --example many_clients`; next: `inside_epoll.rs`

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use futures_util::{AsyncReadExt, AsyncWriteExt};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{Task, spawn};

const CLIENTS: u32 = 200;
const MESSAGES: u32 = 10;

fn main() -> Result<(), Box<dyn Error>> {
    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?;
        let served = Rc::new(Cell::new(0));
        let server = spawn(serve(listener, served.clone()));

        let clients: Vec<Task<io::Result<u32>>> = (0..CLIENTS).map(|number| spawn(talk(address, number))).collect();
        let mut answers = 0;
        for client in clients {
            answers += client.await??; // the task did not fail (first `?`), nor did its connection (second)
        }
        println!("{CLIENTS} clients got {answers} answers; the server saw {} messages", served.get());

        // The server would go on for ever. Dropping its handle cancels it, and the connections that it owns with it.
        drop(server);
        Ok(())
    })?
}

/// Doubles each number that it is sent. It owns its connections: when it goes, they go.
async fn serve(listener: TcpListener, served: Rc<Cell<u32>>) -> io::Result<()> {
    let mut connections = Vec::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.retain(|connection: &Task<_>| !connection.is_finished());
        connections.push(spawn(double(stream, served.clone())));
    }
}

async fn double(mut stream: TcpStream, served: Rc<Cell<u32>>) -> io::Result<()> {
    let mut number = [0; 4];
    while stream.read_exact(&mut number).await.is_ok() {
        served.set(served.get() + 1);
        stream.write_all(&(2 * u32::from_be_bytes(number)).to_be_bytes()).await?;
    }
    Ok(())
}

/// One client: asks, waits for the answer, asks again.
async fn talk(address: SocketAddr, number: u32) -> io::Result<u32> {
    let mut stream = TcpStream::connect(address).await?;
    for message in 0..MESSAGES {
        let question = number * MESSAGES + message;
        stream.write_all(&question.to_be_bytes()).await?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await?;
        assert_eq!(u32::from_be_bytes(answer), 2 * question);
    }
    Ok(MESSAGES)
}
