//! Unix sockets: names, listeners, peers. What they share with other streams is in `streams.rs`.

use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, future};
use miniloop::net::{UnixListener, UnixStream};
use miniloop::{VirtualClock, yield_now};
use rustix::process::{getgid, getpid, getuid};

use super::{builder, on_a_loop};

/// A path that nobody else uses, and whose file goes with it.
struct Name(PathBuf);

impl Name {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("miniloop-unix-{}-{number}", std::process::id())))
    }

    /// An abstract name of the same text.
    fn without_a_file(&self) -> SocketAddr {
        SocketAddr::from_abstract_name(self.0.to_str().unwrap()).unwrap()
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        let _was_never_made = fs::remove_file(&self.0);
    }
}

#[test]
fn a_listener_at_a_path_leaves_its_file_which_must_go_before_the_next() {
    on_a_loop(async |_| {
        let name = Name::new();
        let missing = UnixStream::connect(&name.0).await.unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);

        let listener = UnixListener::bind(&name.0).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(name.0.as_path()));
        let client = UnixStream::connect(&name.0).await.unwrap();
        let (server, address) = listener.accept().await.unwrap();
        assert!(address.is_unnamed() && client.local_addr().unwrap().is_unnamed());
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(name.0.as_path()));
        client.write(b"x").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);

        drop(listener);
        assert_eq!(UnixStream::connect(&name.0).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        assert_eq!(UnixListener::bind(&name.0).unwrap_err().kind(), ErrorKind::AddrInUse);
        fs::remove_file(&name.0).unwrap();
        UnixListener::bind(&name.0).unwrap();
    });
}

#[test]
fn an_abstract_name_has_no_file_and_is_free_at_once() {
    on_a_loop(async |_| {
        let name = Name::new();
        let address = name.without_a_file();
        for _ in 0..2 {
            let listener = UnixListener::bind_addr(&address).unwrap();
            assert_eq!(UnixListener::bind_addr(&address).unwrap_err().kind(), ErrorKind::AddrInUse);
            let client = UnixStream::connect_addr(&address).await.unwrap();
            assert_eq!(client.peer_addr().unwrap().as_abstract_name(), address.as_abstract_name());
            listener.accept().await.unwrap();
            assert!(!name.0.exists());
        }
    });
}

#[test]
fn names_that_cannot_be_are_refused() {
    on_a_loop(async |_| {
        for name in ["x".repeat(108), "a\0b".to_owned()] {
            assert_eq!(UnixListener::bind(&name).unwrap_err().kind(), ErrorKind::InvalidInput);
            assert_eq!(UnixStream::connect(&name).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    });
}

#[test]
fn the_kernel_says_who_the_peer_is() {
    on_a_loop(async |_| {
        let name = Name::new();
        let listener = UnixListener::bind(&name.0).unwrap();
        let client = UnixStream::connect(&name.0).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        for stream in [client, server] {
            let peer = stream.peer_cred().unwrap();
            assert_eq!((peer.pid, peer.uid, peer.gid), (getpid().as_raw_pid(), getuid().as_raw(), getgid().as_raw()));
        }
    });
}

#[test]
fn a_listener_is_a_stream_of_connections() {
    on_a_loop(async |_| {
        let name = Name::new();
        let listener = UnixListener::bind(&name.0).unwrap();
        let clients = future::try_join_all((0..100).map(|_| UnixStream::connect(&name.0))).await.unwrap();
        let mut servers: Vec<_> = listener.incoming().take(99).collect().await;
        servers.push(listener.try_accept().map(|(server, _)| server));
        assert_eq!(listener.try_accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        for (number, (client, server)) in clients.iter().zip(&servers).enumerate() {
            client.write(&[number as u8]).await.unwrap();
            let mut byte = [0];
            server.as_ref().unwrap().read(&mut byte).await.unwrap();
            assert_eq!(byte, [number as u8]);
        }
    });
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_connection_that_comes_while_accept_is_cancelled_is_not_lost_c12_b24() {
    on_a_loop(async |_| {
        let name = Name::new();
        let listener = UnixListener::bind(&name.0).unwrap();
        let woken = Arc::new(Flag(AtomicBool::new(false)));
        let mut cancelled = listener.accept();
        assert!(cancelled.poll_unpin(&mut Context::from_waker(&woken.clone().into())).is_pending());
        let client = UnixStream::connect(&name.0).await.unwrap();
        while !woken.0.load(Ordering::Relaxed) {
            yield_now().await;
        }
        drop(cancelled); // woken for the connection, and gone before it looks
        let (server, _) = listener.accept().await.unwrap();
        client.write(b"x").await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 1);
    });
}

#[test]
fn a_connection_waits_while_too_many_wait_before_it() {
    let clock = VirtualClock::manual();
    let mut event_loop = builder().clock(&clock).build().unwrap();
    event_loop
        .run_until_complete(async {
            let name = Name::new();
            let listener = UnixListener::bind(&name.0).unwrap();
            rustix::net::listen(&listener, 0).unwrap();
            let _first = UnixStream::connect(&name.0).await.unwrap();
            let mut second = pin!(UnixStream::connect(&name.0));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(second.as_mut().poll(&mut cx).is_pending());
            listener.accept().await.unwrap();
            clock.advance(Duration::from_millis(9));
            yield_now().await;
            assert!(second.as_mut().poll(&mut cx).is_pending(), "the kernel does not say that there is room");
            clock.advance(Duration::from_millis(1));
            yield_now().await;
            let Poll::Ready(Ok(second)) = second.as_mut().poll(&mut cx) else { panic!("it tries again after 10 ms") };
            let (server, _) = listener.accept().await.unwrap();
            second.write(b"x").await.unwrap();
            assert_eq!(server.read(&mut [0]).await.unwrap(), 1);
        })
        .unwrap();
}

#[test]
fn a_listener_can_go_to_the_standard_library_and_back() {
    on_a_loop(async |_| {
        let name = Name::new();
        let listener = UnixListener::bind(&name.0).unwrap().into_std();
        let listener = UnixListener::try_from(listener).unwrap();
        let _client = UnixStream::connect(&name.0).await.unwrap();
        listener.accept().await.unwrap();
    });
}
