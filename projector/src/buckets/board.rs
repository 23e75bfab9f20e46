//! What is known of the buckets' health.

use super::session::Fault;
use parking_lot::Mutex;
use tokio::sync::watch;

/// How the buckets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketsStatus {
    /// Whether a session with the server stands.
    pub connected: bool,
    /// Up to which event they are true; 0: not known yet.
    pub sequence: u64,
    /// How many durable events they lack.
    pub lag: u64,
    /// What interrupted writing last, while it is interrupted.
    pub fault: Option<String>,
    /// How often a bucket was found removed, or written to by somebody else.
    pub repairs: u64,
}

/// Where the writer notes how it is.
pub(super) struct Board {
    durable: watch::Receiver<u64>,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    connected: bool,
    sequence: u64,
    fault: Option<String>,
    rounds: u64,
    repairs: u64,
}

impl Board {
    pub(super) fn new(durable: watch::Receiver<u64>) -> Self {
        Self { durable, notes: Mutex::default() }
    }

    /// A round is written: the buckets are true up to `sequence`.
    pub(super) fn round(&self, sequence: u64) {
        let mut notes = self.notes.lock();
        notes.connected = true;
        notes.fault = None;
        notes.sequence = sequence;
        notes.rounds += 1;
    }

    pub(super) fn rounds(&self) -> u64 {
        self.notes.lock().rounds
    }

    pub(super) fn fault(&self, fault: &Fault) {
        let mut notes = self.notes.lock();
        notes.connected = false;
        notes.repairs += u64::from(matches!(fault, Fault::Changed { .. }));
        notes.fault = Some(fault.to_string());
    }

    pub(super) fn status(&self) -> BucketsStatus {
        let durable = *self.durable.borrow();
        let notes = self.notes.lock();
        BucketsStatus {
            connected: notes.connected,
            sequence: notes.sequence,
            lag: durable.saturating_sub(notes.sequence),
            fault: notes.fault.clone(),
            repairs: notes.repairs,
        }
    }
}
