//! Bytes in order: streams, and what is buffered on top of them.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;

use futures_util::{AsyncReadExt, AsyncWriteExt, StreamExt};
use miniloop::io::{BufReader, BufWriter, copy, copy_bidirectional, pipe, write_all};
use miniloop::net::{TcpListener, TcpStream, UnixStream};
use miniloop::{Task, sleep, spawn};

use crate::harness::{Facility, at, check, facility};
use crate::support::ms;

async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    (client, server)
}

/// Writes the pieces, one every second millisecond, then ends.
fn write_later(stream: UnixStream, pieces: &[&'static str]) {
    let stream = Rc::new(stream);
    for (index, &piece) in pieces.iter().enumerate() {
        let stream = stream.clone();
        // The reader may have gone.
        at(2 * index as u64 + 1, move || stream.try_write(piece.as_bytes()).ok());
    }
}

/// Reads everything, slowly.
fn read_slowly(mut stream: impl futures_util::AsyncRead + Unpin + 'static) -> Task<Vec<u8>> {
    spawn(async move {
        let (mut got, mut buffer) = (Vec::new(), vec![0; 1 << 17]);
        loop {
            sleep(ms(1)).await;
            match stream.read(&mut buffer).await {
                Ok(0) => return got,
                Ok(len) => got.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return got,
                Err(error) => panic!("{error}"),
            }
        }
    })
}

const PIECE_LEN: usize = 150_000;

/// Whole pieces, in order: as many as were taken, or one more, which was being taken.
#[track_caller]
fn check_pieces(got: &[u8], taken: u8) {
    assert_eq!(got.len() % PIECE_LEN, 0, "no piece is torn");
    let pieces: Vec<u8> = got.chunks(PIECE_LEN).map(|piece| piece[0]).collect();
    assert!(got.chunks(PIECE_LEN).all(|piece| piece.iter().all(|&byte| byte == piece[0])));
    assert_eq!(pieces, (0..pieces.len() as u8).collect::<Vec<_>>());
    assert!(pieces.len() as u8 == taken || pieces.len() as u8 == taken + 1, "{taken} were taken, {} came", pieces.len());
}

fn bytes() -> Vec<Facility> {
    vec![
        facility("TcpStream: read, peek, readable", async |p| {
            let (client, server) = tcp_pair().await;
            let server = Rc::new(server);
            for (piece, time) in [("a", 1), ("bc", 3), ("d", 5)] {
                let server = server.clone();
                at(time, move || server.try_write(piece.as_bytes()).unwrap());
            }
            drop(server);
            let (got, mut buffer) = (RefCell::new(Vec::new()), [0; 8]);
            p.take(async {
                loop {
                    client.readable().await.unwrap();
                    client.peek(&mut buffer).await.unwrap();
                    match client.read(&mut buffer).await.unwrap() {
                        0 => break,
                        len => got.borrow_mut().extend_from_slice(&buffer[..len]),
                    }
                }
            })
            .await;
            while let Ok(len @ 1..) = client.read(&mut buffer).await {
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            assert_eq!(got.take(), b"abcd");
        }),
        facility("UnixStream: peek, read", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            write_later(peer, &["a", "bc", "d"]);
            let (got, mut buffer) = (RefCell::new(Vec::new()), [0; 1]);
            p.take(async {
                while let Ok(1) = stream.peek(&mut buffer).await
                    && let Ok(len @ 1..) = stream.read(&mut buffer).await
                {
                    got.borrow_mut().extend_from_slice(&buffer[..len]);
                }
            })
            .await;
            while let Ok(len @ 1..) = stream.read(&mut buffer).await {
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            assert_eq!(got.take(), b"abcd");
        }),
        facility("UnixStream: write, writable", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            let (read, sent, piece) = (read_slowly(peer), Cell::new(0), vec![7; PIECE_LEN]);
            p.take(async {
                while sent.get() < 4 * PIECE_LEN {
                    stream.writable().await.unwrap();
                    sent.set(sent.get() + stream.write(&piece).await.unwrap());
                }
            })
            .await;
            drop(stream);
            assert_eq!(read.await.unwrap().len(), sent.get());
        }),
        facility("pipe: read, write", async |p| {
            let ((reader, writer), (back, far)) = (pipe().unwrap(), pipe().unwrap());
            let read = read_slowly(back);
            let writer = Rc::new(writer);
            for (piece, time) in [("ab", 1), ("c", 3)] {
                let writer = writer.clone();
                at(time, move || writer.try_write(piece.as_bytes()).unwrap());
            }
            drop(writer);
            let (got, mut buffer, sent, piece) = (RefCell::new(Vec::new()), [0; 2], Cell::new(0), vec![7; PIECE_LEN]);
            p.take(async {
                while let Ok(len @ 1..) = reader.read(&mut buffer).await {
                    got.borrow_mut().extend_from_slice(&buffer[..len]);
                }
                for _ in 0..3 {
                    sent.set(sent.get() + far.write(&piece).await.unwrap());
                }
            })
            .await;
            while let Ok(len @ 1..) = reader.read(&mut buffer).await {
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            drop(far);
            assert_eq!(got.take(), b"abc");
            assert_eq!(read.await.unwrap().len(), sent.get());
        }),
        // What was written is not known when the future is dropped; nor what was read and not yet written.
        facility("write_all, copy, copy_bidirectional: may lose bytes", async |p| {
            let (mut stream, peer) = UnixStream::pair().unwrap();
            let (mut source, feeder) = UnixStream::pair().unwrap();
            let read = read_slowly(peer);
            write_later(feeder, &["a", "bc", "d"]);
            let (mut one, one_peer) = UnixStream::pair().unwrap();
            let (mut other, other_peer) = UnixStream::pair().unwrap();
            write_later(one_peer, &["a", "bc"]);
            write_later(other_peer, &["a"]);
            p.take_from(async {
                write_all(&mut stream, &vec![7; 3 * PIECE_LEN]).await.unwrap();
                copy(&mut source, &mut stream).await.unwrap();
                // Both sides go away, and that is an end or an error.
                let _ = copy_bidirectional(&mut one, &mut other).await;
            })
            .await;
            drop((stream, source));
            read.await.unwrap();
        }),
    ]
}

fn buffered() -> Vec<Facility> {
    vec![
        // The waker of a read through `AsyncRead` stays with the stream, which cannot know that its reader has gone.
        facility("BufReader: read_line", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            write_later(peer, &["one\ntw", "o\nthree", "\nfour"]);
            let (mut reader, got) = (BufReader::new(stream), RefCell::new(Vec::new()));
            p.take_from(async {
                while let Some(line) = reader.read_line().await.unwrap() {
                    got.borrow_mut().push(line);
                }
            })
            .await;
            while let Some(line) = reader.read_line().await.unwrap() {
                got.borrow_mut().push(line);
            }
            assert_eq!(got.take().concat().replace('\n', ""), "onetwothreefour");
        }),
        facility("BufReader: read_exact, read_until, read_until_any, read", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            write_later(peer, &["12", "34a", "b;cd", ",rest"]);
            let (mut reader, got) = (BufReader::new(stream), RefCell::new(Vec::new()));
            p.take_from(async {
                let piece = reader.read_exact(4).await.unwrap();
                got.borrow_mut().extend(piece);
                let piece = reader.read_until(b";").await.unwrap();
                got.borrow_mut().extend(piece);
                let piece = reader.read_until_any(&[",", "!"]).await.unwrap();
                got.borrow_mut().extend(piece);
                let mut buffer = [0; 2];
                let len = reader.read(&mut buffer).await.unwrap();
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            })
            .await;
            let rest = reader.read_to_end(100).await.unwrap();
            got.borrow_mut().extend(rest);
            assert_eq!(String::from_utf8(got.take()).unwrap(), "1234ab;cd,rest");
        }),
        facility("BufReader: read_to_end, fill_buf", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            write_later(peer, &["one", "two"]);
            let mut reader = BufReader::new(stream);
            let got = p
                .take_from(async {
                    reader.fill_buf().await.unwrap();
                    reader.read_to_end(100).await.unwrap()
                })
                .await;
            let got = if let Some(got) = got { got } else { reader.read_to_end(100).await.unwrap() };
            assert_eq!(got, b"onetwo");
        }),
        facility("Lines", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            write_later(peer, &["one\ntw", "o\nthree", "\nfour"]);
            let (mut lines, got) = (BufReader::new(stream).lines(), RefCell::new(Vec::new()));
            p.take_from(async {
                while let Some(line) = lines.next().await {
                    got.borrow_mut().push(line.unwrap());
                }
            })
            .await;
            while let Some(line) = lines.next().await {
                got.borrow_mut().push(line.unwrap());
            }
            assert_eq!(got.take(), ["one", "two", "three", "four"]);
        }),
        facility("BufWriter: write_all, drain, flush, close", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            let (read, taken) = (read_slowly(peer), Cell::new(0));
            let mut writer = BufWriter::with_limits(2 * PIECE_LEN, 10 * PIECE_LEN, stream);
            p.take_from(async {
                for piece in 0..4 {
                    writer.write_all(vec![piece; PIECE_LEN]).await.unwrap();
                    taken.set(piece + 1);
                }
                writer.drain().await.unwrap();
                writer.flush().await.unwrap();
                writer.write(vec![4; PIECE_LEN]).unwrap();
                taken.set(5);
                writer.close().await.unwrap();
            })
            .await;
            writer.close().await.unwrap();
            check_pieces(&read.await.unwrap(), taken.get());
        }),
        facility("halves of a stream", async |p| {
            let (stream, peer) = UnixStream::pair().unwrap();
            let (mut reader, mut writer) = stream.into_split();
            write_later(peer, &["a", "bc"]);
            let (got, mut buffer) = (RefCell::new(Vec::new()), [0; 8]);
            p.take_from(async {
                while let Ok(len @ 1..) = reader.read(&mut buffer).await {
                    got.borrow_mut().extend_from_slice(&buffer[..len]);
                }
            })
            .await;
            while let Ok(len @ 1..) = reader.read(&mut buffer).await {
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            writer.close().await.unwrap();
            assert_eq!(got.take(), b"abc");
        }),
    ]
}

#[test]
fn bytes_are_not_lost_at_any_poll_c12() {
    check(&bytes());
}

#[test]
fn buffered_bytes_are_not_lost_at_any_poll_c12() {
    check(&buffered());
}
