//! The index of candidates at the durable state, brought up to date when it is asked for.

use std::sync::Arc;

use ledger::Ledger;
use parking_lot::Mutex;
use projector::candidates::CandidateIndex;

/// Keeps the index.
pub struct IndexKeeper {
    ledger: Ledger,
    newest: Mutex<Arc<CandidateIndex>>,
}

impl IndexKeeper {
    /// Builds the index of the durable state.
    #[must_use]
    pub fn new(ledger: Ledger) -> Self {
        let newest = Mutex::new(Arc::new(CandidateIndex::from_state(&ledger.view())));
        Self { ledger, newest }
    }

    /// The index, true at the durable state or a later one.
    #[must_use]
    pub fn current(&self) -> Arc<CandidateIndex> {
        let wanted = self.ledger.view().sequence();
        let mut newest = self.newest.lock();
        if newest.sequence() >= wanted {
            return Arc::clone(&newest);
        }
        let from = newest.sequence() + 1;
        match self.ledger.tail(from) {
            Some(batches) => {
                let mut index = CandidateIndex::clone(&newest);
                for batch in batches.iter().filter(|batch| batch.first >= from) {
                    index.follow(&batch.state, &batch.events);
                }
                *newest = Arc::new(index);
            }
            // Too much has happened since to follow it.
            None => *newest = Arc::new(CandidateIndex::from_state(&self.ledger.view())),
        }
        Arc::clone(&newest)
    }
}
