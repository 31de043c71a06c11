//! TCP over the real kernel. Nothing sleeps: each step waits for what it needs.

use std::cell::Cell;
use std::io::{ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::{AsyncReadExt, AsyncWriteExt, FutureExt, StreamExt, future};
use miniloop::net::{TcpListener, TcpStream, UnixStream};
use miniloop::{sock_sendall, spawn, yield_now};
use rustix::net::{AddressFamily, SocketType};

use super::{event_loop, on_a_loop};

/// Runs `body` on a loop of its own with the two ends of a connection.
fn connected(body: impl AsyncFnOnce(TcpStream, TcpStream)) {
    on_a_loop(async |_| {
        let listener = TcpListener::bind(any_port()).unwrap();
        let (client, server) = connect(&listener).await;
        body(client, server).await;
    });
}

async fn connect(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, address) = listener.accept().await.unwrap();
    assert_eq!(address, client.local_addr().unwrap());
    (client, server)
}

/// A socket that does not listen, so that nobody else gets its port.
fn bound_socket() -> (OwnedFd, SocketAddr) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &any_port()).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Polls once, outside any task.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

// Bytes.

#[test]
fn small_pieces_are_sent_at_once_unless_somebody_says_otherwise() {
    connected(async |client, server| {
        assert!(client.nodelay().unwrap() && server.nodelay().unwrap());
        client.set_nodelay(false).unwrap();
        assert!(!client.nodelay().unwrap());
    });
}

#[test]
fn bytes_go_through_every_interface() {
    connected(async |mut client, mut server| {
        let mut buffer = [0; 8];
        client.write_all(b"traits").await.unwrap();
        server.read_exact(&mut buffer[..6]).await.unwrap();
        assert_eq!(&buffer[..6], b"traits");

        (&server).write_all(b"borrowed").await.unwrap();
        (&client).read_exact(&mut buffer).await.unwrap();
        assert_eq!(&buffer, b"borrowed");

        assert_eq!(client.write(b"line").await.unwrap(), 4);
        assert_eq!(server.read(&mut buffer).await.unwrap(), 4);

        assert_eq!(client.try_write_vectored(&[IoSlice::new(b"t"), IoSlice::new(b""), IoSlice::new(b"ry")]).unwrap(), 3);
        server.readable().await.unwrap();
        assert_eq!(server.try_read(&mut buffer).unwrap(), 3);
        assert_eq!(&buffer[..3], b"try");
        assert_eq!(server.try_read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);

        let (mut reader, mut writer) = client.split();
        writer.write_all(b"halves").await.unwrap();
        server.write_all(b"back").await.unwrap();
        reader.read_exact(&mut buffer[..4]).await.unwrap();
        assert_eq!(&buffer[..4], b"back");
    });
}

#[test]
fn more_slices_than_the_kernel_takes_are_written_in_part() {
    connected(async |mut client, mut server| {
        let slices = vec![IoSlice::new(b"x"); 3_000];
        assert_eq!(client.try_write_vectored(&slices).unwrap(), 1_024);
        assert_eq!(client.write_vectored(&slices).await.unwrap(), 1_024);
        assert_eq!(client.write(b"y").await.unwrap(), 1, "it was not taken for a full connection");
        client.close().await.unwrap();
        let mut bytes = Vec::new();
        server.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes.len(), 2_049);
    });
}

/// Makes attempts that fail at once, and asserts that somebody else runs in between.
async fn check_gives_way<R>(mut attempt: impl AsyncFnMut() -> std::io::Result<R> + 'static) {
    let attempts = Rc::new(Cell::new(0));
    let counted = attempts.clone();
    let retries = spawn(async move {
        for _ in 0..1_000 {
            attempt().await.err().expect("it fails");
            counted.set(counted.get() + 1);
        }
    });
    yield_now().await;
    assert!((1..=64).contains(&attempts.get()), "{} attempts at once", attempts.get());
    drop(retries);
}

#[test]
fn who_tries_again_and_again_what_fails_does_not_hold_the_loop_o10() {
    on_a_loop(async |_| {
        check_gives_way(async || TcpStream::connect("nowhere").await).await;
        check_gives_way(async || UnixStream::connect("/no/such/socket").await).await;
        check_gives_way(async || UnixStream::connect("x".repeat(1_000)).await).await;
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        check_gives_way(async move || ours.write(b"x").await).await;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        drop(theirs);
        check_gives_way(async move || sock_sendall(&ours, b"x").await).await;
    });
}

#[test]
fn after_64_system_calls_the_next_round_begins_with_a_poll_o10() {
    on_a_loop(async |handle| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.write(&[0; 640]).await.unwrap();
        let before = handle.stats();
        let reader = spawn(async move {
            for _ in 0..640 {
                ours.read(&mut [0]).await.unwrap();
            }
        });
        reader.await.unwrap();
        let after = handle.stats();
        assert!(after.jobs - before.jobs < 64, "few jobs, so that these are not the reason");
        assert!(after.turns - before.turns >= 9, "{} turns", after.turns - before.turns);
    });
}

