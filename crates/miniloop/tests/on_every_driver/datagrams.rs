//! Messages: UDP over IPv4 and IPv6, and Unix sockets.

use std::cell::Cell;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::{FutureExt, future};
use miniloop::net::{UdpSocket, UnixDatagram};
use miniloop::{spawn, yield_now};
use rustix::net::sockopt;

use super::{after_a_wait, event_loop, on_a_loop, watched};

fn udp(address: &str) -> UdpSocket {
    UdpSocket::bind(address.parse().unwrap()).unwrap()
}

fn connected(address: &str) -> (UdpSocket, UdpSocket) {
    let (ours, theirs) = (udp(address), udp(address));
    ours.connect(theirs.local_addr().unwrap()).unwrap();
    theirs.connect(ours.local_addr().unwrap()).unwrap();
    (ours, theirs)
}

/// A name that nobody else uses, without a file.
fn name() -> UnixAddr {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    UnixAddr::from_abstract_name(format!("miniloop-datagrams-{}-{number}", std::process::id())).unwrap()
}

/// Polls once, outside any task.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

// UDP.

#[test]
fn messages_are_echoed_to_whom_they_came_from() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        on_a_loop(async |_| {
            let (server, client) = (udp(address), udp(address));
            let mut buffer = [0; 16];
            assert_eq!(client.send_to(b"ping", server.local_addr().unwrap()).await.unwrap(), 4);
            let (len, sender) = server.recv_from(&mut buffer).await.unwrap();
            assert_eq!((&buffer[..len], sender), (b"ping".as_slice(), client.local_addr().unwrap()));
            assert_eq!(server.try_send_to(b"pong!", sender).unwrap(), 5);
            assert_eq!(client.peek_from(&mut buffer).await.unwrap(), (5, server.local_addr().unwrap()));
            client.readable().await.unwrap();
            assert_eq!(client.try_recv_from(&mut buffer).unwrap(), (5, server.local_addr().unwrap()));
            assert_eq!(client.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
        });
    }
}

