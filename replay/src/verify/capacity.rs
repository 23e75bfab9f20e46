//! The capacity rule (DESIGN, invariant 4): no accepted command leaves more held than there is
//! capacity for, for a (provider, class) that it names, unless no less was held before.

use super::findings::Findings;
use crate::history::allocations;
use ledger::event::Event;
use ledger::ids::ProviderUuid;
use ledger::state::State;
use std::collections::BTreeMap;

/// Watches what the events of one group leave held.
///
/// One command may write several events, and only what they leave together must fit; a list is a
/// group of several commands, of which a later one may take capacity away. So a (provider, class)
/// is wrong only if it was too full after its own event and is too full after the group.
#[derive(Default)]
pub(super) struct Capacity {
    suspects: BTreeMap<(ProviderUuid, String), u64>,
    before: BTreeMap<(ProviderUuid, String), u64>,
}

impl Capacity {
    /// Takes in an event that was just folded into `state`.
    pub fn event(&mut self, state: &State, sequence: u64, event: &Event) {
        let Some(body) = allocations(event) else {
            return;
        };
        for change in &body.providers {
            for held in change.held.iter().filter(|held| held.after > held.before) {
                let key = || (change.provider, held.class.clone());
                self.before.entry(key()).or_insert(held.before);
                if is_over(state, change.provider, &held.class) {
                    self.suspects.insert(key(), sequence);
                }
            }
        }
    }

    /// The group is whole: what it left must fit.
    pub fn group_ends(&mut self, state: &State, findings: &mut Findings) {
        for ((provider, class), sequence) in std::mem::take(&mut self.suspects) {
            let held = held(state, provider, &class);
            let before = self.before.get(&(provider, class.clone())).copied().unwrap_or(0);
            if held > before && is_over(state, provider, &class) {
                findings.add(
                    sequence,
                    format!(
                        "{held} of {class} are held on provider {provider}, {before} were before, and its capacity is \
                         {}",
                        capacity(state, provider, &class)
                    ),
                );
            }
        }
        self.before.clear();
    }
}

fn is_over(state: &State, provider: ProviderUuid, class: &str) -> bool {
    held(state, provider, class) as f64 > capacity(state, provider, class)
}

fn held(state: &State, provider: ProviderUuid, class: &str) -> u64 {
    inventory(state, provider, class).map_or(0, |inventory| inventory.held)
}

fn capacity(state: &State, provider: ProviderUuid, class: &str) -> f64 {
    inventory(state, provider, class).map_or(0.0, |inventory| inventory.inventory.capacity())
}

fn inventory<'a>(
    state: &'a State,
    provider: ProviderUuid,
    class: &str,
) -> Option<&'a ledger::state::ProviderInventory> {
    state.provider(provider)?.inventory(state.classes().id(class)?)
}
