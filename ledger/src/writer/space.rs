//! Refusing writes before the disk is full: RocksDB cannot clean up without space.

use crate::time::Timestamp;
use std::path::PathBuf;

/// How often the free space is asked for, in microseconds.
const EVERY: i64 = 1_000_000;

/// Watches the free space of a ledger's file system.
pub(super) struct Space {
    dir: Option<PathBuf>,
    least: u64,
    asked_at: Timestamp,
    low: Option<String>,
}

impl Space {
    /// Refuses when less than `least` bytes are free; 0: never.
    pub(super) fn new(dir: Option<PathBuf>, least: u64) -> Self {
        Self { dir, least, asked_at: Timestamp::from_micros(i64::MIN / 2), low: None }
    }

    /// # Errors
    /// Why writes are refused.
    pub(super) fn check(&mut self, now: Timestamp) -> Result<(), String> {
        let Some(dir) = self.dir.as_ref().filter(|_| self.least > 0) else { return Ok(()) };
        if now.micros().abs_diff(self.asked_at.micros()) >= EVERY.unsigned_abs() {
            self.asked_at = now;
            self.low = match rustix::fs::statvfs(dir) {
                Ok(stat) => {
                    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
                    (free < self.least).then(|| {
                        format!("the disk has {free} bytes free, writes need {}", self.least)
                    })
                }
                Err(_) => None,
            };
        }
        self.low.clone().map_or(Ok(()), Err)
    }
}
