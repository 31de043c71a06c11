//! One sample of one contender in one case: a process of its own, so that nobody meets another one's threads, signals or memory.
//!
//! Next: `table.rs`.

use std::env;
use std::io;
use std::process::{Command, Stdio};

use crate::contenders::Contender;
use crate::effort::{Effort, Figures};
use crate::programs::Case;

/// Which sample.
#[derive(Clone, clap::Args)]
pub(crate) struct Sample {
    #[arg(long)]
    program: String,
    #[arg(long)]
    sizes: String,
    #[arg(long)]
    contender: Contender,
    #[arg(long)]
    quick: bool,
}

/// Starts the process and returns its figures.
///
/// # Errors
///
/// It has failed, after having said why.
pub(crate) fn take(case: Case, contender: Contender, effort: Effort) -> io::Result<Figures> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["sample", "--program", case.program(), "--sizes", &case.sizes(), "--contender", contender.name()]);
    if effort.checks_everything() {
        command.arg("--quick");
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        let (program, sizes, name) = (case.program(), case.sizes(), contender.name());
        return Err(io::Error::other(format!("{program} ({sizes}) of {name} has failed, {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// That process.
pub(crate) fn main(sample: &Sample) -> io::Result<()> {
    let is_it = |case: &Case| case.program() == sample.program && case.sizes() == sample.sizes;
    let case = Case::all().into_iter().find(is_it).ok_or_else(|| io::Error::other("there is no such case"))?;
    let effort = if sample.quick { Effort::Quick } else { Effort::Full };
    println!("{}", serde_json::to_string(&case.run(sample.contender, effort)?)?);
    Ok(())
}
