//! The loop does what the reference model does, whatever the program (O1 to O10).
//!
//! `MINILOOP_PROGRAMS=100000` plays so many instead of the default, `MINILOOP_SEED=..` repeats a run, `MINILOOP_PROGRAM_FILE=..` plays what
//! is in that file. A program that fails is printed as small as it could be made; once it is understood, it goes into
//! `model/regressions.txt`.

mod model;

use std::env;
use std::fs;
use std::hash::{BuildHasher, RandomState};

use model::compare;
use model::program::Program;

#[test]
fn the_loop_and_the_model_leave_the_same_trace() {
    let count = number("MINILOOP_PROGRAMS").unwrap_or(PROGRAMS);
    let seed = number("MINILOOP_SEED").unwrap_or_else(|| RandomState::new().hash_one(()));
    if let Err(difference) = compare::random_programs(u32::try_from(count).unwrap_or(u32::MAX), seed, SHRINK_ITERATIONS_MAX) {
        panic!("{difference}");
    }
}

#[test]
fn programs_that_once_failed_still_pass() {
    let text = match env::var_os("MINILOOP_PROGRAM_FILE") {
        Some(file) => fs::read_to_string(file).expect("a file with programs"),
        None => include_str!("model/regressions.txt").to_owned(),
    };
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for program in lines.split(|line| line.is_empty()).filter(|program| !program.is_empty()) {
        if let Some(difference) = compare::difference(&Program::parse(&program.join("\n"))) {
            panic!("{difference}");
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// A second or two in the suite.
const PROGRAMS: u64 = 5_000;
const SHRINK_ITERATIONS_MAX: u32 = 20_000;
