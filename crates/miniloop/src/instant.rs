//! A point in time, in nanoseconds of the loop's own clock.
//!
//! `std::time::Instant` cannot be made from a number, so no virtual clock can produce one. This type can: it counts nanoseconds since the
//! origin of the clock that gave it (the machine's boot for the system clock, the start of the test for a virtual one). Arithmetic
//! saturates at [`Instant::FAR_FUTURE`], so that "in 300 years" and `Duration::MAX` are deadlines like any other.

use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

use crate::config::INTERVAL_PERIOD_MIN;

/// A point in time of a loop's clock, with a resolution of one nanosecond.
///
/// Instants of different clocks must not be compared: each clock has its own origin.
///
/// ```
/// use miniloop::Instant;
/// use std::time::Duration;
///
/// let start = Instant::from_nanos(1_000);
/// assert_eq!(start + Duration::from_micros(2), Instant::from_nanos(3_000));
/// assert_eq!(start + Duration::MAX, Instant::FAR_FUTURE);
/// assert_eq!(start - (start + Duration::from_secs(1)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// A deadline that never comes: more than 500 years after the clock's origin.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The point `nanos` nanoseconds after the clock's origin.
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    pub const fn duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The first point after `now` on the grid of `period` through `self`: beats that a busy loop has missed are left out, the others keep
    /// their place. A zero period counts as a nanosecond.
    pub(crate) fn next_beat(self, period: Duration, now: Instant) -> Instant {
        let period = period.max(INTERVAL_PERIOD_MIN);
        let next = self + period;
        if next > now {
            return next;
        }
        let beats = (now - self).as_nanos() / period.as_nanos() + 1;
        self + Duration::from_nanos(u64::try_from(beats * period.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// The point `delay` later, or [`Instant::FAR_FUTURE`] where a `u64` cannot say it.
    fn add(self, delay: Duration) -> Instant {
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, delay: Duration) {
        *self = *self + delay;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    /// The same as [`Instant::duration_since`].
    fn sub(self, earlier: Instant) -> Duration {
        self.duration_since(earlier)
    }
}
