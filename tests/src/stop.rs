//! Ends what runs beside a test, also when the test fails: a thread that goes on would keep the
//! test's scope open, and it would hang instead.

use std::sync::atomic::{AtomicBool, Ordering};

/// Says stop when it goes out of scope.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
