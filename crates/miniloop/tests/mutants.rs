//! Random programs notice when a rule is broken: each of the loop's ten mutants (`src/mutant.rs`) is caught, and the loop as it is passes.
//!
//! A mutant is chosen by an environment variable for a whole process, so each one runs in a child of its own. Only with
//! `RUSTFLAGS="--cfg miniloop_mutants" cargo test -p miniloop --test mutants`.
#![cfg(miniloop_mutants)]

mod model;

use std::env;
use std::process::Command;

#[test]
fn every_mutant_is_caught() {
    let missed: Vec<_> = MUTANTS.into_iter().filter(|mutant| !is_caught(mutant)).collect();
    assert!(missed.is_empty(), "{PROGRAMS} programs did not notice {missed:?}");
}

fn is_caught(mutant: &str) -> bool {
    let child = Command::new(env::current_exe().expect("this test"))
        .args(["--exact", "the_traces_are_equal"])
        .env("MINILOOP_MUTANT", mutant)
        .output()
        .expect("a child");
    // Not any failure counts: the comparison must have found it.
    String::from_utf8_lossy(&child.stdout).contains(VERDICT)
}

/// Without a mutant it passes; in the children of the test above it must fail.
#[test]
fn the_traces_are_equal() {
    if let Err(difference) = model::compare::random_programs(PROGRAMS, SEED, 0) {
        panic!("{VERDICT}\n{difference}");
    }
}

const MUTANTS: [&str; 10] = [
    "wakes_jump_the_queue",
    "round_without_snapshot",
    "timers_before_inbox",
    "cancel_too_late",
    "wakes_add_up",
    "inbox_only_at_poll",
    "equal_deadlines_newest_first",
    "waiter_loses_its_place",
    "close_oldest_first",
    "no_operation_budget",
];
const PROGRAMS: u32 = 5_000;
/// The same programs each time: what is tested here is that they are good enough.
const SEED: u64 = 2;
const VERDICT: &str = "the loop and the model differ";
