//! An event loop and async runtime with asyncio's model: one thread, one ready queue shared by callbacks and tasks, and a written order.
//!
//! ```
//! use miniloop::{EventLoop, sleep};
//! use std::time::Duration;
//!
//! let mut event_loop = EventLoop::new()?;
//! event_loop.handle().call_soon(|| println!("a callback"));
//! event_loop.run_until_complete(async {
//!     let task = miniloop::spawn(async {
//!         sleep(Duration::from_millis(1)).await;
//!         "a task"
//!     });
//!     println!("{}", task.await.unwrap());
//! })?;
//! # Ok::<(), miniloop::LoopError>(())
//! ```
//!
//! Two faces look at the same queue: [`LoopHandle`] for callbacks, timers and descriptors, [`spawn`] and [`Task`] for `async` code; a
//! [`promise`] leads from one to the other. Names are those that Rust programmers expect; Python's are search aliases (`create_task`,
//! `wait_for`, `call_soon_threadsafe`, ..).
//!
//! # What is where
//!
//! | You want | Take |
//! |---|---|
//! | to run a future, and nothing else | [`run`]; settings: [`EventLoop::builder`] |
//! | callbacks: now, later, again and again, when a descriptor is ready | [`LoopHandle`] |
//! | to do two things at a time | [`spawn`]; borrowing from the function around: [`task_group`] |
//! | to wait for several | [`join_all`], [`race`], [`wait`], [`as_completed`] |
//! | time | [`sleep`], [`timeout`], [`interval`]; jobs that recur: [`schedule`] |
//! | to stop something and let it clean up | [`Task::cancel`] and [`catch`]; [`scope`], [`shield`] |
//! | sockets, buffers, pipes, any other descriptor | [`net`], [`io`], [`Readiness`] |
//! | files, signals, child processes (Linux) | [`fs`], [`signal`], `process` |
//! | to share and to wait for each other | [`sync`] |
//! | other threads | [`spawn_blocking`](fn@spawn_blocking), [`thread::Worker`]; from them into the loop: [`Remote`] |
//! | to test in virtual time, to see who waits for what | [`testing`], [`VirtualClock`]; [`diag`] |
//!
//! # Features
//!
//! All but the first are off by default: `ns-timeouts` (waits are exact to the nanosecond, by a call that Linux has since 5.11; without
//! it they are rounded up to milliseconds), `macros` (`#[miniloop::main]` and `#[miniloop::test]`), `hyper` (hyper 1.x on the loop),
//! `tokio-io` (streams with the I/O traits of tokio).
//!
//! # The order in which things happen
//!
//! A *turn* is one poll, then rounds until nothing is ready or [`jobs_per_poll`](Builder::jobs_per_poll) jobs have run. A *round* runs
//! what is ready when it begins; what that adds waits for the next round. A poll appends, behind what is ready already, the I/O that has
//! happened, then what other threads sent, then the timers that are due. The source of each rule is `ARCHITECTURE.md`.

#![deny(clippy::print_stdout)]

mod config;
mod mutant;
mod instant;
mod clock;
mod slots;
mod outcome;
mod panic_payload;
mod one_line;
mod report;
mod dump;
mod error;
mod wait_queue;
mod primitives;
mod os;
mod doorbell;
mod driver;
mod engine;
mod handle;
mod completion;
mod shared;
mod promise;
mod task_error;
mod future_cell;
mod task_cell;
mod task;
mod task_local;
mod time;
mod catch;
mod scope;
mod event_loop;
mod reply;
mod remote;
mod group;
mod interval;
pub mod schedule;
mod branches;
mod join;
mod race;
mod wait;
pub mod sync;
pub mod thread;
mod registration;
mod readiness;
mod byte_stream;
mod byte_stream_methods;
pub mod net;
pub mod io;
mod sock;
pub mod fs;
pub mod signal;
#[cfg(target_os = "linux")]
pub mod process;
pub mod diag;
pub mod testing;
#[cfg(feature = "tokio-io")]
pub mod tokio_io;
#[cfg(feature = "hyper")]
pub mod hyper;
#[cfg(test)]
mod test_support;
#[cfg(doctest)]
mod readme;

pub use catch::{Cancelled, Catch, Cleanup, catch};
pub use clock::{Clock, Hold, VirtualClock};
pub use driver::DriverKind;
pub use engine::cancel_tree::CancelReason;
pub use error::LoopError;
pub use event_loop::{Builder, EventLoop, run};
pub use group::{BodyOutput, Child, ChildOutput, Group, GroupError, MemberFailure, task_group};
pub use handle::{CallbackHandle, EnterGuard, LoopHandle, TimerHandle};
pub use instant::Instant;
pub use interval::{Interval, MissedTicks, Tick, interval, interval_at};
pub use join::{JoinAll, TryJoinAll, join_all, try_join_all};
#[cfg(feature = "macros")]
pub use miniloop_macros::{main, test};
pub use outcome::Outcome;
pub use promise::{Abandoned, Promise, Resolver, promise};
pub use race::{Race, Raced, race};
pub use readiness::Readiness;
pub use remote::{Remote, RemoteTask};
pub use report::{Report, ReportKind};
pub use scope::{Elapsed, Scope, ScopeOptions, Shield, Stopped, Timeout, scope, shield, timeout};
pub use shared::Shared;
pub use sock::{sock_accept, sock_connect, sock_recv, sock_sendall};
pub use task::{Task, TaskId, current_task, spawn};
pub use task_error::TaskError;
pub use task_local::TaskLocal;
pub use thread::pool::{spawn_blocking, try_spawn_blocking};
pub use time::{Sleep, YieldNow, now, sleep, sleep_until, yield_now};
pub use wait::{AsCompleted, Wait, all_completed, as_completed, first_completed, first_error, wait};
