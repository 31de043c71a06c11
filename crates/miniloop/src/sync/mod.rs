//! What tasks of one thread share and wait for.
//!
//! | | |
//! |---|---|
//! | [`Mutex`], [`Condvar`] | a value that one task at a time uses, across `await`; waiting until it is as one needs it |
//! | [`Semaphore`] | a number of permits |
//! | [`Event`] | a flag that all can wait for |
//! | [`Barrier`] | so many tasks that wait for each other |
//! | [`channel()`] | values from many to one, with bounded room |
//! | [`Queue`] | work from many to many, in order, in the opposite order or by priority |
//! | [`broadcast()`] | values to everybody, with explicit lag |
//! | [`watch()`] | the latest value to everybody |
//!
//! They are made for one thread: no atomics, not `Send`, no locks. They need no loop where nobody has to wait, and work under any executor
//! of the thread; under a loop of ours a future stays with the loop under which it waited first, and what waits says so to those who look
//! inside.
//!
//! The rules are the same everywhere. First come, first served: what is released belongs to the first who waits at that moment, nobody who
//! comes later overtakes, and to poll again does not cost one's place. Waking only queues, so nobody runs inside the call that wakes them.
//! A future that is dropped leaves no trace, and what it had been given already goes to the next. Each operation counts in the budget of
//! its task, so that two tasks that feed each other for ever cannot stop the loop. `statistics()` says what each is like.

mod line;
mod permits;
mod error;
mod semaphore;
mod mutex;
mod event;
mod condvar;
mod barrier;
pub mod channel;
mod queue;
pub mod broadcast;
pub mod watch;

pub use self::barrier::{Barrier, BarrierStatistics, BarrierWaitResult, BrokenBarrier};
pub use self::broadcast::broadcast;
pub use self::channel::channel;
pub use self::condvar::{Condvar, CondvarStatistics};
pub use self::error::{SendError, TryRecvError, TrySendError};
pub use self::event::{Event, EventStatistics};
pub use self::mutex::{Guard, Mutex, MutexGuard, MutexStatistics, OwnedMutexGuard};
pub use self::queue::{Queue, QueueStatistics, TaskDoneError};
pub use self::semaphore::{OwnedSemaphorePermit, Permit, Semaphore, SemaphorePermit, SemaphoreStatistics};
pub use self::watch::watch;
