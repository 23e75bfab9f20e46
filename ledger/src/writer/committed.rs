//! What was committed last, kept in memory for those who follow closely.

use crate::event::Event;
use crate::memory;
use crate::record::Record;
use crate::state::State;
use std::collections::VecDeque;
use std::sync::Arc;

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
}

impl Committed {
    /// About how much memory it takes, in bytes. A decoded event and the strings of a header take
    /// about as much again as the record that both were decoded from.
    fn bytes(&self) -> usize {
        let each = size_of::<Record>() + size_of::<Event>();
        self.records.iter().map(|record| each + 2 * record.bytes().len()).sum()
    }
}

impl std::fmt::Debug for Committed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "events {} to {}", self.first, self.last)
    }
}

/// The latest batches in order, and the state after the last of them.
#[derive(Clone, Debug)]
pub struct Tail {
    /// The batches; none: nothing newer is durable.
    pub batches: Vec<Arc<Committed>>,
    /// The durable state, which has them all in it.
    pub state: Arc<State>,
}

/// The latest batches. Only the newest state is kept: a state shares with the one before all that
/// did not change, so that thousands of old ones would hold thousands of copies of what did.
#[derive(Default)]
pub(super) struct Ring {
    batches: VecDeque<Arc<Committed>>,
    bytes: usize,
    state: Arc<State>,
}

impl Ring {
    pub(super) fn starting_at(state: Arc<State>) -> Self {
        Self { state, ..Self::default() }
    }

    pub(super) fn push(&mut self, batch: Arc<Committed>, state: Arc<State>) {
        assert_eq!(batch.first, self.state.sequence() + 1, "batches follow on");
        assert_eq!(batch.last, state.sequence(), "the state is the one after the batch");
        self.state = state;
        self.bytes += batch.bytes();
        self.batches.push_back(batch);
        while self.bytes > memory::LATEST_EVENTS && self.batches.len() > 1 {
            let Some(old) = self.batches.pop_front() else { break };
            self.bytes -= old.bytes();
        }
    }

    /// Forgets everything and goes on after `state`.
    pub(super) fn restart(&mut self, state: Arc<State>) {
        *self = Self::starting_at(state);
    }

    pub(super) fn from(&self, from: u64) -> Option<Tail> {
        let batches = if from > self.state.sequence() {
            Vec::new()
        } else {
            let holds = |batch: &Arc<Committed>| batch.first <= from && from <= batch.last;
            let start = self.batches.iter().position(holds)?;
            self.batches.iter().skip(start).cloned().collect()
        };
        Some(Tail { batches, state: Arc::clone(&self.state) })
    }

    /// About how much memory the batches take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
