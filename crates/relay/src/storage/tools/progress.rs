//! How far a command has come, for those who wait for it.
//!
//! Next: `finding.rs`.

/// A piece of work of a command, and how much of it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What is being done, as "checking the pages".
    pub what: &'static str,
    /// Of those below.
    pub done: u64,
    /// Messages, bytes or rows; an estimate while a server goes on.
    pub total: u64,
}

/// Who is told.
pub type Watch<'a> = dyn FnMut(Progress) + 'a;
