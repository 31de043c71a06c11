//! Threads for what would block a loop.
//!
//! | You have | Take |
//! |---|---|
//! | a call that blocks or computes for long: hashing, a blocking library | [`spawn_blocking`](crate::spawn_blocking) |
//! | something that must stay on one thread, or be used in one order: a connection to a database, an open log | [`Worker`] |
//! | files | [`fs`](crate::fs), which is `spawn_blocking` with the calls of `std::fs` |
//! | names to be resolved | [`net::resolve`](crate::net::resolve()), the same for `getaddrinfo` |
//! | a thread that you made, which wants something of the loop | [`Remote`](crate::Remote) |
//!
//! A loop has a pool of its own for blocking jobs. It starts its first thread with the first job and ends threads that have had nothing to
//! do for 10 s, so nobody has threads that they did not ask for. Jobs begin in the order in which they were submitted, as many at a time
//! as there are threads, 32 by default ([`Builder::blocking_threads`](crate::Builder::blocking_threads)). A job that waits for another
//! job of the same pool can wait for ever once all threads do the same: give such things a [`Worker`].
//!
//! Nobody can stop a thread. A job that has begun runs to its end, whatever becomes of those who wait for it; its result is dropped then.
//! Closing the loop finishes the jobs that were submitted, and gives up after a limit
//! ([`Builder::blocking_grace`](crate::Builder::blocking_grace)), with a report.

mod error;
pub(crate) mod start;
mod asker;
mod jobs;
mod worker;
pub(crate) mod pool;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod pool_tests;

pub use self::error::{BlockingError, Full, WorkerGone};
pub use self::pool::Blocking;
pub use self::worker::{Call, Worker};
