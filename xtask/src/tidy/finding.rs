//! What a check has to say about one line of one file.
//!
//! Read next: `source.rs`, what a Rust file says.

use std::fmt;

/// One offence, printed as `path:line: what: what to do`, so that editors can jump to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the root of the repository.
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.what, self.remedy)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The property of a whole check in one line: each finding as `path:line`, and a word that its text must hold.
    #[track_caller]
    pub(crate) fn expect(found: &[Finding], expected: &[(&str, &str)]) {
        let places: Vec<String> = found.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect();
        let expected_places: Vec<&str> = expected.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, expected_places, "{found:#?}");
        for (finding, (_, word)) in found.iter().zip(expected) {
            assert!(finding.to_string().contains(word), "`{finding}` does not say `{word}`");
        }
    }

    #[test]
    fn a_finding_reads_place_offence_remedy() {
        let finding = Finding::new("src/a.rs", 7, "is wrong", "do this");
        assert_eq!(finding.to_string(), "src/a.rs:7: is wrong: do this");
    }
}
