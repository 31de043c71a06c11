//! What the server did that it must not, in words that name the connection.

use std::fmt::{self, Display};

use miniloop::Abandoned;

/// The reason why a run has failed. The first one ends it.
#[derive(Debug, PartialEq)]
pub(crate) struct Violation(String);

impl Violation {
    pub(crate) fn new(text: impl Into<String>) -> Violation {
        Violation(text.into())
    }

    /// The same, said of somebody.
    pub(crate) fn of(self, who: impl Display) -> Violation {
        Violation(format!("{who}: {}", self.0))
    }
}

impl From<Abandoned> for Violation {
    fn from(_: Abandoned) -> Violation {
        Violation::new("the run has ended without a result")
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
