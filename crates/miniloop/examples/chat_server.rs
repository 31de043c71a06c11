//! A chat server in the small, with nothing but miniloop: who connects says a name, and from then on everybody hears what everybody says.
//!
//! `cargo run -p miniloop --example chat_server`, then `nc 127.0.0.1 PORT` in two other windows; Ctrl-C ends it. The real one is `relay`.

use std::error::Error;
use std::io;
use std::rc::Rc;

use miniloop::io::{BufReader, BufWriter};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::sync::broadcast::{Receiver, RecvError, Sender, broadcast};
use miniloop::{signal, spawn, task_group};

fn main() -> Result<(), Box<dyn Error>> {
    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?; // port 0: a free one
        println!("listening on {}", listener.local_addr()?);
        // Who does not keep up loses lines, after a thousand: nobody waits for the slowest.
        let (room, _) = broadcast(1_000);
        task_group(async |group| {
            group.spawn_service(welcome(listener, room)); // stopped when the body has ended; if it fails, so does the group
            signal::ctrl_c().await
        })
        .await?;
        println!("bye");
        Ok(())
    })?
}

async fn welcome(listener: TcpListener, room: Sender<Rc<str>>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        spawn(converse(stream, room.clone())).detach();
    }
}

/// One member, from their name to the end of their connection.
async fn converse(stream: TcpStream, room: Sender<Rc<str>>) -> Result<(), Box<dyn Error>> {
    let mut reader = BufReader::with_limit(1_000, &stream);
    let Some(name) = reader.read_line().await? else { return Ok(()) };
    let news = room.subscribe();
    let say = |text: String| room.send(Rc::from(text));
    let conversation = task_group(async |group| {
        // It borrows the stream. A service: it is cancelled when the member has left.
        group.spawn_service(tell(&stream, news));
        let _heard_by_all = say(format!("{name} has come\n"));
        while let Some(line) = reader.read_line().await? {
            let _heard_by_all = say(format!("{name}: {line}\n"));
        }
        Ok::<(), io::Error>(())
    });
    let result = conversation.await;
    let _heard_by_all = say(format!("{name} has left\n"));
    Ok(result?)
}

/// Tells a member what is said. Each line is in memory once, however many hear it.
async fn tell(stream: &TcpStream, mut news: Receiver<Rc<str>>) -> io::Result<()> {
    let mut writer = BufWriter::new(stream);
    loop {
        match news.recv().await {
            Ok(line) => writer.write_all(line).await?,
            Err(RecvError::Lagged(count)) => writer.write_all(format!("({count} lines are lost)\n")).await?,
            Err(RecvError::Closed) => return writer.close().await,
        }
        // Lines that come together go together.
        if news.is_empty() {
            writer.flush().await?;
        }
    }
}
