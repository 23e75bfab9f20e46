//! What is free of a class, and why an amount does not fit.

use super::condition::Lack;
use crate::candidates::index::CandidateIndex;
use crate::candidates::query::Group;
use ledger::state::{Provider, ProviderInventory};
use serde::Serialize;

/// One class in the whole cloud: free in all beside the largest gap, because 200 free units on 50
/// hosts are of no use to somebody who needs 6 on one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassTotals {
    /// The class.
    pub class: String,
    /// How much is asked for, in the class's unit.
    pub needed: u64,
    /// How many providers have inventory of it.
    pub providers: usize,
    /// How many of these have room for the amount.
    pub fitting: usize,
    /// Free on all providers together; an overcommitted provider counts as 0.
    pub free: u64,
    /// The most that is free on one provider.
    pub largest_gap: u64,
    /// How many providers have a gap as large as that.
    pub with_largest_gap: usize,
    /// Held of it on all providers together.
    pub held: u64,
    /// Providers where less is free than needed, those that are being retired included.
    pub too_full: usize,
    /// Providers whose `max_unit` is below the amount.
    pub above_max_unit: usize,
    /// Providers whose `min_unit` is above it.
    pub below_min_unit: usize,
    /// Providers of whose `step_size` it is no multiple.
    pub off_step: usize,
}

/// The totals of each class that a group asks for.
pub(super) fn of(index: &CandidateIndex, group: &Group) -> Vec<ClassTotals> {
    group.resources.iter().map(|(class, needed)| totals(index, class, *needed)).collect()
}

fn totals(index: &CandidateIndex, class: &str, needed: u64) -> ClassTotals {
    let mut sum = ClassTotals {
        class: class.to_string(),
        needed,
        providers: 0,
        fitting: 0,
        free: 0,
        largest_gap: 0,
        with_largest_gap: 0,
        held: 0,
        too_full: 0,
        above_max_unit: 0,
        below_min_unit: 0,
        off_step: 0,
    };
    let id = index.state().classes().id(class);
    let Some((id, column)) = id.and_then(|id| Some((id, index.class(id)?))) else {
        return sum;
    };
    for provider in column.providers() {
        if let Some(inventory) = index.row(provider).and_then(|row| row.inventory(id)) {
            sum.add(inventory);
        }
    }
    sum
}

impl ClassTotals {
    fn add(&mut self, row: &ProviderInventory) {
        let free = u64::try_from(row.free()).unwrap_or_default();
        self.providers += 1;
        self.free = self.free.saturating_add(free);
        self.held = self.held.saturating_add(row.held);
        match free.cmp(&self.largest_gap) {
            std::cmp::Ordering::Greater => (self.largest_gap, self.with_largest_gap) = (free, 1),
            std::cmp::Ordering::Equal => self.with_largest_gap += 1,
            std::cmp::Ordering::Less => {}
        }
        match lack(row, &self.class, self.needed) {
            None => self.fitting += 1,
            Some(Lack::MaxUnit { .. }) => self.above_max_unit += 1,
            Some(Lack::MinUnit { .. }) => self.below_min_unit += 1,
            Some(Lack::StepSize { .. }) => self.off_step += 1,
            Some(_) => self.too_full += 1,
        }
    }
}

/// Why an amount does not fit an inventory. What no room could mend comes first.
fn lack(row: &ProviderInventory, class: &str, needed: u64) -> Option<Lack> {
    let it = &row.inventory;
    let class = || class.to_string();
    if row.closed {
        return Some(Lack::Retiring { class: class() });
    }
    if needed > u64::from(it.max_unit) {
        return Some(Lack::MaxUnit { class: class(), needed, max_unit: it.max_unit });
    }
    if needed < u64::from(it.min_unit) {
        return Some(Lack::MinUnit { class: class(), needed, min_unit: it.min_unit });
    }
    if it.step_size > 1 && !needed.is_multiple_of(u64::from(it.step_size)) {
        return Some(Lack::StepSize { class: class(), needed, step_size: it.step_size });
    }
    let free = row.free();
    (i64::try_from(needed).unwrap_or(i64::MAX) > free).then(|| Lack::Free {
        class: class(),
        needed,
        free,
    })
}

/// Why an amount fits none of some providers; of several reasons that of the one with most free.
pub(super) fn lack_of_all(
    index: &CandidateIndex,
    rows: &[&Provider],
    class: &str,
    needed: u64,
) -> Option<Lack> {
    let none = Lack::Inventory { class: class.to_string() };
    let Some(id) = index.state().classes().id(class) else {
        return Some(none);
    };
    let inventories = rows.iter().filter_map(|row| row.inventory(id));
    let mut closest: Option<(i64, Lack)> = None;
    for row in inventories {
        let lack = lack(row, class, needed)?;
        if closest.as_ref().is_none_or(|(free, _)| row.free() > *free) {
            closest = Some((row.free(), lack));
        }
    }
    Some(closest.map_or(none, |(_, lack)| lack))
}
