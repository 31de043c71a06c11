//! A child process that somebody owns.
//!
//! Next: `command.rs`, which starts them.

use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::process::{self, ExitStatus, Output};
use std::task::Poll;

use futures_core::FusedFuture;
use futures_io::AsyncRead;
use rustix::process::Signal as Named;

use super::pipes::{ChildStderr, ChildStdin, ChildStdout};
use super::watch::Watch;
use crate::io::{BufReader, ReadError, write_all};
use crate::signal::Signal;

/// A process that was started by a [`Command`](super::Command).
///
/// Dropping it kills it if it still runs, unless the command said [`kill_on_drop(false)`](super::Command::kill_on_drop). Either way the
/// loop waits for its end, so that no zombie stays. When the loop closes before, that is left to the next start of a process, or to the end
/// of this program.
#[doc(alias = "Process")]
#[must_use = "dropping a child kills it, unless `kill_on_drop(false)` was said"]
pub struct Child {
    /// Our end of its standard input, if that is [`piped`](std::process::Stdio::piped). To be taken, and dropped once there is no more to
    /// say: many programs wait for the end of their input.
    pub stdin: Option<ChildStdin>,
    /// Our end of its standard output, if that is piped.
    pub stdout: Option<ChildStdout>,
    /// Our end of its standard error, if that is piped.
    pub stderr: Option<ChildStderr>,
    /// `None` only while it is being dropped.
    watch: Option<Watch>,
    is_killed_on_drop: bool,
    output_limit: usize,
}

impl Child {
    /// Takes over a process that has just been started. If that fails it is killed.
    #[track_caller]
    pub(super) fn new(mut child: process::Child, is_killed_on_drop: bool, output_limit: usize) -> io::Result<Child> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let watch = Some(Watch::new(child)?);
        let mut child = Child { stdin: None, stdout: None, stderr: None, watch, is_killed_on_drop: true, output_limit };
        child.stdin = stdin.map(ChildStdin::try_from).transpose()?;
        child.stdout = stdout.map(ChildStdout::try_from).transpose()?;
        child.stderr = stderr.map(ChildStderr::try_from).transpose()?;
        child.is_killed_on_drop = is_killed_on_drop;
        Ok(child)
    }

    fn watch(&self) -> &Watch {
        self.watch.as_ref().expect("it is there until the drop")
    }

    /// The number of the process. Once it has been waited for, the system may give it to another one: the methods here never mean that.
    #[doc(alias = "pid")]
    pub fn id(&self) -> u32 {
        self.watch().id().as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until it has ended. Any number may wait, and ask again later.
    ///
    /// It is the process that is waited for, not the ends of its pipes: those may have been inherited by processes that it has started. A
    /// process that waits for the end of its input never ends while [`stdin`](Self::stdin) is there, nor one that writes more than a pipe
    /// holds while nobody reads; [`communicate`](Self::communicate) sees to both.
    ///
    /// ```
    /// use miniloop::process::Command;
    ///
    /// # miniloop::run(async {
    /// let child = Command::new("sh").args(["-c", "exit 7"]).spawn()?;
    /// assert_eq!(child.wait().await?.code(), Some(7));
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// The loop has been closed; somebody else has taken the exit status: see [the module](super).
    ///
    /// # Cancellation
    /// Nothing is lost: the status stays.
    pub fn wait(&self) -> impl FusedFuture<Output = io::Result<ExitStatus>> + Unpin + use<'_> {
        self.watch().exited()
    }

    /// How it ended. `None`: it runs.
    ///
    /// # Errors
    /// Somebody else has taken the exit status: see [the module](super).
    #[doc(alias = "returncode")]
    #[doc(alias = "poll")]
    pub fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.watch().try_wait()
    }

    /// Ends it at once (`SIGKILL`). Nothing happens if it has ended. [`wait`](Self::wait) says when it is gone.
    ///
    /// # Errors
    /// `PermissionDenied`: it runs as another user.
    pub fn kill(&self) -> io::Result<()> {
        self.watch().signal(Named::KILL)
    }

    /// Asks it to end (`SIGTERM`), which it may refuse. Nothing happens if it has ended.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn terminate(&self) -> io::Result<()> {
        self.watch().signal(Named::TERM)
    }

    /// Sends it a signal. Nothing happens if it has ended.
    ///
    /// ```
    /// use miniloop::{process::Command, signal::Signal};
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// # miniloop::run(async {
    /// let child = Command::new("sleep").arg("1000").spawn()?;
    /// child.signal(Signal::USER1)?;
    /// assert_eq!(child.wait().await?.signal(), Some(Signal::USER1.as_raw()));
    /// child.signal(Signal::USER1)?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill); `InvalidInput` for a realtime signal.
    #[doc(alias = "send_signal")]
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let named = Named::from_named_raw(signal.as_raw()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("signal {} has no name: only those that have are sent", signal.as_raw()))
        })?;
        self.watch().signal(named)
    }

    /// Writes `input` to its standard input and closes that, reads its standard output and error to their ends, all at once, then waits
    /// for it. What is not piped is empty. A process that does not read all of its input is no error.
    ///
    /// The ends come when nobody has the pipes any more: if the process has given them to others, it waits for those as well.
    ///
    /// ```
    /// use miniloop::process::{Command, Stdio};
    ///
    /// # miniloop::run(async {
    /// let child = Command::new("tr").args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    /// assert_eq!(child.communicate("hello").await?.stdout, b"HELLO");
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// What its pipes and [`wait`](Self::wait) say. [`QuotaExceeded`](io::ErrorKind::QuotaExceeded) when it writes more than
    /// [`output_limit`](super::Command::output_limit); [`InvalidInput`](io::ErrorKind::InvalidInput) for input to a process without a pipe
    /// for it. After an error it is dropped.
    ///
    /// # Cancellation
    /// Drops the child, and what it wrote.
    #[doc(alias = "wait_with_output")]
    pub async fn communicate(mut self, input: impl AsRef<[u8]>) -> io::Result<Output> {
        let (stdin, stdout, stderr) = (self.stdin.take(), self.stdout.take(), self.stderr.take());
        let limit = self.output_limit;
        let [_, stdout, stderr] = all_three(feed(stdin, input.as_ref()), drain(stdout, limit), drain(stderr, limit)).await?;
        Ok(Output { status: self.wait().await?, stdout, stderr })
    }
}

