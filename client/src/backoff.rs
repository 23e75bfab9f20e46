//! Pauses between attempts: 20 ms, 40 ms, 80 ms ... 2 s.

use std::time::Duration;

const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// The next pause.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    attempts: u32,
}

impl Backoff {
    pub(crate) async fn pause(&mut self) {
        let pause = SHORTEST.saturating_mul(1 << self.attempts.min(10)).min(LONGEST);
        self.attempts += 1;
        tokio::time::sleep(pause).await;
    }

    pub(crate) fn reset(&mut self) {
        self.attempts = 0;
    }
}
