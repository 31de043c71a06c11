//! How many connections the system lets this process have.
//!
//! Next: `serve.rs`.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Failed;
use crate::limits::DESCRIPTORS_RESERVED;

/// Raises the soft limit of open files to the hard one, and says how many files this process may open now.
fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it may not be raised, the old limit is what there is.
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    current.unwrap_or(u64::MAX)
}

/// Raises the limit, and says how many descriptors connections may use.
///
/// # Errors
/// None would be left for them.
pub(crate) fn for_connections() -> Result<usize, Failed> {
    let limit = raise_descriptor_limit();
    let descriptors = usize::try_from(limit.saturating_sub(DESCRIPTORS_RESERVED)).unwrap_or(usize::MAX);
    if descriptors > 0 {
        return Ok(descriptors);
    }
    Err(Failed::new(format!(
        "this process may open {limit} files, and relay keeps {DESCRIPTORS_RESERVED} for itself: allow one more for each client with \
         `ulimit -n`"
    )))
}
