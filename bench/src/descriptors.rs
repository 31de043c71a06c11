//! How many connections this process may have: measurements need more than the system allows unasked.
//!
//! Next: `machine.rs`.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard one, for this process and those that it starts, and says what it is now.
pub fn raise_limit() -> u64 {
    let Ok((current, maximum)) = getrlimit(Resource::RLIMIT_NOFILE) else { return 0 };
    // Where it may not be raised, the old limit is what there is.
    if setrlimit(Resource::RLIMIT_NOFILE, maximum, maximum).is_ok() { maximum } else { current }
}
