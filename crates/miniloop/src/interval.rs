//! Ticks: something to await again and again.
//!
//! An interval is one timer that is set anew after each tick. On a fixed rate the ticks stand on the grid of the first one, whatever the
//! work between them takes; with a fixed delay the grid begins again at every call. What happens to ticks that nobody came for in time is
//! the [`MissedTicks`] policy. The callback face of the same thing is [`LoopHandle::call_every`](crate::LoopHandle::call_every).
//!
//! Next: `schedule.rs`, recurring jobs with names.

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::{FusedFuture, FusedStream, Stream};

use crate::config::INTERVAL_PERIOD_MIN;
use crate::instant::Instant;
use crate::time::{Sleep, now, sleep_until_at};

/// Ticks at once, then every `period`, on the grid of the first tick. Ticks that were missed are skipped; see [`MissedTicks`].
///
/// ```
/// use miniloop::{EventLoop, VirtualClock, interval, sleep};
/// use std::time::Duration;
///
/// let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build()?;
/// let beats = event_loop.run_until_complete(async {
///     let mut ticks = interval(Duration::from_secs(10));
///     let mut beats = Vec::new();
///     for _ in 0..3 {
///         beats.push(ticks.tick().await.as_nanos() / 1_000_000_000);
///         sleep(Duration::from_secs(7)).await; // work that takes a while
///     }
///     beats
/// })?;
/// assert_eq!(beats, [0, 10, 20]);
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(now(), period)
}

/// The same with the first tick at `start`.
///
/// # Panics
/// Outside a loop.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    let place = Location::caller();
    Interval {
        period: period.max(INTERVAL_PERIOD_MIN),
        pace: Pace::Grid(MissedTicks::Skip),
        next: start,
        wait: Some(sleep_until_at(start, place)),
        missed: 0,
        place,
    }
}

/// What becomes of the ticks for which nobody came in time, because the work between two of them took longer than the period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTicks {
    /// They are left out; the next tick is on the grid again. The default here and of
    /// [`call_every`](crate::LoopHandle::call_every).
    #[default]
    Skip,
    /// They come one after the other, at once, until the beat is caught up with. Tokio's default.
    Burst,
    /// The grid begins anew at the late tick: two ticks are never closer than one period.
    Delay,
}

/// A stream of ticks, from [`interval`], [`interval_at`] or [`Interval::fixed_delay`]. It never ends.
pub struct Interval {
    period: Duration,
    pace: Pace,
    /// The deadline of the tick that comes next.
    next: Instant,
    /// `None`: nobody has asked for the next tick of a fixed delay yet.
    wait: Option<Sleep>,
    missed: u64,
    place: &'static Location<'static>,
}

#[derive(Clone, Copy)]
enum Pace {
    Grid(MissedTicks),
    FixedDelay,
}

impl Interval {
    /// Ticks `pause` after each time that the next tick is asked for: the work between two ticks never shortens the pause, and none is ever
    /// missed.
    ///
    /// ```
    /// use miniloop::{EventLoop, Interval, VirtualClock, sleep};
    /// use std::time::Duration;
    ///
    /// let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build()?;
    /// let beats = event_loop.run_until_complete(async {
    ///     let mut ticks = Interval::fixed_delay(Duration::from_secs(10));
    ///     let mut beats = Vec::new();
    ///     for _ in 0..3 {
    ///         beats.push(ticks.tick().await.as_nanos() / 1_000_000_000);
    ///         sleep(Duration::from_secs(7)).await;
    ///     }
    ///     beats
    /// })?;
    /// assert_eq!(beats, [10, 27, 44]);
    /// # Ok::<(), miniloop::LoopError>(())
    /// ```
    #[track_caller]
    pub fn fixed_delay(pause: Duration) -> Interval {
        let place = Location::caller();
        Interval { period: pause, pace: Pace::FixedDelay, next: Instant::FAR_FUTURE, wait: None, missed: 0, place }
    }

    /// Sets the policy for missed ticks. On an interval with a fixed delay, which misses none, it begins a grid.
    pub fn missed_ticks(mut self, policy: MissedTicks) -> Interval {
        self.pace = Pace::Grid(policy);
        self.period = self.period.max(INTERVAL_PERIOD_MIN);
        self
    }

    /// The time between two ticks. A zero period counts as a nanosecond: once at every poll of the loop.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// How many ticks were left out so far, by [`MissedTicks::Skip`].
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// Waits for the next tick, and returns the time for which it was planned, which may be a while ago.
    ///
    /// # Cancellation
    /// Dropping the future loses no tick.
    pub fn tick(&mut self) -> Tick<'_> {
        Tick { interval: self, is_done: false }
    }

    /// Begins anew: the next tick comes one period from now.
    ///
    /// # Panics
    /// Outside a loop.
    pub fn reset(&mut self) {
        match self.pace {
            Pace::FixedDelay => self.wait = None,
            Pace::Grid(_) => self.set(now() + self.period),
        }
    }

    /// Work has been done without a tick: a fixed delay begins anew, a grid stays.
    pub(crate) fn delay_again(&mut self) {
        if let Pace::FixedDelay = self.pace {
            self.wait = None;
        }
    }

    fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        if self.wait.is_none() {
            self.set(now() + self.period);
        }
        let Some(wait) = &mut self.wait else { unreachable!("it has just been set") };
        ready!(Pin::new(wait).poll(cx));
        let tick = self.next;
        match self.pace {
            Pace::FixedDelay => self.wait = None,
            Pace::Grid(MissedTicks::Burst) => self.set(tick + self.period),
            Pace::Grid(MissedTicks::Skip) => {
                self.set(tick.next_beat(self.period, now()));
                // At the end of time the next tick is less than a period away.
                self.missed += ((self.next - tick).as_nanos() / self.period.as_nanos()).saturating_sub(1) as u64;
            }
            Pace::Grid(MissedTicks::Delay) => self.set(now() + self.period),
        }
        Poll::Ready(tick)
    }

    fn set(&mut self, next: Instant) {
        self.next = next;
        self.wait = Some(sleep_until_at(next, self.place));
    }
}

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(cx).map(Some)
    }
}

impl FusedStream for Interval {
    fn is_terminated(&self) -> bool {
        false
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval").field("period", &self.period).field("next", &self.next).finish_non_exhaustive()
    }
}

/// The future of [`Interval::tick`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Tick<'a> {
    interval: &'a mut Interval,
    is_done: bool,
}

impl Future for Tick<'_> {
    type Output = Instant;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Instant> {
        let tick = ready!(self.interval.poll_tick(cx));
        self.is_done = true;
        Poll::Ready(tick)
    }
}

impl FusedFuture for Tick<'_> {
    fn is_terminated(&self) -> bool {
        self.is_done
    }
}
