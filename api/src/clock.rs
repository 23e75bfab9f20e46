//! The system's clock, for the ledger, which has none of its own; and an eye on it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ledger::time::{Clock, Timestamp};

use crate::http::last_modified;

/// A jump is worth a word from this size on, in microseconds; less is what keeping a clock right
/// takes.
const WORTH_A_WORD: i64 = 1_000_000;

/// The system's clock. It is compared with the monotonic one, which never jumps: each jump is told
/// once, with its size and what both clocks say. Nothing is refused because of it, since recorded
/// times never go back whatever the clock does.
#[derive(Debug)]
pub struct SystemClock {
    begun: Instant,
    /// What the system's clock said then, in microseconds.
    origin: i64,
    /// By how much the system's clock is ahead of the monotonic one, as of the last look.
    ahead: AtomicI64,
    jumps: AtomicU64,
    last_jump: AtomicI64,
}

/// Jumps of the clock since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jumps {
    /// How many.
    pub count: u64,
    /// The size of the last one in microseconds; below 0: back.
    pub last: i64,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            origin: last_modified::now(),
            ahead: AtomicI64::new(0),
            jumps: AtomicU64::new(0),
            last_jump: AtomicI64::new(0),
        }
    }
}

impl SystemClock {
    /// Jumps since the start.
    #[must_use]
    pub fn jumps(&self) -> Jumps {
        Jumps {
            count: self.jumps.load(Ordering::Relaxed),
            last: self.last_jump.load(Ordering::Relaxed),
        }
    }

    /// Compares both clocks, and tells a jump since the last look.
    fn look(&self, wall: i64, elapsed: i64) {
        let expected = self.origin.saturating_add(elapsed);
        let ahead = wall.saturating_sub(expected);
        let before = self.ahead.swap(ahead, Ordering::Relaxed);
        let jump = ahead.saturating_sub(before);
        if jump.abs() < WORTH_A_WORD {
            return;
        }
        self.jumps.fetch_add(1, Ordering::Relaxed);
        self.last_jump.store(jump, Ordering::Relaxed);
        let expected = expected.saturating_add(before);
        tracing::warn!(
            seconds = jump as f64 / 1e6,
            system = %Timestamp::from_micros(wall),
            monotonic = %Timestamp::from_micros(expected),
            "the system's clock jumped; writes go on, and recorded times do not go back"
        );
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let wall = last_modified::now();
        let elapsed = i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.look(wall, elapsed);
        Timestamp::from_micros(wall)
    }

    fn monotonic(&self) -> Duration {
        self.begun.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn a_jump_is_told_once_with_its_size() {
        let clock = SystemClock::default();
        let at = |elapsed: i64, off: i64| clock.look(clock.origin + elapsed + off, elapsed);
        at(1_000_000, 0);
        at(2_000_000, 5_000);
        assert_eq!(clock.jumps().count, 0, "a clock is kept right by less");
        at(3_000_000, HOUR);
        assert_eq!(clock.jumps(), Jumps { count: 1, last: HOUR - 5_000 });
        for second in 4..100 {
            at(second * 1_000_000, HOUR);
        }
        assert_eq!(clock.jumps().count, 1, "told once");
        at(100_000_000, 0);
        at(101_000_000, 0);
        assert_eq!(clock.jumps(), Jumps { count: 2, last: -HOUR });
    }
}
