//! What moves in flight hold beyond what will stay: the source's side of each.
//!
//! It is worked out for each consumer that holds a source, on each (provider, class):
//!
//! * a migration holds nothing else, so that is its whole holding;
//! * an instance that holds both sides itself gives up the source, less the destination on the
//!   same provider; if it has several such moves, the largest counts;
//! * one in a link group gives up no more than its share of the group's amount ([`crate::links`]),
//!   since the group's other members hold the rest anyway.

use super::totals::OwnerKey;
use crate::Map;
use crate::class_names::{ClassNames, ClassNumber};
use crate::links::{Amounts, Links};
use ledger::event::Move;
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The live moves, and what the holders of their sources will give up.
#[derive(Clone, Default)]
pub(super) struct InFlight {
    moves: Map<MoveId, Arc<Move>>,
    /// (instance or migration, move)
    of: imbl::OrdSet<(ConsumerUuid, MoveId)>,
    counted: Map<ConsumerUuid, Arc<Amounts>>,
    /// Whose the sides of live moves are.
    owners: Map<ConsumerUuid, OwnerKey>,
}

/// Who holds the source of a move.
pub(super) fn holder(this: &Move) -> ConsumerUuid {
    this.migration.unwrap_or(this.instance)
}

impl InFlight {
    /// Whether a consumer is the migration of a live move.
    pub(super) fn is_migration(&self, consumer: ConsumerUuid) -> bool {
        self.of(consumer)
            .any(|id| self.moves.get(&id).is_some_and(|this| this.migration == Some(consumer)))
    }

    /// The live moves of an instance or a migration.
    pub(super) fn of(&self, consumer: ConsumerUuid) -> impl Iterator<Item = MoveId> + '_ {
        let first = (consumer, MoveId::default());
        self.of.range(first..).take_while(move |(who, _)| *who == consumer).map(|&(_, id)| id)
    }

    /// Who holds the source of a live move.
    pub(super) fn holder_of(&self, id: MoveId) -> Option<ConsumerUuid> {
        self.moves.get(&id).map(|this| holder(this))
    }

    /// Everybody who holds the source of a live move.
    pub(super) fn holders(&self) -> BTreeSet<ConsumerUuid> {
        self.moves.values().map(|this| holder(this)).collect()
    }

    /// Notes how a move stands; one that ended is forgotten.
    pub(super) fn put(&mut self, this: &Move) {
        if let Some(before) = self.moves.remove(&this.id) {
            for consumer in sides(&before) {
                self.of.remove(&(consumer, this.id));
            }
        }
        if this.state.is_live() {
            for consumer in sides(this) {
                self.of.insert((consumer, this.id));
            }
            self.moves.insert(this.id, Arc::new(this.clone()));
        }
    }

    /// Live moves follow a class that has another name.
    pub(super) fn rename_class(&mut self, before: &str, after: &str) {
        let named = self.moves.iter().filter(|(_, this)| this.names_class(before));
        let named: Vec<MoveId> = named.map(|(id, _)| *id).collect();
        for id in named {
            if let Some(this) = self.moves.get_mut(&id) {
                Arc::make_mut(this).rename_class(before, after);
            }
        }
    }

    /// Notes whose a consumer is; none: it holds nothing any more. Only sides of live moves matter.
    pub(super) fn note_owner(&mut self, consumer: ConsumerUuid, owner: Option<OwnerKey>) {
        match owner.filter(|_| self.of(consumer).next().is_some()) {
            Some(owner) => self.owners.insert(consumer, owner),
            None => self.owners.remove(&consumer),
        };
    }

    /// What each holder of a source gives up once its moves are confirmed, and whose it is.
    pub(super) fn all_counted(&self) -> impl Iterator<Item = (OwnerKey, &Amounts)> {
        let owner = |consumer| self.owners.get(consumer).copied();
        self.counted
            .iter()
            .filter_map(move |(consumer, amounts)| Some((owner(consumer)?, &**amounts)))
    }

    /// What a holder was last counted with.
    pub(super) fn counted(&self, holder: ConsumerUuid) -> Arc<Amounts> {
        self.counted.get(&holder).cloned().unwrap_or_default()
    }

    /// Works out anew what a consumer will give up, and tells it.
    pub(super) fn count(
        &mut self,
        consumer: ConsumerUuid,
        classes: &ClassNames,
        links: &Links,
    ) -> Arc<Amounts> {
        let mut most: BTreeMap<(ProviderUuid, ClassNumber), u64> = BTreeMap::new();
        for this in self.of(consumer).filter_map(|id| self.moves.get(&id)) {
            if holder(this) == consumer {
                note(this, classes, &mut most);
            }
        }
        let member = links.member(consumer);
        let amounts = most.into_iter().map(|((provider, class), amount)| {
            let share = member.map(|it| it.counted.get(&(provider, class)).copied().unwrap_or(0));
            (provider, class, amount.min(share.unwrap_or(u64::MAX)))
        });
        let amounts: Arc<Amounts> =
            Arc::new(amounts.filter(|&(_, _, amount)| amount > 0).collect());
        if amounts.is_empty() {
            self.counted.remove(&consumer);
        } else {
            self.counted.insert(consumer, Arc::clone(&amounts));
        }
        amounts
    }
}

/// The instance and, if there is one, the migration.
fn sides(this: &Move) -> impl Iterator<Item = ConsumerUuid> {
    std::iter::once(this.instance).chain(this.migration)
}

/// Adds what the holder of one move's source will give up.
fn note(this: &Move, classes: &ClassNames, most: &mut BTreeMap<(ProviderUuid, ClassNumber), u64>) {
    for (&provider, resources) in &this.source {
        for (name, &amount) in resources {
            let Some(class) = classes.number(name) else { continue };
            let stays = if this.migration.is_some() { 0 } else { staying(this, provider, name) };
            let amount = u64::from(amount).saturating_sub(stays);
            let most = most.entry((provider, class)).or_default();
            *most = amount.max(*most);
        }
    }
}

fn staying(this: &Move, provider: ProviderUuid, class: &str) -> u64 {
    this.destination
        .get(&provider)
        .and_then(|resources| resources.get(class))
        .map_or(0, |&amount| u64::from(amount))
}
