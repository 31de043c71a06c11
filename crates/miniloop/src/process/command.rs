//! How to start a process.
//!
//! Everything about the start itself is left to the standard library. Next: `mod.rs`.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Output, Stdio};

use super::child::Child;
use super::watch::reserve_descriptor;
use crate::config::PROCESS_OUTPUT_LEN_MAX;
use crate::engine::context;

/// What to start, and how. As [`std::process::Command`], whose pages say more about each setting.
///
/// ```
/// use miniloop::process::Command;
///
/// # miniloop::run(async {
/// let status = Command::new("test").args(["-d", "."]).status().await?;
/// assert!(status.success());
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[doc(alias = "create_subprocess_exec")]
#[doc(alias = "subprocess_exec")]
#[doc(alias = "Popen")]
pub struct Command {
    command: process::Command,
    /// Which of the standard streams the user has said something about.
    is_set: [bool; 3],
    directory: Option<PathBuf>,
    is_killed_on_drop: bool,
    output_limit: usize,
}

impl Command {
    /// A program with this name, looked up in `PATH` if there is no `/` in it.
    pub fn new(program: impl AsRef<OsStr>) -> Command {
        Command {
            command: process::Command::new(program),
            is_set: [false; 3],
            directory: None,
            is_killed_on_drop: true,
            output_limit: PROCESS_OUTPUT_LEN_MAX,
        }
    }

