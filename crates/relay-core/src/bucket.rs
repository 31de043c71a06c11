//! How fast one client may send messages: a token bucket, kept as one point in time.
//!
//! Instead of counting tokens and refilling them, it remembers when it will be full again (the generic cell rate algorithm of ATM
//! networks). Costs three words and, for each message, an addition. Next: `name.rs`.

use core::time::Duration;

use crate::nanos::Nanos;
use crate::settings::Rate;

/// A bucket of as many tokens as the rate's burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    token_interval_ns: u64,
    /// With the bucket full this far ahead or less, a token is left.
    ahead_max_ns: u64,
    full_at: Nanos,
}

impl Bucket {
    pub(crate) fn new(rate: Rate) -> Bucket {
        let token_interval_ns = 1_000_000_000 / u64::from(rate.per_second.max(1));
        let ahead_max_ns = token_interval_ns * u64::from(rate.burst.max(1) - 1);
        Bucket { token_interval_ns, ahead_max_ns, full_at: Nanos::default() }
    }

    /// Since when, or from when on, a token is there.
    pub(crate) fn ready_at(&self) -> Nanos {
        Nanos(self.full_at.0.saturating_sub(self.ahead_max_ns))
    }

    /// Takes a token, which must be there.
    pub(crate) fn take(&mut self, now: Nanos) {
        self.full_at = self.full_at.max(now) + Duration::from_nanos(self.token_interval_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_one_token_per_interval_and_silence_refills() {
        let mut bucket = Bucket::new(Rate { per_second: 10, burst: 3 });
        let start = Nanos(5_000_000_000);
        let mut take_all = |now: Nanos| {
            let mut taken = 0;
            while bucket.ready_at() <= now {
                bucket.take(now);
                taken += 1;
            }
            (taken, bucket.ready_at().since(start).as_millis())
        };
        assert_eq!(take_all(start), (3, 100));
        assert_eq!(take_all(start + Duration::from_millis(99)), (0, 100));
        assert_eq!(take_all(start + Duration::from_millis(100)), (1, 200));
        assert_eq!(take_all(start + Duration::from_millis(350)), (2, 400));
        assert_eq!(take_all(start + Duration::from_secs(60)), (3, 60_100));
    }
}
