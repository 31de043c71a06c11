//! What the hot paths cost, in instructions: a change that makes one of them dearer fails here, by figures that are the same at every run.
//!
//! Callgrind counts what a program of `src` executes in user space, of the release profile, allocator included. Each program is run twice,
//! and the difference divided by how many times more its thing was done: what a start costs is in neither figure. Two compilers half a year
//! apart came to figures 1.5 % apart. Time is never looked at.
//!
//! A figure has to be near the one that stands in the table below, in both directions: an improvement that nobody has written down would
//! leave room to lose it again. So whoever makes a path faster, or has a reason to make it dearer, changes one number here.

use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of `src/main.rs`, and how many instructions each of its times has taken. Counted with rustc 1.95, glibc 2.36, valgrind 3.19.
const MEASURED: [(&str, f64); 10] = [
    // One poll of a task that has woken itself, and a poll of the kernel for 64 of them.
    ("yield", 298.0),
    // Two tasks, each woken by the other and polled once.
    ("ping-pong", 691.0),
    // A task made, polled and awaited.
    ("spawn", 1_385.0),
    // The same, as a member of a group.
    ("group", 2_921.0),
    // A `sleep` polled and dropped.
    ("timer-cancel", 408.0),
    // A callback set to a time, one of 1,000 that come due together, and called.
    ("timer-fire", 1_088.0),
    // 64 bytes written to a socket and read from its other end.
    ("read-write", 438.0),
    // Two writes, two reads that wait, two tasks woken by the kernel.
    ("echo", 3_842.0),
    // A `MSG` of 64 bytes, one of 100 in a read, until it is committed and sent to the one who said it.
    ("parse", 387.0),
    // One member of 1,000 to whom a commit of one message is sent.
    ("fan-out", 446.0),
];

/// A figure may be so much above what is measured: what another compiler or allocator may make of the same code.
const ABOVE_MAX_PERCENT: f64 = 5.0;
/// And so much below it.
const BELOW_MAX_PERCENT: f64 = 20.0;

/// How many times each program does its thing, in the shorter and in the longer run.
const TIMES: [u32; 2] = [1_000, 6_000];

#[test]
fn hot_paths_cost_the_instructions_that_are_written_down() {
    if !cfg!(target_arch = "x86_64") {
        return println!("SKIPPED: the instructions that are written down are those of x86_64");
    }
    match Command::new("valgrind").arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return println!("SKIPPED: valgrind is not installed"),
        version => drop(version.expect("it can be asked")),
    }
    let program = build();
    let mut complaints = Vec::new();
    for (name, measured) in MEASURED {
        let counted = count(&program, name).unwrap_or_else(|error| panic!("{name} cannot be counted: {error}"));
        println!("{name:<12} {counted:>6.0} instructions, {measured:>6.0} written down");
        complaints.extend(complaint(&program, name, measured, counted));
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// What is wrong with a figure, and what to do about it.
fn complaint(program: &Path, name: &str, measured: f64, counted: f64) -> Option<String> {
    let most = measured * (1.0 + ABOVE_MAX_PERCENT / 100.0);
    let least = measured * (1.0 - BELOW_MAX_PERCENT / 100.0);
    let (program, times, file) = (program.display(), TIMES[1], file!());
    if counted > most {
        Some(format!(
            "{name} costs {counted:.0} instructions, at most {most:.0} are allowed: {measured:.0} and {ABOVE_MAX_PERCENT} %
  where they are:  valgrind --tool=callgrind --callgrind-out-file=/tmp/{name} {program} {name} {times}
                   callgrind_annotate /tmp/{name}
  if they are due: write {counted:.0} for {name} in {file}, and the reason into the commit"
        ))
    } else if counted < least {
        Some(format!(
            "{name} costs only {counted:.0} instructions: the {measured:.0} that are written down leave room to lose that again
  well done:       write {counted:.0} for {name} in {file}"
        ))
    } else {
        None
    }
}

/// The instructions of each time that a program does its thing.
fn count(program: &Path, name: &str) -> Result<f64, Box<dyn Error>> {
    let [shorter, longer] = TIMES;
    let difference = collected(program, name, longer)? - collected(program, name, shorter)?;
    Ok(difference / f64::from(longer - shorter))
}

/// The instructions of a whole run.
fn collected(program: &Path, name: &str, times: u32) -> Result<f64, Box<dyn Error>> {
    let mut callgrind = Command::new("valgrind");
    callgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args([name, &times.to_string()]);
    let output = callgrind.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    collected.filter(|_| output.status.success()).ok_or_else(|| format!("{callgrind:?}: {}\n{said}", output.status).into())
}

/// Builds the programs as users build theirs, and without the features that other packages of the workspace ask for.
fn build() -> PathBuf {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--package", env!("CARGO_PKG_NAME"), "--message-format", "json-render-diagnostics"]);
    let output = cargo.output().expect("cargo can be started");
    assert!(output.status.success(), "{cargo:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8_lossy(&output.stdout);
    let path = messages.lines().find_map(|line| Some(line.split_once("\"executable\":\"")?.1.split_once('"')?.0));
    path.expect("a program is what it builds").into()
}

#[test]
fn a_figure_far_from_what_is_written_down_is_complained_about_in_both_directions() {
    let complaint = |counted| complaint(Path::new("target/release/instructions"), "spawn", 1_000.0, counted);
    assert_eq!([800.0, 1_000.0, 1_050.0].map(complaint), [None, None, None]);
    let dearer = complaint(1_051.0).expect("it is dearer");
    assert!(dearer.starts_with("spawn costs 1051 instructions, at most 1050 are allowed: 1000 and 5 %"), "{dearer}");
    assert!(dearer.contains("target/release/instructions spawn 6000\n"), "{dearer}");
    let remedies = [dearer, complaint(799.0).expect("it is cheaper")];
    assert!(remedies[0].contains("write 1051 for spawn in crates/") && remedies[1].contains("write 799 for spawn in crates/"));
}
