//! How the service is, for `/readyz` and metrics.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::endpoint::{Counts, Endpoint};

/// Where the service notes how it is.
#[derive(Debug, Default)]
pub struct Board {
    fault: Mutex<Option<String>>,
    commands: Half,
    queries: Half,
    no_inbox: AtomicU64,
}

/// Of one endpoint, which has a connection of its own.
#[derive(Debug, Default)]
struct Half {
    connected: AtomicBool,
    counts: Counts,
    turned_away: AtomicU64,
    missed: AtomicU64,
}

/// How the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Whether the connections stand and requests can come.
    pub connected: bool,
    /// Why not, if that is known.
    pub fault: Option<String>,
    /// Requests answered since the start.
    pub requests: u64,
    /// Those of them that were answered with an error.
    pub errors: u64,
    /// Requests whose reply subject is no inbox: neither carried out nor answered.
    pub no_inbox: u64,
    /// What floods cost, by endpoint.
    pub floods: [Flood; 2],
}

/// What floods cost at one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flood {
    /// `command` or `query`.
    pub endpoint: &'static str,
    /// Requests that were answered 503 since too many waited.
    pub turned_away: u64,
    /// Requests that were dropped without an answer, since not even that could be sent.
    pub missed: u64,
}

impl Board {
    /// How the service is.
    #[must_use]
    pub fn status(&self) -> ServiceStatus {
        let all = [&self.commands, &self.queries];
        ServiceStatus {
            connected: all.iter().all(|half| half.connected.load(Ordering::Acquire)),
            fault: self.fault.lock().clone(),
            requests: all.iter().map(|half| half.counts.requests()).sum(),
            errors: all.iter().map(|half| half.counts.errors()).sum(),
            no_inbox: self.no_inbox.load(Ordering::Relaxed),
            floods: Endpoint::ALL.map(|endpoint| Flood {
                endpoint: endpoint.name(),
                turned_away: self.half(endpoint).turned_away.load(Ordering::Relaxed),
                missed: self.half(endpoint).missed.load(Ordering::Relaxed),
            }),
        }
    }

    fn half(&self, endpoint: Endpoint) -> &Half {
        match endpoint {
            Endpoint::Command => &self.commands,
            Endpoint::Query => &self.queries,
        }
    }

    pub(super) fn counts(&self, endpoint: Endpoint) -> &Counts {
        &self.half(endpoint).counts
    }

    pub(super) fn no_inbox(&self) {
        self.no_inbox.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn turned_away(&self, endpoint: Endpoint) {
        self.half(endpoint).turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn missed(&self, endpoint: Endpoint) {
        self.half(endpoint).missed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn connected(&self, endpoint: Endpoint) {
        self.half(endpoint).connected.store(true, Ordering::Release);
        if [&self.commands, &self.queries].iter().all(|it| it.connected.load(Ordering::Acquire)) {
            *self.fault.lock() = None;
        }
    }

    pub(super) fn lost(&self, endpoint: Endpoint, why: Option<String>) {
        self.half(endpoint).connected.store(false, Ordering::Release);
        if why.is_some() {
            *self.fault.lock() = why;
        }
    }

    /// Neither connection stands, or will be used.
    pub(super) fn all_lost(&self, why: Option<String>) {
        for endpoint in Endpoint::ALL {
            self.lost(endpoint, why.clone());
        }
    }
}
