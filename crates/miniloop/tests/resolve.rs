//! Names, and connections to hosts that have several addresses.

mod support;

use std::future::Future;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use miniloop::net::{TcpStream, resolve};
use rustix::net::{AddressFamily, SocketType};

fn run<T>(future: impl Future<Output = T>) -> T {
    miniloop::run(future).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "somebody who is not on the loop listens")]
fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// An address at which nobody listens, and the socket that keeps it so.
fn nobody() -> (OwnedFd, SocketAddr) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = rustix::net::getsockname(&socket).unwrap().try_into().unwrap();
    (socket, address)
}

#[test]
fn a_literal_address_is_resolved_at_once_and_without_a_loop() {
    for (host, expected) in [("127.0.0.1", "127.0.0.1:80"), ("::1", "[::1]:80")] {
        let Poll::Ready(found) = pin!(resolve(host, 80)).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
        assert_eq!(found.unwrap(), [expected.parse().unwrap()]);
    }
}

#[test]
fn a_name_is_resolved_to_each_of_its_addresses_once_c146() {
    let found = run(resolve("localhost", 80)).unwrap();
    assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
    assert!((1..=2).contains(&found.len()), "{found:?}");
}

#[test]
fn a_name_that_cannot_be_is_an_error_that_names_it_c146() {
    // Longer than any name: no server is asked.
    let name = "a".repeat(300);
    let error = run(resolve(&name, 80)).unwrap_err();
    assert!(error.to_string().starts_with(&format!("cannot resolve `{name}`: ")), "{error}");
    assert!(run(resolve("a\0b", 80)).is_err());
}

#[test]
fn an_error_names_the_host_also_when_nobody_could_be_asked() {
    let mut event_loop = miniloop::EventLoop::new().unwrap();
    let (told, errors) = std::sync::mpsc::channel();
    let asks_too_late = support::on_drop(move || {
        let Poll::Ready(found) = pin!(resolve("localhost", 80)).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
        told.send(found.unwrap_err().to_string()).unwrap();
    });
    event_loop.handle().call_soon(move || drop(asks_too_late));
    event_loop.close();
    let error = errors.recv().unwrap();
    assert!(error.starts_with("cannot resolve `localhost`: the blocking job"), "{error}");
}

#[test]
fn a_connection_is_made_to_whatever_names_the_listener_c146() {
    let (listener, address) = listener();
    run(async {
        let port = address.port();
        let (_keeps, refuses) = nobody();
        let streams = [
            TcpStream::connect(address).await.unwrap(),
            TcpStream::connect(format!("localhost:{port}")).await.unwrap(),
            TcpStream::connect(("localhost", port)).await.unwrap(),
            TcpStream::connect(&*format!("127.0.0.1:{port}")).await.unwrap(),
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap(),
            TcpStream::connect(&[refuses, address][..]).await.unwrap(),
        ];
        assert!(streams.iter().all(|stream| stream.peer_addr().unwrap() == address));
        drop(listener);
    });
}

#[test]
fn when_all_refuse_the_error_names_each_and_when_one_does_it_is_the_systems_c146_c152() {
    let [(_keeps, first), (_keeps_too, second)] = [nobody(), nobody()];
    let error = run(TcpStream::connect(vec![first, second])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let text = error.to_string();
    assert!(text.starts_with("cannot connect to any of 2 addresses: "), "{text}");
    assert!(text.contains(&format!("{first}: ")) && text.contains(&format!("{second}: ")), "{text}");
    let error = run(TcpStream::connect(first)).unwrap_err();
    assert!(error.raw_os_error().is_some() && error.kind() == ErrorKind::ConnectionRefused);
}

#[test]
fn what_is_no_place_is_invalid_input() {
    let error = run(TcpStream::connect("localhost")).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::InvalidInput, "`localhost` is no place to connect to: write HOST:PORT")
    );
    let error = run(TcpStream::connect(Vec::new())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
