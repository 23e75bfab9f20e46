//! How long decisions took. While one is made nobody else's command is, so that the longest is how
//! long one request has held the others up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the buckets, in microseconds. The goal is that nothing is beyond 50 ms.
const BUCKETS: [u64; 10] = [10, 25, 50, 100, 500, 1_000, 5_000, 10_000, 50_000, 500_000];

/// Counts of decisions by how long they took, since the start.
#[derive(Default)]
pub struct DecideTimes {
    buckets: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    nanos: AtomicU64,
    longest_nanos: AtomicU64,
}

impl DecideTimes {
    pub(super) fn note(&self, taken: Duration) {
        let nanos = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        let place = BUCKETS.iter().position(|end| nanos <= end * 1_000);
        if let Some(bucket) = place.and_then(|place| self.buckets.get(place)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        self.longest_nanos.fetch_max(nanos, Ordering::Relaxed);
    }

    /// The upper end of each bucket with how many decisions took no longer, smallest first.
    pub fn up_to(&self) -> impl Iterator<Item = (Duration, u64)> {
        let mut sum = 0;
        BUCKETS.iter().zip(&self.buckets).map(move |(end, bucket)| {
            sum += bucket.load(Ordering::Relaxed);
            (Duration::from_micros(*end), sum)
        })
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// How long all took together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// How long the longest took.
    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_nanos.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_its_bucket_and_the_longest_is_kept() {
        let times = DecideTimes::default();
        for micros in [5, 40, 60_000, 20, 2_000_000] {
            times.note(Duration::from_micros(micros));
        }
        let up_to = |micros| times.up_to().find(|(end, _)| *end == Duration::from_micros(micros));
        assert_eq!(up_to(10).map(|(_, count)| count), Some(1));
        assert_eq!(up_to(50_000).map(|(_, count)| count), Some(3));
        assert_eq!((times.count(), times.longest()), (5, Duration::from_secs(2)));
    }
}