    /// A line for the shell, `sh -c`. What strangers say must not stand in it: give that to [`arg`](Self::arg) of a program.
    ///
    /// ```
    /// use miniloop::process::Command;
    ///
    /// # miniloop::run(async {
    /// let output = Command::shell("echo hello | tr a-z A-Z").output().await?;
    /// assert_eq!(output.stdout, b"HELLO\n");
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    #[doc(alias = "create_subprocess_shell")]
    pub fn shell(line: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line);
        command
    }

    /// Adds one argument.
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Command {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Command {
        self.command.args(arguments);
        self
    }

    /// Sets a variable of its environment. Otherwise it has those of this program.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Command {
        self.command.env(name, value);
        self
    }

    /// Sets variables of its environment.
    pub fn envs(&mut self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> &mut Command {
        self.command.envs(variables);
        self
    }

    /// Takes a variable out of its environment.
    pub fn env_remove(&mut self, name: impl AsRef<OsStr>) -> &mut Command {
        self.command.env_remove(name);
        self
    }

    /// Takes all variables out of its environment.
    pub fn env_clear(&mut self) -> &mut Command {
        self.command.env_clear();
        self
    }

    /// Starts it in this folder.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Command {
        self.directory = Some(directory.as_ref().to_owned());
        self.command.current_dir(directory);
        self
    }

    /// Its standard input: by default this program's for [`spawn`](Self::spawn) and [`status`](Self::status), nothing for
    /// [`output`](Self::output), a pipe for [`output_with_input`](Self::output_with_input).
    pub fn stdin(&mut self, stdin: impl Into<Stdio>) -> &mut Command {
        self.is_set[0] = true;
        self.command.stdin(stdin);
        self
    }

    /// Its standard output: by default this program's for [`spawn`](Self::spawn) and [`status`](Self::status), else a pipe.
    pub fn stdout(&mut self, stdout: impl Into<Stdio>) -> &mut Command {
        self.is_set[1] = true;
        self.command.stdout(stdout);
        self
    }

    /// Its standard error: by default as its standard output.
    pub fn stderr(&mut self, stderr: impl Into<Stdio>) -> &mut Command {
        self.is_set[2] = true;
        self.command.stderr(stderr);
        self
    }

    /// Whether it is killed when its [`Child`] is dropped, or the future that runs it. It is, unless this says `false`: then it goes on,
    /// and may outlive this program.
    #[doc(alias = "detach")]
    pub fn kill_on_drop(&mut self, is_killed: bool) -> &mut Command {
        self.is_killed_on_drop = is_killed;
        self
    }

    /// How many bytes are collected of its standard output, and of its standard error, by whatever collects them: 16 MiB unless set.
    pub fn output_limit(&mut self, limit: usize) -> &mut Command {
        self.output_limit = limit;
        self
    }

    /// The command of the standard library, for what is only there: the traits of `std::os::unix::process` for instance. Standard streams
    /// that are set there are overruled.
    pub fn as_std_mut(&mut self) -> &mut process::Command {
        &mut self.command
    }

    /// Starts it. The loop stands still until the system has started it or said why not, which takes about a millisecond.
    ///
    /// # Errors
    /// Why it did not start, with the name of the program, and with the error of the system as its source. Nothing is left of it then.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn spawn(&mut self) -> io::Result<Child> {
        self.start([Stdio::inherit, Stdio::inherit, Stdio::inherit])
    }

    /// Starts it and waits until it has ended.
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`].
    ///
    /// # Cancellation
    /// Dropping the future kills it, unless [`kill_on_drop`](Self::kill_on_drop) says otherwise.
    pub async fn status(&mut self) -> io::Result<ExitStatus> {
        let child = self.start_or_give_way([Stdio::inherit; 3]).await?;
        child.wait().await
    }

    /// Starts it, reads what it writes and waits until it has ended. See [`Child::communicate`].
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::communicate`].
    ///
    /// # Cancellation
    /// Dropping the future kills it, unless [`kill_on_drop`](Self::kill_on_drop) says otherwise.
    #[doc(alias = "check_output")]
    pub async fn output(&mut self) -> io::Result<Output> {
        self.start_or_give_way([Stdio::null, Stdio::piped, Stdio::piped]).await?.communicate([]).await
    }

    /// The same with a standard input. See [`Child::communicate`].
    ///
    /// ```
    /// use miniloop::process::Command;
    ///
    /// # miniloop::run(async {
    /// assert_eq!(Command::new("wc").arg("-c").output_with_input("hello").await?.stdout.trim_ascii(), b"5");
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`output`](Self::output).
    ///
    /// # Cancellation
    /// As [`output`](Self::output).
    pub async fn output_with_input(&mut self, input: impl AsRef<[u8]>) -> io::Result<Output> {
        self.start_or_give_way([Stdio::piped, Stdio::piped, Stdio::piped]).await?.communicate(input).await
    }

    /// A start that fails does so without having waited, and takes as long as all that a task may do in one poll.
    async fn start_or_give_way(&mut self, defaults: [fn() -> Stdio; 3]) -> io::Result<Child> {
        let started = self.start(defaults);
        if started.is_err() {
            context::spend_all_operations();
            context::after_failure().await;
        }
        started
    }

    #[track_caller]
    fn start(&mut self, defaults: [fn() -> Stdio; 3]) -> io::Result<Child> {
        let _there_is_a_loop = context::current();
        // Set each time: the command keeps what another start has set.
        let [stdin, stdout, stderr] = [0, 1, 2].map(|index| (!self.is_set[index]).then(defaults[index]));
        stdin.map(|stdin| self.command.stdin(stdin));
        stdout.map(|stdout| self.command.stdout(stdout));
        stderr.map(|stderr| self.command.stderr(stderr));
        let started = reserve_descriptor().and_then(|reserved| {
            let child = self.command.spawn()?;
            drop(reserved);
            Child::new(child, self.is_killed_on_drop, self.output_limit)
        });
        started.map_err(|source| {
            let (program, directory) = (self.command.get_program().to_string_lossy().into_owned(), self.directory.clone());
            io::Error::new(source.kind(), StartError { program, directory, source })
        })
    }
}

/// Why a process did not start.
#[derive(Debug)]
struct StartError {
    program: String,
    directory: Option<PathBuf>,
    source: io::Error,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot start `{}`", self.program)?;
        if let Some(directory) = &self.directory {
            write!(f, " in {}", directory.display())?;
        }
        write!(f, ": {}", self.source)?;
        match self.source.kind() {
            io::ErrorKind::WouldBlock => f.write_str("; its user may have no more processes and threads: see `ulimit -u`"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.command.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_user_who_may_have_no_more_processes_is_told_where_the_limit_is() {
        let error = StartError { program: "cat".into(), directory: None, source: Errno::AGAIN.into() };
        assert!(error.to_string().starts_with("cannot start `cat`: "), "{error}");
        assert!(error.to_string().ends_with("; its user may have no more processes and threads: see `ulimit -u`"), "{error}");
    }
}
