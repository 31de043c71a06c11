//! `cargo xtask test`: runs every step, prints one line for each and the whole output of those that fail, and counts.
//!
//! A failed step does not stop the others: one run shows all that is wrong. Output goes to `target/xtask/STEP.log`, not through a pipe:
//! a process that a test left behind cannot keep us waiting, and a step that hangs can be read while it does.
//! Read next: `tally.rs`, how is counted; `plan.rs`, what is run.

mod tally;
mod tools;
mod plan;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, iter};

use crate::tree::Tree;
use plan::{Invocation, Step, Work};
use tally::Tally;

/// What `cargo xtask test` was asked to do.
pub(crate) struct Options {
    /// The steps to run; all when empty.
    pub(crate) only: Vec<String>,
    /// Install missing programs also outside of CI.
    pub(crate) install: bool,
}

/// What `cargo xtask test` can be asked to run alone.
pub(crate) fn step_names(tree: &Tree) -> Vec<&'static str> {
    plan::steps(tree).iter().map(|step| step.name).collect()
}

/// Runs the suite on the repository at `root` and tells whether it is good. The last line on standard output is the count.
///
/// # Errors
/// When a step does not exist, or cargo or a log cannot be started or written.
pub(crate) fn run(root: &Path, tree: &Tree, options: &Options) -> io::Result<bool> {
    let mut steps = plan::steps(tree);
    let names = step_names(tree);
    if let Some(unknown) = options.only.iter().find(|wanted| !names.contains(&wanted.as_str())) {
        return Err(io::Error::other(format!("there is no step `{unknown}`; the steps are {}", names.join(", "))));
    }
    steps.retain(|step| options.only.is_empty() || options.only.iter().any(|wanted| wanted == step.name));

    let is_ci = env::var_os("CI").is_some_and(|value| value == "true");
    tools::provide(is_ci || options.install);
    let mut total = Tally::default();
    for step in &steps {
        total.add(run_step(root, tree, step)?);
    }

    for failure in &total.failures {
        println!("failed: {failure}");
    }
    for skip in &total.skips {
        println!("skipped: {skip}");
    }
    if total.failures.is_empty() && !total.is_good(is_ci) {
        println!("a skip is a failure because CI=true");
    }
    println!("{total}");
    Ok(total.is_good(is_ci))
}

fn run_step(root: &Path, tree: &Tree, step: &Step) -> io::Result<Tally> {
    print!("{:<12} {:<44}", step.name, step.about);
    io::stdout().flush()?;
    let start = now();
    let (tally, details) = match &step.work {
        Work::Tidy => {
            let offences = crate::tidy::findings(tree);
            (Tally::of_check(step.name, offences.is_empty()), offences.join("\n"))
        }
        Work::Check(invocation) => {
            let (output, succeeded) = cargo(root, step.name, invocation)?;
            (Tally::of_check(step.name, succeeded), format!("{output}\nagain: {invocation}"))
        }
        Work::Tests(invocation) => {
            let (output, succeeded) = cargo(root, step.name, invocation)?;
            (Tally::of_tests(step.name, &output, succeeded), format!("{output}\nagain: {invocation}"))
        }
        Work::Absent(file) => (Tally::of_skip(step.name, &format!("{file} is not there")), String::new()),
    };
    println!("{tally} ({} s)", start.elapsed().as_secs());
    if !tally.failures.is_empty() {
        println!("{details}\n");
    }
    Ok(tally)
}

/// Runs cargo to its end and returns what it and its children printed, both streams in the order in which it came.
fn cargo(root: &Path, name: &str, invocation: &Invocation) -> io::Result<(String, bool)> {
    let folder = root.join("target/xtask");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.log"));
    let log = File::create(&path)?;
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(&invocation.arguments)
        .current_dir(root)
        .envs(iter::once(("CARGO_TERM_COLOR", "never")).chain(invocation.environment.iter().copied()))
        // It would mix the output of tests, and what a skipped test says would not be found.
        .env_remove("RUST_TEST_NOCAPTURE")
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()?;
    Ok((String::from_utf8_lossy(&fs::read(&path)?).into_owned(), status.success()))
}

#[expect(clippy::disallowed_methods, reason = "this program has no loop whose clock it could ask")]
fn now() -> Instant {
    Instant::now()
}
