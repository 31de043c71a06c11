//! Points in time, as the shell's clock counts them.
//!
//! This crate reads no clock: every call that can meet a deadline is handed the time. Only differences mean anything. Next: `limits.rs`.

use core::ops::Add;
use core::time::Duration;

/// Nanoseconds on the shell's clock, which must never run backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The time since `earlier`, zero if that lies in the future.
    pub fn since(self, earlier: Nanos) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Stops at the end of time instead of wrapping: a wait of 600 years never comes due.
impl Add<Duration> for Nanos {
    type Output = Nanos;

    fn add(self, wait: Duration) -> Nanos {
        let wait_ns = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        Nanos(self.0.saturating_add(wait_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        assert_eq!(Nanos(5) + Duration::from_nanos(7), Nanos(12));
        assert_eq!(Nanos(5) + Duration::MAX, Nanos(u64::MAX));
        assert_eq!(Nanos(5).since(Nanos(3)), Duration::from_nanos(2));
        assert_eq!(Nanos(3).since(Nanos(5)), Duration::ZERO);
    }
}
