//! A real server in a process of its own.

use std::fs::{self, File};
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::client::Client;
use super::world::v4;
use super::{Data, wait_until};

/// A running server. It is killed when this is dropped.
pub(crate) struct Server {
    program: Child,
    pid: Pid,
    output: Client,
    log: PathBuf,
    pub(crate) address: SocketAddr,
    /// The first line that it says.
    pub(crate) greeting: String,
}

/// A server that may not listen yet: it opens its data, and moves what stands in the log to the history.
pub(crate) struct Starting {
    program: Child,
    output: Client,
    log: PathBuf,
}

/// How a program has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    /// What it said on standard error.
    pub(crate) log: String,
}

impl Server {
    /// Starts a server with these options on a port of its own, and waits until it listens.
    #[track_caller]
    pub(crate) fn start(data: &Data, options: &[&str]) -> Server {
        Server::start_under(&[], data, options)
    }

    /// The same under another program, whose arguments these are.
    #[track_caller]
    pub(crate) fn start_under(wrapper: &[&str], data: &Data, options: &[&str]) -> Server {
        let Starting { program, mut output, log } = Starting::begin_under(wrapper, data, options);
        let Ok(greeting) = output.line() else { panic!("it did not start: {}", fs::read_to_string(log).unwrap_or_default()) };
        let address = greeting.split(" listens on ").nth(1).and_then(|rest| rest.split(',').next());
        let address = address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("no address in `{greeting}`"));
        // Under another program, it is not our child: its lock file says who it is.
        let lock = fs::read_to_string(data.path().join("lock")).expect("a running server has a lock file");
        let pid = lock.trim().parse().ok().and_then(Pid::from_raw).expect("the lock file names the process");
        Server { program, pid, output, log, address, greeting }
    }

    /// The same on a folder whose files are made already: all that it writes and syncs from now on are commits.
    #[track_caller]
    pub(crate) fn start_prepared(data: &Data, options: &[&str]) -> Server {
        let server = Server::start(data, &[]);
        let mut first = server.join("first", "yard");
        first.say("MSG hello");
        first.hears("MESSAGE first hello");
        // The first commit took the file that was ready, and the next one is made behind it.
        wait_until("a second log file", || data.path().join("log/00000002.log").exists());
        server.stop();
        Server::start(data, options)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    pub(crate) fn address_v4(&self) -> SocketAddrV4 {
        v4(self.address)
    }

    #[track_caller]
    pub(crate) fn join(&self, name: &str, room: &str) -> Client {
        Client::join(self.address, name, room)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("it runs");
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("there is a log")
    }

    /// Waits until it has logged something.
    #[track_caller]
    pub(crate) fn wait_for_log(&self, text: &str) {
        wait_until(&format!("`{text}` in the log"), || self.log().contains(text));
    }

    /// A number that it has counted, as an operator asks for it.
    #[track_caller]
    pub(crate) fn number(&self, name: &str) -> u64 {
        let answers = |log: &str| log.matches("\nrelay_log_lines_lost_total").count();
        let before = answers(&self.log());
        self.signal(Signal::USR1);
        wait_until("an answer to SIGUSR1", || answers(&self.log()) > before && self.log().ends_with('\n'));
        let log = self.log();
        let value = log.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no {name} in\n{log}"))
    }

    /// Waits until it has ended by itself.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Ended {
        let ended = ended(&mut self.program, &mut self.output);
        Ended { log: self.log(), ..ended }
    }

    /// Stops it as an operator would; it must have nothing to complain about.
    #[track_caller]
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        let ended = self.ended();
        assert_eq!(ended.code, Some(0), "{}", ended.log);
    }

    /// Kills it as the kernel would.
    pub(crate) fn kill(self) {
        self.signal(Signal::KILL);
        drop(self.ended());
    }
}

impl Starting {
    /// Starts a server, and waits for nothing.
    pub(crate) fn begin(data: &Data, options: &[&str]) -> Starting {
        Starting::begin_under(&[], data, options)
    }

    fn begin_under(wrapper: &[&str], data: &Data, options: &[&str]) -> Starting {
        let data_dir = data.path();
        let data_dir = data_dir.to_str().expect("the path is text");
        let http: &[&str] = if options.contains(&"--http") { &[] } else { &["--http", "off"] };
        let arguments = [&["serve", "--listen", "127.0.0.1:0", "--data", data_dir], http, options].concat();
        let log = data.beside("log.txt");
        let (program, output) = spawn(wrapper, &arguments, &log);
        Starting { program, output, log }
    }

    /// Whether it has come so far that it listens; or has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.output.can_read()
    }

    /// Kills it as the kernel would.
    pub(crate) fn kill(mut self) {
        self.program.kill().expect("it is our child");
        drop(ended(&mut self.program, &mut self.output));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what the server said:\n{}", self.log());
        }
        if matches!(self.program.try_wait(), Ok(None)) {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.program.kill();
            let _ = self.program.wait();
        }
    }
}

/// Runs `relay` with these arguments to its end.
#[track_caller]
pub(crate) fn relay(data: &Data, arguments: &[&str]) -> Ended {
    let log = data.beside("stderr.txt");
    let (mut program, mut output) = spawn(&[], arguments, &log);
    let ended = ended(&mut program, &mut output);
    Ended { log: fs::read_to_string(log).expect("there is a log"), ..ended }
}

/// Every message that is stored of a room, oldest first, as `relay history` prints them.
#[track_caller]
pub(crate) fn stored(data: &Data, room: &str) -> Vec<String> {
    let data_dir = data.path();
    let ended = relay(data, &["history", room, "--data", data_dir.to_str().expect("the path is text")]);
    if ended.log.contains("nothing is stored of room") {
        return Vec::new();
    }
    assert_eq!(ended.code, Some(0), "{}", ended.log);
    ended.output.lines().map(str::to_owned).collect()
}

fn spawn(wrapper: &[&str], arguments: &[&str], log: &PathBuf) -> (Child, Client) {
    let words = [wrapper, &[env!("CARGO_BIN_EXE_relay")], arguments].concat();
    let (ours, theirs) = UnixStream::pair().expect("there are descriptors left");
    let log = File::create(log).expect("the folder is writable");
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::from(OwnedFd::from(theirs))).stderr(log);
    // Settings of the person who runs the tests are not theirs.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RELAY_")) {
        command.env_remove(name);
    }
    (command.spawn().expect("it can be started"), Client::listening_to(ours))
}

#[track_caller]
fn ended(program: &mut Child, output: &mut Client) -> Ended {
    // A process that has ended has closed its output: this is a wait with a limit.
    let (lines, _) = output.hears_to_the_end();
    let code = program.wait().expect("it is our child").code();
    Ended { code, output: lines.iter().map(|line| format!("{line}\n")).collect(), log: String::new() }
}
