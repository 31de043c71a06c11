//! A server that runs for one sample: pinned to the first core, with a folder of its own, and gone with all that it has written.
//!
//! Next: `load.rs`.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bench::processor;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tempfile::TempDir;

use crate::contender::Contender;
use crate::executables::Executables;
use crate::failure::{Failure, Outcome};

/// A process that listens. Dropping it ends it, and removes its folder.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    process: Child,
    folder: TempDir,
}

/// What a process has in memory, in bytes, without what the kernel keeps for its sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    /// All that is there, files and shared libraries included.
    pub(crate) resident: u64,
    /// What it has written itself, which nobody else can use.
    pub(crate) anonymous: u64,
}

impl Server {
    /// Starts it, and waits until it listens and has done what a start leaves behind, such as files that it makes ahead.
    pub(crate) fn start(contender: Contender, executables: &Executables) -> Outcome<Server> {
        Server::start_one(contender, executables).map_err(|failure| failure.of(contender.name()))
    }

    fn start_one(contender: Contender, executables: &Executables) -> Outcome<Server> {
        let folder = disk_folder(executables)?;
        let address = free_address()?;
        let mut command = contender.command(executables, address.port(), folder.path())?;
        let said = File::create(folder.path().join(SAID))?;
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        // A process runs where the thread that starts it may run.
        let starting = thread::spawn(move || {
            processor::pin(SERVER_CORE)?;
            command.spawn()
        });
        let process = starting.join().map_err(|_| Failure::new("starting it panicked"))??;
        let mut server = Server { address, process, folder };
        server.wait_until_it_listens()?;
        server.rest()?;
        Ok(server)
    }

    pub(crate) fn process(&self) -> u32 {
        self.process.id()
    }

    /// # Errors
    /// It has ended.
    pub(crate) fn memory(&self) -> Outcome<Memory> {
        let path = format!("/proc/{}/smaps_rollup", self.process());
        let text = fs::read_to_string(&path).map_err(|error| Failure::new(format!("{path}: {error}")))?;
        Memory::parse(&text).ok_or_else(|| Failure::new(format!("{path} does not say `Rss` and `Anonymous`")))
    }

    /// What it has said last, for whoever wants to know why it does not do what it should.
    pub(crate) fn last_words(&self) -> String {
        let said = fs::read(self.folder.path().join(SAID)).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        lines[lines.len().saturating_sub(LAST_WORDS_LINES)..].join("\n")
    }

    fn wait_until_it_listens(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + START_MAX;
        while TcpStream::connect(self.address).is_err() {
            let ended: Option<ExitStatus> = self.process.try_wait()?;
            if let Some(status) = ended {
                return Err(Failure::new(format!("it ended with {status} before it listened, and said:\n{}", self.last_words())));
            }
            if Instant::now() > deadline {
                let waited = START_MAX.as_secs();
                return Err(Failure::new(format!("it does not listen after {waited} s, and said:\n{}", self.last_words())));
            }
            thread::sleep(START_LOOK);
        }
        Ok(())
    }

    /// Waits until it does next to nothing, and says how much processor time that took it.
    pub(crate) fn rest(&self) -> Outcome<Duration> {
        let deadline = Instant::now() + REST_MAX;
        let began = processor::used_by(self.process())?;
        let mut used = began;
        while Instant::now() < deadline {
            thread::sleep(REST_LOOK);
            let before = std::mem::replace(&mut used, processor::used_by(self.process())?);
            if used - before < REST_LOOK / 100 {
                return Ok(used - began);
            }
        }
        Err(Failure::new(format!("it is asked nothing, and computes all the same for {} s", REST_MAX.as_secs())))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data is of no use to anybody, so there is nothing to end in order.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Memory {
    fn parse(smaps_rollup: &str) -> Option<Memory> {
        let field = |name: &str| {
            let value = smaps_rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kib: u64 = value.trim().strip_suffix(" kB")?.parse().ok()?;
            Some(kib * 1024)
        };
        Some(Memory { resident: field("Rss")?, anonymous: field("Anonymous")? })
    }
}

/// A folder on the disk of this repository.
fn disk_folder(executables: &Executables) -> Outcome<TempDir> {
    let beside = executables.floor.parent().unwrap_or(Path::new("."));
    let kind = statfs(beside).map_err(io::Error::from)?.filesystem_type();
    if kind == TMPFS_MAGIC {
        let way_out = "set CARGO_TARGET_DIR to a folder on the disk that is meant";
        return Err(Failure::new(format!("{} is in memory, where nothing is durable: {way_out}", beside.display())));
    }
    Ok(tempfile::Builder::new().prefix("bench-server-").tempdir_in(beside)?)
}

/// An address that nobody listens on, another one each time: connections that were closed keep a pair of ports for a minute.
///
/// The port is below those that the system gives to clients, so that none of them takes it.
fn free_address() -> Outcome<SocketAddr> {
    static NEXT: AtomicU16 = AtomicU16::new(PORT_MIN);
    for _ in PORT_MIN..PORT_MAX {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if port >= PORT_MAX {
            NEXT.store(PORT_MIN, Ordering::Relaxed);
            continue;
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return Ok(address);
        }
    }
    Err(Failure::new(format!("all ports from {PORT_MIN} to {PORT_MAX} are in use")))
}

const SERVER_CORE: usize = 0;
const SAID: &str = "said.txt";
const LAST_WORDS_LINES: usize = 10;
const START_MAX: Duration = Duration::from_secs(30);
const START_LOOK: Duration = Duration::from_millis(10);
const REST_MAX: Duration = Duration::from_secs(120);
const REST_LOOK: Duration = Duration::from_millis(200);
const PORT_MIN: u16 = 20_000;
const PORT_MAX: u16 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "5590-7ffe ---p 00000000 00:00 0 [rollup]\nRss:      1852 kB\nPss:       101 kB\nAnonymous:    88 kB\n";
        assert_eq!(Memory::parse(text), Some(Memory { resident: 1852 << 10, anonymous: 88 << 10 }));
        assert_eq!(Memory::parse("Rss: 1 kB\n"), None);
    }

    #[test]
    fn an_address_is_given_once() {
        let (one, other) = (free_address().unwrap(), free_address().unwrap());
        assert_ne!(one, other);
    }
}