#[test]
fn a_connection_that_is_full_becomes_writable_when_the_peer_reads() {
    connected(async |client, server| {
        let mut sent = 0;
        let block = vec![7; 1 << 16];
        loop {
            match client.try_write(&block) {
                Ok(len) => sent += len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let mut writable = client.writable();
        assert!(poll_once(&mut writable).is_pending());
        let drain = async {
            let mut left = sent;
            let mut buffer = vec![0; 1 << 16];
            while left > 0 {
                left -= server.read(&mut buffer).await.unwrap();
            }
        };
        let (room, ()) = future::join(writable, drain).await;
        room.unwrap();
        assert!(client.try_write(b"x").is_ok());
    });
}

#[test]
fn a_large_message_arrives_whole_through_partial_writes() {
    connected(async |client, mut server| {
        let message: Vec<u8> = (0..4_000_000u32).map(|n| n as u8).collect();
        let (_reader, mut writer) = client.into_split();
        let mut received = Vec::new();
        let send = async {
            writer.write_all(&message).await.unwrap();
            drop(writer); // ends the direction
        };
        let (_, received_len) = future::join(send, server.read_to_end(&mut received)).await;
        assert_eq!(received_len.unwrap(), message.len());
        assert!(received == message);
    });
}

// Ends.

#[test]
fn one_direction_can_end_while_the_other_goes_on() {
    connected(async |mut client, server| {
        client.close().await.unwrap();
        let mut buffer = [0; 8];
        for _ in 0..3 {
            assert_eq!(server.read(&mut buffer).await.unwrap(), 0, "the end can be read again and again");
        }
        assert_eq!(server.write(b"still here").await.unwrap(), 10);
        assert_eq!(client.read(&mut buffer).await.unwrap(), 8);
        assert_eq!(client.try_write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn the_end_is_read_behind_the_last_bytes() {
    connected(async |client, server| {
        let mut buffer = [0; 8];
        // A reader that waits is told of bytes and end at once: its short read must not make it forget the end.
        let mut read = server.read(&mut buffer);
        assert!(poll_once(&mut read).is_pending());
        client.write(b"last").await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read.await.unwrap(), 4);
        assert_eq!(server.read(&mut buffer).await.unwrap(), 0);
    });
}

#[test]
fn without_linger_the_peer_sees_a_reset_and_later_writes_fail() {
    connected(async |client, server| {
        server.set_linger(Some(Duration::ZERO)).unwrap();
        drop(server);
        assert_eq!(client.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(client.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert!((&client).close().await.is_ok(), "closing what has gone is no error");
    });
}

#[test]
fn a_refused_connection_is_an_error() {
    on_a_loop(async |_| {
        let (_silent, address) = bound_socket();
        assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_connection_that_nobody_answers_is_waited_for_and_can_be_given_up() {
    on_a_loop(async |_| {
        let (silent, address) = bound_socket();
        rustix::net::listen(&silent, 0).unwrap();
        let _fills_the_queue = TcpStream::connect(address).await.unwrap();
        let mut connecting = pin!(TcpStream::connect(address));
        assert!(poll_once(&mut connecting).is_pending());
        yield_now().await; // a turn of the loop, with what the kernel has to say at first
        assert!(poll_once(&mut connecting).is_pending());
    });
}

// Waiting.

#[test]
fn polling_again_without_an_event_makes_no_system_call() {
    connected(async |client, server| {
        let mut byte = [0];
        let mut read = server.read(&mut byte);
        assert!(poll_once(&mut read).is_pending());
        client.write(b"x").await.unwrap();
        assert!(poll_once(&mut read).is_pending(), "the loop has not been asked yet");
        assert_eq!(read.await.unwrap(), 1);
    });
}

#[test]
fn readers_that_wait_are_served_in_line() {
    connected(async |client, server| {
        let server = Rc::new(server);
        let read_one = |server: Rc<TcpStream>| async move {
            let mut byte = [0];
            server.read(&mut byte).await.unwrap();
            byte[0]
        };
        let readers = [(); 3].map(|()| spawn(read_one(server.clone())));
        yield_now().await; // all of them wait now
        client.write(b"abc").await.unwrap();
        let mut bytes = Vec::new();
        for reader in readers {
            bytes.push(reader.await.unwrap());
        }
        assert_eq!(bytes, b"abc");
    });
}

#[test]
fn a_reader_that_gives_up_takes_nothing_with_it() {
    connected(async |client, server| {
        let (mut first, mut second) = ([0; 4], [0; 4]);
        let mut given_up = server.read(&mut first);
        assert!(poll_once(&mut given_up).is_pending());
        client.write(b"data").await.unwrap();
        server.readable().await.unwrap(); // both are woken by the same event
        drop(given_up);
        assert_eq!(server.read(&mut second).await.unwrap(), 4);
    });
}

#[test]
fn a_task_whose_every_operation_succeeds_gives_way_after_64_of_them_o10() {
    connected(async |client, _server| {
        let rounds = Rc::new(Cell::new(0));
        let counter = rounds.clone();
        let other = spawn(async move {
            loop {
                yield_now().await;
                counter.set(counter.get() + 1);
            }
        });
        let busy = spawn(async move {
            for _ in 0..10 * 64 {
                client.write(b"x").await.unwrap();
            }
        });
        busy.await.unwrap();
        assert!((9..=10).contains(&rounds.get()), "{} rounds", rounds.get());
        drop(other);
    });
}

// Listeners.

#[test]
fn a_listener_is_a_stream_of_connections() {
    on_a_loop(async |_| {
        let listener = TcpListener::bind(any_port()).unwrap();
        let address = listener.local_addr().unwrap();
        let clients = future::try_join_all((0..100).map(|_| TcpStream::connect(address))).await.unwrap();
        let mut servers: Vec<_> = listener.incoming().take(99).collect().await;
        servers.push(listener.try_accept().map(|(server, _)| server));
        assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        for (client, server) in clients.iter().zip(&servers) {
            assert_eq!(client.local_addr().unwrap(), server.as_ref().unwrap().peer_addr().unwrap());
        }
    });
}

/// python/cpython #153761.
#[test]
fn a_connection_that_comes_while_accept_is_cancelled_is_not_lost_b24() {
    on_a_loop(async |_| {
        let listener = TcpListener::bind(any_port()).unwrap();
        let woken = Arc::new(Flag(AtomicBool::new(false)));
        let mut cancelled = listener.accept();
        assert!(cancelled.poll_unpin(&mut Context::from_waker(&woken.clone().into())).is_pending());
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        while !woken.0.load(Ordering::Relaxed) {
            yield_now().await;
        }
        drop(cancelled); // woken for the connection, and gone before it looks
        let (_server, address) = listener.accept().await.unwrap();
        assert_eq!(address, client.local_addr().unwrap());
    });
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_port_can_be_taken_again_at_once() {
    on_a_loop(async |_| {
        let listener = TcpListener::bind(any_port()).unwrap();
        let address = listener.local_addr().unwrap();
        let (client, server) = connect(&listener).await;
        drop((server, listener)); // the side that closes first keeps the port in TIME_WAIT
        drop(client);
        TcpListener::bind(address).unwrap();
    });
}

// Whose a stream is.

#[test]
fn a_stream_takes_no_callback_but_its_duplicate_does() {
    on_a_loop(async |handle| {
        let listener = TcpListener::bind(any_port()).unwrap();
        let (client, server) = connect(&listener).await;
        let error = handle.add_reader(&server, || ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(!handle.remove_reader(&server));

        let duplicate = server.as_fd().try_clone_to_owned().unwrap();
        let (resolver, promise) = miniloop::promise::<(), miniloop::Abandoned>();
        let mut resolver = Some(resolver);
        handle
            .add_reader(&duplicate, move || {
                if let Some(resolver) = resolver.take() {
                    resolver.set_result(());
                }
            })
            .unwrap();
        client.write(b"x").await.unwrap();
        promise.await.unwrap();
        assert!(handle.remove_reader(&duplicate));
        assert_eq!(server.read(&mut [0]).await.unwrap(), 1);
    });
}

#[test]
fn a_stream_can_go_to_the_standard_library_and_back() {
    on_a_loop(async |handle| {
        let listener = TcpListener::bind(any_port()).unwrap();
        let (client, server) = connect(&listener).await;
        let client = TcpStream::from_std(client.into_std()).unwrap();
        client.write(b"x").await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 1);

        let server = server.into_std();
        handle.add_reader(&server, || ()).expect("it is no object of this crate any more");
        let error = TcpStream::from_std(server).unwrap_err();
        assert!(error.to_string().contains("remove its reader"), "{error}");
    });
}

#[test]
#[should_panic(expected = "belongs to event loop")]
fn a_stream_polled_under_another_loop_panics_and_names_both() {
    let mut first = event_loop();
    let mut second = event_loop();
    let listener = first.run_until_complete(async { TcpListener::bind(any_port()).unwrap() }).unwrap();
    second.run_until_complete(async { drop(listener.accept().await) }).unwrap();
}

#[test]
fn a_stream_that_outlives_its_loop_fails_instead_of_hanging() {
    let mut event_loop = event_loop();
    let (client, server) = event_loop
        .run_until_complete(async {
            let listener = TcpListener::bind(any_port()).unwrap();
            connect(&listener).await
        })
        .unwrap();
    drop(event_loop);
    let mut buffer = [0];
    let Poll::Ready(Err(error)) = poll_once(&mut server.read(&mut buffer)) else { panic!("it waits for a closed loop") };
    assert!(error.to_string().contains("closed"), "{error}");
    drop((client, server));
}
