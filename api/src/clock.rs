//! The system's clock, for the ledger, which has none of its own.

use ledger::time::{Clock, Timestamp};

use crate::http::last_modified;

/// The system's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(last_modified::now())
    }
}
