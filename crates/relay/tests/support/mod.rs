//! What the end-to-end tests share: a real server, clients, and what the system says of processes and sockets.
//!
//! Tests wait for events (a line, an end, an exit) under one limit that only a defect reaches. Files: `server.rs` and `client.rs` for the
//! real program, `bench.rs` for crowds, `strace.rs` and `system.rs` for what the kernel says of it, `folding.rs` for what its files say of
//! a fold, and `world.rs` for a server inside the test with virtual time.

#![allow(dead_code, reason = "every test program uses a part of it")]

pub(crate) mod bench;
pub(crate) mod client;
pub(crate) mod folding;
pub(crate) mod server;
pub(crate) mod strace;
pub(crate) mod system;
pub(crate) mod world;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use tempfile::TempDir;

/// Nothing that a test waits for takes nearly as long, however busy the machine is.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A folder for a server's data, which goes away at the end of the test.
pub(crate) struct Data {
    folder: TempDir,
    data_dir: PathBuf,
}

impl Data {
    pub(crate) fn new() -> Data {
        let folder = tempfile::tempdir().expect("the temporary folder is writable");
        Data { data_dir: folder.path().join("relay-data"), folder }
    }

    /// Data elsewhere, as on a disk of its own. It does not go away.
    pub(crate) fn at(data_dir: PathBuf) -> Data {
        Data { data_dir, ..Data::new() }
    }

    /// The data folder. The server makes it.
    pub(crate) fn path(&self) -> PathBuf {
        self.data_dir.clone()
    }

    /// A file or folder of the test's own.
    pub(crate) fn beside(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Whether a program of the system is missing; then the test says so and returns, and `cargo xtask test` counts it as skipped.
pub(crate) fn is_missing(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_missing = !std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if is_missing {
        println!("SKIPPED: {program} is not installed");
    }
    is_missing
}

/// Waits until something is so that nobody tells us of.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the limit of a wait for another process is real time")]
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "never: {what}");
        std::thread::yield_now();
    }
}

/// Random numbers, the same at every run: SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// Ends the test program when [`LIMIT`] is over, for tests whose waiting has no limit of its own. It is called off when this is dropped.
pub(crate) struct Watchdog(#[expect(dead_code, reason = "its end is the message")] Sender<()>);

impl Watchdog {
    #[expect(clippy::disallowed_methods, reason = "it watches the thread that the loop is on")]
    pub(crate) fn new() -> Watchdog {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            if receiver.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                eprintln!("the test waits for something that does not come");
                std::process::abort();
            }
        });
        Watchdog(sender)
    }
}
