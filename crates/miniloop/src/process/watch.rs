//! One process and its end: the descriptor that stands for it, and who takes its exit status from the system.
//!
//! ```text
//!              exits                       waitid
//! running ---------------> a zombie ------------------> gone, status remembered here
//!    |     pidfd readable
//!    +-- nobody has it any more ----> watched to its end by a task of the loop; when the loop closes, an orphan
//! ```
//!
//! A zombie is what the system keeps of a process until its parent has asked how it ended; as long as it is there, its number is not given
//! to another process. So only this file may ask, and it asks by descriptor, which never means another process.
//!
//! Cost: one descriptor a process, and one registration. Next: `child.rs`.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::{self, ExitStatus};
use std::task::{Context, Poll, ready};

use futures_core::FusedFuture;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpid, pidfd_open, pidfd_send_signal, waitid};

use crate::driver::{Direction, Kind};
use crate::engine::context;
use crate::primitives::{Mutex, lock};
use crate::registration::{Line, Registration};
use crate::task::spawn_on;

/// A process whose end the loop notices.
pub(super) struct Watch {
    /// Stands first: it is dropped before the descriptor is closed.
    registration: Registration,
    process: Process,
}

impl Watch {
    /// Watches a process that has just been started. If that fails it is killed: nobody would know of it.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub(super) fn new(child: process::Child) -> io::Result<Watch> {
        let process = Process::new(child)?;
        match Registration::new(process.fd(), Kind::Other, true) {
            Ok(registration) => Ok(Watch { registration, process }),
            Err(error) => {
                let _it_has_ended = process.signal(Signal::KILL);
                Err(error)
            }
        }
    }

    pub(super) fn id(&self) -> Pid {
        self.process.id
    }

    /// How it ended, if it has.
    pub(super) fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        match self.process.reap() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            result => result.map(Some),
        }
    }

    /// Waits for its end, in line with others who do.
    pub(super) fn exited(&self) -> Exited<'_> {
        Exited { process: &self.process, line: Line::new(&self.registration, Direction::Read), is_done: false }
    }

    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        self.process.signal(signal)
    }

    /// Nobody waits for it any more: the loop does, so that no zombie stays.
    pub(super) fn leave_to_the_loop(self) {
        let core = self.registration.core().clone();
        if matches!(self.try_wait(), Ok(None)) && core.accepts_work().is_ok() {
            let name = format!("reaper of process {}", self.id());
            let reaper = async move {
                // An error says that somebody else has reaped it.
                let _status_of_nobody = self.exited().await;
            };
            spawn_on(&core, reaper, std::panic::Location::caller()).named(name).detach();
        }
    }
}

/// Takes a place for the descriptor that will stand for a process, to be dropped right before that is made. Without one nothing is started:
/// it would have begun its work, and could only be killed.
pub(super) fn reserve_descriptor() -> io::Result<OwnedFd> {
    pidfd_open(getpid(), PidfdFlags::empty()).map_err(|errno| match errno {
        Errno::NOSYS => io::Error::new(io::ErrorKind::Unsupported, "processes need `pidfd_open`, which Linux has since 5.3"),
        errno => errno.into(),
    })
}

/// Waits for the end of a process.
pub(super) struct Exited<'a> {
    process: &'a Process,
    line: Line<'a>,
    is_done: bool,
}

impl Future for Exited<'_> {
    type Output = io::Result<ExitStatus>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        assert!(!this.is_done, "a wait for a process was polled after it was done");
        let result = match this.process.outcome.get() {
            // Also after the loop has closed.
            Some(outcome) => {
                ready!(context::poll_at_once(cx));
                outcome.map_err(|errno| this.process.lost_status(errno))
            }
            None => {
                let polled = this.line.poll_io(cx, || this.process.reap());
                ready!(context::waiting_for(&"a process to exit", polled))
            }
        };
        this.is_done = true;
        Poll::Ready(result)
    }
}

impl FusedFuture for Exited<'_> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}

/// The descriptor of a child process, and what it left.
struct Process {
    id: Pid,
    /// `None` only while it is being dropped.
    pidfd: Option<OwnedFd>,
    /// Asked for and got: the system gives it once.
    outcome: Cell<Option<Result<ExitStatus, Errno>>>,
}

impl Process {
    fn new(mut child: process::Child) -> io::Result<Process> {
        reap_orphans();
        let id = Pid::from_child(&child);
        match pidfd_open(id, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Process { id, pidfd: Some(pidfd), outcome: Cell::new(None) }),
            // Its number may be another process's already.
            Err(Errno::SRCH) => Err(lost_status(id, Errno::CHILD)),
            Err(errno) => {
                // Nobody could wait for it. This blocks until the system has ended it, which it does at once.
                let _it_has_ended = child.kill().and_then(|()| child.wait());
                Err(errno.into())
            }
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_ref().expect("it is there until the drop").as_fd()
    }

    /// Asks the system how it ended. `WouldBlock`: it runs.
    fn reap(&self) -> io::Result<ExitStatus> {
        let outcome = match self.outcome.get() {
            Some(outcome) => outcome,
            None => match try_reap(self.fd()) {
                Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
                Ok(Some(status)) => Ok(status),
                Err(Errno::INTR) => return Err(io::ErrorKind::Interrupted.into()),
                Err(errno) => Err(errno),
            },
        };
        self.outcome.set(Some(outcome));
        outcome.map_err(|errno| self.lost_status(errno))
    }

    fn lost_status(&self, errno: Errno) -> io::Error {
        lost_status(self.id, errno)
    }

    /// Sends a signal, if it has not ended.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        if self.outcome.get().is_some() {
            return Ok(());
        }
        match pidfd_send_signal(self.fd(), signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.outcome.get().is_none()
            && let Some(pidfd) = self.pidfd.take()
            && let Ok(None) = try_reap(pidfd.as_fd())
        {
            lock(&ORPHANS).push(pidfd);
        }
    }
}

/// Processes that still ran when their loop closed. They are reaped when the next process is started, from whatever thread, or by the
/// system when this program ends. Each is alive or the zombie of one that was, so there are never more than processes.
static ORPHANS: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn reap_orphans() {
    let mut orphans = lock(&ORPHANS);
    orphans.retain(|pidfd| matches!(try_reap(pidfd.as_fd()), Ok(None)));
}

/// `None`: it runs.
fn try_reap(pidfd: BorrowedFd<'_>) -> Result<Option<ExitStatus>, Errno> {
    let status = waitid(WaitId::PidFd(pidfd), WaitIdOptions::EXITED | WaitIdOptions::NOHANG)?;
    Ok(status.map(|status| ExitStatus::from_raw(wait_status(&status))))
}

/// `waitid` speaks in fields, the standard library in the one word of `wait`.
fn wait_status(status: &WaitIdStatus) -> i32 {
    match status.terminating_signal() {
        Some(signal) => signal | if status.dumped() { 0x80 } else { 0 },
        None => (status.exit_status().unwrap_or(0) & 0xff) << 8,
    }
}

fn lost_status(id: Pid, errno: Errno) -> io::Error {
    if errno != Errno::CHILD {
        return errno.into();
    }
    let text = format!("process {id} has ended, and somebody else took its exit status: SIGCHLD is ignored, or any child is waited for");
    io::Error::new(io::ErrorKind::NotFound, text)
}
