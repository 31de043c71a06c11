//! Connections, datagrams, and descriptors of others.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use futures_util::StreamExt;
use miniloop::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use miniloop::{Readiness, sleep, sock_accept, sock_connect, sock_recv, sock_sendall, spawn, yield_now};
use rustix::net::{AddressFamily, SocketType};

use crate::harness::{Facility, at, check, facility};
use crate::support::ms;

fn any_port() -> std::net::SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A connection, made by the kernel at once.
fn connect_now(address: std::net::SocketAddr) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::connect(&socket, &address).unwrap();
    socket
}

fn connections() -> Vec<Facility> {
    vec![
        facility("TcpListener: accept, incoming", async |p| {
            let listener = TcpListener::bind(any_port()).unwrap();
            let address = listener.local_addr().unwrap();
            let clients = Rc::new(RefCell::new(Vec::new()));
            for time in [1, 3, 5] {
                let clients = clients.clone();
                at(time, move || clients.borrow_mut().push(connect_now(address)));
            }
            let accepted = RefCell::new(Vec::new());
            p.take(async {
                for _ in 0..2 {
                    let (stream, _) = listener.accept().await.unwrap();
                    accepted.borrow_mut().push(stream);
                }
                let stream = listener.incoming().next().await.unwrap().unwrap();
                accepted.borrow_mut().push(stream);
            })
            .await;
            while accepted.borrow().len() < 3 {
                let (stream, _) = listener.accept().await.unwrap();
                accepted.borrow_mut().push(stream);
            }
            let mut peers: Vec<_> = accepted.borrow().iter().map(|stream| stream.peer_addr().unwrap()).collect();
            peers.dedup();
            assert_eq!(peers.len(), 3);
        }),
        facility("UnixListener: accept; UnixStream: connect", async |p| {
            let folder = tempfile();
            let listener = Rc::new(UnixListener::bind(folder.path("socket")).unwrap());
            let server = spawn({
                let listener = listener.clone();
                async move {
                    sleep(ms(1)).await;
                    listener.accept().await.unwrap().0
                }
            });
            p.take(async {
                yield_now().await;
                let client = UnixStream::connect(folder.path("socket")).await.unwrap();
                yield_now().await;
                drop(client);
                listener.accept().await.unwrap();
            })
            .await;
            // Whoever still waits gets somebody.
            let _clients = [0; 2].map(|_| spawn(UnixStream::connect(folder.path("socket"))));
            server.await.unwrap();
        }),
        facility("TcpStream: connect", async |p| {
            let listener = TcpListener::bind(any_port()).unwrap();
            let stream = p
                .take(async {
                    yield_now().await;
                    TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                    TcpStream::connect(&[listener.local_addr().unwrap()][..]).await.unwrap()
                })
                .await;
            drop(stream);
        }),
        facility("sock_accept, sock_connect", async |p| {
            let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            rustix::net::bind(&listener, &any_port()).unwrap();
            rustix::net::listen(&listener, 8).unwrap();
            rustix::io::ioctl_fionbio(&listener, true).unwrap();
            let address: std::net::SocketAddr = rustix::net::getsockname(&listener).unwrap().try_into().unwrap();
            let clients = Rc::new(RefCell::new(Vec::new()));
            let kept = clients.clone();
            at(1, move || kept.borrow_mut().push(connect_now(address)));
            let own = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            rustix::io::ioctl_fionbio(&own, true).unwrap();
            let accepted = Cell::new(0);
            p.take(async {
                sock_accept(&listener).await.unwrap();
                accepted.set(1);
                sock_connect(&own, address).await.unwrap();
                sock_accept(&listener).await.unwrap();
                accepted.set(2);
            })
            .await;
            if accepted.get() == 0 {
                sock_accept(&listener).await.unwrap();
            }
        }),
        facility("sock_recv, Readiness: readable, read_with", async |p| {
            let (stream, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
            stream.set_nonblocking(true).unwrap();
            let other = Readiness::new(stream.try_clone().unwrap()).unwrap();
            let mut second = peer.try_clone().unwrap();
            at(1, move || peer.write_all(b"ab").unwrap());
            at(3, move || second.write_all(b"c").unwrap());
            let (got, mut buffer) = (RefCell::new(Vec::new()), [0; 1]);
            let read = |stream: &std::os::unix::net::UnixStream, buffer: &mut [u8]| rustix::io::read(stream, buffer).map_err(Into::into);
            p.take(async {
                for _ in 0..3 {
                    other.readable().await.unwrap();
                    let len = other.read_with(|stream| read(stream, &mut buffer)).await.unwrap();
                    got.borrow_mut().extend_from_slice(&buffer[..len]);
                }
                let (sender, receiver) = std::os::unix::net::UnixStream::pair().unwrap();
                receiver.set_nonblocking(true).unwrap();
                at(1, move || rustix::io::write(&sender, b"d").ok()); // nobody may wait any more
                sock_recv(&receiver, &mut buffer).await.unwrap();
                other.writable().await.unwrap();
                other.write_with(|stream| rustix::io::write(stream, b"x").map_err(Into::into)).await.expect_err("the peer has gone");
            })
            .await;
            while got.borrow().len() < 3 {
                let len = other.read_with(|stream| read(stream, &mut buffer)).await.unwrap();
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            assert_eq!(got.take(), b"abc");
        }),
        facility("sock_recv", async |p| {
            let (stream, mut peer) = std::os::unix::net::UnixStream::pair().unwrap();
            stream.set_nonblocking(true).unwrap();
            let mut second = peer.try_clone().unwrap();
            at(1, move || peer.write_all(b"ab").unwrap());
            at(3, move || second.write_all(b"c").unwrap());
            let (got, mut buffer) = (RefCell::new(Vec::new()), [0; 1]);
            p.take(async {
                while let Ok(len @ 1..) = sock_recv(&stream, &mut buffer).await {
                    got.borrow_mut().extend_from_slice(&buffer[..len]);
                }
            })
            .await;
            while let Ok(len @ 1..) = sock_recv(&stream, &mut buffer).await {
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            assert_eq!(got.take(), b"abc");
        }),
        // How much was sent is not known when the future is dropped.
        facility("sock_sendall: may have sent a part", async |p| {
            let (stream, peer) = std::os::unix::net::UnixStream::pair().unwrap();
            stream.set_nonblocking(true).unwrap();
            peer.set_nonblocking(true).unwrap();
            let peer = Rc::new(peer);
            for time in 1..=4 {
                let peer = peer.clone();
                at(time, move || while rustix::io::read(&peer, &mut [0; 1 << 16]).is_ok_and(|len| len > 0) {});
            }
            p.take(async {
                sock_sendall(&stream, &vec![7; 500_000]).await.unwrap();
            })
            .await;
        }),
    ]
}

fn datagrams() -> Vec<Facility> {
    vec![
        facility("UdpSocket: recv_from, recv, peek, readable, send_to, send", async |p| {
            let (socket, peer) = (UdpSocket::bind(any_port()).unwrap(), Rc::new(UdpSocket::bind(any_port()).unwrap()));
            let address = socket.local_addr().unwrap();
            for (message, time) in [("a", 1), ("bc", 3), ("d", 5)] {
                let peer = peer.clone();
                at(time, move || peer.try_send_to(message.as_bytes(), address).unwrap());
            }
            let (got, mut buffer) = (RefCell::new(Vec::new()), [0; 8]);
            p.take(async {
                let (len, _) = socket.recv_from(&mut buffer).await.unwrap();
                got.borrow_mut().push(buffer[..len].to_vec());
                socket.readable().await.unwrap();
                let len = socket.recv(&mut buffer).await.unwrap();
                got.borrow_mut().push(buffer[..len].to_vec());
                socket.peek(&mut buffer).await.unwrap();
                let len = socket.recv(&mut buffer).await.unwrap();
                got.borrow_mut().push(buffer[..len].to_vec());
                socket.send_to(b"x", peer.local_addr().unwrap()).await.unwrap();
            })
            .await;
            while got.borrow().len() < 3 {
                let len = socket.recv(&mut buffer).await.unwrap();
                got.borrow_mut().push(buffer[..len].to_vec());
            }
            assert_eq!(got.take(), [b"a".to_vec(), b"bc".to_vec(), b"d".to_vec()]);
        }),
        facility("UnixDatagram: send, send_to, recv", async |p| {
            let (socket, peer) = UnixDatagram::pair().unwrap();
            let sent = Cell::new(0);
            let got = spawn(async move {
                let (mut got, mut buffer) = (0, vec![0; MESSAGE_LEN]);
                loop {
                    sleep(ms(1)).await;
                    while let Ok(len) = peer.try_recv(&mut buffer) {
                        if len < MESSAGE_LEN {
                            return got;
                        }
                        assert_eq!(buffer[0], got);
                        got += 1;
                    }
                }
            });
            p.take(async {
                while sent.get() < 10 {
                    socket.writable().await.unwrap();
                    socket.send(&vec![sent.get(); MESSAGE_LEN]).await.unwrap();
                    sent.set(sent.get() + 1);
                }
            })
            .await;
            socket.send(b"no number").await.unwrap();
            assert_eq!(got.await.unwrap(), sent.get());
        }),
    ]
}

/// The kernel takes a few of these.
const MESSAGE_LEN: usize = 50_000;

/// A folder of its own that goes with the value.
fn tempfile() -> Folder {
    thread_local!(static NEXT: Cell<u32> = const { Cell::new(0) });
    NEXT.set(NEXT.get() + 1);
    let path = std::env::temp_dir().join(format!("miniloop-every-poll-{}-{}", std::process::id(), NEXT.get()));
    std::fs::create_dir(&path).unwrap();
    Folder(path)
}

struct Folder(std::path::PathBuf);

impl Folder {
    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn connections_are_not_lost_at_any_poll_c147_b24() {
    check(&connections());
}

#[test]
fn datagrams_are_not_lost_at_any_poll_c12() {
    check(&datagrams());
}
