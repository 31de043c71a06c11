//! A server inside the test, on a clock that the test moves, with a storage that the test answers for. Its clients are on the same loop.
//!
//! The sockets are real, so what a test waits for comes in real time, while the clock stands still: nothing here depends on how fast that
//! is.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use memchr::memchr;
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{EventLoop, Task, VirtualClock};
use relay::server::{self, Stop, Stopper};
use relay::storage::{Committed, Failure, Storage, StorageError};
use relay_core::{Batch, Hub, Settings};

use super::Watchdog;

/// The server and its clock.
pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) address: SocketAddrV4,
    pub(crate) stopper: Stopper,
    /// Ends with the server.
    pub(crate) serving: Task<Stop>,
}

/// Runs a test beside a server. Whatever panics in a task of the server fails the test.
pub(crate) fn in_virtual_time<F: Future>(settings: Settings, storage: impl Storage, test: impl FnOnce(World) -> F) -> F::Output {
    let _watchdog = Watchdog::new();
    let clock = VirtualClock::manual();
    // The kernel delivers what was sent in real time.
    let _hold = clock.hold();
    let mut event_loop = EventLoop::builder().clock(&clock).build().expect("there are descriptors left");
    let done = event_loop.run_until_complete(async {
        miniloop::LoopHandle::current().on_error(|report| {
            eprintln!("{report}");
            ControlFlow::<()>::Break(())
        });
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("there are ports left");
        let running = server::start(Hub::new(settings), listener, storage, None).expect("there are threads left");
        let (address, stopper) = (v4(running.address()), running.stopper());
        let serving = miniloop::spawn(running.serve());
        test(World { clock, address, stopper, serving }).await
    });
    done.expect("the loop runs and nothing panics")
}

/// A storage that does what it is told for each commit: it waits until it is told. When nobody can tell it any more, it commits.
pub(crate) struct Told {
    verdicts: Receiver<Result<(), StorageError>>,
    sequence: u64,
}

impl Told {
    pub(crate) fn new() -> (Sender<Result<(), StorageError>>, Told) {
        let (verdicts, told) = channel();
        (verdicts, Told { verdicts: told, sequence: 0 })
    }

    /// One that commits at once.
    pub(crate) fn nothing() -> Told {
        Told::new().1
    }
}

impl Storage for Told {
    fn commit(&mut self, _batch: &Batch) -> Result<Committed, StorageError> {
        self.verdicts.recv().unwrap_or(Ok(()))?;
        self.sequence += 1;
        Ok(Committed { sequence: self.sequence, log_bytes: 4096 })
    }
}

/// A failure for good.
pub(crate) fn failed() -> StorageError {
    StorageError::Failed(failure("syncing"))
}

/// A failure that may be over at the next try.
pub(crate) fn refused() -> StorageError {
    StorageError::Refused(failure("creating"))
}

fn failure(action: &'static str) -> Failure {
    Failure { action, path: PathBuf::from("00000001.log"), offset: 0, source: Arc::new(io::Error::from_raw_os_error(5)) }
}

pub(crate) fn full() -> StorageError {
    StorageError::Full { folder: PathBuf::from("relay-data") }
}

/// A client on the server's loop.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
}

impl Peer {
    pub(crate) async fn connect(world: &World) -> Peer {
        let stream = TcpStream::connect(world.address.into()).await.expect("the server listens");
        stream.set_nodelay(true).expect("it is a socket");
        Peer { stream, unread: Vec::new() }
    }

    pub(crate) async fn join(world: &World, name: &str, room: &str) -> Peer {
        let mut peer = Peer::connect(world).await;
        peer.say(&format!("JOIN {name} {room}")).await;
        peer.hears(&format!("OK JOIN {name} {room}")).await;
        peer
    }

    pub(crate) fn address(&self) -> SocketAddrV4 {
        v4(self.stream.local_addr().expect("it is open"))
    }

    pub(crate) async fn say(&self, line: &str) {
        self.send(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send(&self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let len = self.stream.write(bytes).await.expect("the server takes it");
            bytes = &bytes[len..];
        }
    }

    /// The next line, or nothing when the server has closed.
    pub(crate) async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(len) = memchr(b'\n', &self.unread) {
                let line: Vec<u8> = self.unread.drain(..=len).take(len).collect();
                return Some(String::from_utf8(line).expect("the server says valid text"));
            }
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer).await {
                Ok(0) => return None,
                Ok(len) => self.unread.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("cannot read: {error}"),
            }
        }
    }

    pub(crate) async fn hears(&mut self, expected: &str) {
        assert_eq!(self.line().await.as_deref(), Some(expected));
    }

    /// Nothing was said to it: the answer to a question comes next.
    pub(crate) async fn hears_nothing(&mut self) {
        self.say("WHAT").await;
        self.hears("ERR expected MSG <text>, HISTORY, or QUIT").await;
    }

    pub(crate) async fn hears_the_end(&mut self) {
        assert_eq!(self.line().await, None);
    }

    /// Reads to the end, and says how many lines that were.
    pub(crate) fn listen_to_the_end(mut self) -> Task<usize> {
        miniloop::spawn(async move {
            let mut lines = 0;
            while self.line().await.is_some() {
                lines += 1;
            }
            lines
        })
    }
}

pub(crate) fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(address) => panic!("{address}: the tests use IPv4"),
    }
}
