//! Counts what steps and tests came to, from the text that cargo and libtest print.
//!
//! The contract with the tests: a test that cannot run here prints the line `SKIPPED: reason` and returns. libtest counts it as passed;
//! with `--show-output` it prints what passed tests said, so the line is found here without a side channel and the test counts as skipped.
//! Read next: `tools.rs`, what may be missing.

use std::fmt;

/// What happened, and the names of what did not pass.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    /// One line each: what failed.
    pub(crate) failures: Vec<String>,
    /// One line each: what was skipped and why.
    pub(crate) skips: Vec<String>,
}

impl Tally {
    /// A step that is one check: it passes or fails as a whole.
    pub(crate) fn of_check(name: &str, succeeded: bool) -> Self {
        if succeeded { Self { passed: 1, ..Self::default() } } else { Self::of_failure(name) }
    }

    pub(crate) fn of_failure(name: &str) -> Self {
        Self { failures: vec![name.to_owned()], ..Self::default() }
    }

    pub(crate) fn of_skip(name: &str, reason: &str) -> Self {
        Self { skips: vec![format!("{name}: {reason}")], ..Self::default() }
    }

    /// A step of tests. One that ended badly without a failed test (it did not compile, it was killed) is a failure, and so is one that
    /// ran no test: it would pass for ever.
    pub(crate) fn of_tests(name: &str, output: &str, succeeded: bool) -> Self {
        let mut tally = Self::default();
        let mut skipped_themselves = 0;
        let mut in_successes = false;
        let mut test = "";
        for line in output.lines() {
            if let Some(counts) = line.strip_prefix("test result: ") {
                tally.passed += count(counts, "passed");
                in_successes = false;
            } else if let Some((test, verdict)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
                match verdict.split(',').next() {
                    Some("FAILED") => tally.failures.push(format!("{name}: {test}")),
                    Some("ignored") => tally.skips.push(format!("{test}: marked #[ignore]")),
                    _ => {}
                }
            } else if line == "successes:" || line == "failures:" {
                in_successes = line == "successes:";
            } else if let Some(header) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
                test = header;
            } else if let Some(reason) = line.strip_prefix("SKIPPED: ").filter(|_| in_successes)
                && !test.is_empty()
            {
                tally.skips.push(format!("{test}: {reason}"));
                skipped_themselves += 1;
                test = "";
            }
        }
        tally.passed = tally.passed.saturating_sub(skipped_themselves);
        if !succeeded && tally.failures.is_empty() {
            tally.failures.push(format!("{name}: it ended before its tests did"));
        }
        if tally == Self::default() {
            tally.failures.push(format!("{name}: it ran no test"));
        }
        tally
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failures.extend(other.failures);
        self.skips.extend(other.skips);
    }

    /// A skip is a failure where everything is expected to be installed.
    pub(crate) fn is_good(&self, skips_fail: bool) -> bool {
        self.failures.is_empty() && (self.skips.is_empty() || !skips_fail)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failures.len(), self.skips.len())
    }
}

fn count(counts: &str, wanted: &str) -> usize {
    let words: Vec<&str> = counts.split([' ', ';']).collect();
    words.windows(2).find(|pair| pair[1] == wanted).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected` is the last line of the suite followed by the failures and the skips.
    #[track_caller]
    fn check(output: &str, succeeded: bool, expected: &[&str]) {
        let tally = Tally::of_tests("unit", output, succeeded);
        let seen: Vec<String> = [vec![tally.to_string()], tally.failures, tally.skips].concat();
        assert_eq!(seen, expected);
    }

    const TWO_BINARIES: &str = "
running 3 tests
test a::passes ... ok
test b::panics - should panic ... ok
test c::later ... ignored, not on this machine

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
running 2 tests
test d ... FAILED
test e ... ok
failures:
---- d stdout ----
SKIPPED: not where the test failed
failures:
    d
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s
";

    #[test]
    fn all_test_binaries_of_a_step_are_added_up() {
        check(TWO_BINARIES, false, &["3 passed, 1 failed, 1 skipped", "unit: d", "c::later: marked #[ignore]"]);
    }

    #[test]
    fn a_passed_test_that_says_skipped_counts_as_skipped_once() {
        let output = "test a ... ok\ntest b ... ok\nsuccesses:\n\n---- a stdout ----\nSKIPPED: no python3\nSKIPPED: again\n\n\
                      ---- b stdout ----\nsays: SKIPPED: no\n\nsuccesses:\n    a\n    b\n\ntest result: ok. 2 passed; 0 failed;";
        check(output, true, &["1 passed, 0 failed, 1 skipped", "a: no python3"]);
    }

    #[test]
    fn a_step_that_ends_early_or_runs_nothing_has_failed() {
        check("error[E0001]: no", false, &["0 passed, 1 failed, 0 skipped", "unit: it ended before its tests did"]);
        check("test result: ok. 4 passed; 0 failed;", false, &["4 passed, 1 failed, 0 skipped", "unit: it ended before its tests did"]);
        check("test result: ok. 0 passed; 0 failed;", true, &["0 passed, 1 failed, 0 skipped", "unit: it ran no test"]);
    }

    #[test]
    fn skips_are_bad_only_where_they_must_not_be() {
        let mut tally = Tally::of_check("format", true);
        assert!(tally.is_good(true));
        tally.add(Tally::of_skip("a", "no nc"));
        assert!(tally.is_good(false) && !tally.is_good(true));
        tally.add(Tally::of_check("clippy", false));
        assert!(!tally.is_good(false));
        assert_eq!(tally.to_string(), "1 passed, 1 failed, 1 skipped");
    }
}
