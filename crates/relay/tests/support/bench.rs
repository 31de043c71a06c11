//! `relay bench` against a server: it checks what every member sees.

use std::process::{Child, Command, Stdio};

use relay_bench::Report;

use super::server::Server;

/// Runs it to its end, with these words behind its own, and returns what it found.
#[track_caller]
pub(crate) fn bench(server: &Server, arguments: &str) -> Report {
    report(begin_bench(server, arguments), 0)
}

/// Starts it.
#[track_caller]
pub(crate) fn begin_bench(server: &Server, arguments: &str) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relay"));
    command.args(["bench", "--json", "--address", &server.address.to_string()]).args(arguments.split(' '));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be started")
}

/// Waits until it has ended with this status, and returns what it found.
#[track_caller]
pub(crate) fn report(bench: Child, code: i32) -> Report {
    let ended = bench.wait_with_output().expect("it is our child");
    assert_eq!(ended.status.code(), Some(code), "{}", String::from_utf8_lossy(&ended.stderr));
    serde_json::from_slice(&ended.stdout).expect("it prints a report")
}
