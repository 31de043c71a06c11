//! Why a command of the command line failed, in words for the person who gave it.
//!
//! Next: `duration.rs`.

use std::fmt;

/// A failed command. Its text names what was wrong and the way out.
#[derive(Debug)]
pub struct Failed(String);

impl Failed {
    pub(crate) fn new(text: impl Into<String>) -> Failed {
        Failed(text.into())
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}