#[test]
fn a_connected_socket_hears_its_peer_alone() {
    on_a_loop(async |_| {
        let (ours, theirs) = connected("127.0.0.1:0");
        assert_eq!(ours.peer_addr().unwrap(), theirs.local_addr().unwrap());
        let stranger = udp("127.0.0.1:0");
        assert_eq!(stranger.send(b"x").await.unwrap_err().raw_os_error(), Some(89), "it has no peer");
        stranger.send_to(b"strange", ours.local_addr().unwrap()).await.unwrap();
        theirs.send(b"known").await.unwrap();
        let mut buffer = [0; 16];
        assert_eq!(ours.recv(&mut buffer).await.unwrap(), 5);
        assert_eq!(ours.try_recv(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn that_nobody_is_there_is_one_error_and_then_it_goes_on() {
    on_a_loop(async |_| {
        let (ours, theirs) = connected("127.0.0.1:0");
        let address = theirs.local_addr().unwrap();
        drop(theirs);
        ours.send(b"lost").await.unwrap();
        assert_eq!(ours.recv(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let again = UdpSocket::bind(address).unwrap();
        again.send_to(b"back", ours.local_addr().unwrap()).await.unwrap();
        assert_eq!(ours.recv(&mut [0; 8]).await.unwrap(), 4);
    });
}

#[test]
fn each_message_is_one_also_an_empty_one_and_one_that_is_too_long() {
    on_a_loop(async |_| {
        let (ours, theirs) = connected("127.0.0.1:0");
        let mut buffer = [0; 4];
        let mut recv = theirs.recv(&mut buffer);
        assert!(poll_once(&mut recv).is_pending());
        // One event tells of all of them: that one is shorter than the buffer says nothing of the next.
        for message in [b"".as_slice(), b"1", b"too long", b"4444"] {
            ours.send(message).await.unwrap();
        }
        assert_eq!(recv.await.unwrap(), 0);
        for len in [1, 4, 4] {
            assert_eq!(theirs.recv(&mut buffer).now_or_never().expect("it is there").unwrap(), len);
        }
        assert_eq!(&buffer, b"4444");
        assert!(ours.send(&vec![0; 70_000]).await.is_err(), "no such message can be sent");
    });
}

#[test]
fn a_message_that_comes_while_its_receiver_is_cancelled_is_not_lost_c12() {
    on_a_loop(async |_| {
        let (ours, theirs) = connected("[::1]:0");
        let mut buffer = [0; 8];
        let mut given_up = theirs.recv(&mut buffer);
        assert!(poll_once(&mut given_up).is_pending());
        ours.send(b"kept").await.unwrap();
        theirs.readable().await.unwrap(); // both are woken by the same event
        drop(given_up);
        assert_eq!(theirs.recv(&mut buffer).await.unwrap(), 4);
    });
}

#[test]
fn a_flood_of_messages_does_not_hold_up_the_loop_o10() {
    on_a_loop(async |_| {
        let (ours, theirs) = connected("127.0.0.1:0");
        for _ in 0..100 {
            ours.try_send(b"x").unwrap();
        }
        theirs.readable().await.unwrap();
        let count = Rc::new(Cell::new(0));
        let counting = count.clone();
        let receiving = spawn(async move {
            for _ in 0..100 {
                theirs.recv(&mut [0]).await.unwrap();
                counting.set(counting.get() + 1);
            }
        });
        yield_now().await;
        assert_eq!(count.get(), 64);
        receiving.await.unwrap();
    });
}

#[test]
fn options_are_kept_and_groups_are_heard() {
    on_a_loop(async |_| {
        let socket = udp("0.0.0.0:0");
        assert!(!socket.broadcast().unwrap());
        socket.set_broadcast(true).unwrap();
        socket.set_ttl(7).unwrap();
        socket.set_multicast_ttl_v4(2).unwrap();
        assert!(socket.broadcast().unwrap());
        assert_eq!(socket.ttl().unwrap(), 7);

        let group = Ipv4Addr::new(239, 255, 77, 1);
        socket.join_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        let sender = udp("127.0.0.1:0");
        sockopt::set_ip_multicast_if(&sender, &Ipv4Addr::LOCALHOST).unwrap();
        let to_group = SocketAddr::from((group, socket.local_addr().unwrap().port()));
        sender.send_to(b"to all", to_group).await.unwrap();
        let (len, from) = socket.recv_from(&mut [0; 16]).await.unwrap();
        assert_eq!((len, from), (6, sender.local_addr().unwrap()));
        sender.set_multicast_loop_v4(false).unwrap();
        socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap();
        assert_eq!(socket.leave_multicast_v4(group, Ipv4Addr::LOCALHOST).unwrap_err().kind(), ErrorKind::AddrNotAvailable);

        let socket = udp("[::]:0");
        let group = Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 0x77);
        socket.join_multicast_v6(group, 1).unwrap();
        socket.leave_multicast_v6(group, 1).unwrap();
        assert_eq!(socket.join_multicast_v4(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

#[test]
fn a_socket_can_go_to_the_standard_library_and_back() {
    let mut event_loop = event_loop();
    let watched = watched(&event_loop);
    event_loop
        .run_until_complete(async {
            let before = watched();
            let socket = udp("127.0.0.1:0").into_std();
            let datagram = UnixDatagram::unbound().unwrap().into_std();
            assert_eq!(watched(), before);
            let socket = UdpSocket::try_from(socket).unwrap();
            let _datagram = UnixDatagram::try_from(datagram).unwrap();
            assert_eq!(watched(), before + 2);
            assert_eq!(socket.as_fd().try_clone_to_owned().is_ok(), socket.writable().await.is_ok());
        })
        .unwrap();
}

// Unix sockets.

#[test]
fn messages_within_the_machine_keep_their_order_and_say_who_sent_them() {
    on_a_loop(async |_| {
        let (here, there) = (name(), name());
        let (ours, theirs) = (UnixDatagram::bind_addr(&here).unwrap(), UnixDatagram::bind_addr(&there).unwrap());
        for message in [b"1".as_slice(), b""] {
            ours.send_to_addr(message, &there).await.unwrap();
        }
        assert_eq!(ours.try_send_to_addr(b"333", &there).unwrap(), 3);
        let mut buffer = [0; 2];
        for len in [1, 0, 2] {
            let (received_len, sender) = theirs.recv_from(&mut buffer).await.unwrap();
            assert_eq!((received_len, sender.as_abstract_name()), (len, here.as_abstract_name()));
        }
        theirs.connect_addr(&here).unwrap();
        assert_eq!(theirs.peer_addr().unwrap().as_abstract_name(), here.as_abstract_name());
        theirs.send(b"x").await.unwrap();
        assert_eq!(ours.peek(&mut buffer).await.unwrap(), 1);
        assert_eq!(ours.try_peek(&mut buffer).unwrap(), 1);
        let (_, sender) = ours.try_peek_from(&mut buffer).unwrap();
        assert_eq!(sender.as_abstract_name(), theirs.local_addr().unwrap().as_abstract_name());
        assert_eq!(ours.recv(&mut buffer).await.unwrap(), 1);
        assert_eq!(ours.send_to_addr(b"x", &name()).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(ours.send_to(b"x", "/no/such/place").await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(ours.try_send_to(b"x", "/no/such/place").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(ours.send_to(b"x", "x".repeat(200)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        let (paired, _other) = UnixDatagram::pair().unwrap();
        assert_eq!(paired.peer_cred().unwrap().pid, rustix::process::getpid().as_raw_pid());
    });
}

#[test]
fn a_full_queue_of_the_connected_peer_makes_the_sender_wait() {
    on_a_loop(async |_| {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        while ours.try_send(b"x").is_ok() {}
        let mut send = ours.send(b"last");
        assert!(poll_once(&mut send).is_pending());
        let drain = async {
            let mut buffer = [0; 8];
            while theirs.recv(&mut buffer).await.unwrap() != 4 {}
        };
        future::join(send, drain).await.0.unwrap();
    });
}

/// Fills the queue of a peer, by as many senders as it takes: one's own buffer may be full first. Returns one that has sent nothing.
fn fill(address: &UnixAddr) -> UnixDatagram {
    loop {
        let sender = UnixDatagram::unbound().unwrap();
        sender.connect_addr(address).unwrap();
        if sender.try_send(b"x").is_err() {
            return sender;
        }
        while sender.try_send(b"x").is_ok() {}
    }
}

#[test]
fn a_full_queue_of_any_peer_makes_the_sender_wait_until_there_is_room() {
    on_a_loop(async |_| {
        let there = name();
        let theirs = Rc::new(UnixDatagram::bind_addr(&there).unwrap());
        // Not a byte of what fills it is ours, so nothing happens to our own socket when it is read.
        fill(&there);
        let ours = UnixDatagram::unbound().unwrap();
        let sent = Rc::new(Cell::new(false));
        let is_sent = sent.clone();
        let address = there.clone();
        let sending = spawn(async move {
            ours.send_to_addr(b"last", &address).await.unwrap();
            is_sent.set(true);
        });
        let mut buffer = [0; 8];
        after_a_wait().await;
        assert!(!sent.get());
        while theirs.recv(&mut buffer).await.unwrap() != 4 {}
        sending.await.unwrap();
    });
}

#[test]
fn a_sender_that_loses_the_race_for_room_waits_anew_and_does_not_spin() {
    on_a_loop(async |_| {
        let there = name();
        let theirs = UnixDatagram::bind_addr(&there).unwrap();
        let (ours, other) = (UnixDatagram::unbound().unwrap(), fill(&there));
        let wakes = Arc::new(Wakes(AtomicU32::new(0)));
        let waker = wakes.clone().into();
        let mut cx = Context::from_waker(&waker);
        let mut send = ours.send_to_addr(b"last", &there);
        assert!(send.poll_unpin(&mut cx).is_pending());
        for round in 1..=3 {
            theirs.recv(&mut [0; 8]).await.unwrap();
            after_a_wait().await;
            assert_eq!(wakes.0.load(Ordering::Relaxed), round, "it is told of the room");
            other.try_send(b"x").unwrap();
            assert!(send.poll_unpin(&mut cx).is_pending(), "which somebody else has taken");
            after_a_wait().await;
            assert_eq!(wakes.0.load(Ordering::Relaxed), round);
        }
        theirs.recv(&mut [0; 8]).await.unwrap();
        after_a_wait().await;
        assert!(matches!(send.poll_unpin(&mut cx), Poll::Ready(Ok(4))));
    });
}

struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_full_buffer_of_ones_own_makes_the_sender_wait_and_not_spin() {
    on_a_loop(async |handle| {
        let ours = UnixDatagram::unbound().unwrap();
        sockopt::set_socket_send_buffer_size(&ours, 8_192).unwrap();
        let (first, second) = (name(), name());
        let (full, free) = (UnixDatagram::bind_addr(&first).unwrap(), UnixDatagram::bind_addr(&second).unwrap());
        while ours.try_send_to_addr(&[0; 1_000], &first).is_ok() {}
        assert!(full.try_recv(&mut [0; 1_000]).is_ok() && ours.send_to_addr(&[0; 1_000], &first).now_or_never().is_some());
        let watched = handle.stats().descriptors;
        let mut send = ours.send_to_addr(b"last", &second);
        for _ in 0..5 {
            assert!(poll_once(&mut send).is_pending());
            after_a_wait().await;
        }
        // The second peer has said that it has room, so it is asked no more: it would say so again and again.
        assert_eq!(handle.stats().descriptors, watched);
        let drain = async {
            let mut buffer = [0; 1_000];
            while full.recv(&mut buffer).now_or_never().is_some() {}
            free.recv(&mut buffer).await.unwrap()
        };
        let (sent, received) = future::join(send, drain).await;
        assert_eq!((sent.unwrap(), received), (4, 4));
    });
}

#[test]
fn a_send_that_is_given_up_sends_nothing_and_leaves_nothing_watched_c12() {
    let mut event_loop = event_loop();
    let watched = watched(&event_loop);
    event_loop
        .run_until_complete(async {
            let there = name();
            let theirs = UnixDatagram::bind_addr(&there).unwrap();
            let ours = UnixDatagram::unbound().unwrap();
            let before = watched();
            let mut count = 0;
            while ours.try_send_to_addr(b"x", &there).is_ok() {
                count += 1;
            }
            assert_eq!(ours.try_send_to_addr(b"x", &there).unwrap_err().kind(), ErrorKind::WouldBlock);
            let mut given_up = ours.send_to_addr(b"never", &there);
            assert!(poll_once(&mut given_up).is_pending());
            assert_eq!(watched(), before + 1);
            theirs.recv(&mut [0; 8]).await.unwrap();
            after_a_wait().await;
            drop(given_up);
            assert_eq!(watched(), before);
            for _ in 1..count {
                assert_eq!(theirs.try_recv(&mut [0; 8]).unwrap(), 1);
            }
            assert_eq!(theirs.try_recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
        })
        .unwrap();
}

#[test]
fn a_peer_that_goes_while_its_queue_is_full_is_an_error() {
    on_a_loop(async |_| {
        let there = name();
        let theirs = UnixDatagram::bind_addr(&there).unwrap();
        let ours = UnixDatagram::unbound().unwrap();
        while ours.try_send_to_addr(b"x", &there).is_ok() {}
        let mut send = ours.send_to_addr(b"last", &there);
        assert!(poll_once(&mut send).is_pending());
        drop(theirs);
        assert_eq!(send.await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}
