//! Whole conversations over the kernel, and bytes that go from one stream to another.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_util::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use miniloop::io::{BufReader, BufWriter, PipeReader, copy, copy_bidirectional, pipe, write_all};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{spawn, yield_now};

use crate::scripted::{Scripted, Step, now};

/// Runs `body` on a loop with two connections, each with both ends.
fn connected(body: impl AsyncFnOnce([(TcpStream, TcpStream); 2])) {
    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut pairs = Vec::new();
        for _ in 0..2 {
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            pairs.push((client, listener.accept().await.unwrap().0));
        }
        body(pairs.try_into().unwrap()).await;
    })
    .unwrap();
}

#[test]
fn what_is_written_before_the_close_arrives_b33() {
    connected(async |[(client, mut server), _]| {
        let sent = spawn(async move {
            let mut writer = BufWriter::new(client);
            for _ in 0..64 {
                writer.write_all(vec![7; 64 * 1_024]).await?;
            }
            writer.close().await
        });
        let mut received = Vec::new();
        server.read_to_end(&mut received).await.unwrap();
        assert_eq!(received.len(), 4 * 1_024 * 1_024);
        sent.await.unwrap().unwrap();
    });
}

#[test]
fn a_loop_that_writes_and_drains_ends_when_the_peer_has_gone_b33() {
    connected(async |[(client, server), _]| {
        drop(server);
        let mut writer = BufWriter::new(client);
        let error = loop {
            if let Err(error) = writer.write(b"more") {
                break error;
            }
            if let Err(error) = writer.drain().await {
                break error;
            }
        };
        assert!(matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error}");
        // One that ignores errors does not hold the loop.
        let ignorant = spawn(async move {
            loop {
                let _ignored = (writer.write(b"more"), writer.drain().await);
            }
        });
        yield_now().await;
        drop(ignorant);
    });
}

#[test]
fn ending_our_direction_leaves_the_other_one_open_c158() {
    connected(async |[(client, server), _]| {
        let mut question = BufWriter::new(&client);
        question.write_all("what?").await.unwrap();
        question.close().await.unwrap();
        let (mut asked, mut answer) = (BufReader::new(&server), BufWriter::new(&server));
        assert_eq!(asked.read_to_end(99).await.unwrap(), b"what?");
        answer.write_all("that").await.unwrap();
        answer.close().await.unwrap();
        assert_eq!(BufReader::new(&client).read_to_end(99).await.unwrap(), b"that");
    });
}

#[test]
fn a_proxy_passes_both_directions_and_their_ends() {
    connected(async |[(client, near), (far, server)]| {
        let proxy = spawn(async move { copy_bidirectional(&near, &far).await });
        let served = spawn(async move {
            let question = BufReader::new(&server).read_to_end(10_000_000).await.unwrap();
            write_all(&server, &question[..3]).await.unwrap();
            question.len()
        });
        let mut writer = BufWriter::new(&client);
        for _ in 0..30 {
            writer.write_all(vec![b'q'; 100_000]).await.unwrap();
        }
        writer.close().await.unwrap();
        assert_eq!(BufReader::new(&client).read_to_end(99).await.unwrap(), b"qqq");
        assert_eq!(served.await.unwrap(), 3_000_000);
        assert_eq!(proxy.await.unwrap().unwrap(), (3_000_000, 3));
    });
}

/// A stream that always has something to say, takes everything, and never waits.
#[derive(Default)]
struct Endless {
    taken_len: Rc<Cell<usize>>,
}

impl AsyncRead for Endless {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buffer.len()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.taken_len.set(self.taken_len.get() + bytes.len());
        Poll::Ready(Ok(bytes.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// How many of its 64 operations a task has spent when `body` is done, which does not wait.
fn spent_by(body: impl AsyncFnOnce() + 'static) -> usize {
    miniloop::run(async {
        let left = Rc::new(Cell::new(0));
        let counter = left.clone();
        let spending = spawn(async move {
            body().await;
            loop {
                write_all(&mut Vec::new(), b"x").await.unwrap();
                counter.set(counter.get() + 1);
            }
        });
        yield_now().await;
        drop(spending);
        64 - left.get()
    })
    .unwrap()
}

/// A stream of ours that has `bytes` and then ends.
async fn ours(bytes: &[u8]) -> PipeReader {
    let (reader, mut writer) = pipe().unwrap();
    writer.write(bytes).await.unwrap();
    writer.close().await.unwrap();
    reader
}

#[test]
fn an_operation_counts_once_whoever_made_the_stream_o10() {
    // The first is what it takes to have a stream of ours.
    let ours_cost = spent_by(async || drop(ours(b"x").await));
    let check = |expected: usize, cost: usize, body: &str| assert_eq!(cost, expected, "{body}");
    check(1, spent_by(async || drop(BufReader::new(&b"x"[..]).read_exact(1).await.unwrap())), "a read, theirs");
    check(1 + ours_cost, spent_by(async || drop(BufReader::new(ours(b"x").await).read_exact(1).await.unwrap())), "a read, ours");
    let direct = async || assert_eq!(BufReader::new(ours(b"x").await).read(&mut [0; 10_000]).await.unwrap(), 1);
    check(1 + ours_cost, spent_by(direct), "a read past the buffer, ours");
    check(3, spent_by(async || assert_eq!(copy(&b"x"[..], &mut Vec::new()).await.unwrap(), 1)), "two reads and a write, theirs");
    let copied = async || {
        let (_reader, mut writer) = pipe().unwrap();
        assert_eq!(copy(&mut ours(b"x").await, &mut writer).await.unwrap(), 1);
    };
    check(3 + ours_cost, spent_by(copied), "two reads and a write, ours");
    let written = async || {
        let (_reader, writer) = pipe().unwrap();
        let mut writer = BufWriter::new(writer);
        writer.write("x").unwrap();
        writer.flush().await.unwrap();
        write_all(writer.get_mut(), b"x").await.unwrap();
    };
    check(2, spent_by(written), "two writes, ours");
}

#[test]
fn a_flood_in_one_direction_neither_holds_the_loop_nor_starves_the_other_o10() {
    miniloop::run(async {
        let (mut a, mut b) = (Endless::default(), Endless::default());
        let taken = [a.taken_len.clone(), b.taken_len.clone()];
        let proxy = spawn(async move { copy_bidirectional(&mut a, &mut b).await });
        for _ in 0..4 {
            yield_now().await;
        }
        drop(proxy);
        assert!(taken.iter().all(|taken| taken.get() > 0), "{taken:?}");
    })
    .unwrap();
}

#[test]
fn a_copy_counts_flushes_while_it_waits_and_does_not_close() {
    let mut source = Scripted::new(&[7; 100_000], [Step::Move(10), Step::Pend, Step::Move(60_000), Step::Fail(ErrorKind::TimedOut)]);
    let mut sink = Scripted::new(b"", [Step::Move(1), Step::Pend]);
    let mut copied = Box::pin(copy(&mut source, &mut sink));
    let error = loop {
        if let Poll::Ready(result) = copied.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            break result.unwrap_err();
        }
    };
    drop(copied);
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!((sink.bytes.len(), sink.calls.as_str()), (10 + 16 * 1_024, "flush "), "16 KiB at a time");
    assert_eq!(now(Box::pin(copy(&mut source, &mut sink))).unwrap(), 100_000 - 10 - 16 * 1_024);
    assert_eq!(sink.bytes.len(), 100_000);
    assert_eq!(sink.calls, "flush flush ");
}
