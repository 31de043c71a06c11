//! The parts of the server together, over real sockets, in virtual time.

use std::net::Ipv4Addr;
use std::time::Duration;

use miniloop::net::TcpStream;
use miniloop::{EventLoop, VirtualClock};
use relay_core::limits::RELEASE_BYTES;
use relay_core::{Batch, PeerLimits, Rate, Settings};

use super::*;
use crate::limits::{LINGER_STEP, LINGERING_LEN_MAX, SLICES_PER_WRITE};
use crate::storage::{ArchiveError, Committed, Loaded, Next, StorageError, Worked};

#[derive(Default)]
struct CommitsAtOnce(u64);

impl Storage for CommitsAtOnce {
    fn commit(&mut self, _: &Batch) -> Result<Committed, StorageError> {
        self.0 += 1;
        Ok(Committed { sequence: self.0, log_bytes: 4096, file_taken: false })
    }
}

struct Panics;

impl Storage for Panics {
    fn commit(&mut self, _: &Batch) -> Result<Committed, StorageError> {
        panic!("a defect of the storage");
    }
}

/// Folds nothing and has nothing.
struct Empty;

impl Archive for Empty {
    fn work(&mut self, _: u64) -> Result<Worked, ArchiveError> {
        Ok(Worked { folded: 0, log_bytes: 0, next: Next::WhenCommitted })
    }

    fn load(&mut self, _: &str, _: u64) -> Result<Loaded, ArchiveError> {
        Ok(Loaded::default())
    }
}

fn parts<S: Storage>(settings: Settings, listener: TcpListener, storage: S) -> Parts<S, Empty> {
    Parts { hub: Hub::new(settings), listener, storage, archive: Empty, base_sequence: 0, unfolded_bytes_max: 1 << 30 }
}

fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into()).expect("there are ports left")
}

fn serve_on_loopback(settings: Settings, storage: impl Storage) -> Running {
    start(parts(settings, listener(), storage)).expect("there are threads left")
}

/// A server of which only the connections work: the test is the other parts.
fn server_without_parts() -> Rc<Server> {
    Rc::new(Server::new(Hub::new(Settings::default()), 0, 1 << 30))
}

/// A client, and the server's end of its connection.
async fn connected() -> (TcpStream, TcpStream, SocketAddr) {
    let listener = listener();
    let client = TcpStream::connect(listener.local_addr().expect("it is bound")).await.expect("it listens");
    let (stream, address) = listener.accept().await.expect("the client has connected");
    (client, stream, address)
}

async fn hears(client: &TcpStream, expected: &str) {
    let mut heard = vec![0; expected.len()];
    let mut len = 0;
    while len < heard.len() {
        len += client.read(&mut heard[len..]).await.expect("the server lives");
    }
    assert_eq!(String::from_utf8_lossy(&heard), expected);
}

/// When the server will look at its connections next: the hub and the loop's timer must agree.
fn next_look(Running { server, .. }: &Running) -> Option<Duration> {
    let next_ns = server.hub.borrow().next_deadline().map(|at| at.0);
    assert_eq!(next_ns, server.deadline.borrow().as_ref().map(|timer| timer.when().as_nanos()));
    next_ns.map(|at_ns| Duration::from_nanos(at_ns - server.now().0))
}

#[test]
fn the_heartbeat_goes_on_after_a_pause_in_which_nothing_more_came() {
    let second = Duration::from_secs(1);
    let clock = VirtualClock::manual();
    // The kernel delivers in real time.
    let _hold = clock.hold();
    let mut event_loop = EventLoop::builder().clock(&clock).build().expect("there are descriptors left");
    let test = async {
        let loopback = PeerLimits { rate: Some(Rate { per_second: 1, burst: 1 }), ..PeerLimits::default() };
        let running = serve_on_loopback(Settings { loopback, ..Settings::default() }, CommitsAtOnce::default());
        let client = TcpStream::connect(running.address()).await.expect("it listens");
        client.write(b"JOIN ada lobby\nMSG one\n").await.expect("it lives");
        hears(&client, "OK JOIN ada lobby\nMESSAGE ada one\n").await;
        assert_eq!(next_look(&running), Some(second), "the message has paused her");
        clock.advance(second);
        for _ in 0..10 {
            miniloop::yield_now().await;
        }
        assert_eq!(next_look(&running), Some(10 * second), "nothing has passed of the time to her PING");
    };
    event_loop.run_until_complete(test).expect("nothing panics");
}

#[test]
fn a_turn_writes_to_a_connection_once_however_much_is_queued() {
    let mut event_loop = EventLoop::new().expect("there are descriptors left");
    event_loop.run_until_complete(check_one_write()).expect("nothing panics");
}

async fn check_one_write() {
    let server = server_without_parts();
    let (client, stream, address) = connected().await;
    connection::open(&server, stream, address);
    client.write(b"JOIN ada lobby\n").await.expect("it lives");
    let id = loop {
        server.turn.heard().await;
        let touched = server.hub.borrow_mut().pop_touched();
        if let Some(touched) = touched {
            break touched.id;
        }
    };
    turn::run(&server);
    let written_bytes = |requests: String| {
        let now = server.now();
        let mut hub = server.hub.borrow_mut();
        hub.receive(now, id, requests.as_bytes());
        if let Some(batch) = hub.take_batch() {
            hub.committed(now, batch);
        }
        let before_bytes = hub.outbox_len_bytes(id);
        drop(hub);
        turn::run(&server);
        let after_bytes = server.hub.borrow().outbox_len_bytes(id);
        turn::run(&server);
        assert_eq!(server.hub.borrow().outbox_len_bytes(id), 0);
        before_bytes - after_bytes
    };
    assert_eq!(written_bytes(format!("MSG {}\n", "x".repeat(4000)).repeat(20)), RELEASE_BYTES);
    let error_bytes = "ERR expected MSG <text>, HISTORY, or QUIT\n".len();
    assert_eq!(written_bytes("x\n".repeat(SLICES_PER_WRITE + 1)), SLICES_PER_WRITE * error_bytes);
}

