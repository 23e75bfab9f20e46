//! What the index keeps of one resource class.

use super::column::Column;
use ledger::amounts::Inventory;
use ledger::state::{ProviderId, ProviderInventory};
use roaring::RoaringBitmap;
use std::sync::Arc;

/// One resource class: who has inventory of it and how much of that is left.
///
/// Whether an amount fits is two or three comparisons of small numbers, so they are kept ready:
/// `room` is the largest amount that capacity, what is held and `max_unit` leave, and `rules` has
/// `min_unit` and `step_size` of the few inventories where these are not 1.
#[derive(Clone, Default)]
pub(super) struct ClassColumn {
    providers: Arc<RoaringBitmap>,
    room: Column<u32>,
    rules: Column<(u32, u32)>,
    with_rules: u32,
}

impl ClassColumn {
    /// The providers with inventory of the class.
    pub(super) fn providers(&self) -> &RoaringBitmap {
        &self.providers
    }

    /// The largest sum of amounts that one candidate can ask of a provider; 0: no inventory.
    pub(super) fn room(&self, provider: ProviderId) -> u64 {
        u64::from(self.room.get(provider))
    }

    /// Whether one group can ask this amount of a provider (API reference, "Capacity").
    pub(super) fn fits(&self, provider: ProviderId, amount: u64) -> bool {
        amount <= self.room(provider) && (self.with_rules == 0 || self.obeys(provider, amount))
    }

    /// `min_unit` and `step_size` of a provider, or zeros where they rule nothing out.
    pub(super) fn rules(&self, provider: ProviderId) -> (u32, u32) {
        self.rules.get(provider)
    }

    fn obeys(&self, provider: ProviderId, amount: u64) -> bool {
        let (min, step) = self.rules(provider);
        amount >= u64::from(min) && (step <= 1 || amount.is_multiple_of(u64::from(step)))
    }

    /// Notes the inventory of a provider, or that it has none (any more).
    pub(super) fn set(&mut self, provider: ProviderId, row: Option<&ProviderInventory>) {
        if row.is_some() != self.providers.contains(provider) {
            let providers = Arc::make_mut(&mut self.providers);
            match row {
                Some(_) => providers.insert(provider),
                None => providers.remove(provider),
            };
        }
        self.room.set(provider, row.map_or(0, room));
        let rules = row.map_or((0, 0), |row| rules(&row.inventory));
        let before = self.rules.get(provider);
        self.with_rules += u32::from(rules != (0, 0));
        self.with_rules -= u32::from(before != (0, 0));
        self.rules.set(provider, rules);
    }
}

impl ClassColumn {
    /// Notes that a search may use what is free and this amount too, which it has anyway.
    pub(super) fn give_back(&mut self, provider: ProviderId, row: &ProviderInventory, amount: u64) {
        let held = row.held.saturating_sub(amount);
        let freed = u64::from(room(&ProviderInventory { held, ..*row }));
        // Where more is held than there is, what it has it may keep.
        let kept = amount.min(row.held).min(u64::from(row.inventory.max_unit));
        self.room.set(provider, u32::try_from(freed.max(kept)).unwrap_or(u32::MAX));
    }
}

/// What a single candidate can ask at most. It never exceeds the limit of amounts, 2^31 - 1.
fn room(row: &ProviderInventory) -> u32 {
    let free = u32::try_from(row.free().max(0)).unwrap_or(u32::MAX);
    free.min(row.inventory.max_unit)
}

/// `min_unit` and `step_size`, or zeros where they rule nothing out.
fn rules(inventory: &Inventory) -> (u32, u32) {
    match (inventory.min_unit, inventory.step_size) {
        (0 | 1, 0 | 1) => (0, 0),
        rules => rules,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ledger::time::Timestamp;

    /// A ratio may put the capacity as far from 0 as 64 bits go, and what is held comes on top.
    #[test]
    fn room_is_none_or_all_where_the_capacity_is_beyond_all_numbers() {
        let row = |allocation_ratio, reserved, held| ProviderInventory {
            class: 0,
            inventory: Inventory { allocation_ratio, reserved, ..Inventory::of(100) },
            held,
            created_at: Timestamp::from_micros(0),
            updated_at: None,
            retiring: false,
            closed: false,
        };
        for (row, most) in [
            (row(-1e30, 0, 7), 0),
            (row(1e30, 200, 7), 0),
            (row(3.4e38, 0, 7), ledger::limits::AMOUNT),
            (row(1.0, 0, u64::MAX), 0),
        ] {
            assert_eq!(room(&row), most);
            let mut column = ClassColumn::default();
            column.set(3, Some(&row));
            column.give_back(3, &row, 5);
            assert_eq!(column.fits(3, 50), most > 0);
        }
    }
}
