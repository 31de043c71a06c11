//! `strace` on a running process: what it asks of the kernel, or what the kernel is to answer.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::Data;
use super::client::Client;

/// A trace that goes on until this is dropped or asked for what it has seen.
pub(crate) struct Strace {
    program: Child,
    said: Client,
    trace: PathBuf,
}

impl Strace {
    /// Attaches to a thread, with `-f` to its whole process, and waits until it is watched.
    #[track_caller]
    pub(crate) fn attach(data: &Data, pid: u32, arguments: &[&str]) -> Strace {
        let trace = data.beside("trace.txt");
        let (ours, theirs) = UnixStream::pair().expect("there are descriptors left");
        let mut command = Command::new("strace");
        command.args(["-s", "256", "-o"]).arg(&trace).args(["-p", &pid.to_string()]).args(arguments);
        let program = command.stderr(Stdio::from(OwnedFd::from(theirs))).spawn().expect("strace is installed");
        let mut said = Client::listening_to(ours);
        let attached = said.line().expect("strace says what it does");
        assert!(attached.contains("attached"), "{attached}");
        Strace { program, said, trace }
    }

    /// Lets the process go, and returns what was traced.
    #[track_caller]
    pub(crate) fn finish(mut self) -> String {
        self.interrupt();
        self.said.hears_to_the_end();
        self.program.wait().expect("it is our child");
        fs::read_to_string(&self.trace).expect("strace has written it")
    }

    /// It lets the process go and ends, unless the process has ended, and it with it.
    fn interrupt(&self) {
        let pid = i32::try_from(self.program.id()).ok().and_then(Pid::from_raw).expect("a process number");
        let _ = kill_process(pid, Signal::INT);
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        if matches!(self.program.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.program.wait();
        }
    }
}
