//! A Redis client in the small: commands go out in order, answers come back in order, so many can be under way at once (pipelining).
//!
//! `cargo run -p miniloop --example redis -- 127.0.0.1:6379`, with a `redis-server` there. Next: `http_server.rs`

use std::env;
use std::io;

use miniloop::io::{BufReader, BufWriter};
use miniloop::net::TcpStream;

/// What Redis answers.
#[derive(Debug, PartialEq)]
enum Answer {
    Text(String),
    Number(i64),
    Nothing,
    List(Vec<Answer>),
    Error(String),
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = env::args().nth(1).ok_or("where? redis ADDRESS:PORT")?;
    miniloop::run(async {
        let stream = TcpStream::connect(address.as_str()).await?;
        let (mut reader, mut writer) = (BufReader::new(&stream), BufWriter::new(&stream));
        // Ten commands in one write, ten answers.
        for n in 1..=8 {
            send(&mut writer, &["RPUSH", "miniloop:squares", &(n * n).to_string()])?;
        }
        send(&mut writer, &["LRANGE", "miniloop:squares", "0", "-1"])?;
        send(&mut writer, &["DEL", "miniloop:squares"])?;
        writer.flush().await?;
        for _ in 0..8 {
            receive(&mut reader).await?;
        }
        println!("{:?}", receive(&mut reader).await?);
        println!("{:?}", receive(&mut reader).await?);
        // An error is an answer like any other.
        send(&mut writer, &["NOSUCH"])?;
        writer.flush().await?;
        println!("an error: {}", matches!(receive(&mut reader).await?, Answer::Error(_)));
        Ok(())
    })?
}

/// Queues a command: an array of strings, each with its length.
fn send(writer: &mut BufWriter<&TcpStream>, words: &[&str]) -> io::Result<()> {
    writer.write(format!("*{}\r\n", words.len()))?;
    words.iter().try_for_each(|word| writer.write(format!("${}\r\n{word}\r\n", word.len())))
}

async fn receive(reader: &mut BufReader<&TcpStream>) -> io::Result<Answer> {
    let line = reader.read_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::InvalidData)?;
    let number = || rest.parse::<i64>().map_err(io::Error::other);
    Ok(match kind {
        "+" => Answer::Text(rest.to_owned()),
        "-" => Answer::Error(rest.to_owned()),
        ":" => Answer::Number(number()?),
        "$" | "*" if number()? < 0 => Answer::Nothing,
        "$" => {
            let mut bytes = reader.read_exact(number()? as usize + 2).await?;
            bytes.truncate(bytes.len() - 2);
            Answer::Text(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => {
            let mut list = Vec::new();
            for _ in 0..number()? {
                list.push(Box::pin(receive(reader)).await?);
            }
            Answer::List(list)
        }
        _ => return Err(io::Error::other(format!("not an answer of Redis: {line}"))),
    })
}
