//! Which system calls an echo, a turn and a message of another thread are made of, as strace sees them. Without strace, or where it may not
//! trace, there is nothing to see and the tests say so.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::process::Command;

use miniloop::net::{TcpListener, TcpStream};
use miniloop::spawn;

use super::{event_loop, test_name};
use crate::support;

const TIMES: usize = 100;
/// Set in the process that is traced.
const TRACED: &str = "MINILOOP_TRACED";

#[test]
fn an_echo_is_a_read_a_write_and_a_wait_on_each_side() {
    let Some(calls) = calls_between_marks("an_echo_is_a_read_a_write_and_a_wait_on_each_side", echo) else { return };
    let count = |name| calls.iter().filter(|call| *call == name).count();
    let (reads, writes, waits) = (count("recvfrom"), count("sendto"), waits(&calls));
    assert_eq!(reads + writes + waits, calls.len(), "{calls:?}");
    // Both ends live on the one loop: two of each for a round trip, and a wait may serve both ends.
    assert_eq!((reads, writes), (2 * TIMES, 2 * TIMES));
    assert!(waits <= 2 * TIMES, "{waits} waits");
}

#[test]
fn a_turn_in_which_nothing_comes_is_one_wait() {
    let turns = || {
        let (watched, _silent) = UnixStream::pair().unwrap();
        let mut event_loop = event_loop();
        let handle = event_loop.handle();
        handle.add_reader(&watched, || ()).unwrap();
        mark();
        for _ in 0..TIMES {
            // It may not sleep: there is something to run.
            handle.call_soon(|| ());
            event_loop.run_once().unwrap();
        }
        mark();
    };
    let Some(calls) = calls_between_marks("a_turn_in_which_nothing_comes_is_one_wait", turns) else { return };
    assert_eq!((waits(&calls), calls.len()), (TIMES, TIMES), "{calls:?}");
}

#[test]
fn what_another_thread_sends_to_a_loop_that_is_awake_costs_no_call() {
    let messages = || {
        let mut event_loop = event_loop();
        let handle = event_loop.handle();
        let remote = handle.remote();
        handle.call_soon(move || {
            support::on_another_thread(|| {
                mark();
                for _ in 0..TIMES {
                    remote.call_soon(|| ()).unwrap();
                }
                mark();
            });
        });
        event_loop.run_once().unwrap();
    };
    let Some(calls) = calls_between_marks("what_another_thread_sends_to_a_loop_that_is_awake_costs_no_call", messages) else { return };
    assert_eq!(calls, [""; 0]);
}

fn waits(calls: &[String]) -> usize {
    calls.iter().filter(|call| ["epoll_pwait2", "epoll_pwait", "ppoll", "poll"].contains(&call.as_str())).count()
}

/// What the thread that calls [`mark`] asks of the kernel between its two marks, memory apart, when `body`, the rest of the test with this
/// name, runs in a process of its own. `None` in that process, and where nothing can be seen; then it says so.
#[track_caller]
fn calls_between_marks(test: &str, body: impl FnOnce()) -> Option<Vec<String>> {
    if env::var_os(TRACED).is_some() {
        body();
        return None;
    }
    let test = test_name(module_path!(), test);
    let directory = env::temp_dir().join(format!("miniloop-strace-{}-{}", std::process::id(), test.replace(':', "-")));
    fs::create_dir_all(&directory).unwrap();
    let log = directory.join("log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "trace=!%memory", "-o"]).arg(&log).arg(env::current_exe().unwrap());
    let status = strace.args(["--exact", &test]).env(TRACED, "1").output();
    let calls = fs::read_to_string(&log).unwrap_or_default();
    fs::remove_dir_all(&directory).unwrap();
    match status {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: strace is not installed");
            return None;
        }
        Ok(output) if calls.is_empty() => {
            println!("SKIPPED: strace cannot trace here: {}", String::from_utf8_lossy(&output.stderr).trim());
            return None;
        }
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => panic!("{error}"),
    }

    // The other threads have nothing to do with it: the one that runs the tests waits for their end.
    let thread_of = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let marking = calls.lines().find(|line| line.contains(" getppid(")).and_then(thread_of);
    let of_thread = calls.lines().filter(|line| thread_of(line) == marking);
    let names = of_thread.filter_map(|line| line.split_whitespace().nth(1)?.split_once('(')).map(|(name, _)| name);
    let after_first = names.skip_while(|name| *name != "getppid").skip(1);
    Some(after_first.take_while(|name| *name != "getppid").map(str::to_owned).collect())
}

fn echo() {
    event_loop()
        .run_until_complete(async {
            let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            let echo = spawn(async move {
                let mut buffer = [0; 64];
                loop {
                    let len = server.read(&mut buffer).await.unwrap();
                    if len == 0 {
                        break;
                    }
                    server.write(&buffer[..len]).await.unwrap();
                }
            });
            let mut buffer = [0; 64];
            for round in 0..=TIMES {
                // The first round trip warms up: what comes later is steady.
                if round == 1 {
                    mark();
                }
                client.write(b"ping").await.unwrap();
                assert_eq!(client.read(&mut buffer).await.unwrap(), 4);
            }
            mark();
            drop(client);
            echo.await.unwrap();
        })
        .unwrap();
}

/// A system call that nobody else makes.
fn mark() {
    let _parent = rustix::process::getppid();
}
