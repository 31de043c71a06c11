//! Looking inside a running loop: who waits for what, what is slow, what blocks, how much happens and in which order.
//!
//! All of it is always compiled and costs nothing worth measuring until it is used.
//!
//! | Question | Answer |
//! |---|---|
//! | What does the program wait for? | [`dump`]; a [`LoopError::Deadlock`](crate::LoopError::Deadlock) carries one, too |
//! | The same, asked from outside: `kill -USR1` | [`dump_on`] |
//! | How much happens, which bounds bite? | [`stats`] |
//! | Which callback was slow? | [`Builder::slow_callback`](crate::Builder::slow_callback), [debug mode](crate::LoopHandle::set_debug) |
//! | Which callback blocks the loop now? | [`Watchdog`] |
//! | What happened when, and who woke whom? | [`trace`] |
//!
//! ```text
//! event loop 1: 0 jobs ready, 1 timer (the next in 4.9s), 2 descriptors, 0 messages of other threads
//! 3 tasks:
//!   the future given to `run_until_complete` at src/main.rs:9:16: waits for task `accept` for 1.2s, polled once
//!     task `accept`, spawned at src/main.rs:12:9: waits for a connection for 1.2s, polled 2 times
//!       task `client 1`, spawned at src/main.rs:21:17: waits for a deadline for 102.1ms, polled 7 times
//! 1 callback, of which repeat:
//!   callback of every 1s at src/main.rs:8:12
//! ```

mod debug;
mod stats;
mod on_signal;
mod watchdog;
mod chrome;
mod trace;

pub use self::on_signal::{dump_on, dump_on_with};
pub use self::stats::{Stats, stats};
pub use self::trace::{Finish, TraceGuard, TraceSummary, trace};
pub use self::watchdog::{Blocked, Watchdog};
pub use crate::dump::{BlockingDump, CallbackDump, Dump, TaskDump, TaskKind, TaskState};

use crate::engine::inspect;
use crate::handle::LoopHandle;

/// What the loop that runs on this thread holds now: its tasks as a tree, what each waits for, timers, callbacks and descriptors.
///
/// ```
/// use miniloop::diag::{self, TaskState};
/// use miniloop::promise;
///
/// miniloop::run(async {
///     let (_resolver, promise) = promise::<(), miniloop::Abandoned>();
///     let _task = miniloop::spawn(promise).named("patient");
///     miniloop::yield_now().await;
///     let dump = diag::dump();
///     let patient = dump.task("patient").unwrap();
///     assert_eq!((patient.state, patient.waits_for, patient.polls), (TaskState::Waiting, "a promise", 1));
///     println!("{dump}");
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// # Panics
/// Outside a loop.
#[doc(alias = "all_tasks")]
#[doc(alias = "print_stack")]
#[track_caller]
pub fn dump() -> Dump {
    LoopHandle::current().dump()
}

impl LoopHandle {
    /// What this loop holds now; see [`diag::dump`](crate::diag::dump). A closed loop holds nothing.
    #[doc(alias = "all_tasks")]
    pub fn dump(&self) -> Dump {
        inspect::dump(&self.core)
    }
}
