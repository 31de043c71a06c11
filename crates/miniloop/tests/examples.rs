//! The examples do what they print: each is started as a program. `cargo test` builds them, but not when it is asked for tests only, by
//! `--tests` or `--test NAME`.

#![allow(clippy::disallowed_methods, reason = "this side of each conversation is a program without a loop")]

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// An example that runs, and the lines that it prints.
struct Example {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start(name: &str) -> Example {
        Example::start_with(name, &[])
    }

    fn start_with(name: &str, arguments: &[&str]) -> Example {
        // This program stands in `target/PROFILE/deps`, the examples beside that folder.
        let program = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join(name);
        let child = Command::new(&program).args(arguments).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| {
            panic!(
                "cannot start {}: {error}. `cargo test --tests` and `--test NAME` do not build the examples that this test runs: call \
                 `cargo build -p miniloop --examples` first, with the same profile and target directory, or plain `cargo test -p miniloop`",
                program.display()
            )
        });
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Example { child, lines }
    }

    fn next_line(&mut self) -> String {
        self.lines.next().expect("a line").unwrap()
    }

    fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// The lines until it ends by itself, without a failure.
    #[track_caller]
    fn finish(mut self) -> Vec<String> {
        let rest = self.lines.by_ref().map(Result::unwrap).collect();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

/// A test that fails leaves no program behind, which would keep whoever reads the suite's output waiting.
impl Drop for Example {
    fn drop(&mut self) {
        let _has_ended = self.child.kill();
        let _status = self.child.wait();
    }
}

#[test]
fn callbacks_and_timers_run_in_the_order_that_they_print() {
    let example = Example::start("callbacks_and_timers");
    let expected = [
        "1: scheduled first",
        "2: scheduled second",
        "3: due at once, so at the next look at the clock",
        "callback failed: \"no such file\"",
        "4: 10 ms later",
        "5: 20 ms later",
        "tick 1",
        "tick 2",
        "tick 3",
    ];
    assert_eq!(example.finish(), expected);
}

#[test]
fn promises_lead_from_callbacks_to_await() {
    let example = Example::start("promises");
    let expected = [
        "called back: alice is in",
        "awaited: bob is in",
        "together: carol is in, dave is in",
        "first reader: erin is in",
        "second reader: erin is in",
        "forgotten: the resolver of this promise was dropped without setting it",
        "slow: the time limit was reached",
        "worker: nobody waits any more",
    ];
    assert_eq!(example.finish(), expected);
}

#[test]
fn the_echo_server_answers_two_peers_and_ends_on_ctrl_c() {
    let mut example = Example::start("echo_server");
    let line = example.next_line();
    let address = line.strip_prefix("listening on ").unwrap();
    let mut peers = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    for text in [b"hello".as_slice(), &[7; 10_000]] {
        for peer in &mut peers {
            peer.write_all(text).unwrap();
        }
        for peer in &mut peers {
            let mut echoed = vec![0; text.len()];
            peer.read_exact(&mut echoed).unwrap();
            assert_eq!(echoed, text);
        }
    }
    peers[0].shutdown(Shutdown::Write).unwrap();
    assert_eq!(peers[0].read(&mut [0]).unwrap(), 0, "it closes when the peer has");
    example.interrupt();
    assert_eq!(example.finish(), ["bye"]);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this side of the conversation is a program without a loop")]
fn the_chat_server_tells_everybody_what_everybody_says() {
    let mut example = Example::start("chat_server");
    let line = example.next_line();
    let address = line.strip_prefix("listening on ").unwrap();
    let come = |name: &str| {
        let mut member = BufReader::new(TcpStream::connect(address).unwrap());
        writeln!(member.get_mut(), "{name}").unwrap();
        member
    };
    #[track_caller]
    fn hears(member: &mut BufReader<TcpStream>, expected: &str) {
        let mut line = String::new();
        member.read_line(&mut line).unwrap();
        assert_eq!(line, expected);
    }
    let mut ada = come("ada");
    hears(&mut ada, "ada has come\n");
    let mut grace = come("grace");
    hears(&mut ada, "grace has come\n");
    hears(&mut grace, "grace has come\n");
    writeln!(ada.get_mut(), "hello grace").unwrap();
    for member in [&mut ada, &mut grace] {
        hears(member, "ada: hello grace\n");
    }
    drop(ada);
    hears(&mut grace, "ada has left\n");
    // The error ends her conversation and no other. The system may tell her so by a reset, while she writes or later: it has bytes that
    // nobody read.
    let _cut_off = writeln!(grace.get_mut(), "{}", "a line that is too long".repeat(1_000));
    let _left = grace.read_line(&mut String::new());
    kill_process(Pid::from_child(&example.child), Signal::INT).unwrap();
    assert_eq!(example.finish(), ["bye"]);
}

#[test]
fn many_clients_get_all_their_answers() {
    let example = Example::start("many_clients");
    assert_eq!(example.finish(), ["200 clients got 2000 answers; the server saw 2000 messages"]);
}

#[test]
fn a_host_turns_the_loop_with_its_own_epoll_loop() {
    let example = Example::start("inside_epoll");
    let conversation = [
        "guest: knock 1",
        "host: heard 1",
        "guest: knock 2",
        "host: heard 2",
        "guest: knock 3",
        "host: heard 3",
        "host: the pipe has ended, the task has finished: true",
    ];
    let (first, second) = (["host: sleeps as long as its guest says"], ["host: watches descriptors and nothing else"]);
    assert_eq!(example.finish(), [&first[..], &conversation, &second, &conversation].concat());
}

#[test]
fn a_loop_of_frames_turns_the_loop_once_a_frame() {
    let example = Example::start("frame_loop");
    let expected = [
        "frame 0 at   0 ms: the ball is 0 m up",
        "frame 1 at  20 ms: the ball is 0 m up",
        "frame 2 at  40 ms: the ball is 3 m up",
        "frame 3 at  60 ms: the ball is 3 m up",
        "frame 4 at  80 ms: the ball is 5 m up",
        "frame 5 at 100 ms: the ball is 5 m up",
        "frame 6 at 120 ms: the ball is 3 m up",
        "frame 7 at 140 ms: the ball is 3 m up",
        "frame 8 at 160 ms: the ball is 0 m up",
        "landed",
    ];
    assert_eq!(example.finish(), expected);
}

#[test]
fn requests_fan_out_under_a_semaphore() {
    let expected = ["ada: 3, grace: 5, barbara: 7, edsger: 6, donald: 6, frances: 7", "at most 3 at a time"];
    assert_eq!(Example::start("fan_out").finish(), expected);
}

#[test]
fn recurring_jobs_keep_their_beat() {
    let expected = [
        "15 min: sweep",
        "20 min: backup begins",
        "30 min: recurring job `sweep`",
        "40 min: backup begins",
        "45 min: sweep",
        "50 min: sweep",
        "60 min: backup begins",
        "65 min: stopped after 4 sweeps",
    ];
    assert_eq!(Example::start("recurring_jobs").finish(), expected);
}

#[test]
fn tls_runs_over_a_stream_of_the_loop() {
    assert_eq!(Example::start("tls").finish(), ["HELLO, and nobody has read it on the way"]);
}

#[test]
fn the_proxy_passes_on_each_direction_and_its_end() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut proxy = Example::start_with("tcp_proxy", &[&server.local_addr().unwrap().to_string()]);
    let line = proxy.next_line();
    let mut client = TcpStream::connect(line.strip_prefix("listening on ").unwrap()).unwrap();
    let (mut server, _) = server.accept().unwrap();
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut asked = String::new();
    server.read_to_string(&mut asked).unwrap(); // ends though the client still listens
    server.write_all(&[7; 1_000_000]).unwrap();
    drop(server);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    assert_eq!((asked.as_str(), answer.len()), ("question", 1_000_000));
    assert_eq!(proxy.next_line(), "8 bytes up, 1000000 bytes down");
    proxy.child.kill().unwrap();
    proxy.child.wait().unwrap();
}

#[test]
fn a_graceful_shutdown_says_goodbye_to_each_client() {
    let mut server = Example::start("graceful_shutdown");
    let line = server.next_line();
    let address = line.strip_prefix("listening on ").unwrap();
    let mut clients = [(); 3].map(|()| BufReader::new(TcpStream::connect(address).unwrap()));
    let mut line = String::new();
    for client in &mut clients {
        client.get_mut().write_all(b"hello\n").unwrap();
        client.read_line(&mut line).unwrap();
    }
    server.interrupt();
    for client in &mut clients {
        client.read_to_string(&mut line).unwrap();
    }
    assert_eq!(line, "you said hello\n".repeat(3) + &"the server stops, goodbye\n".repeat(3));
    assert_eq!(server.finish(), ["stopping", "nobody is left"]);
}

#[test]
fn the_redis_client_speaks_to_a_real_server() {
    let folder = std::env::temp_dir().join(format!("miniloop-redis-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // A free port, for a server that cannot be asked for one.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let redis = Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--dir", folder.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut redis) = redis else {
        println!("SKIPPED: redis-server is not installed");
        return;
    };
    let mut log = BufReader::new(redis.stdout.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("Ready to accept connections")));
    let lines = Example::start_with("redis", &[&format!("127.0.0.1:{port}")]).finish();
    redis.kill().unwrap();
    redis.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let squares: Vec<_> = (1..=8).map(|n: i32| format!("Text(\"{}\")", n * n)).collect();
    assert_eq!(lines, [format!("List([{}])", squares.join(", ")), "Number(1)".to_owned(), "an error: true".to_owned()]);
}

#[test]
#[cfg(feature = "hyper")]
fn the_http_server_answers_and_ends_on_ctrl_c() {
    let mut server = Example::start("http_server");
    let line = server.next_line();
    let address = line.strip_prefix("listening on http://").unwrap().to_owned();
    let request = |text: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let get = |path: &str| request(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"));
    let answer = get("/");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nhello\n"), "{answer}");
    assert!(get("/nowhere").starts_with("HTTP/1.1 404 Not Found\r\n"));
    let shout = "POST /shout HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello";
    assert!(request(shout).ends_with("\r\n\r\nHELLO"));
    assert!(request("no such thing\r\n\r\n").starts_with("HTTP/1.1 400 Bad Request\r\n"));
    // A request that is under way when the server is told to end: it has been asked for its body.
    let mut late = BufReader::new(TcpStream::connect(&address).unwrap());
    let head = b"POST /shout HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n";
    late.get_mut().write_all(head).unwrap();
    let mut answer = String::new();
    late.read_line(&mut answer).unwrap();
    assert_eq!(answer, "HTTP/1.1 100 Continue\r\n");
    server.interrupt();
    assert_eq!(server.next_line(), "bye");
    late.get_mut().write_all(b"hello").unwrap();
    late.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nHELLO"), "{answer}");
    assert!(server.finish().is_empty());
}
