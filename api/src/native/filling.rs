//! Filling the cloud with one request until no more fits.
//!
//! Candidates are taken in their order, each as often as it fits into what those before it left.
//! Placing some never makes a candidate possible that was not one before, so one pass is enough
//! for a filling to which nothing can be added. Another order may give more where candidates
//! compete for a provider, so an upper bound is worked out as well; where both meet, and where no
//! two candidates have a provider in common, the count is exact.

use ledger::state::{ClassId, ProviderId, State};
use projector::candidates::{Candidate, Found};
use std::collections::{BTreeMap, HashMap};

/// How often one candidate was placed.
pub(super) struct Fill<'a> {
    /// The candidate.
    pub(super) candidate: Candidate<'a>,
    /// How often; at least once.
    pub(super) count: u64,
}

/// A filling to which nothing can be added.
pub(super) struct Filling<'a> {
    /// How many of the request it has.
    pub(super) total: u64,
    /// More than this cannot fit; none: not all candidates were looked at.
    pub(super) at_most: Option<u64>,
    /// Which candidates it has, in their order.
    pub(super) fills: Vec<Fill<'a>>,
}

impl<'a> Filling<'a> {
    pub(super) fn of(state: &State, found: &'a Found) -> Self {
        let mut free = Free { state, left: HashMap::new() };
        let mut fills = Vec::new();
        let (mut total, mut apart) = (0u64, true);
        for candidate in found.candidates() {
            apart &= !candidate.parts().iter().any(|(provider, _)| free.knows(*provider));
            let count = free.take(candidate);
            if count > 0 {
                total = total.saturating_add(count);
                fills.push(Fill { candidate, count });
            }
        }
        let at_most = match (found.complete, apart) {
            (false, _) => None,
            (true, true) => Some(total),
            (true, false) => Some(bound(state, found).unwrap_or(total)),
        };
        Self { total, at_most, fills }
    }

    /// Whether no other filling has more.
    pub(super) fn is_exact(&self) -> bool {
        self.at_most == Some(self.total)
    }
}

/// What is left while candidates are placed; by class for each provider that was looked at.
struct Free<'a> {
    state: &'a State,
    left: HashMap<ProviderId, BTreeMap<ClassId, u64>>,
}

impl Free<'_> {
    fn knows(&self, provider: ProviderId) -> bool {
        self.left.contains_key(&provider)
    }

    /// Places a candidate as often as it fits.
    fn take(&mut self, candidate: Candidate<'_>) -> u64 {
        let mut count = u64::MAX;
        for (provider, amounts) in candidate.allocations() {
            let (state, left) = (self.state, self.left.entry(provider).or_default());
            for &(class, amount) in amounts {
                let left = left.entry(class).or_insert_with(|| free(state, provider, class));
                count = count.min(*left / amount.max(1));
            }
        }
        if candidate.parts().is_empty() {
            return 0;
        }
        for (provider, amounts) in candidate.allocations() {
            let left = self.left.entry(provider).or_default();
            for &(class, amount) in amounts {
                let left = left.entry(class).or_default();
                *left = left.saturating_sub(count.saturating_mul(amount));
            }
        }
        count
    }
}

fn free(state: &State, provider: ProviderId, class: ClassId) -> u64 {
    let row = state.provider_row(provider).and_then(|row| row.inventory(class));
    row.map_or(0, |row| u64::try_from(row.free()).unwrap_or(0))
}

/// One class of a request, over all candidates.
#[derive(Default)]
struct ClassUse {
    /// How much one request takes of it in all.
    needed: u64,
    /// Whether all of that always comes from one provider.
    whole: bool,
    /// What is free, on each provider that any candidate takes it from.
    free: BTreeMap<ProviderId, u64>,
}

/// How many fit at most: for no class can more be placed than what is free of it allows. None if
/// there is no class.
fn bound(state: &State, found: &Found) -> Option<u64> {
    let mut classes: BTreeMap<ClassId, ClassUse> = BTreeMap::new();
    for candidate in found.candidates() {
        let mut needed: BTreeMap<ClassId, (u64, bool)> = BTreeMap::new();
        for (provider, amounts) in candidate.allocations() {
            for &(class, amount) in amounts {
                let sum = needed.entry(class).or_insert((0, false));
                *sum = (sum.0.saturating_add(amount), sum.0 == 0);
                let class_use = classes
                    .entry(class)
                    .or_insert_with(|| ClassUse { whole: true, ..ClassUse::default() });
                class_use.free.entry(provider).or_insert_with(|| free(state, provider, class));
            }
        }
        for (class, (sum, whole)) in needed {
            if let Some(class_use) = classes.get_mut(&class) {
                class_use.needed = sum;
                class_use.whole &= whole;
            }
        }
    }
    classes.values().map(ClassUse::bound).min()
}

impl ClassUse {
    fn bound(&self) -> u64 {
        let needed = self.needed.max(1);
        if self.whole {
            self.free.values().map(|free| free / needed).fold(0, u64::saturating_add)
        } else {
            self.free.values().copied().fold(0, u64::saturating_add) / needed
        }
    }
}
