//! The capacity rule (DESIGN, invariant 4): no accepted command leaves more held than there is
//! capacity for, for a (provider, class) that it names, unless no less was held before.

use super::findings::Findings;
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
        let Some(body) = event.allocations() else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::amounts::Inventory;
    use ledger::command::Via;
    use ledger::event::{
        AllocationEvent, AmountChange, ConsumerChange, Genesis, HoldingChange,
        InventoryBeforeAfter, InventoryChanged, ProviderChange, ProviderCreated,
    };
    use ledger::ids::{ConsumerUuid, LedgerId};
    use ledger::time::Timestamp;
    use uuid::Uuid;

    fn provider() -> ProviderUuid {
        ProviderUuid(Uuid::from_u128(1))
    }

    fn host_of_four() -> State {
        let genesis = Genesis {
            ledger_id: LedgerId(Uuid::nil()),
            hash: String::new(),
            encoding: String::new(),
            base_sequence: 0,
            base_hash: Default::default(),
            base_state_digest: Default::default(),
            standard_classes: vec!["VCPU".into()],
            standard_traits: Vec::new(),
        };
        let made = ProviderCreated {
            provider: provider(),
            name: "compute1".into(),
            parent: None,
            root: None,
            generation: 0,
        };
        let change = InventoryBeforeAfter {
            class: "VCPU".into(),
            before: None,
            after: Some(Inventory::of(4)),
        };
        let inventory =
            InventoryChanged { provider: provider(), generation: 1, changes: vec![change] };
        let events = [
            Event::Genesis(genesis),
            Event::ProviderCreated(made),
            Event::InventoryChanged(inventory),
        ];
        let mut state = State::default();
        for (sequence, event) in (1..).zip(&events) {
            state.apply(sequence, Timestamp::default(), event);
        }
        state
    }

    fn claim(consumer: u128, before: u64, after: u64, generation: u32) -> Event {
        let amounts = vec![AmountChange { class: "VCPU".into(), before: 0, after: after - before }];
        let holdings = vec![HoldingChange { provider: provider(), amounts }];
        let change = ConsumerChange {
            consumer: ConsumerUuid(Uuid::from_u128(consumer)),
            project_id: "p".into(),
            user_id: "u".into(),
            consumer_type: None,
            owner_before: None,
            generation: Some(1),
            holdings,
            link: None,
        };
        let held = vec![AmountChange { class: "VCPU".into(), before, after }];
        Event::Claimed(AllocationEvent {
            consumers: vec![change],
            providers: vec![ProviderChange { provider: provider(), generation, held }],
            moves: Vec::new(),
            via: Via::Put,
            reason: None,
            finding: None,
            option: None,
            passed_over: Vec::new(),
            host: None,
            left: None,
        })
    }

    #[test]
    fn a_claim_over_capacity_is_found_where_it_was_accepted() {
        let mut state = host_of_four();
        let (mut capacity, mut findings) = (Capacity::default(), Findings::default());
        for (sequence, event) in [(4, claim(1, 0, 4, 2)), (5, claim(2, 4, 5, 3))] {
            state.apply(sequence, Timestamp::default(), &event);
            capacity.event(&state, sequence, &event);
            capacity.group_ends(&state, &mut findings);
        }
        let found: Vec<_> = findings.list.iter().map(|finding| finding.sequence).collect();
        assert_eq!(found, [5]);
        assert!(
            findings.list[0].what.starts_with("5 of VCPU are held"),
            "{}",
            findings.list[0].what
        );
    }
}
