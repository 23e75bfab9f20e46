//! The candidate index: a fold of the ledger's state into sets and columns that a query needs.

use super::class::ClassColumn;
use super::column::Column;
use super::sets::Sets;
use super::trees::Trees;
use ledger::event::Event;
use ledger::state::{
    AggregateId, ClassId, GivenBack, Provider, ProviderId, ProviderInventory, State, TraitId,
};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The trait of providers that lend their inventory to the trees with which they have an
/// aggregate in common.
pub(super) const SHARING: &str = "MISC_SHARES_VIA_AGGREGATE";

/// What candidates are searched in. Cloning it is a snapshot and costs a few reference counts.
///
/// It has the state it is true of, so taking in a change is a comparison of a provider's row then
/// and now, and neither the order of changes nor their number matters.
#[derive(Clone, Default)]
pub struct CandidateIndex {
    state: State,
    sharing: Option<TraitId>,
    classes: imbl::Vector<ClassColumn>,
    traits: Sets,
    aggregates: Sets,
    trees: Trees,
    sharers: Column<Option<Arc<[ProviderId]>>>,
    /// By how much less is held than the state says, for one search.
    given_back: Arc<BTreeMap<(ProviderId, ClassId), u64>>,
}

impl CandidateIndex {
    /// The index of a state, built from nothing.
    pub fn from_state(state: &State) -> Self {
        let mut index = Self::default();
        index.set_state(state);
        for (id, row) in state.providers() {
            index.take_in(id, None, Some(row));
        }
        index
    }

    /// Takes in batches: their `events` in order, and the state after the last of them.
    ///
    /// The events only tell which providers changed; how they are now is in the state. (A
    /// provider that is made and removed in one batch, or whose number is used again in it, is
    /// therefore no special case.)
    pub fn follow<'a>(&mut self, after: &State, events: impl IntoIterator<Item = &'a Event>) {
        let before = self.set_state(after);
        for id in changed(&before, after, events) {
            let (then, now) = (before.provider_row(id), after.provider_row(id));
            self.take_in(id, then.map(|row| &**row), now.map(|row| &**row));
        }
    }

    /// The index for one search that is given back some of what is held: a consumer in a move,
    /// for which only the larger of both sides counts. It does not follow any more.
    #[must_use]
    pub fn giving_back(&self, given_back: &[GivenBack]) -> Self {
        let mut index = self.clone();
        let mut amounts = BTreeMap::new();
        for given in given_back {
            let row = self.row(given.provider).and_then(|row| row.inventory(given.class)).copied();
            if let Some(row) = row {
                index.class_mut(given.class).give_back(given.provider, &row, given.amount);
                amounts.insert((given.provider, given.class), given.amount);
            }
        }
        index.given_back = Arc::new(amounts);
        index
    }

    /// Whether a sharing provider is given something back.
    pub(super) fn is_lender_given_back(&self) -> bool {
        let lends = |id| self.sharing().is_some_and(|sharing| sharing.contains(id));
        self.given_back.keys().any(|&(provider, _)| lends(provider))
    }

    /// What is held of an inventory as far as this search is concerned.
    pub fn held(&self, provider: ProviderId, row: &ProviderInventory) -> u64 {
        let given = self.given_back.get(&(provider, row.class)).copied().unwrap_or(0);
        row.held.saturating_sub(given)
    }

    /// The state that the index is true of: names of classes and traits, rows of providers.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The sequence that the index is true of.
    pub fn sequence(&self) -> u64 {
        self.state.sequence()
    }

    /// Sets the state and returns the one before.
    fn set_state(&mut self, state: &State) -> State {
        self.sharing = state.traits().id(SHARING);
        std::mem::replace(&mut self.state, state.clone())
    }

    /// Takes in the row of a provider number as it was and is now; none: the number was or is free.
    fn take_in(&mut self, id: ProviderId, before: Option<&Provider>, now: Option<&Provider>) {
        self.take_in_inventories(id, before, now);
        self.trees.change(id, before.map(place), now.map(place));
        let changed = self.traits.change(id, traits(before), traits(now))
            | self.aggregates.change(id, aggregates(before), aggregates(now));
        if changed && (self.lends(before) || self.lends(now)) {
            self.share(before);
            self.share(now);
        }
    }

    fn lends(&self, row: Option<&Provider>) -> bool {
        self.sharing.is_some_and(|id| row.is_some_and(|row| row.has_trait(id)))
    }

    fn take_in_inventories(
        &mut self,
        id: ProviderId,
        before: Option<&Provider>,
        now: Option<&Provider>,
    ) {
        for row in before.map_or(&[][..], |row| &row.inventories) {
            if now.is_none_or(|now| now.inventory(row.class).is_none()) {
                self.class_mut(row.class).set(id, None);
            }
        }
        for row in now.map_or(&[][..], |row| &row.inventories) {
            if before.and_then(|before| before.inventory(row.class)) != Some(row) {
                self.class_mut(row.class).set(id, Some(row));
            }
        }
    }

    fn class_mut(&mut self, class: ClassId) -> &mut ClassColumn {
        while self.classes.len() <= class as usize {
            self.classes.push_back(ClassColumn::default());
        }
        &mut self.classes[class as usize]
    }

    /// Lists anew which sharing providers are in the aggregates of a provider.
    fn share(&mut self, row: Option<&Provider>) {
        for &aggregate in aggregates(row) {
            let sharers: Vec<ProviderId> = match (self.sharing(), self.aggregates.get(aggregate)) {
                (Some(sharing), Some(members)) => (sharing & members).iter().collect(),
                _ => Vec::new(),
            };
            self.sharers.set(aggregate, (!sharers.is_empty()).then(|| sharers.into()));
        }
    }
}

