//! What was committed last, kept in memory for those who follow closely.

use crate::event::Event;
use crate::record::Record;
use crate::state::State;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many events are kept in memory.
const RING_EVENTS: usize = 16_384;

/// A batch that is durable.
#[derive(Clone)]
pub struct Committed {
    /// The sequence of its first event.
    pub first: u64,
    /// The sequence of its last event.
    pub last: u64,
    /// Its records.
    pub records: Vec<Record>,
    /// Their events.
    pub events: Vec<Event>,
    /// The state after it.
    pub state: Arc<State>,
}

impl std::fmt::Debug for Committed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "events {} to {}", self.first, self.last)
    }
}

/// The latest batches.
#[derive(Default)]
pub(super) struct Ring {
    batches: VecDeque<Arc<Committed>>,
    events: usize,
    durable: u64,
}

impl Ring {
    pub(super) fn starting_at(durable: u64) -> Self {
        Self { durable, ..Self::default() }
    }

    pub(super) fn push(&mut self, batch: Arc<Committed>) {
        assert_eq!(batch.first, self.durable + 1, "batches follow on");
        self.durable = batch.last;
        self.events += batch.events.len();
        self.batches.push_back(batch);
        while self.events > RING_EVENTS && self.batches.len() > 1 {
            let Some(old) = self.batches.pop_front() else { break };
            self.events -= old.events.len();
        }
    }

    /// Forgets everything and goes on after `durable`.
    pub(super) fn restart(&mut self, durable: u64) {
        *self = Self::starting_at(durable);
    }

    pub(super) fn from(&self, from: u64) -> Option<Vec<Arc<Committed>>> {
        if from > self.durable {
            return Some(Vec::new());
        }
        let start =
            self.batches.iter().position(|batch| batch.first <= from && from <= batch.last)?;
        Some(self.batches.iter().skip(start).cloned().collect())
    }
}
