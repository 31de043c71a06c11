//! Compares relay with servers of its kind and with the floor: `cargo xtask bench relay`.
//!
//! Each sample is a fresh server on the first core, on the disk of this repository, and the same load engine on the second core, which
//! checks every message. Contenders take turns in each case of each round. The files stand in reading order.

mod failure;
mod redis_codec;
mod nats_codec;
mod executables;
mod contender;
mod server;
mod load;
mod cases;
mod session;
mod summary;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench::Results;
use clap::{Parser, ValueEnum};

use executables::Executables;
use failure::Outcome;
use session::{Program, Session};

/// Measures relay beside NATS, Redis and the least that a durable chat server must do.
///
/// A full run writes bench/results/relay.json. On a machine that does something else meanwhile it says nothing.
#[derive(Debug, Parser)]
#[command(name = "relay", max_term_width = 100)]
struct Options {
    /// What to measure. By default everything; results are written then only.
    #[arg(value_enum, value_name = "PROGRAM")]
    programs: Vec<Program>,
    /// How often everybody has a turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    rounds: u64,
    /// How long each sample sends.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Only see whether everything works: one round of 0.3 s each, and no results are written.
    #[arg(long)]
    quick: bool,
    /// Where NATS' server is, if not in PATH.
    #[arg(long, env = "NATS_SERVER", value_name = "FILE")]
    nats_server: Option<PathBuf>,
    /// Where Redis' server is, if not in PATH.
    #[arg(long, env = "REDIS_SERVER", value_name = "FILE")]
    redis_server: Option<PathBuf>,
}

fn main() -> ExitCode {
    match measure(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench relay: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: Options) -> Outcome<()> {
    // The servers inherit it.
    bench::descriptors::raise_limit();
    let executables = Executables::find(options.nats_server, options.redis_server)?;
    let command = format!("cargo xtask bench relay --rounds {} --seconds {}", options.rounds, options.seconds);
    let results = Results::begin(&command, contender::versions(&executables)?);
    let (rounds, milliseconds) = if options.quick { (1, QUICK_MS) } else { (options.rounds, 1_000 * options.seconds) };
    let programs = if options.programs.is_empty() { Program::value_variants() } else { &options.programs };
    let mut session = Session::new(executables, results, milliseconds);
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        session.round(round as usize, programs)?;
    }
    print!("{}", summary::summary(&session.results));
    if !options.quick && options.programs.is_empty() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/relay.json");
        session.results.write(&path)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

const QUICK_MS: u64 = 300;
