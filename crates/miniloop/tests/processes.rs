//! Child processes: real ones, `sh`, `cat`, `sleep`. Nothing here waits for time: a process ends because of something, and that is waited
//! for.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::rc::Rc;

use futures_util::AsyncWriteExt;
use futures_util::future::join_all;
use miniloop::io::{BufReader, PipeReader, write_all};
use miniloop::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use miniloop::signal::Signal;
use miniloop::{DriverKind, EventLoop, spawn, yield_now};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, WaitId, WaitIdOptions, pidfd_open, setrlimit, waitid};

use support::in_a_process_of_its_own;

mod support;

const DRIVERS: [DriverKind; 2] = [DriverKind::Epoll, DriverKind::Poll];

/// Runs `body` on a loop of its own, one after the other for each driver.
fn on_a_loop(mut body: impl AsyncFnMut()) {
    for driver in DRIVERS {
        EventLoop::builder().driver(driver).build().unwrap().run_until_complete(body()).unwrap();
    }
}

/// A shell with a pipe to and from it.
fn shell(line: &str) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let mut child = Command::shell(line).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    (child, stdin, BufReader::new(stdout))
}

/// A descriptor that stands for a child, to look at it without the help of what is tested.
fn pidfd_of(child: &Child) -> OwnedFd {
    pidfd_open(Pid::from_raw(child.id() as i32).unwrap(), PidfdFlags::empty()).unwrap()
}

/// Whether the system has forgotten the child, because its exit status has been taken.
fn is_reaped(pidfd: &OwnedFd) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(waitid(WaitId::PidFd(pidfd.as_fd()), options), Err(Errno::CHILD))
}

// The end of a process.

#[test]
fn the_status_says_how_it_ended() {
    on_a_loop(async || {
        assert!(Command::new("true").status().await.unwrap().success());
        assert_eq!(Command::shell("exit 7").status().await.unwrap().code(), Some(7));
        assert_eq!(Command::shell("kill -TERM $$").status().await.unwrap().signal(), Some(15));
        let child = Command::new("true").spawn().unwrap();
        let status = child.wait().await.unwrap();
        assert_eq!(child.try_wait().unwrap(), Some(status), "it stays");
    });
}

#[test]
fn several_tasks_may_wait_and_one_that_gives_up_disturbs_nobody_c188() {
    on_a_loop(async || {
        let (child, stdin, _) = shell("read line; exit 3");
        let child = Rc::new(child);
        assert_eq!(child.try_wait().unwrap(), None);
        let waiting = [(); 3].map(|()| {
            let child = child.clone();
            spawn(async move { child.wait().await.unwrap().code() })
        });
        yield_now().await;
        let [gives_up, others @ ..] = waiting;
        drop(gives_up);
        drop(stdin);
        for other in others {
            assert_eq!(other.await.unwrap(), Some(3));
        }
        assert_eq!(child.wait().await.unwrap().code(), Some(3), "and whoever comes later");
    });
}

#[test]
fn what_it_wrote_can_be_read_after_it_has_ended_c183_c188() {
    on_a_loop(async || {
        let (child, _, mut stdout) = shell("echo first; echo second");
        child.wait().await.unwrap();
        assert_eq!(stdout.read_line().await.unwrap().unwrap(), "first");
        drop(child);
        assert_eq!(stdout.read_to_end(99).await.unwrap(), b"second\n");
    });
}

#[test]
fn waiting_is_for_the_process_not_for_a_grandchild_that_has_its_pipes_c184() {
    on_a_loop(async || {
        let (child, stdin, mut stdout) = shell("exec 3<&0; cat <&3 & exit 5");
        assert_eq!(child.wait().await.unwrap().code(), Some(5));
        // The grandchild lives and has both pipes.
        let mut stdin = stdin;
        write_all(&mut stdin, b"still here\n").await.unwrap();
        assert_eq!(stdout.read_line().await.unwrap().unwrap(), "still here");
        drop(stdin);
        assert_eq!(stdout.read_line().await.unwrap(), None);
    });
}

#[test]
fn an_exit_status_that_somebody_else_took_is_an_error_for_everybody() {
    on_a_loop(async || {
        let (child, stdin, _) = shell("read line");
        let pidfd = pidfd_of(&child);
        drop(stdin);
        waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED).unwrap();
        for _ in 0..2 {
            let error = child.wait().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains("somebody else took its exit status"), "{error}");
        }
        child.kill().unwrap();
    });
}

