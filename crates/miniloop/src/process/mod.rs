//! Child processes on the loop: start them, feed them, read them, wait for them.
//!
//! [`Command`] has the names and defaults of [`std::process::Command`], with one difference: a [`Child`] that is dropped while it runs is
//! killed, as everything that nobody owns any more ends here; see [`Command::kill_on_drop`]. This module is Linux's: exits are noticed by
//! pidfd, which other systems lack.
//!
//! ```
//! use miniloop::io::{BufReader, write_all};
//! use miniloop::process::{Command, Stdio};
//!
//! # miniloop::run(async {
//! // All at once ..
//! let output = Command::new("sort").output_with_input("b\na\n").await?;
//! assert!(output.status.success());
//! assert_eq!(output.stdout, b"a\nb\n");
//!
//! // .. or step by step.
//! let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
//! let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
//! write_all(&mut stdin, b"hello\n").await?;
//! assert_eq!(BufReader::new(stdout).read_line().await?.as_deref(), Some("hello"));
//! drop(stdin);
//! assert!(child.wait().await?.success());
//! # Ok::<(), std::io::Error>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! # How an exit is noticed
//! By a descriptor that stands for the process (`pidfd`, Linux 5.4): the loop watches it like a socket. There is no signal handler and no
//! thread, nothing is polled, and whoever else starts processes in the same program, or in another loop, is not disturbed. A number that
//! the system has given to another process is never waited for or signalled. On a system without `pidfd` nothing can be started:
//! [`spawn`](Command::spawn) says [`Unsupported`](std::io::ErrorKind::Unsupported).
//!
//! A process takes real time, of which a [`VirtualClock`](crate::VirtualClock) knows nothing: keep a [`hold`](crate::VirtualClock::hold)
//! while it runs.
//!
//! A program that waits for *any* child (`waitpid(-1)`), or ignores `SIGCHLD`, takes away the exit status that these processes have for us:
//! [`wait`](Child::wait) then ends with an error that says so.

mod watch;
mod pipes;
mod child;
mod command;

pub use std::process::{ExitStatus, Output, Stdio};

pub use self::child::Child;
pub use self::command::Command;
pub use self::pipes::{ChildStderr, ChildStdin, ChildStdout};
