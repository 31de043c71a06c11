//! A TCP server in the small: it sends back what it receives, line breaks or not.
//!
//! `cargo run -p miniloop --example echo_server`, then `nc 127.0.0.1 PORT` in another window; Ctrl-C ends it. Next: `many_clients.rs`

use std::io;

use futures_util::{AsyncWriteExt, FutureExt, select};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{signal, spawn};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?; // port 0: a free one
        println!("listening on {}", listener.local_addr()?);

        let mut interrupted = Box::pin(signal::ctrl_c().fuse());
        loop {
            // Whichever comes first. No connection is lost if the other one wins: it is taken from the kernel when it is returned.
            select! {
                connection = listener.accept() => {
                    let (stream, address) = connection?;
                    // One task for each connection. Detached: it belongs to the loop, which cancels it when `main` ends. What it
                    // returns is an outcome, so an error is reported, not lost.
                    spawn(echo(stream)).named(format!("echo {address}")).detach();
                }
                interrupt = interrupted => {
                    interrupt?;
                    println!("bye");
                    return Ok(());
                }
            }
        }
    })?
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4_096];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return stream.close().await, // the peer has said all it wanted to say
            len => stream.write_all(&buffer[..len]).await?,
        }
    }
}
