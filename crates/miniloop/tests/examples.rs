//! The examples do what they print: each is started as a program. `cargo test` builds them, but not when it is asked for tests only, by
//! `--tests` or `--test NAME`.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// An example that runs, and the lines that it prints.
struct Example {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Example {
    fn start(name: &str) -> Example {
        // This program stands in `target/PROFILE/deps`, the examples beside that folder.
        let program = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples").join(name);
        let child = Command::new(&program).stdout(Stdio::piped()).spawn();
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

    /// The lines until it ends by itself, without a failure.
    #[track_caller]
    fn finish(mut self) -> Vec<String> {
        let rest = self.lines.map(Result::unwrap).collect();
        assert!(self.child.wait().unwrap().success());
        rest
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
#[expect(clippy::disallowed_methods, reason = "this side of the conversation is a program without a loop")]
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
    kill_process(Pid::from_child(&example.child), Signal::INT).unwrap();
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
    writeln!(grace.get_mut(), "{}", "a line that is too long".repeat(1_000)).unwrap();
    // The error ends her conversation and no other. The system may tell her so by a reset: it has bytes that nobody read.
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
