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
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use memchr::memchr;
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{EventLoop, Task, VirtualClock};
use relay::server::{self, Measured, Parts, Stop, Stopper};
use relay::storage::{Archive, ArchiveError, Committed, Failure, Loaded, Next, Storage, StorageError, Worked};
use relay_core::{Batch, Hub, Settings};

use super::Watchdog;

/// The server and its clock.
pub(crate) struct World {
    pub(crate) clock: VirtualClock,
    pub(crate) address: SocketAddrV4,
    pub(crate) stopper: Stopper,
    pub(crate) measured: Measured,
    /// Ends with the server.
    pub(crate) serving: Task<Stop>,
}

/// Runs a test beside a server whose archive is empty. Whatever panics in a task of the server fails the test.
pub(crate) fn in_virtual_time<F: Future>(settings: Settings, storage: impl Storage, test: impl FnOnce(World) -> F) -> F::Output {
    in_virtual_time_with(settings, storage, Empty, 1 << 30, test)
}

/// The same with an archive, and so many bytes of the log that may be unfolded. Thousand commits were made before this start.
pub(crate) fn in_virtual_time_with<F: Future>(
    settings: Settings,
    storage: impl Storage,
    archive: impl Archive,
    unfolded_bytes_max: u64,
    test: impl FnOnce(World) -> F,
) -> F::Output {
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
        let parts = Parts { hub: Hub::new(settings), listener, storage, archive, base_sequence: BASE_SEQUENCE, unfolded_bytes_max };
        let running = server::start(parts).expect("there are threads left");
        let (address, stopper, measured) = (v4(running.address()), running.stopper(), running.measured());
        let serving = miniloop::spawn(running.serve());
        test(World { clock, address, stopper, measured, serving }).await
    });
    done.expect("the loop runs and nothing panics")
}

impl World {
    /// Turns the loop until a number of the server is so: what another thread does takes real time.
    pub(crate) async fn until(&self, name: &str, is_so: impl Fn(f64) -> bool) {
        while !is_so(self.number(name)) {
            miniloop::sleep_until(miniloop::now()).await;
        }
    }

    /// One number of what the server has measured.
    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> f64 {
        let text = self.measured.text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
    }
}

/// The commits before a test's server was started.
pub(crate) const BASE_SEQUENCE: u64 = 1_000;

/// What a commit of a test's storage takes in the log.
pub(crate) const COMMIT_BYTES: u64 = 4096;

/// An archive that folds nothing and has nothing.
pub(crate) struct Empty;

impl Archive for Empty {
    fn work(&mut self, _committed: u64) -> Result<Worked, ArchiveError> {
        Ok(Worked { folded: 0, log_bytes: 0, next: Next::WhenCommitted })
    }

    fn load(&mut self, _room: &str, _up_to: u64) -> Result<Loaded, ArchiveError> {
        Ok(Loaded::default())
    }
}

/// An archive that says what it is asked, and waits until it is told what to answer. When nobody listens any more, it is as [`Empty`].
pub(crate) struct Asking(Sender<Asked>);

/// A call to the archive.
pub(crate) enum Asked {
    Work { committed: u64, answer: Sender<Result<Worked, ArchiveError>> },
    Load { room: String, up_to: u64, answer: Sender<Result<Loaded, ArchiveError>> },
}

impl Asking {
    pub(crate) fn new() -> (Asking, Questions) {
        let (asking, asked) = channel();
        (Asking(asking), Questions(asked))
    }
}

impl Archive for Asking {
    fn work(&mut self, committed: u64) -> Result<Worked, ArchiveError> {
        let (answer, answered) = channel();
        let _ = self.0.send(Asked::Work { committed, answer });
        answered.recv().unwrap_or_else(|_| Empty.work(committed))
    }

    fn load(&mut self, room: &str, up_to: u64) -> Result<Loaded, ArchiveError> {
        let (answer, answered) = channel();
        let _ = self.0.send(Asked::Load { room: room.to_owned(), up_to, answer });
        answered.recv().unwrap_or_else(|_| Empty.load(room, up_to))
    }
}

/// What an [`Asking`] archive is asked.
pub(crate) struct Questions(Receiver<Asked>);

impl Questions {
    /// Waits for the next question, which must be for work after this commit. Returns how to answer it.
    pub(crate) async fn work(&self, expected: u64) -> Sender<Result<Worked, ArchiveError>> {
        match self.next().await {
            Asked::Work { committed, answer } => {
                assert_eq!(committed, expected);
                answer
            }
            Asked::Load { room, .. } => panic!("asked for {room}"),
        }
    }

    /// Waits for the next question, which must be for this room up to this commit.
    pub(crate) async fn load(&self, expected: (&str, u64)) -> Sender<Result<Loaded, ArchiveError>> {
        match self.next().await {
            Asked::Load { room, up_to, answer } => {
                assert_eq!((&*room, up_to), expected);
                answer
            }
            Asked::Work { committed, .. } => panic!("asked for work after {committed}"),
        }
    }

    async fn next(&self) -> Asked {
        loop {
            match self.0.try_recv() {
                Ok(asked) => return asked,
                // The worker is another thread: the loop turns until it has come so far.
                Err(TryRecvError::Empty) => miniloop::sleep_until(miniloop::now()).await,
                Err(TryRecvError::Disconnected) => panic!("the archive is gone"),
            }
        }
    }
}

/// A storage that does what it is told for each commit: it waits until it is told. When nobody can tell it any more, it commits.
pub(crate) struct Told {
    verdicts: Receiver<Result<(), StorageError>>,
    sequence: u64,
}

impl Told {
    pub(crate) fn new() -> (Sender<Result<(), StorageError>>, Told) {
        let (verdicts, told) = channel();
        (verdicts, Told { verdicts: told, sequence: BASE_SEQUENCE })
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
        Ok(Committed { sequence: self.sequence, log_bytes: 4096, file_taken: false })
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
        let stream = TcpStream::connect(world.address).await.expect("the server listens");
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