async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> io::Result<Vec<u8>> {
    match stdin {
        Some(mut stdin) => match write_all(&mut stdin, input).await {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(Vec::new()),
        },
        None if input.is_empty() => Ok(Vec::new()),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "there is input, and the child's standard input is not piped")),
    }
}

async fn drain(end: Option<impl AsyncRead + Unpin>, limit: usize) -> io::Result<Vec<u8>> {
    let Some(end) = end else { return Ok(Vec::new()) };
    BufReader::new(end).read_to_end(limit).await.map_err(|error| match error {
        ReadError::TooLong { .. } => {
            let text = format!("the process wrote more than {limit} bytes: raise `Command::output_limit`, or read its pipes");
            io::Error::new(io::ErrorKind::QuotaExceeded, text)
        }
        error => error.into(),
    })
}

/// Awaits all three at once. The first error ends them.
async fn all_three(
    first: impl Future<Output = io::Result<Vec<u8>>>,
    second: impl Future<Output = io::Result<Vec<u8>>>,
    third: impl Future<Output = io::Result<Vec<u8>>>,
) -> io::Result<[Vec<u8>; 3]> {
    let mut running: [Option<Pin<&mut Collecting<'_>>>; 3] = [Some(pin!(first)), Some(pin!(second)), Some(pin!(third))];
    let mut results = [const { Vec::new() }; 3];
    poll_fn(|cx| {
        for (running, result) in running.iter_mut().zip(&mut results) {
            if let Some(future) = running
                && let Poll::Ready(bytes) = future.as_mut().poll(cx)?
            {
                (*result, *running) = (bytes, None);
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await
    .map(|()| results)
}

type Collecting<'a> = dyn Future<Output = io::Result<Vec<u8>>> + 'a;

impl Drop for Child {
    fn drop(&mut self) {
        let Some(watch) = self.watch.take() else { return };
        if self.is_killed_on_drop {
            // One that may not be killed goes on, and is waited for all the same.
            let _it_has_ended = watch.signal(Named::KILL);
        }
        watch.leave_to_the_loop();
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("id", &self.id()).finish_non_exhaustive()
    }
}
