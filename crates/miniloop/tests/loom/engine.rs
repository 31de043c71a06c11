//! The files of the engine that threads share, built again on loom. The static table of the registry is apart: loom has no statics.

pub(crate) mod word {
    /// Stands in for the real one: the inbox only compares words.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Word(pub(crate) u64);
}

#[path = "../../src/engine/inbox.rs"]
pub(crate) mod inbox;

#[path = "../../src/engine/pool_jobs.rs"]
pub(crate) mod pool_jobs;
