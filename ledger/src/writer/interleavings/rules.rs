//! Rules of how what is held counts: the ledger's own, and one that only looks as good.

use super::world::Decided;
use crate::event::Event;
use crate::ids::{ConsumerUuid, ProviderUuid};
use crate::state::{ClassId, State};
use std::collections::BTreeMap;

/// What is held of each provider and class.
pub(super) type Held = BTreeMap<(ProviderUuid, ClassId), u64>;

/// How a rule counts what is held: taken along with the events, asked for after each step.
pub(super) trait Rule: Default {
    fn after(&mut self, state: &State, decided: Option<&Decided>) -> Held;
}

/// The ledger's own: of a link group the largest amount that its members have now.
#[derive(Default)]
pub(super) struct Largest;

impl Rule for Largest {
    fn after(&mut self, state: &State, _: Option<&Decided>) -> Held {
        let rows = state.providers().flat_map(|(_, row)| {
            row.inventories.iter().map(|inventory| ((row.uuid, inventory.class), inventory.held))
        });
        rows.collect()
    }
}

/// One that looks as good at first: when overlap is granted it is remembered how much that is, and
/// as long as both sides are there so much is subtracted from their sum.
#[derive(Default)]
pub(super) struct Subtracted {
    overlaps: BTreeMap<(ConsumerUuid, ConsumerUuid), Held>,
}

impl Subtracted {
    fn amounts(state: &State, who: ConsumerUuid) -> Held {
        let row = state.consumer(who);
        let held = row.iter().flat_map(|row| &row.allocations);
        let key = |held: &crate::state::Allocation| {
            Some((state.provider_row(held.provider)?.uuid, held.class))
        };
        held.filter_map(|held| Some((key(held)?, u64::from(held.amount)))).collect()
    }
}

impl Rule for Subtracted {
    fn after(&mut self, state: &State, decided: Option<&Decided>) -> Held {
        let linked = |a, b| {
            let link = |who| state.consumer(who).and_then(|row| row.link);
            link(a).is_some() && link(a) == link(b)
        };
        self.overlaps.retain(|(a, b), _| linked(*a, *b));
        for event in decided.iter().flat_map(|decided| &decided.events) {
            let Event::Claimed(body) = event else { continue };
            let [claimed, source] = &body.consumers[..] else { continue };
            let (claimed, source) = (claimed.consumer, source.consumer);
            if linked(claimed, source) {
                let (a, b) = (Self::amounts(state, claimed), Self::amounts(state, source));
                let both = a.into_iter().map(|(key, a)| (key, a.min(*b.get(&key).unwrap_or(&0))));
                self.overlaps.insert((claimed, source), both.collect());
            }
        }
        let mut sum = Largest.after(state, None);
        sum.values_mut().for_each(|amount| *amount = 0);
        for (_, row) in state.consumers() {
            for (key, amount) in Self::amounts(state, row.uuid) {
                *sum.entry(key).or_default() += amount;
            }
        }
        for (key, both) in self.overlaps.values().flatten() {
            let amount = sum.entry(*key).or_default();
            *amount = amount.saturating_sub(*both);
        }
        sum
    }
}