// Its pipes.

#[test]
fn input_and_output_flow_at_once_c185() {
    on_a_loop(async || {
        // Far more than the pipes hold, in every direction.
        let input = (0..1_000_000).map(|index| index as u8).collect::<Vec<_>>();
        let output = Command::shell("tee /dev/stderr").output_with_input(&input).await.unwrap();
        assert!(output.status.success());
        assert!(output.stdout == input);
        assert!(output.stderr == input);
    });
}

#[test]
fn a_process_that_does_not_read_its_input_is_no_error_c185() {
    on_a_loop(async || {
        let output = Command::shell("exec <&-; echo done; exit 4").output_with_input(vec![0; 1_000_000]).await.unwrap();
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(4), &b"done\n"[..]));

        let (_child, mut stdin, mut stdout) = shell("exec <&-; echo closed");
        stdout.read_line().await.unwrap();
        // More than the pipe holds: a process that another test is just starting may have the other end until it has begun.
        let error = write_all(&mut stdin, &[0; 1_000_000]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe, "who writes himself is told");
    });
}

#[test]
fn input_without_a_pipe_is_refused() {
    on_a_loop(async || {
        let error = Command::new("cat").stdin(Stdio::null()).output_with_input("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(Command::new("cat").stdin(Stdio::null()).output_with_input("").await.unwrap().stdout.is_empty());
    });
}

#[test]
fn closing_the_standard_input_ends_it() {
    on_a_loop(async || {
        let (child, mut stdin, mut stdout) = shell("cat; echo end");
        stdin.write_all(b"one\n").await.unwrap();
        stdin.close().await.unwrap();
        assert_eq!(stdout.read_to_end(99).await.unwrap(), b"one\nend\n");
        assert!(child.wait().await.unwrap().success());
        assert_eq!(stdin.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn one_command_can_be_started_again_and_again_in_every_way() {
    on_a_loop(async || {
        let mut command = Command::shell("cat; echo out; echo err >&2");
        assert_eq!(command.output().await.unwrap().stdout, b"out\n", "its input is empty");
        assert_eq!(command.output_with_input("in ").await.unwrap().stdout, b"in out\n");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        assert!(child.stdin.is_none() && child.stdout.is_none());
        assert_eq!(child.communicate("").await.unwrap().stderr, b"err\n");
    });
}

#[test]
fn settings_reach_the_process() {
    on_a_loop(async || {
        let mut command = Command::shell("echo $A $B $C; pwd; echo $0");
        command.env_clear().env("A", "a").envs([("B", "b"), ("C", "c")]).env_remove("C").current_dir("/").arg("name");
        assert_eq!(command.output().await.unwrap().stdout, b"a b\n/\nname\n");
    });
}

#[test]
fn output_is_collected_up_to_its_bound() {
    on_a_loop(async || {
        let mut command = Command::shell("echo 123456789; cat");
        assert_eq!(command.output_limit(10).output().await.unwrap().stdout.len(), 10);
        // It waits for input, which never comes: the error kills it.
        let (reader, _writer) = io::pipe().unwrap();
        let mut command = Command::shell("echo 123456789; cat");
        let error = command.output_limit(9).stdin(reader).output().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded);
        assert_eq!(error.to_string(), "the process wrote more than 9 bytes: raise `Command::output_limit`, or read its pipes");
        const DEFAULT: usize = 16 * 1_024 * 1_024;
        let zeros = |len: usize| Command::shell(format!("head -c {len} /dev/zero"));
        assert_eq!(zeros(DEFAULT).output().await.unwrap().stdout.len(), DEFAULT);
        assert_eq!(zeros(DEFAULT + 1).output().await.unwrap_err().kind(), ErrorKind::QuotaExceeded);
    });
}

// Signals.

#[test]
fn signals_reach_it_and_once_it_has_ended_they_reach_nobody_c186() {
    on_a_loop(async || {
        type Send = fn(&Child) -> io::Result<()>;
        // Not one that `nohup` has children ignore.
        let user: Send = |child| child.signal(Signal::USER1);
        for (number, send) in [(9, Child::kill as Send), (15, Child::terminate), (10, user)] {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            send(&child).unwrap();
            // Also as long as nobody has asked how it ended.
            waitid(WaitId::PidFd(pidfd_of(&child).as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
            send(&child).unwrap();
            assert_eq!(child.wait().await.unwrap().signal(), Some(number));
            send(&child).unwrap();
        }
        let child = Command::new("true").spawn().unwrap();
        let realtime = Signal::from_raw(40).unwrap();
        assert_eq!(child.signal(realtime).unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

// Dropping it.

#[test]
fn dropping_a_running_child_kills_it_c186() {
    on_a_loop(async || {
        let (child, _stdin, mut stdout) = shell("echo started; exec sleep 1000");
        stdout.read_line().await.unwrap();
        drop(child);
        assert_eq!(stdout.read_line().await.unwrap(), None, "nobody has the other end any more");
    });
}

#[test]
fn dropping_a_future_that_runs_a_process_kills_it_c186() {
    on_a_loop(async || {
        let (reader, writer) = io::pipe().unwrap();
        let mut command = Command::shell("echo started; exec sleep 1000");
        command.stdout(writer);
        let running = spawn(async move { command.status().await });
        let mut stdout = BufReader::new(PipeReader::try_from(reader).unwrap());
        assert_eq!(stdout.read_line().await.unwrap().unwrap(), "started");
        drop(running);
        assert_eq!(stdout.read_line().await.unwrap(), None);
    });
}

#[test]
fn a_child_that_is_not_to_be_killed_goes_on_c186() {
    on_a_loop(async || {
        let mut command = Command::shell("read line; echo got $line");
        let mut child = command.kill_on_drop(false).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        drop(child);
        write_all(&mut stdin, b"this\n").await.unwrap();
        assert_eq!(BufReader::new(stdout).read_line().await.unwrap().unwrap(), "got this");
    });
}

#[test]
fn a_dropped_child_leaves_no_zombie() {
    for (is_killed, is_ended, driver) in
        [(true, false), (false, false), (true, true)].into_iter().flat_map(|(killed, ended)| DRIVERS.map(|driver| (killed, ended, driver)))
    {
        let mut event_loop = EventLoop::builder().driver(driver).build().unwrap();
        let handle = event_loop.handle();
        let (reader, writer) = io::pipe().unwrap();
        let entered = handle.enter();
        let child = Command::new("cat").stdin(reader).kill_on_drop(is_killed).spawn().unwrap();
        drop(entered);
        let pidfd = pidfd_of(&child);
        let mut writer = Some(writer);
        if is_ended {
            drop(writer.take());
            waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        }
        drop(child);
        assert!(is_reaped(&pidfd) || !is_ended, "one that has ended is reaped at once");
        if !is_killed {
            drop(writer.take());
        }
        // Each turn waits for an event, and its end is one.
        while !is_reaped(&pidfd) {
            event_loop.run_once().unwrap();
        }
    }
}

#[test]
fn what_outlives_its_loop_is_reaped_when_the_next_process_starts() {
    let (reader, writer) = io::pipe().unwrap();
    let mut pidfds = Vec::new();
    on_a_loop(async || {
        let reader = reader.try_clone().unwrap();
        let child = Command::new("cat").stdin(reader).kill_on_drop(false).spawn().unwrap();
        pidfds.push(pidfd_of(&child));
    });
    assert!(!pidfds.iter().any(is_reaped));
    drop(writer);
    // Another test may start one in between.
    for pidfd in &pidfds {
        let _ended = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    }
    on_a_loop(async || assert!(Command::new("true").status().await.unwrap().success()));
    assert!(pidfds.iter().all(is_reaped));
}

#[test]
fn a_child_outlives_its_loop_without_harm() {
    let mut kept = Vec::new();
    on_a_loop(async || {
        let ended = Command::new("true").spawn().unwrap();
        ended.wait().await.unwrap();
        kept.push((ended, Command::new("sleep").arg("1000").spawn().unwrap()));
    });
    for (ended, running) in kept {
        on_a_loop(async || assert!(ended.wait().await.unwrap().success(), "it is known"));
        let pidfd = pidfd_of(&running);
        drop(running);
        let _killed = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    }
}

// Starting.

#[test]
fn a_child_inherits_nothing_of_its_parents_loop_c174() {
    let list = ["/proc/self/fd"];
    let before = std::process::Command::new("ls").args(list).output().unwrap().stdout;
    on_a_loop(async || {
        let listener = miniloop::net::TcpListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let streams = miniloop::net::UnixStream::pair().unwrap();
        let (reader, writer) = miniloop::io::pipe().unwrap();
        let signals = miniloop::signal::Signals::new([Signal::USER2]).unwrap();
        let sibling = shell("read line");
        let inherited = Command::new("ls").args(list).output().await.unwrap().stdout;
        assert_eq!(String::from_utf8(inherited).unwrap(), String::from_utf8(before.clone()).unwrap());
        drop((listener, streams, reader, writer, signals, sibling));
    });
}

#[test]
fn a_start_that_fails_names_the_program_and_has_the_systems_error_c187() {
    on_a_loop(async || {
        let mut command = Command::new("./no-such-program");
        let error = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.to_string(), "cannot start `./no-such-program`: No such file or directory (os error 2)");
        let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(2));
        let error = Command::new("true").current_dir("/no/such/folder").spawn().unwrap_err();
        assert_eq!(error.to_string(), "cannot start `true` in /no/such/folder: No such file or directory (os error 2)");
        assert_eq!(Command::new("/etc/passwd").spawn().unwrap_err().kind(), ErrorKind::PermissionDenied);
    });
}

#[test]
fn who_starts_again_and_again_what_is_not_there_does_not_hold_the_loop() {
    on_a_loop(async || {
        for is_output in [false, true] {
            let attempts = Rc::new(Cell::new(0));
            let counted = attempts.clone();
            let retries = spawn(async move {
                let mut command = Command::new("/no/such/program");
                for _ in 0..100 {
                    if is_output {
                        drop(command.output().await)
                    } else {
                        drop(command.status().await)
                    }
                    counted.set(counted.get() + 1);
                }
            });
            yield_now().await;
            assert!(attempts.get() <= 1, "a start takes as long as all that a task may do in one poll");
            drop(retries);
        }
    });
}

#[test]
#[should_panic(expected = "no event loop is running on this thread")]
fn nothing_is_started_outside_a_loop() {
    let _never = Command::new("true").spawn();
}

#[test]
fn many_run_at_once() {
    on_a_loop(async || {
        let lengths = join_all((0..50).map(|index| async move {
            let output = Command::new("cat").output_with_input(vec![b'x'; index * 1_000]).await.unwrap();
            output.stdout.len()
        }));
        assert_eq!(lengths.await, (0..50).map(|index| index * 1_000).collect::<Vec<_>>());
    });
}

#[test]
fn a_start_that_runs_out_of_descriptors_leaves_nothing_c187() {
    in_a_process_of_its_own("a_start_that_runs_out_of_descriptors_leaves_nothing_c187", || {
        on_a_loop(async || {
            setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).unwrap();
            // Without pipes it is the descriptor that stands for the process which cannot be had.
            for stdio in [Stdio::piped, Stdio::inherit] {
                let mut failed_count = 0;
                let faults_before = faults_of_children();
                for room in 0.. {
                    let open_before = open_descriptors();
                    let mut hoard = Vec::from_iter(std::iter::from_fn(|| File::open("/dev/null").ok()));
                    hoard.truncate(hoard.len() - room);
                    let started = Command::new("cat").stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn();
                    drop(hoard);
                    match started {
                        Ok(mut child) => {
                            child.stdin = None;
                            child.wait().await.unwrap();
                            break;
                        }
                        Err(error) => {
                            let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
                            assert_eq!(source.and_then(io::Error::raw_os_error), Some(Errno::MFILE.raw_os_error()), "{error}");
                            failed_count += 1;
                        }
                    }
                    assert_eq!(open_descriptors(), open_before);
                    let children = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
                    assert_eq!(children.err(), Some(Errno::CHILD), "no process, no zombie");
                    assert_eq!(faults_of_children(), faults_before, "nothing was started only to be killed");
                }
                assert!(failed_count > 0);
            }
        });
    });
}

/// How many page faults the children had that have been waited for, proc_pid_stat(5): no process lives without one.
fn faults_of_children() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_name, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(8).unwrap().parse().unwrap()
}

fn open_descriptors() -> Vec<u64> {
    let names = std::fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap().file_name());
    let mut numbers = names.map(|name| name.to_str().unwrap().parse().unwrap()).collect::<Vec<u64>>();
    numbers.sort_unstable();
    // The last is the one of the folder, which has been closed by now.
    numbers.pop();
    numbers
}
