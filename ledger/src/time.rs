//! Time as the ledger keeps it: microseconds since 1970 in UTC. The crate has no clock of its own.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whole seconds since 1970, rounded down.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time:.6}"),
            Err(_) => write!(f, "{} microseconds since 1970", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where the time comes from. The server gives the system's clock, tests give one they move by hand.
pub trait Clock: Send + Sync {
    /// The time now. It may jump back; the ledger never records a time below the last one.
    fn now(&self) -> Timestamp;

    /// The time since a moment of the clock's own choice. It never goes back and does not jump when
    /// the clock is set: rates and intervals go by it.
    fn monotonic(&self) -> Duration;
}
