//! Counts of requests and of the time they took, in Prometheus' text form.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::StatusCode;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::http::operation::Operation;

/// Upper ends of the buckets for durations, in microseconds.
const BUCKETS: [u64; 12] =
    [50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000, 10_000_000];

/// All counts.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Held by whoever writes all metrics: one at a time, since the answer may be large.
    pub scrape: tokio::sync::Mutex<()>,
    in_hand: AtomicU64,
    long_reads: AtomicU64,
    /// By operation (none: no such route) and status: at most a few hundred.
    requests: RwLock<FxHashMap<(Option<&'static str>, u16), AtomicU64>>,
    buckets: [AtomicU64; BUCKETS.len()],
    micros: AtomicU64,
    count: AtomicU64,
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Timer(Instant);

impl Metrics {
    /// Notes that a request has come.
    pub fn start(&self) -> Timer {
        self.in_hand.fetch_add(1, Ordering::Relaxed);
        Timer(Instant::now())
    }

    /// Notes that it was answered.
    pub fn finish(&self, timer: Timer, operation: Option<Operation>, status: StatusCode) {
        self.in_hand.fetch_sub(1, Ordering::Relaxed);
        self.time(timer.0.elapsed());
        let key = (operation.map(Operation::name), status.as_u16());
        if let Some(count) = self.requests.read().get(&key) {
            count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.requests.write().entry(key).or_default().fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a read that is made apart from the threads that answer requests.
    pub fn long_read(&self) {
        self.long_reads.fetch_add(1, Ordering::Relaxed);
    }

    fn time(&self, taken: Duration) {
        let micros = u64::try_from(taken.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BUCKETS.iter().position(|end| micros <= *end) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.micros.fetch_add(micros, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Writes all counts.
    pub fn write(&self, out: &mut String) {
        // Writing to a string cannot fail, here and below.
        let in_hand = self.in_hand.load(Ordering::Relaxed);
        let _ = writeln!(out, "# HELP allocd_requests_in_hand Requests being answered.");
        let _ = writeln!(
            out,
            "# TYPE allocd_requests_in_hand gauge\nallocd_requests_in_hand {in_hand}"
        );
        let long_reads = self.long_reads.load(Ordering::Relaxed);
        let _ = writeln!(
            out,
            "# HELP allocd_long_reads_total Reads of the log and of whole lists.\n\
             # TYPE allocd_long_reads_total counter\nallocd_long_reads_total {long_reads}"
        );
        let _ = writeln!(
            out,
            "# HELP allocd_requests_total Requests answered, by operation and status."
        );
        let _ = writeln!(out, "# TYPE allocd_requests_total counter");
        let mut lines: Vec<String> =
            self.requests.read().iter().map(|(key, count)| line(*key, count)).collect();
        lines.sort();
        out.extend(lines);
        self.write_times(out);
    }

    fn write_times(&self, out: &mut String) {
        const NAME: &str = "allocd_request_duration_seconds";
        let _ = writeln!(out, "# HELP {NAME} How long requests took.\n# TYPE {NAME} histogram");
        let mut sum = 0;
        for (end, bucket) in BUCKETS.iter().zip(&self.buckets) {
            sum += bucket.load(Ordering::Relaxed);
            let _ = writeln!(out, "{NAME}_bucket{{le=\"{}\"}} {sum}", seconds(*end));
        }
        let count = self.count.load(Ordering::Relaxed);
        let _ = writeln!(out, "{NAME}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{NAME}_sum {}", seconds(self.micros.load(Ordering::Relaxed)));
        let _ = writeln!(out, "{NAME}_count {count}");
    }
}

fn line((operation, status): (Option<&'static str>, u16), count: &AtomicU64) -> String {
    let operation = operation.unwrap_or("none");
    let count = count.load(Ordering::Relaxed);
    format!("allocd_requests_total{{operation=\"{operation}\",status=\"{status}\"}} {count}\n")
}

fn seconds(micros: u64) -> f64 {
    // Sums stay far below 2^53 microseconds, which are 285 years.
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_operation_and_status() {
        let metrics = Metrics::default();
        for _ in 0..2 {
            let timer = metrics.start();
            metrics.finish(timer, Some(Operation::ListTraits), StatusCode::OK);
        }
        let timer = metrics.start();
        metrics.finish(timer, None, StatusCode::NOT_FOUND);
        let mut text = String::new();
        metrics.write(&mut text);
        assert!(
            text.contains("allocd_requests_total{operation=\"list_traits\",status=\"200\"} 2\n"),
            "{text}"
        );
        assert!(
            text.contains("allocd_requests_total{operation=\"none\",status=\"404\"} 1\n"),
            "{text}"
        );
        assert!(text.contains("allocd_request_duration_seconds_count 3\n"), "{text}");
        assert!(text.contains("allocd_requests_in_hand 0\n"), "{text}");
    }
}
