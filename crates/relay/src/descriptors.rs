//! How many connections the system lets this process have.
//!
//! Next: `serve.rs`.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::error::Failed;
use crate::limits::DESCRIPTORS_RESERVED;

/// Raises the soft limit of open files to the hard one, and says how many of them connections may use.
///
/// # Errors
/// None would be left for connections.
pub(crate) fn raise_limit() -> Result<usize, Failed> {
    let mut limit = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it may not be raised, the old limit is what there is.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        limit = raised;
    }
    let limit = limit.current.unwrap_or(u64::MAX);
    let descriptors = usize::try_from(limit.saturating_sub(DESCRIPTORS_RESERVED)).unwrap_or(usize::MAX);
    if descriptors > 0 {
        return Ok(descriptors);
    }
    Err(Failed::new(format!(
        "this process may open {limit} files, and relay keeps {DESCRIPTORS_RESERVED} for itself: allow one more for each client with \
         `ulimit -n`"
    )))
}
