//! Every program runs on every contender: as little as shows that it works. Programs check what they do, and fail if it is wrong: values
//! in order and complete, no timer early, one holder of a lock, echoed bytes those that were sent.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_runtime")).args(arguments).output().expect("it was built")
}

#[test]
fn every_program_does_on_every_contender_what_it_measures() {
    let output = run(&["--quick", "--rounds", "1", "--all"]);
    let (said, table) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
    let rows = |name: &str| table.lines().filter(|line| line.split_whitespace().any(|word| word == name)).count();
    for contender in ["miniloop", "tokio", "smol", "async-executor", "monoio", "compio", "floor"] {
        assert!(rows(contender) > 10, "{contender} has taken part\n{table}");
    }
    assert!(!said.contains("written to"), "figures of so little are not kept\n{said}");
}

#[test]
fn what_does_not_exist_is_refused_with_what_does() {
    let output = run(&["juggle"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no program `juggle`; there are yield, ping-pong"), "{said}");
    let output = run(&["yield", "--case", "7 tasks"]);
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
