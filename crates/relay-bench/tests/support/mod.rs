//! Servers that a test speaks itself, word by word, on the loop of the run and in virtual time.

#![allow(dead_code, reason = "every test program uses a part of it")]

use std::io::ErrorKind;
use std::time::Duration;

use miniloop::io::{BufReader, write_all};
use miniloop::net::{TcpListener, TcpStream};
use relay_bench::{Bench, Codec, Length, Pace, Report, Workload};

/// The server's end of a member's connection.
pub(crate) struct Peer {
    reader: BufReader<TcpStream>,
}

impl Peer {
    /// The next member that connects.
    pub(crate) async fn accept(listener: &TcpListener) -> Peer {
        let (stream, _) = listener.accept().await.expect("it connects");
        Peer { reader: BufReader::with_limit(1 << 20, stream) }
    }

    /// A member of relay that has joined, and what it has said to that end.
    pub(crate) async fn join(listener: &TcpListener) -> (Peer, String) {
        let mut peer = Peer::accept(listener).await;
        let join = peer.line().await;
        peer.says(&format!("OK {join}")).await;
        (peer, join)
    }

    pub(crate) async fn line(&mut self) -> String {
        match self.reader.read_line().await {
            Ok(Some(line)) => line,
            // The member has found fault with us, and the run is over; if it is not, nothing can happen any more, and the test fails.
            _ => std::future::pending().await,
        }
    }

    pub(crate) async fn hears(&mut self, expected: &str) {
        assert_eq!(self.line().await, expected);
    }

    /// Nothing more comes from it in a second.
    pub(crate) async fn hears_nothing(&self) {
        miniloop::sleep(Duration::from_secs(1)).await;
        assert!(self.reader.buffer().is_empty());
        let read = self.reader.get_ref().try_read(&mut [0; 64]);
        assert!(read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{read:?}");
    }

    pub(crate) async fn says(&self, line: &str) {
        // The member may have found fault with us and gone.
        let _ = write_all(self.reader.get_ref(), format!("{line}\n").as_bytes()).await;
    }

    /// Passes on what relay's only member of a room says, line by line, until it leaves.
    pub(crate) async fn echo(&mut self, name: &str) {
        loop {
            let line = self.line().await;
            let Some(text) = line.strip_prefix("MSG ") else {
                assert_eq!(line, "QUIT");
                return self.says("OK QUIT").await;
            };
            self.says(&format!("MESSAGE {name} {text}")).await;
        }
    }
}

/// One member of one room, who sends three messages, two at a time; the letters of its texts begin with `j`.
pub(crate) fn small() -> Workload {
    Workload { rooms: 1, members: 1, pace: Pace::Window(2), length: Length::Messages(3), text_bytes: 19, seed: 9, ..Workload::default() }
}

/// Runs a workload against this server, which computes half of the time. What it ends with, in words if it fails.
#[track_caller]
pub(crate) fn run<C: Codec>(codec: C, workload: Workload, server: impl AsyncFnOnce(TcpListener) + 'static) -> Result<Report, String> {
    miniloop::testing::run(async {
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).expect("there are ports left");
        let address = listener.local_addr().expect("it is bound");
        let bench = Bench::new(codec, Workload { address, ..workload }).map_err(|error| error.to_string())?;
        let bench = bench.with_server_clock(|| Duration::from_nanos(miniloop::now().as_nanos() / 2));
        let server = miniloop::spawn(async move { server(listener).await });
        let report = bench.run().await.map_err(|error| error.to_string());
        if report.is_ok() {
            server.await.expect("the server has said all that it wanted");
        }
        report
    })
}
