//! Random programs for `random_cancellation.rs`: what they are, and how they are run and watched.

pub(crate) mod program;
pub(crate) mod run;
