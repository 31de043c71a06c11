//! Why a run has failed: the caller, the network, or the server. Next: `workload.rs`.

use std::fmt::{self, Display};
use std::io;
use std::net::SocketAddr;

use miniloop::{Abandoned, LoopError};

/// Why there is no report. The first thing that is wrong ends a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum BenchError {
    /// Such a run cannot be. The text names the number that is wrong, and its bounds.
    Workload(String),
    /// A connection cannot be made.
    Connect {
        /// To whom.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The server has done what it must not. The text names the member that noticed, and what it has seen.
    Server(String),
    /// The loop itself has failed.
    Loop(String),
}

impl Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BenchError::Workload(text) | BenchError::Server(text) | BenchError::Loop(text) => f.write_str(text),
            BenchError::Connect { address, error } => write!(f, "cannot connect to {address}: {error}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BenchError::Connect { error, .. } => Some(error),
            BenchError::Workload(_) | BenchError::Server(_) | BenchError::Loop(_) => None,
        }
    }
}

impl From<Abandoned> for BenchError {
    fn from(_: Abandoned) -> BenchError {
        BenchError::Loop("the run has ended without a result".to_owned())
    }
}

impl From<LoopError> for BenchError {
    fn from(error: LoopError) -> BenchError {
        BenchError::Loop(error.to_string())
    }
}

/// What the server did that it must not. Who has noticed is added by the member.
#[derive(Debug, PartialEq)]
pub(crate) struct Violation(String);

impl Violation {
    pub(crate) fn new(text: impl Into<String>) -> Violation {
        Violation(text.into())
    }

    /// The same, said of somebody.
    pub(crate) fn of(self, who: impl Display) -> BenchError {
        BenchError::Server(format!("{who}: {}", self.0))
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
