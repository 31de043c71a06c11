//! The same programs on miniloop, tokio, smol, async-executor, monoio, compio and, where there are connections, on bare epoll.
//!
//! Read `contract.rs` first: what a program may ask of a contender. The contenders stand in `contenders`, one file each, the programs in
//! `programs`. This file is the command line and the order of a run; how everything is kept fair says the README of the package.

mod contract;
mod assume_send;
mod gate;
mod contenders;
mod effort;
mod programs;
mod sample;
mod table;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use bench::{Results, rounds};
use clap::{Parser, Subcommand, ValueEnum};

use contenders::Contender;
use effort::Effort;
use programs::{Case, Duties};
use sample::Sample;

/// Runs the same programs on miniloop and on other runtimes, and compares
#[derive(Parser)]
#[command(name = "cargo xtask bench runtime", args_conflicts_with_subcommands = true)]
struct CommandLine {
    /// Programs to run: all without
    programs: Vec<String>,
    /// Only these contenders
    #[arg(long, value_enum, value_delimiter = ',')]
    contender: Vec<Contender>,
    /// Only cases whose sizes have this in them: `1,000 connections`
    #[arg(long)]
    case: Option<String>,
    /// How often everybody runs everything
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Also the cases that show how contenders grow
    #[arg(long)]
    all: bool,
    /// As little as shows that everything works; its figures mean nothing and are not kept
    #[arg(long)]
    quick: bool,
    #[command(subcommand)]
    part: Option<Part>,
}

/// What this program starts itself as.
#[derive(Subcommand)]
enum Part {
    #[command(hide = true)]
    Sample(Sample),
    #[command(hide = true)]
    Server {
        #[arg(long)]
        contender: Contender,
        #[command(flatten)]
        duties: Duties,
    },
}

fn main() -> ExitCode {
    let command_line = CommandLine::parse();
    // Here, so that the processes that this one starts have it.
    bench::descriptors::raise_limit();
    let done = match &command_line.part {
        None => compare(&command_line),
        Some(Part::Sample(sample)) => sample::main(sample),
        Some(Part::Server { contender, duties }) => programs::serve(*contender, *duties),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("runtime: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Case by case, in rounds in which the contenders take turns.
fn compare(command_line: &CommandLine) -> io::Result<()> {
    let cases = chosen_cases(command_line)?;
    let contenders = match command_line.contender.as_slice() {
        [] => Contender::value_variants(),
        some => some,
    };
    let effort = if command_line.quick { Effort::Quick } else { Effort::Full };
    let command: Vec<String> = std::env::args().skip(1).collect();
    let command = ["cargo xtask bench runtime"].into_iter().chain(command.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let versions = contenders.iter().map(|contender| (contender.name().to_owned(), contender.version()));
    let mut results = Results::begin(&command, versions.collect::<BTreeMap<_, _>>());
    for (number, case) in cases.iter().enumerate() {
        eprintln!("{}/{} {} {}", number + 1, cases.len(), case.program(), case.sizes());
        let those: Vec<Contender> = contenders.iter().copied().filter(|contender| case.has(*contender)).collect();
        for round in 0..command_line.rounds {
            for contender in rounds::order(round, &those) {
                for (figure, value) in sample::take(*case, *contender, effort)? {
                    results.add(case.program(), &case.sizes(), contender.name(), &figure, value);
                }
            }
        }
    }
    print!("{}", table::draw(&results));
    let is_complete = command_line.programs.is_empty() && command_line.case.is_none() && command_line.contender.is_empty();
    if is_complete && !command_line.quick {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/runtime.json");
        results.write(&path)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

fn chosen_cases(command_line: &CommandLine) -> io::Result<Vec<Case>> {
    let mut cases = if command_line.all { Case::all() } else { Case::usual() };
    let mut names: Vec<&str> = cases.iter().map(|case| case.program()).collect();
    names.dedup();
    if let Some(unknown) = command_line.programs.iter().find(|wanted| !names.contains(&wanted.as_str())) {
        return Err(io::Error::other(format!("there is no program `{unknown}`; there are {}", names.join(", "))));
    }
    let programs = &command_line.programs;
    cases.retain(|case| programs.is_empty() || programs.iter().any(|wanted| wanted == case.program()));
    if let Some(wanted) = &command_line.case {
        cases.retain(|case| case.sizes().contains(wanted));
    }
    if cases.is_empty() {
        return Err(io::Error::other("no case is left; `--all` has more of them"));
    }
    Ok(cases)
}
