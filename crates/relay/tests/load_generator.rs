//! The load generator finds fault with servers that deserve it: here are some.

mod support;

use std::net::TcpListener;
use std::process::{Command, Stdio};

use support::client::Client;
use support::{LIMIT, Watchdog};

/// One connection is made, and `server` speaks on it.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "there is no loop to block")]
fn check(server: impl FnOnce(&mut Client), expected: Result<(), &str>) {
    let _watchdog = Watchdog::new();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("there are ports left");
    let address = listener.local_addr().expect("it is bound").to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_relay-load"));
    command.args(["--address", &address]).args("--rooms 1 --window 2 --messages 3 --size 12 --seed 9".split(' '));
    let load = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started");
    let (stream, _) = listener.accept().expect("it connects");
    stream.set_read_timeout(Some(LIMIT)).expect("it is a socket");
    let mut client = Client::of(stream.into());
    client.hears("JOIN m00000 load-9-0");
    client.say("OK JOIN m00000 load-9-0");
    client.hears("MSG 0000000000 j");
    client.hears("MSG 0000000001 j");
    server(&mut client);
    drop(client);
    let output = load.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    match expected {
        Ok(()) => assert!(output.status.success() && said.contains("all once and in order"), "{said}"),
        Err(text) => assert!(!output.status.success() && said.contains(text), "{said}"),
    }
}

#[test]
fn a_server_that_does_what_it_should_passes() {
    check(
        |client| {
            client.say("MESSAGE m00000 0000000000 j");
            client.hears("MSG 0000000002 j");
            client.say("PING");
            client.hears("PONG");
            client.say("MESSAGE m00000 0000000001 j\nMESSAGE m00000 0000000002 j");
            client.hears("QUIT");
            client.say("OK QUIT");
        },
        Ok(()),
    );
}

#[test]
fn what_a_server_does_wrong_is_named() {
    let says = |lines: &'static str| move |client: &mut Client| client.say(lines);
    let who = "member 0 of room 0";
    for (lines, expected) in [
        ("MESSAGE m00000 0000000000 j\nMESSAGE m00000 0000000000 j", "came twice"),
        ("MESSAGE m00000 0000000001 j", "came early"),
        ("MESSAGE m00001 0000000000 j", "member 1, who sends none"),
        ("MESSAGE m00000 0000000000 k", "the server says `MESSAGE m00000 0000000000 k`"),
        ("MESSAGE m00000 0000000000 j", "the server has closed the connection"),
        ("ERR storage full", "the server says `ERR storage full`"),
        ("OK QUIT", "the server says `OK QUIT`"),
    ] {
        check(says(lines), Err(expected));
        check(says(lines), Err(who));
    }
}