#[test]
fn a_connection_with_unread_input_lingers_so_that_its_last_words_arrive() {
    let clock = VirtualClock::manual();
    // The kernel delivers in real time.
    let _hold = clock.hold();
    let mut event_loop = EventLoop::builder().clock(&clock).build().expect("there are descriptors left");
    event_loop.run_until_complete(check_lingering(&clock)).expect("nothing panics");
}

async fn check_lingering(clock: &VirtualClock) {
    // No places but those that are kept for lingering.
    let server = Rc::new(Server::new(Hub::new(Settings { connections_max: 0, ..Settings::default() }), 0, 1 << 30));
    let mut clients = Vec::new();
    for _ in 0..=LINGERING_LEN_MAX {
        let (client, stream, _) = connected().await;
        client.write(b"unread").await.expect("it lives");
        stream.readable().await.expect("it lives");
        stream.write(b"last words\n").await.expect("it lives");
        lingering::close(&server, stream);
        clients.push(client);
    }
    assert_eq!(server.lingering_len.get(), LINGERING_LEN_MAX, "one was too many");
    assert_eq!(server.metrics.borrow().not_lingered, 1);
    clients.pop();
    for client in &clients {
        hears(client, "last words\n").await;
        assert_eq!(client.read(&mut [0]).await.ok(), Some(0), "an orderly end");
    }
    clock.advance(LINGER_STEP);
    for _ in 0..10 {
        miniloop::yield_now().await;
    }
    assert_eq!(server.lingering_len.get(), 0);
}

#[test]
fn a_server_without_one_of_its_parts_stops_though_a_batch_never_comes_back() {
    let clock = VirtualClock::jumping();
    let hold = clock.hold();
    let mut event_loop = EventLoop::builder().clock(&clock).build().expect("there are descriptors left");
    let test = async {
        let running = serve_on_loopback(Settings::default(), Panics);
        let client = TcpStream::connect(running.address()).await.expect("it listens");
        client.write(b"JOIN ada lobby\nMSG one\n").await.expect("it lives");
        hears(&client, "OK JOIN ada lobby\n").await;
        // From here on everything is on its way: time may pass.
        drop(hold);
        running.serve().await
    };
    let stop = event_loop.run_until_complete(test).expect("nothing waits for ever");
    assert!(matches!(stop, Stop::Defect("commit")), "{stop:?}");
}

#[test]
fn a_server_that_cannot_accept_any_more_stops() {
    let mut event_loop = EventLoop::new().expect("there are descriptors left");
    let test = async {
        let listener = listener();
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).expect("it listens");
        let running = start(parts(Settings::default(), listener, CommitsAtOnce::default())).expect("there are threads left");
        running.serve().await
    };
    let stop = event_loop.run_until_complete(test).expect("nothing panics");
    assert!(matches!(stop, Stop::Defect("accept")), "{stop:?}");
}

struct ArchivePanics;

impl Archive for ArchivePanics {
    fn work(&mut self, _: u64) -> Result<Worked, ArchiveError> {
        panic!("a defect of the archive");
    }

    fn load(&mut self, _: &str, _: u64) -> Result<Loaded, ArchiveError> {
        Ok(Loaded::default())
    }
}

#[test]
fn a_server_whose_archive_panics_stops() {
    let mut event_loop = EventLoop::new().expect("there are descriptors left");
    let test = async {
        let Parts { hub, listener, storage, .. } = parts(Settings::default(), listener(), CommitsAtOnce::default());
        let parts = Parts { hub, listener, storage, archive: ArchivePanics, base_sequence: 0, unfolded_bytes_max: 1 << 30 };
        start(parts).expect("there are threads left").serve().await
    };
    let stop = event_loop.run_until_complete(test).expect("nothing waits for ever");
    assert!(matches!(stop, Stop::Defect("archive")), "{stop:?}");
}

#[test]
fn the_first_reason_to_stop_is_told_but_a_failure_of_the_disk_always() {
    let storage: fn() -> Stop = || Stop::Storage(StorageError::Full { folder: "data".into() });
    let archive: fn() -> Stop = || Stop::Archive(ArchiveError::Failed("history.db".to_owned()));
    let told = |reasons: Vec<Stop>| {
        let server = server_without_parts();
        reasons.into_iter().for_each(|reason| server.stop(reason));
        format!("{:?}", server.take_stop().expect("it has stopped"))
    };
    let mut event_loop = EventLoop::new().expect("there are descriptors left");
    let test = async {
        assert_eq!(told(vec![Stop::Requested, Stop::Defect("turn")]), "Requested");
        assert_eq!(told(vec![Stop::Defect("turn"), Stop::Requested]), "Defect(\"turn\")");
        for failure in [storage, archive] {
            let failed = format!("{:?}", failure());
            assert_eq!(told(vec![failure(), Stop::Requested]), failed);
            assert_eq!(told(vec![Stop::Requested, failure(), Stop::Defect("turn")]), failed);
        }
        assert_eq!(told(vec![archive(), storage()]), format!("{:?}", archive()));
    };
    event_loop.run_until_complete(test).expect("nothing panics");
}
