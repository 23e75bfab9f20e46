//! What moves in flight hold in one state: the view's figures ([`super::ClassUsage`]), for readers
//! who need them true at exactly the state's sequence. It costs what there is of live moves.

use super::seed;
use crate::class_names::{ClassNames, ClassNumber};
use crate::links::Links;
use ledger::ids::{LinkId, ProviderUuid};
use ledger::state::State;
use std::collections::{BTreeMap, BTreeSet};

/// The part of what is held that goes once all moves in flight are confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldByMoves {
    amounts: BTreeMap<(ProviderUuid, ClassNumber), u64>,
}

impl HeldByMoves {
    /// Of all providers of a state.
    pub fn of(state: &State) -> Self {
        let classes = ClassNames::from_state(state);
        let mut in_flight = seed::in_flight(state);
        let holders = in_flight.holders();
        let groups: BTreeSet<LinkId> =
            holders.iter().filter_map(|&holder| state.consumer(holder)?.link).collect();
        let mut links = Links::default();
        for group in groups {
            seed::join(&mut links, state, group);
            links.share_out(group, |consumer| in_flight.is_migration(consumer));
        }
        let mut amounts = BTreeMap::new();
        for holder in holders {
            for &(provider, class, amount) in in_flight.count(holder, &classes, &links).iter() {
                let sum: &mut u64 = amounts.entry((provider, class)).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        Self { amounts }
    }

    /// Of one class on one provider, in the class's unit.
    pub fn amount(&self, provider: ProviderUuid, class: ClassNumber) -> u64 {
        self.amounts.get(&(provider, class)).copied().unwrap_or(0)
    }
}
