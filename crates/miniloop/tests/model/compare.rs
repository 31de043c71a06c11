//! Plays random programs on both loops until the traces differ, and prints the smallest program for which they do.
//!
//! It knows proptest, and neither of the loops.

use std::fmt::Write;
use std::panic::catch_unwind;

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use super::program::Program;
use super::{real, reference};

/// Compares the two loops on so many random programs.
///
/// # Errors
///
/// The smallest program found on which they differ, with both traces and the seed; how long it is made smaller is the caller's choice.
pub(crate) fn random_programs(count: u32, seed: u64, shrink_iterations_max: u32) -> Result<(), String> {
    let config = Config {
        cases: count,
        rng_seed: RngSeed::Fixed(seed),
        // A failure is kept as text, in `regressions.txt`, where it can be read and outlives changes of the strategies.
        failure_persistence: None,
        max_shrink_iters: shrink_iterations_max,
        ..Config::default()
    };
    let verdict = TestRunner::new(config).run(&Program::any(), |program| match difference(&program) {
        None => Ok(()),
        Some(_) => Err(TestCaseError::fail("the traces differ")),
    });
    match verdict {
        Ok(()) => Ok(()),
        Err(TestError::Fail(_, program)) => Err(format!("seed {seed}\n{}", difference(&program).unwrap_or_default())),
        Err(TestError::Abort(reason)) => Err(format!("seed {seed}: {reason}")),
    }
}

/// The program and both traces, if they differ.
pub(crate) fn difference(program: &Program) -> Option<String> {
    let model = without_the_order_of_dropped_callbacks(reference::play(program));
    let real = catch_unwind(|| real::play(program)).unwrap_or_else(|_| vec!["panics".to_owned()]);
    let real = without_the_order_of_dropped_callbacks(real);
    if model == real {
        return None;
    }
    let mut text = format!("{program}\n\n    {:48}loop\n", "model");
    for index in 0..model.len().max(real.len()) {
        let line = |trace: &[String]| trace.get(index).cloned().unwrap_or_default();
        let mark = if line(&model) == line(&real) { ' ' } else { '!' };
        let _ = writeln!(text, "  {mark} {:48}{}", line(&model), line(&real));
    }
    Some(text)
}

/// O9 says when a closing loop drops its callbacks, not in which order.
fn without_the_order_of_dropped_callbacks(mut trace: Vec<String>) -> Vec<String> {
    let close = trace.iter().rposition(|line| line == "close").unwrap_or(0);
    let id = |line: &String| line.strip_prefix("drop callback ").and_then(|id| id.parse::<usize>().ok());
    for dropped in trace[close..].chunk_by_mut(|line, next| id(line).is_some() && id(next).is_some()) {
        dropped.sort_by_key(id);
    }
    trace
}
