//! What moves in flight hold beyond what will stay: the source's side of each.
//!
//! For a live move and each (provider, class) of its source, that is the source's amount, less
//! the destination's where only the larger of the two is held: both on the instance itself, or in
//! one link group whose rule covers the class.

use crate::Map;
use crate::class_names::ClassNames;
use crate::links::{Amounts, Links};
use ledger::event::Move;
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use std::sync::Arc;

/// The live moves and what each holds beyond what will stay.
#[derive(Clone, Default)]
pub(super) struct InFlight {
    moves: Map<MoveId, Arc<Live>>,
    /// (instance or migration, move)
    of: imbl::OrdSet<(ConsumerUuid, MoveId)>,
}

#[derive(Clone)]
struct Live {
    this: Move,
    counted: Amounts,
}

impl InFlight {
    /// Whether a consumer holds the source of a live move.
    pub(super) fn is_migration(&self, consumer: ConsumerUuid) -> bool {
        self.of(consumer)
            .any(|id| self.moves.get(&id).is_some_and(|live| live.this.migration == Some(consumer)))
    }

    /// The live moves of an instance or a migration.
    pub(super) fn of(&self, consumer: ConsumerUuid) -> impl Iterator<Item = MoveId> + '_ {
        let first = (consumer, MoveId::default());
        self.of.range(first..).take_while(move |(who, _)| *who == consumer).map(|&(_, id)| id)
    }

    /// What a move is counted with.
    pub(super) fn counted(&self, id: MoveId) -> Amounts {
        self.moves.get(&id).map(|live| live.counted.clone()).unwrap_or_default()
    }

    /// Notes how a move stands; one that ended is forgotten.
    pub(super) fn put(&mut self, this: &Move) {
        self.remove(this.id);
        if !this.state.is_live() {
            return;
        }
        for consumer in sides(this) {
            self.of.insert((consumer, this.id));
        }
        self.moves.insert(this.id, Arc::new(Live { this: this.clone(), counted: Vec::new() }));
    }

    fn remove(&mut self, id: MoveId) {
        if let Some(live) = self.moves.remove(&id) {
            for consumer in sides(&live.this) {
                self.of.remove(&(consumer, id));
            }
        }
    }

    /// Works out anew what a move is counted with, and tells it.
    pub(super) fn count(&mut self, id: MoveId, classes: &ClassNames, links: &Links) -> Amounts {
        let Some(live) = self.moves.get_mut(&id) else {
            return Vec::new();
        };
        let counted = beyond(&live.this, classes, links);
        Arc::make_mut(live).counted.clone_from(&counted);
        counted
    }

    pub(super) fn ids(&self) -> Vec<MoveId> {
        self.moves.keys().copied().collect()
    }
}

/// The instance and, if there is one, the migration.
fn sides(this: &Move) -> impl Iterator<Item = ConsumerUuid> {
    std::iter::once(this.instance).chain(this.migration)
}

fn beyond(this: &Move, classes: &ClassNames, links: &Links) -> Amounts {
    let mut amounts = Amounts::new();
    for (&provider, resources) in &this.source {
        for (name, &amount) in resources {
            let Some(class) = classes.number(name) else {
                continue;
            };
            let shared = match this.migration {
                None => true,
                Some(migration) => links.overlap(classes, this.instance, migration, class),
            };
            let stays = if shared { staying(this, provider, name) } else { 0 };
            let amount = u64::from(amount).saturating_sub(stays);
            if amount > 0 {
                amounts.push((provider, class, amount));
            }
        }
    }
    amounts
}

fn staying(this: &Move, provider: ProviderUuid, class: &str) -> u64 {
    this.destination
        .get(&provider)
        .and_then(|resources| resources.get(class))
        .map_or(0, |&amount| u64::from(amount))
}
