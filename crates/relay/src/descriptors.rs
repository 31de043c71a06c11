//! How many connections the system lets this process have.
//!
//! Next: `serve.rs`.

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::limits::DESCRIPTORS_RESERVED;

/// Raises the soft limit of open files to the hard one, and says how many of them connections may use.
pub(crate) fn raise_limit() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Where it may not be raised, the old limit is what there is.
    if setrlimit(Resource::Nofile, raised).is_ok() {
        limit = raised;
    }
    let descriptors = limit.current.unwrap_or(u64::MAX).saturating_sub(DESCRIPTORS_RESERVED);
    usize::try_from(descriptors).unwrap_or(usize::MAX)
}
