//! Why a run ends without results. Next: `redis_codec.rs`.

use std::fmt;
use std::io;

use relay_bench::BenchError;

pub(crate) type Outcome<T> = Result<T, Failure>;

/// A sentence for the person who has started the run.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Failure {
        Failure(text.into())
    }

    /// The same, said of somebody.
    pub(crate) fn of(self, who: impl fmt::Display) -> Failure {
        Failure(format!("{who}: {self}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure(error.to_string())
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure(error.to_string())
    }
}
