//! The candidate index as a view that follows the ledger.

use crate::{Batch, CandidateIndex, Projection, ProjectionError};
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

    fn apply(&mut self, batch: &Batch<'_>) -> Result<(), ProjectionError> {
        let at = self.state().sequence();
        drop(batch.after(at)?);
        match batch.state {
            Some(state) if state.sequence() > at => self.follow(state, batch.events),
            Some(_) => {}
            None => {
                return Err(ProjectionError::Contradiction {
                    sequence: at + 1,
                    what: "the state after it is not at hand".into(),
                });
            }
        }
        Ok(())
    }
}
