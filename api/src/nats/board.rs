//! How the service is, for `/readyz` and metrics.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::endpoint::{Counts, Endpoint};

/// Where the service notes how it is.
#[derive(Debug, Default)]
pub struct Board {
    connected: AtomicBool,
    fault: Mutex<Option<String>>,
    commands: Counts,
    queries: Counts,
}

/// How the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Whether the connection stands and requests can come.
    pub connected: bool,
    /// Why not, if that is known.
    pub fault: Option<String>,
    /// Requests answered since the start.
    pub requests: u64,
    /// Those of them that were answered with an error.
    pub errors: u64,
}

impl Board {
    /// How the service is.
    #[must_use]
    pub fn status(&self) -> ServiceStatus {
        let all = [&self.commands, &self.queries];
        ServiceStatus {
            connected: self.connected.load(Ordering::Acquire),
            fault: self.fault.lock().clone(),
            requests: all.iter().map(|counts| counts.requests()).sum(),
            errors: all.iter().map(|counts| counts.errors()).sum(),
        }
    }

    pub(super) fn counts(&self, endpoint: Endpoint) -> &Counts {
        match endpoint {
            Endpoint::Command => &self.commands,
            Endpoint::Query => &self.queries,
        }
    }

    pub(super) fn connected(&self) {
        self.connected.store(true, Ordering::Release);
        *self.fault.lock() = None;
    }

    pub(super) fn lost(&self, why: Option<String>) {
        self.connected.store(false, Ordering::Release);
        if why.is_some() {
            *self.fault.lock() = why;
        }
    }
}
