//! How long things took, in a few hundred numbers.

use std::time::Duration;

/// How many buckets there are between a number and its double: a value read from them is at most an eighth too long.
const BUCKETS_PER_OCTAVE: u64 = 8;
/// `log2` of that.
const OCTAVE_BITS: u32 = 3;

/// Durations, counted in buckets of growing width, so that the size does not depend on the number of durations.
///
/// ```
/// use std::time::Duration;
/// use gt_core::histogram::Histogram;
///
/// let mut times = Histogram::default();
/// times.add(Duration::from_millis(3));
/// assert_eq!(times.quantile(0.5), Some(Duration::from_millis(3)));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How many fell into each bucket, up to the last one that has any.
    buckets: Vec<u64>,
    count: u64,
    max: Duration,
}

/// A summary of a histogram in a few numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// The number of durations.
    pub count: u64,
    /// Half of them took at most this.
    pub p50: Duration,
    /// Nine of ten took at most this.
    pub p90: Duration,
    /// 99 of 100 took at most this.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Histogram {
    /// Counts one more.
    pub fn add(&mut self, duration: Duration) {
        let bucket = bucket_of(microseconds(duration));
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(duration);
    }

    /// The time that this part of them (0 to 1) took at most; nothing if there are none.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        // A part of a count is a count, and no count here reaches 2^52.
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts are small and the part is clamped"
        )]
        let wanted = ((self.count as f64 * part.clamp(0.0, 1.0)).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Some(Duration::from_micros(last_of(bucket)).min(self.max));
            }
        }
        Some(self.max)
    }

    /// The numbers that people look at.
    pub fn quantiles(&self) -> Quantiles {
        let at = |part| self.quantile(part).unwrap_or_default();
        Quantiles { count: self.count, p50: at(0.5), p90: at(0.9), p99: at(0.99), max: self.max }
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The bucket of a number: the first ones hold one number each, and then there are so many between a number and its double.
fn bucket_of(number: u64) -> usize {
    let bucket = if number < BUCKETS_PER_OCTAVE {
        number
    } else {
        let octave = u64::from(number.ilog2() - OCTAVE_BITS);
        (octave + 1) * BUCKETS_PER_OCTAVE + (number >> octave) - BUCKETS_PER_OCTAVE
    };
    // There are 496 buckets.
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

/// The last number of a bucket.
fn last_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < BUCKETS_PER_OCTAVE {
        return bucket;
    }
    let octave = bucket / BUCKETS_PER_OCTAVE - 1;
    let first = (bucket % BUCKETS_PER_OCTAVE + BUCKETS_PER_OCTAVE) << octave;
    first + ((1 << octave) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn of_nothing_nothing_is_said() {
        let empty = Histogram::default();
        assert_eq!(empty.quantile(0.5), None);
        assert_eq!(empty.quantiles(), Quantiles::default());
    }

    #[test]
    fn quantiles_are_those_of_the_durations() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|number| histogram.add(Duration::from_millis(number)));
        let seen = histogram.quantiles();
        assert_eq!((seen.count, seen.max), (100, Duration::from_millis(100)));
        for (found, exact) in [(seen.p50, 50.0), (seen.p90, 90.0), (seen.p99, 99.0)] {
            let found = found.as_secs_f64() * 1000.0;
            assert!((exact..=exact * 1.126).contains(&found), "{found} for {exact}");
        }
    }

    #[test]
    fn however_long_something_took_it_is_counted() {
        let mut histogram = Histogram::default();
        histogram.add(Duration::MAX);
        histogram.add(Duration::ZERO);
        assert_eq!(histogram.quantile(0.0), Some(Duration::ZERO));
        assert_eq!(histogram.count, 2);
        assert!(histogram.buckets.len() <= 496);
    }

    proptest! {
        #[test]
        fn every_number_is_in_its_bucket_and_little_below_its_end(number in any::<u64>(), shift in 0_u32..64) {
            let number = number >> shift;
            let bucket = bucket_of(number);
            let last = last_of(bucket);
            prop_assert!(last >= number);
            prop_assert!(last - number <= number / BUCKETS_PER_OCTAVE);
            prop_assert_eq!(bucket_of(last), bucket);
            prop_assert!(last == u64::MAX || bucket_of(last + 1) == bucket + 1);
        }

        #[test]
        fn quantiles_rise_and_stay_below_the_longest(
            durations in prop::collection::vec(0_u64..10_000_000, 1..200)
        ) {
            let mut histogram = Histogram::default();
            for number in &durations {
                histogram.add(Duration::from_micros(*number));
            }
            let seen = histogram.quantiles();
            prop_assert!(seen.p50 <= seen.p90 && seen.p90 <= seen.p99 && seen.p99 <= seen.max);
            prop_assert_eq!(seen.count, durations.len() as u64);
        }
    }
}
