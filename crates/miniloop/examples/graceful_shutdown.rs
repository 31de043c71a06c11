//! A server that ends well: on a signal it takes no new connection, tells each client, and gives them a moment.
//!
//! `cargo run -p miniloop --example graceful_shutdown`, `nc` to the port that it prints, type a line, then Ctrl-C here. Next: `redis.rs`

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use futures_util::{FutureExt, select};
use miniloop::io::{BufReader, BufWriter};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{EventLoop, GroupError, catch, signal, task_group};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // How long clients have for their goodbye. Who takes longer is cut off, and reported.
    let mut event_loop = EventLoop::builder().grace(Duration::from_secs(2)).build()?;
    event_loop.run_until_complete(serve())??;
    println!("nobody is left");
    Ok(())
}

async fn serve() -> Result<(), GroupError<io::Error>> {
    task_group(async |clients| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        println!("listening on {}", listener.local_addr()?);
        let mut interrupted = Box::pin(signal::ctrl_c().fuse());
        loop {
            select! {
                accepted = listener.accept() => {
                    let (stream, address) = accepted?;
                    clients.spawn(client(stream)).named(format!("client {address}")).isolate();
                }
                interrupt = interrupted => {
                    interrupt?;
                    println!("stopping");
                    clients.cancel(); // asks every client's task; the group ends when all have
                    return Ok(());
                }
            }
        }
    })
    .await
}

async fn client(stream: TcpStream) -> io::Result<()> {
    let mut writer = BufWriter::new(&stream);
    // The conversation is what can be stopped; the goodbye is not.
    match catch(converse(&stream, &mut writer)).await {
        Ok(result) => result,
        Err(cleanup) => {
            // The same writer: what an answer still lacks goes out first.
            writer.write_all("the server stops, goodbye\n").await?;
            writer.close().await?;
            cleanup.finish();
            Ok(())
        }
    }
}

async fn converse(stream: &TcpStream, writer: &mut BufWriter<&TcpStream>) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    while let Some(line) = lines.read_line().await? {
        writer.write_all(format!("you said {line}\n")).await?;
        writer.flush().await?;
    }
    writer.close().await
}
