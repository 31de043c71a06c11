//! How values are spread: an HDR histogram, and what it does not keep: the sum, and the largest value to its last digit.
//!
//! Knows nothing of what is counted: nanoseconds, bytes, messages. A quantile is right to 1 %. One takes 3 KiB, and 1 KiB more for each
//! power of two that its values reach above 256; adding takes a few nanoseconds. Next: `error.rs`.

/// Counts values, and says how they are spread.
#[derive(Debug)]
pub(crate) struct Histogram {
    values: hdrhistogram::Histogram<u64>,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        self.values += value;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    /// The value that this part of all do not exceed, or a little more; 0 when there are no values.
    pub(crate) fn quantile(&self, quantile: f64) -> u64 {
        self.values.value_at_quantile(quantile).min(self.max)
    }

    /// The largest value; 0 when there are none.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// How many values there are.
    pub(crate) fn count(&self) -> u64 {
        self.values.len()
    }

    /// All values together.
    pub(crate) fn sum(&self) -> u64 {
        self.sum
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        // It grows with its values. Two digits are right to 1 %.
        Histogram { values: hdrhistogram::Histogram::new(2).expect("there may be up to five digits"), sum: 0, max: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_size_are_counted_and_right_to_a_hundredth() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.max(), histogram.count()), (0, 0, 0));
        (0..64).for_each(|bit| histogram.add(1 << bit));
        assert_eq!((histogram.quantile(0.1), histogram.count(), histogram.sum()), (1 << 6, 64, u64::MAX));
        let (median, expected) = (histogram.quantile(0.5), 1_u64 << 31);
        assert!(median >= expected && median - expected <= expected / 100, "{median} instead of {expected}");
        assert_eq!((histogram.max(), histogram.quantile(1.0)), (1 << 63, 1 << 63));
        histogram.add(u64::MAX);
        assert_eq!((histogram.max(), histogram.count(), histogram.sum()), (u64::MAX, 65, u64::MAX));
    }
}
