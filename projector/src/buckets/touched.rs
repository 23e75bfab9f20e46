//! Which values a batch of events may have changed.

use ledger::event::Event;
use ledger::ids::{MoveId, ProviderUuid};
use std::collections::BTreeSet;

/// What events touched.
#[derive(Debug, Default)]
pub(super) struct Touched {
    pub(super) providers: BTreeSet<ProviderUuid>,
    pub(super) moves: BTreeSet<MoveId>,
    /// A name changed that any value may contain.
    pub(super) names: bool,
}

impl Touched {
    pub(super) fn note(&mut self, event: &Event) {
        self.providers.extend(event.providers());
        if let Some(body) = event.allocations() {
            self.moves.extend(body.moves.iter().map(|this| this.id));
        }
        self.names |= matches!(event, Event::ResourceClassRenamed(_));
    }
}
