//! The engine: what a turn of the loop is made of. Private; the two faces above it are `handle.rs` (callbacks) and `task.rs` (await).

pub(crate) mod word;
pub(crate) mod timers;
pub(crate) mod inbox;
#[cfg(test)]
mod inbox_tests;
pub(crate) mod registry;
pub(crate) mod locals;
pub(crate) mod pulse;
pub(crate) mod timeline;
pub(crate) mod probes;
pub(crate) mod record;
pub(crate) mod member_list;
pub(crate) mod cancel_tree;
pub(crate) mod task_head;
pub(crate) mod job;
pub(crate) mod pool_jobs;
pub(crate) mod pool;
pub(crate) mod alarm;
pub(crate) mod core;
pub(crate) mod context;
pub(crate) mod in_flight;
pub(crate) mod waker;
pub(crate) mod failures;
pub(crate) mod cancel;
pub(crate) mod inspect;
pub(crate) mod watched;
pub(crate) mod run_job;
pub(crate) mod turn;
pub(crate) mod close;
pub(crate) mod shutdown;
