//! What can be asked: commands and queries. What the service API counts of each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::http::failure::Failure;

/// One half of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// What changes something.
    Command,
    /// What only reads.
    Query,
}

impl Endpoint {
    pub(super) const ALL: [Self; 2] = [Self::Command, Self::Query];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::Query => "query",
        }
    }

    /// The subject of everything in it.
    pub(super) fn subject(self) -> String {
        format!("{}*", self.prefix())
    }

    /// What is asked for by a message on `subject`.
    pub(super) fn asked(self, subject: &str) -> &str {
        subject.strip_prefix(&self.prefix()).unwrap_or_default()
    }

    fn prefix(self) -> String {
        format!("alloc.v1.{}.", self.name())
    }
}

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Counts {
    requests: AtomicU64,
    errors: AtomicU64,
    nanos: AtomicU64,
    last_error: Mutex<String>,
}

impl Counts {
    pub(super) fn count(&self, taken: Duration, failure: Option<&Failure>) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
        if let Some(failure) = failure {
            self.errors.fetch_add(1, Ordering::Relaxed);
            *self.last_error.lock() = format!("{}:{}", failure.status.as_u16(), failure.message);
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }

    /// As `$SRV.STATS` tells it; times in nanoseconds.
    pub(super) fn told(&self, endpoint: Endpoint, queue: &str) -> Value {
        let (requests, nanos) = (self.requests(), self.nanos.load(Ordering::Relaxed));
        json!({
            "name": endpoint.name(),
            "subject": endpoint.subject(),
            "queue_group": queue,
            "num_requests": requests,
            "num_errors": self.errors(),
            "last_error": *self.last_error.lock(),
            "processing_time": nanos,
            "average_processing_time": nanos / requests.max(1),
        })
    }
}
