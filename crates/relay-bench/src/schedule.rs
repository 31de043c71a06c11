//! When the messages of an open loop are due: evenly, each sender in turn.
//!
//! Message `k` of all is due `k / rate` seconds after the start, and is message `k / senders` of sender `k % senders`. It is numbers only:
//! it knows no clock. Next: `sender.rs`.

/// The times at which messages are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    /// Messages a second, of all senders.
    pub(crate) rate: u64,
    pub(crate) senders: u64,
    /// How many there are in all.
    pub(crate) total: u64,
}

impl Schedule {
    /// When message `index` of all is due, in nanoseconds after the start.
    pub(crate) fn due_at_ns(&self, index: u64) -> u64 {
        (u128::from(index) * NS_PER_S / u128::from(self.rate)) as u64
    }

    /// How many messages are due so long after the start.
    pub(crate) fn due(&self, elapsed_ns: u64) -> u64 {
        // The largest index with floor(index * NS_PER_S / rate) <= elapsed, and one more: they begin with 0.
        let last = ((u128::from(elapsed_ns) + 1) * u128::from(self.rate) - 1) / NS_PER_S;
        u64::try_from(last + 1).unwrap_or(u64::MAX).min(self.total)
    }

    /// How many of the first `due` messages are those of one sender.
    pub(crate) fn share(&self, sender: u64, due: u64) -> u64 {
        due.saturating_sub(sender).div_ceil(self.senders)
    }

    /// When a sender's message `number` is due, in nanoseconds after the start.
    pub(crate) fn senders_due_at_ns(&self, sender: u64, number: u64) -> u64 {
        self.due_at_ns(number * self.senders + sender)
    }
}

const NS_PER_S: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_due_from_its_time_on_and_not_before() {
        for rate in [1, 3, 7, 1_000, 999_999_937] {
            let schedule = Schedule { rate, senders: 2, total: 20 };
            for index in 0..20 {
                let at_ns = schedule.due_at_ns(index);
                assert!(schedule.due(at_ns) > index, "{rate}: {index}");
                assert!(at_ns == 0 || schedule.due(at_ns - 1) <= index, "{rate}: {index}");
            }
            assert_eq!(schedule.due(u64::MAX / 2), 20);
        }
        assert_eq!([0, 1, 3].map(|index| Schedule { rate: 3, senders: 2, total: 20 }.due_at_ns(index)), [0, 333_333_333, 1_000_000_000]);
    }

    #[test]
    fn senders_take_turns() {
        let schedule = Schedule { rate: 10, senders: 3, total: 20 };
        for due in 0..=20 {
            let shares: Vec<u64> = (0..3).map(|sender| (0..due).filter(|index| index % 3 == sender).count() as u64).collect();
            assert_eq!((0..3).map(|sender| schedule.share(sender, due)).collect::<Vec<_>>(), shares, "{due}");
        }
        assert_eq!(schedule.senders_due_at_ns(2, 1), schedule.due_at_ns(5));
    }
}