// What the search reads.
impl CandidateIndex {
    /// The row of a provider.
    pub(super) fn row(&self, id: ProviderId) -> Option<&Provider> {
        self.state.provider_row(id).map(|row| &**row)
    }

    /// What is known of a class; none: no provider ever had any.
    pub(super) fn class(&self, class: ClassId) -> Option<&ClassColumn> {
        self.classes.get(class as usize)
    }

    /// The providers with a trait, by its name; none: there is no such trait.
    pub(super) fn with_trait(&self, name: &str) -> Option<Option<&RoaringBitmap>> {
        self.state.traits().id(name).map(|id| self.traits.get(id))
    }

    /// The providers in an aggregate.
    pub(super) fn in_aggregate(&self, name: &str) -> Option<&RoaringBitmap> {
        self.state.aggregates().number(name).and_then(|number| self.aggregates.get(number))
    }

    /// All classes that any provider ever had, by number.
    pub(super) fn classes(&self) -> impl Iterator<Item = (ClassId, &ClassColumn)> {
        (0..).zip(&self.classes)
    }

    /// The providers of each trait, by number.
    pub(super) fn trait_sets(&self) -> impl Iterator<Item = (TraitId, &RoaringBitmap)> {
        self.traits.iter()
    }

    /// The providers in each aggregate, by number.
    pub(super) fn aggregate_sets(&self) -> impl Iterator<Item = (AggregateId, &RoaringBitmap)> {
        self.aggregates.iter()
    }

    /// The sharing providers in an aggregate, ascending.
    pub(super) fn sharers(&self, aggregate: AggregateId) -> &[ProviderId] {
        self.sharers.row(aggregate).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Trees.
    pub(super) fn trees(&self) -> &Trees {
        &self.trees
    }

    /// The sharing providers; none: there are none.
    pub(super) fn sharing(&self) -> Option<&RoaringBitmap> {
        self.traits.get(self.sharing?).filter(|set| !set.is_empty())
    }

    /// The sharing providers that lend to the tree with a root, ascending; not those of the tree.
    pub(super) fn lenders(&self, root: ProviderId, into: &mut Vec<ProviderId>) {
        into.clear();
        for &member in self.trees.members(&root) {
            for &aggregate in aggregates(self.row(member)) {
                let sharers = self.sharers(aggregate).iter().copied();
                into.extend(sharers.filter(|&id| self.trees.root(id) != root));
            }
        }
        into.sort_unstable();
        into.dedup();
    }

    /// The roots of the trees that a sharing provider lends to, its own included.
    pub(super) fn borrowers(&self, sharer: ProviderId) -> RoaringBitmap {
        let members = aggregates(self.row(sharer)).iter().filter_map(|&id| self.aggregates.get(id));
        members.flatten().map(|id| self.trees.root(id)).chain([self.trees.root(sharer)]).collect()
    }
}

/// The provider numbers whose rows may have changed between two states, ascending.
fn changed<'a>(
    before: &State,
    after: &State,
    events: impl IntoIterator<Item = &'a Event>,
) -> Vec<ProviderId> {
    let mut numbers = Vec::new();
    for provider in events.into_iter().flat_map(Event::providers) {
        numbers.extend(before.provider_id(provider));
        numbers.extend(after.provider_id(provider));
    }
    numbers.sort_unstable();
    numbers.dedup();
    // With a provider, all below it come under another root.
    let root = |state: &State, id| state.provider_row(id).map(|row| row.root);
    for at in 0..numbers.len() {
        let id = numbers[at];
        if after.provider_row(id).is_some() && root(before, id) != root(after, id) {
            numbers.extend(after.subtree(id));
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn place(row: &Provider) -> (Option<ProviderId>, ProviderId) {
    (row.parent, row.root)
}

fn traits(row: Option<&Provider>) -> &[u32] {
    row.map_or(&[], |row| &row.traits)
}

fn aggregates(row: Option<&Provider>) -> &[u32] {
    row.map_or(&[], |row| &row.aggregates)
}
