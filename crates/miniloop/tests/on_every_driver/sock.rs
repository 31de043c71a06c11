//! The `sock_*` functions on sockets that the test made, as a user would.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll, Waker};

use futures_util::{FutureExt, future};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{sock_accept, sock_connect, sock_recv, sock_sendall};
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::{event_loop, watched};

/// Runs `body` on a loop of its own. It gets a probe that counts the descriptors that the loop watches.
fn on_a_loop(body: impl AsyncFnOnce(&dyn Fn() -> usize)) {
    let mut event_loop = event_loop();
    let watched = watched(&event_loop);
    event_loop.run_until_complete(body(&watched)).unwrap();
}

fn socket() -> OwnedFd {
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None).unwrap()
}

/// A socket that has an address and does not listen yet.
fn bound_socket() -> (OwnedFd, SocketAddr) {
    let socket = socket();
    rustix::net::bind(&socket, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

fn listening_socket() -> (OwnedFd, SocketAddr) {
    let (socket, address) = bound_socket();
    rustix::net::listen(&socket, 16).unwrap();
    (socket, address)
}

/// Polls once, outside any task.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn what_can_be_done_at_once_needs_no_loop_c144_c145() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"x").unwrap();
    assert!(matches!(poll_once(&mut sock_recv(&ours, &mut [0])), Poll::Ready(Ok(1))));
    assert!(matches!(poll_once(&mut sock_sendall(&ours, b"")), Poll::Ready(Ok(()))));
    assert!(matches!(poll_once(&mut sock_sendall(&ours, b"x")), Poll::Ready(Ok(()))));
}

#[test]
fn a_receiver_waits_for_bytes_and_then_watches_nothing() {
    on_a_loop(async |watched| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut buffer = [0; 8];
        let mut receive = sock_recv(&ours, &mut buffer);
        assert!(poll_once(&mut receive).is_pending());
        assert_eq!(watched(), 1);
        theirs.write_all(b"hello").unwrap();
        assert_eq!(receive.await.unwrap(), 5);
        assert_eq!(watched(), 0);
        drop(theirs);
        assert_eq!(sock_recv(&ours, &mut buffer).await.unwrap(), 0);
    });
}

#[test]
fn sendall_sends_everything_across_partial_writes_c145() {
    on_a_loop(async |watched| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let message: Vec<u8> = (0..4_000_000u32).map(|n| n as u8).collect();
        let receive = async {
            let mut received = Vec::new();
            let mut buffer = vec![0; 1 << 16];
            while received.len() < message.len() {
                let len = sock_recv(&theirs, &mut buffer).await.unwrap();
                received.extend_from_slice(&buffer[..len]);
            }
            received
        };
        let (sent, received) = future::join(sock_sendall(&ours, &message), receive).await;
        sent.unwrap();
        assert!(received == message);
        assert_eq!(watched(), 0);
    });
}

#[test]
fn sending_to_a_peer_that_has_gone_is_an_error_and_no_signal() {
    on_a_loop(async |_| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert_eq!(sock_sendall(&ours, b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn after_a_cancelled_receive_the_next_one_gets_the_data_c148() {
    on_a_loop(async |watched| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut first, mut second) = ([0; 1], [0; 1]);
        let mut cancelled = sock_recv(&ours, &mut first);
        assert!(poll_once(&mut cancelled).is_pending());
        let mut retried = sock_recv(&ours, &mut second);
        assert!(poll_once(&mut retried).is_pending());
        drop(cancelled);
        assert_eq!(watched(), 1, "its clean-up is not the second one's");
        theirs.write_all(b"x").unwrap();
        assert_eq!(retried.await.unwrap(), 1);
        assert_eq!(watched(), 0);
    });
}

#[test]
fn connect_reports_success_and_refusal_c146() {
    on_a_loop(async |watched| {
        let (listener, address) = listening_socket();
        let ours = socket();
        sock_connect(&ours, address).await.unwrap();
        let (theirs, peer) = sock_accept(&listener).await.unwrap();
        assert_eq!(peer, Some(rustix::net::getsockname(&ours).unwrap().try_into().unwrap()));
        sock_sendall(&ours, b"x").await.unwrap();
        assert_eq!(sock_recv(&theirs, &mut [0]).await.unwrap(), 1);

        let (_silent, address) = bound_socket();
        assert_eq!(sock_connect(&socket(), address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(watched(), 0);
    });
}

#[test]
fn a_cancelled_accept_is_unregistered_and_its_connection_stays_for_the_next_b26_c147() {
    on_a_loop(async |watched| {
        let (listener, address) = listening_socket();
        let mut cancelled = sock_accept(&listener);
        assert!(poll_once(&mut cancelled).is_pending());
        assert_eq!(watched(), 1);
        let client = TcpStream::connect(address).await.unwrap();
        drop(cancelled);
        assert_eq!(watched(), 1, "the client alone");
        let (theirs, peer) = sock_accept(&listener).await.unwrap();
        assert_eq!(peer, Some(client.local_addr().unwrap()));
        let flags = rustix::fs::fcntl_getfl(&theirs).unwrap();
        assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    });
}

#[test]
fn an_object_of_this_crate_is_not_for_sock_functions_to_wait_for() {
    on_a_loop(async |_| {
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let error = sock_accept(&listener).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert!(error.to_string().contains("its own methods"), "{error}");
    });
}

#[test]
fn polling_again_without_an_event_makes_no_system_call_and_keeps_the_place() {
    on_a_loop(async |_| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (mut first, mut second) = ([0; 1], [0; 1]);
        let (mut a, mut b) = (sock_recv(&ours, &mut first), sock_recv(&ours, &mut second));
        assert!(poll_once(&mut a).is_pending());
        assert!(poll_once(&mut b).is_pending());
        theirs.write_all(b"x").unwrap();
        assert!(poll_once(&mut a).is_pending(), "the loop has not been asked yet");
        assert_eq!(future::select(b, a).await.factor_first().0.unwrap(), 1);
    });
}

#[test]
#[should_panic(expected = "no event loop is running on this thread")]
fn waiting_outside_a_loop_panics_and_names_the_ways_out() {
    let (ours, _theirs) = UnixStream::pair().unwrap();
    drop(poll_once(&mut sock_recv(&ours, &mut [0])));
}
