//! The candidate index as a view that follows the ledger.

use crate::{Batch, CandidateIndex, Lines, Projection, ProjectionError};
use ledger::log::LogReader;
use ledger::state::State;
use std::sync::Arc;

impl Projection for CandidateIndex {
    const NAME: &'static str = "candidates";
    /// Events tell it which providers changed; how they are now it reads from the state.
    const NEEDS_STATE: bool = true;

    fn from_state(state: &Arc<State>, _reader: &dyn LogReader) -> Result<Self, ProjectionError> {
        Ok(Self::from_state(state))
    }

    fn sequence(&self) -> u64 {
        self.state().sequence()
    }

    fn apply(&mut self, _batch: &Batch<'_>) -> Result<(), ProjectionError> {
        Err(ProjectionError::Contradiction {
            sequence: self.state().sequence() + 1,
            what: "the state after it is not at hand".into(),
        })
    }

    fn follow_to(
        &mut self,
        batches: &[Batch<'_>],
        state: &Arc<State>,
    ) -> Result<(), ProjectionError> {
        let at = self.state().sequence();
        if let Some(first) = batches.first() {
            drop(first.after(at)?);
        }
        if state.sequence() > at {
            self.follow(state, batches.iter().flat_map(|batch| batch.events));
        }
        Ok(())
    }
}

impl Lines for CandidateIndex {
    fn lines(&self) -> Vec<String> {
        self.facts()
    }
}
