//! What a search found, in flat arrays of numbers: an answer of a thousand candidates costs a
//! handful of memory allocations, and amounts that many candidates share are stored once, so that
//! whoever renders them can render them once too.
//!
//! Numbers of parts, amounts and ends are given when these are pushed, and nothing is taken out again:
//! indexing by them cannot fail.

use ledger::state::{ClassId, ProviderId};
use rustc_hash::FxHashMap;

/// The number of a distinct set of amounts within one [`Found`].
pub type AmountsId = u32;

/// The answer to a query.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Whether all there was to find (up to the limit) was found; false: the search was cut off by
    /// [`super::MAX_STEPS`], [`super::MAX_CANDIDATES`], [`super::MAX_FOUND_BYTES`] or
    /// [`super::Generation::most`].
    pub complete: bool,
    /// How many combinations and parts of combinations the search looked at.
    pub steps: u64,
    /// Providers that the answer has to describe, each once: ascending, or where whole trees are
    /// described tree by tree, in the order of their roots.
    pub summaries: Vec<ProviderId>,
    suffixes: Vec<String>,
    amounts: Vec<Vec<(ClassId, u64)>>,
    amounts_ids: FxHashMap<Vec<(ClassId, u64)>, AmountsId>,
    parts: Vec<(ProviderId, AmountsId)>,
    part_ends: Vec<u32>,
    served: Vec<ProviderId>,
    served_ends: Vec<u32>,
}

/// One candidate of a [`Found`].
#[derive(Clone, Copy)]
pub struct Candidate<'a> {
    found: &'a Found,
    at: usize,
}

impl Found {
    /// An answer without candidates for groups with these suffixes, in the query's order.
    pub(super) fn new(suffixes: Vec<String>) -> Self {
        Self { complete: true, suffixes, ..Self::default() }
    }

    /// How many candidates there are.
    pub fn len(&self) -> usize {
        self.part_ends.len()
    }

    /// How many bytes the candidates take.
    pub(super) fn bytes(&self) -> usize {
        let ends = self.part_ends.len() + self.served_ends.len();
        size_of_val(&*self.parts) + size_of_val(&*self.served) + ends * size_of::<u32>()
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.part_ends.is_empty()
    }

    /// All candidates, in the order in which they were found.
    pub fn candidates(&self) -> impl ExactSizeIterator<Item = Candidate<'_>> {
        (0..self.len()).map(|at| Candidate { found: self, at })
    }

    /// The distinct sets of amounts that candidates ask of a provider: `(class, amount)` in the
    /// order of class numbers. An [`AmountsId`] is a position in this list.
    pub fn amount_sets(&self) -> &[Vec<(ClassId, u64)>] {
        &self.amounts
    }

    /// The suffixes of the groups, in the query's order.
    pub fn suffixes(&self) -> &[String] {
        &self.suffixes
    }

    /// The providers that candidates take something of; one may come several times.
    pub(super) fn used(&self) -> impl Iterator<Item = ProviderId> {
        self.parts.iter().map(|&(provider, _)| provider)
    }

    /// The number of a set of amounts, which must be sorted by class.
    pub(super) fn amounts_id(&mut self, amounts: &[(ClassId, u64)]) -> AmountsId {
        // Most answers have a few distinct sets only: comparing is quicker than hashing then.
        let first = &self.amounts[..self.amounts.len().min(4)];
        if let Some(id) = first.iter().position(|known| known == amounts) {
            return id as AmountsId;
        }
        if let Some(&id) = self.amounts_ids.get(amounts) {
            return id;
        }
        let id = self.amounts.len() as AmountsId;
        self.amounts.push(amounts.to_vec());
        self.amounts_ids.insert(amounts.to_vec(), id);
        id
    }

    /// Adds what a candidate takes of one provider.
    pub(super) fn push_part(&mut self, provider: ProviderId, amounts: AmountsId) {
        self.parts.push((provider, amounts));
    }

    /// Adds a provider that serves the current group.
    pub(super) fn push_served(&mut self, provider: ProviderId) {
        self.served.push(provider);
    }

    /// Ends the mapping of the current group.
    pub(super) fn end_group(&mut self) {
        self.served_ends.push(self.served.len() as u32);
    }

    /// Ends the current candidate.
    pub(super) fn end_candidate(&mut self) {
        self.part_ends.push(self.parts.len() as u32);
    }
}

impl<'a> Candidate<'a> {
    /// What it takes: each provider once, ascending.
    pub fn parts(self) -> &'a [(ProviderId, AmountsId)] {
        slice(&self.found.parts, &self.found.part_ends, self.at)
    }

    /// What it takes, with the amounts by class.
    pub fn allocations(self) -> impl ExactSizeIterator<Item = (ProviderId, &'a [(ClassId, u64)])> {
        let amounts = &self.found.amounts;
        self.parts().iter().map(move |&(provider, id)| (provider, amounts[id as usize].as_slice()))
    }

    /// Which providers serve which group: the suffix (empty: the group without) and the
    /// providers, each once and ascending; in the query's order of groups.
    pub fn mappings(self) -> impl ExactSizeIterator<Item = (&'a str, &'a [ProviderId])> {
        let found = self.found;
        let groups = found.suffixes.len();
        let first = self.at * groups;
        (0..groups).map(move |group| {
            let providers = slice(&found.served, &found.served_ends, first + group);
            (found.suffixes[group].as_str(), providers)
        })
    }
}

/// The part of `values` that ends where `ends` says for number `at`.
fn slice<'a, T>(values: &'a [T], ends: &[u32], at: usize) -> &'a [T] {
    let start = if at == 0 { 0 } else { ends[at - 1] as usize };
    &values[start..ends[at] as usize]
}
