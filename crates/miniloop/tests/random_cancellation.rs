//! Random trees of scopes, limits, catch points, shields, joins and selects, cancelled and aborted at random times.
//!
//! What is checked comes from the rules C1 to C13 alone: every body ends once; whoever waits at a catch point gets its clean-up, inner
//! before outer, and none is cut short, unless it was parked, the loser of a `select`, aborted or out of grace; nobody is disturbed behind
//! a guard or a shield; all has ended when the grace has; nothing is left in the tree of requests.

mod cancellation_model;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cancellation_model::program::{Program, programs};
use cancellation_model::run::run;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

fn check(program: &Program) -> Result<(), TestCaseError> {
    let violations = catch_unwind(AssertUnwindSafe(|| run(program))).unwrap_or_else(|_| vec!["the loop panicked".to_owned()]);
    if violations.is_empty() { Ok(()) } else { Err(TestCaseError::fail(violations.join("\n"))) }
}

/// Run more of them with `PROPTEST_CASES=100000`.
#[test]
fn whoever_is_cancelled_cleans_up_in_order_and_ends_in_time() {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 2_000;
    }
    let mut runner = TestRunner::new(config);
    if let Err(error) = runner.run(&programs(), |program| check(&program)) {
        panic!("{error}\n{runner}");
    }
}
