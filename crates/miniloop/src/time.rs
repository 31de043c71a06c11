//! Waiting for time: `sleep`, and giving way once.
//!
//! A sleeping future is one entry of the loop's timer queue, armed at its first poll and taken out when it is dropped. Nothing here reads
//! the clock to find out whether it is time: the timer queue says so, in the order of deadlines.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::FusedFuture;

use crate::engine::context;
use crate::engine::core::Core;
use crate::engine::word::Word;
use crate::instant::Instant;

/// The time of the running loop's clock.
///
/// ```
/// miniloop::run(async {
///     let start = miniloop::now();
///     miniloop::yield_now().await;
///     println!("that took {:?}", miniloop::now() - start);
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn now() -> Instant {
    context::current().now()
}

/// Waits until `duration` has passed since this call, never less. A zero duration gives way to everything that is ready, once, without a
/// timer; [`Duration::MAX`] waits for ever.
///
/// ```
/// use std::time::Duration;
///
/// miniloop::run(async {
///     let start = miniloop::now();
///     miniloop::sleep(Duration::from_millis(2)).await;
///     assert!(miniloop::now() - start >= Duration::from_millis(2));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// # Cancellation
/// Dropping it takes its timer out of the queue.
///
/// # Panics
/// Outside a loop, and when polled under another loop.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    let core = context::current();
    let deadline = if duration.is_zero() { None } else { Some(core.now() + duration) };
    Sleep { core, deadline, place: Location::caller(), state: State::New }
}

/// Waits until the loop's clock shows `deadline`. One that has passed already is waited for through the timer queue all the same, until the
/// next poll of the loop.
///
/// ```
/// use miniloop::{now, sleep_until};
/// use std::time::Duration;
///
/// miniloop::run(async {
///     let start = now();
///     for beat in 1..4 {
///         sleep_until(start + Duration::from_millis(beat)).await; // however long the work between takes
///     }
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// # Panics
/// As [`sleep`].
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    sleep_until_at(deadline, Location::caller())
}

/// The same for a facility that was made at `place`.
#[track_caller]
pub(crate) fn sleep_until_at(deadline: Instant, place: &'static Location<'static>) -> Sleep {
    Sleep { core: context::current(), deadline: Some(deadline), place, state: State::New }
}

/// Gives way to everything that is ready, once: asyncio's `sleep(0)`. It works under any runtime.
///
/// ```
/// miniloop::run(async {
///     let other = miniloop::spawn(async { println!("first") });
///     miniloop::yield_now().await;
///     println!("second");
///     other.await.unwrap();
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { state: State::New }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct YieldNow {
    state: State<()>,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.state {
            State::New => {
                self.state = State::Waiting(());
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            State::Waiting(()) | State::Done => {
                self.state = State::Done;
                Poll::Ready(())
            }
        }
    }
}

impl FusedFuture for YieldNow {
    fn is_terminated(&self) -> bool {
        self.state == State::Done
    }
}

/// The future of [`sleep`] and [`sleep_until`].
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    core: Rc<Core>,
    /// `None` waits for the next round instead of a time.
    deadline: Option<Instant>,
    place: &'static Location<'static>,
    state: State<Word>,
}

/// Where a waiting future stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State<W> {
    New,
    Waiting(W),
    Done,
}

impl Sleep {
    /// When it ends; `None` if it only gives way.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// The line that made it.
    pub(crate) fn place(&self) -> &'static Location<'static> {
        self.place
    }

    /// The poll of one that is only the limit of something else: that, not the deadline, is what the task waits for.
    pub(crate) fn poll_as_limit(&mut self, cx: &Context<'_>) -> Poll<()> {
        context::check_home(self.core.number, "sleep");
        match self.state {
            State::New => {
                self.start(cx);
                Poll::Pending
            }
            State::Waiting(word) => {
                // Without a deadline it was woken at once, so every poll but the first is late enough.
                ready!(self.core.poll_armed(word, self.deadline.unwrap_or(Instant::from_nanos(0)), cx));
                self.state = State::Done;
                Poll::Ready(())
            }
            State::Done => Poll::Ready(()),
        }
    }

    fn start(&mut self, cx: &Context<'_>) {
        self.state = match self.deadline {
            Some(deadline) => State::Waiting(self.core.arm_waker(deadline, cx.waker().clone())),
            None => {
                cx.waker().wake_by_ref();
                State::Waiting(Word::STALE)
            }
        };
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let polled = self.poll_as_limit(cx);
        context::waiting_for(&"a deadline", polled)
    }
}

impl FusedFuture for Sleep {
    fn is_terminated(&self) -> bool {
        self.state == State::Done
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let State::Waiting(word) = self.state {
            drop(self.core.remove(word));
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
