//! Which system calls a steady echo is made of, counted by strace. Without strace, or where it may not trace, there is nothing to see and
//! the test says so.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::Command;

use miniloop::net::{TcpListener, TcpStream};
use miniloop::spawn;

use super::{event_loop, test_name};

const ROUND_TRIPS: usize = 100;
/// Set in the process that is traced.
const TRACED: &str = "MINILOOP_TRACED_ECHO";

#[test]
fn an_echo_is_a_read_a_write_and_a_wait_on_each_side() {
    if env::var_os(TRACED).is_some() {
        return echo();
    }
    let test = test_name(module_path!(), "an_echo_is_a_read_a_write_and_a_wait_on_each_side");
    let directory = env::temp_dir().join(format!("miniloop-strace-{}-{}", std::process::id(), test.replace(':', "-")));
    fs::create_dir_all(&directory).unwrap();
    let log = directory.join("log");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(&log).arg(env::current_exe().unwrap());
    let status = strace.args(["--exact", &test]).env(TRACED, "1").output();
    let calls = fs::read_to_string(&log).unwrap_or_default();
    fs::remove_dir_all(&directory).unwrap();
    match status {
        Err(error) if error.kind() == ErrorKind::NotFound => return println!("SKIPPED: strace is not installed"),
        Ok(output) if calls.is_empty() => {
            return println!("SKIPPED: strace cannot trace here: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
        Err(error) => panic!("{error}"),
    }

    // Between its two marks this is all that the loop's thread does. The one that started it may still be about to wait for its end.
    let thread_of = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let marking = calls.lines().find(|line| line.contains(" getppid(")).and_then(thread_of);
    let of_loop = calls.lines().filter(|line| thread_of(line) == marking);
    let names = of_loop.filter_map(|line| line.split_whitespace().nth(1)?.split_once('(')).map(|(name, _)| name);
    let steady: Vec<_> = names.skip_while(|name| *name != "getppid").skip(1).take_while(|name| *name != "getppid").collect();
    let count = |name| steady.iter().filter(|call| **call == name).count();
    let waits: usize = ["epoll_pwait2", "epoll_pwait", "ppoll", "poll"].into_iter().map(count).sum();
    let (reads, writes) = (count("recvfrom"), count("sendto"));
    assert_eq!(reads + writes + waits, steady.len(), "{steady:?}");
    // Both ends live on the one loop: two of each for a round trip, and a wait may serve both ends.
    assert_eq!((reads, writes), (2 * ROUND_TRIPS, 2 * ROUND_TRIPS));
    assert!(waits <= 2 * ROUND_TRIPS, "{waits} waits");
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
            for round in 0..=ROUND_TRIPS {
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
