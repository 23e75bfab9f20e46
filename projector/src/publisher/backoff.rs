//! Longer and longer pauses, with jitter so that many publishers do not come back at once.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// The pauses between attempts.
#[derive(Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// The next pause: at most 50 ms, 100 ms, 200 ms ... 5 s, and at least half of that.
    pub(crate) fn next(&mut self) -> Duration {
        let longest = SHORTEST.saturating_mul(1 << self.attempts.min(16)).min(LONGEST);
        self.attempts += 1;
        longest.mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut backoff = Backoff::default();
        assert!(backoff.next() <= SHORTEST);
        for _ in 0..100 {
            assert!(backoff.next() <= LONGEST);
        }
        assert!(backoff.next() >= LONGEST / 2);
    }
}
