//! `alloc_capacity`: sums by resource class and aggregate, and by class over all providers.
//!
//! A provider counts in the aggregates that it is itself in. The sums follow provider by provider:
//! what one contributed before is taken out, what it contributes now is put in.

use super::key;
use ledger::ids::ProviderUuid;
use ledger::state::{Provider, ProviderInventory, State};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The aggregate of the sums over all providers. No aggregate's key begins with an underscore
/// alone: one of this name is spelled `=5fall`.
pub const ALL: &str = "_all";

/// A class and an aggregate; none: all providers.
type Place = (Arc<str>, Option<Arc<str>>);

/// What providers have together, in the class's unit. One provider's capacity may be as large as 64
/// bits go; of 128 bits no number of providers can run out, so a part can always be taken out again.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    providers: i128,
    total: i128,
    reserved: i128,
    capacity: i128,
    held: i128,
    /// Of each provider what is free of it, or nothing if it is overcommitted.
    free: i128,
}

/// All sums, and what each provider contributes.
#[derive(Default)]
pub(super) struct Capacity {
    sums: BTreeMap<Place, Sum>,
    parts: HashMap<ProviderUuid, Vec<(Place, Sum)>>,
}

impl Capacity {
    /// The sums of a state.
    pub(super) fn of(state: &State) -> Self {
        let mut capacity = Self::default();
        for (_, row) in state.providers() {
            capacity.put(row.uuid, parts(state, row), &mut BTreeSet::new());
        }
        capacity
    }

    /// All keys and values.
    pub(super) fn all(&self) -> impl Iterator<Item = (String, Value)> + '_ {
        self.sums.iter().map(|(place, sum)| (spelled(place), shown(place, *sum)))
    }

    /// Looks at providers again; the keys of the sums that changed, each with its value if there
    /// still is one.
    pub(super) fn change(
        &mut self,
        state: &State,
        providers: &BTreeSet<ProviderUuid>,
    ) -> Vec<(String, Option<Value>)> {
        let mut changed = BTreeSet::new();
        for &provider in providers {
            let now = state.provider(provider).map(|row| parts(state, row)).unwrap_or_default();
            self.put(provider, now, &mut changed);
        }
        let value = |place: &Place| self.sums.get(place).map(|sum| shown(place, *sum));
        changed.iter().map(|place| (spelled(place), value(place))).collect()
    }

    fn put(
        &mut self,
        provider: ProviderUuid,
        now: Vec<(Place, Sum)>,
        changed: &mut BTreeSet<Place>,
    ) {
        let before = self.parts.remove(&provider).unwrap_or_default();
        if before == now {
            self.parts.insert(provider, now);
            return;
        }
        for (place, part) in before {
            let sum = self.sums.entry(place.clone()).or_default();
            sum.add(part, -1);
            if sum.providers == 0 {
                self.sums.remove(&place);
            }
            changed.insert(place);
        }
        for (place, part) in &now {
            self.sums.entry(place.clone()).or_default().add(*part, 1);
            changed.insert(place.clone());
        }
        if !now.is_empty() {
            self.parts.insert(provider, now);
        }
    }
}

impl Sum {
    fn of(inventory: &ProviderInventory) -> Self {
        Self {
            providers: 1,
            total: inventory.inventory.total.into(),
            reserved: inventory.inventory.reserved.into(),
            capacity: inventory.inventory.capacity_shown().into(),
            held: inventory.held.into(),
            free: inventory.free().max(0).into(),
        }
    }

    fn add(&mut self, other: Self, times: i128) {
        self.providers += times * other.providers;
        self.total += times * other.total;
        self.reserved += times * other.reserved;
        self.capacity += times * other.capacity;
        self.held += times * other.held;
        self.free += times * other.free;
    }
}

/// What a provider contributes, and where.
fn parts(state: &State, row: &Provider) -> Vec<(Place, Sum)> {
    let mut parts = Vec::new();
    for inventory in &row.inventories {
        let class = Arc::clone(state.classes().name(inventory.class));
        let sum = Sum::of(inventory);
        for &aggregate in row.aggregates.iter() {
            let name = Arc::clone(state.aggregates().name(aggregate));
            parts.push(((Arc::clone(&class), Some(name)), sum));
        }
        parts.push(((class, None), sum));
    }
    parts
}

fn spelled((class, aggregate): &Place) -> String {
    let aggregate = match aggregate.as_deref() {
        None => ALL.to_owned(),
        Some(name) if name.starts_with('_') => format!("=5f{}", key::part(&name[1..])),
        Some(name) => key::part(name),
    };
    format!("{}.{aggregate}", key::part(class))
}

fn shown((class, aggregate): &Place, sum: Sum) -> Value {
    // JSON's readers have 64 bits: what is beyond them is shown as the largest number.
    let number =
        |value: i128| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
    json!({
        "class": class,
        "aggregate": aggregate,
        "providers": number(sum.providers),
        "total": number(sum.total),
        "reserved": number(sum.reserved),
        "capacity": number(sum.capacity),
        "held": number(sum.held),
        "free": number(sum.free),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::amounts::Inventory;
    use ledger::time::Timestamp;

    /// Two providers with the greatest ratio are more than 64 bits hold; once they are gone again
    /// nothing of them is left in the sums.
    #[test]
    fn sums_of_huge_capacities_are_shown_as_the_largest_number_and_can_be_taken_back() {
        let inventory = ProviderInventory {
            class: 0,
            inventory: Inventory { allocation_ratio: 3.4e38, ..Inventory::of(2_147_483_647) },
            held: 3,
            created_at: Timestamp::from_micros(0),
            updated_at: None,
            retiring: false,
            closed: false,
        };
        let place: Place = (Arc::from("VCPU"), None);
        let mut capacity = Capacity::default();
        let provider = |number| ProviderUuid(uuid::Uuid::from_u128(number));
        for number in 0..3 {
            let part = vec![(place.clone(), Sum::of(&inventory))];
            capacity.put(provider(number), part, &mut BTreeSet::new());
        }
        let shown = shown(&place, capacity.sums[&place]);
        assert_eq!((&shown["capacity"], &shown["held"]), (&json!(i64::MAX), &json!(9)));
        for number in 1..3 {
            capacity.put(provider(number), Vec::new(), &mut BTreeSet::new());
        }
        assert_eq!(capacity.sums[&place], Sum::of(&inventory));
    }
}
