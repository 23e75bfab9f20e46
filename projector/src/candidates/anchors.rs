//! The anchors at which there may be candidates, one after the other.

use super::index::CandidateIndex;
use super::plan::{Plan, Rule, Set};
use ledger::state::ProviderId;
use roaring::RoaringBitmap;
use std::borrow::Cow;

/// The roots at which a plan may find something, each once.
///
/// Every candidate needs a provider from each of several sets (one for each group, or for each
/// class of the group without suffix), so the smallest set leads to all anchors. It is followed
/// only as far as the search goes: a limited one on a large cloud sees a small part of it.
pub(super) struct Anchors<'p> {
    plan: &'p Plan<'p>,
    providers: Box<dyn Iterator<Item = ProviderId> + 'p>,
    /// Roots of the last sharing provider that are still to come.
    borrowers: Vec<ProviderId>,
    seen: Seen,
    /// What the order of hosts puts first, then last; from the end.
    first: Vec<ProviderId>,
    last: Vec<ProviderId>,
}

impl<'p> Anchors<'p> {
    /// The anchors of a plan with at least one group.
    pub(super) fn new(plan: &'p Plan<'p>) -> Self {
        let providers: Box<dyn Iterator<Item = ProviderId>> = match smallest(plan) {
            Some(Cow::Borrowed(set)) => Box::new(set.iter()),
            Some(Cow::Owned(set)) => Box::new(set.into_iter()),
            None => Box::new(std::iter::empty()),
        };
        let backwards = |set: &RoaringBitmap| set.iter().rev().collect();
        let (first, last) = (backwards(&plan.order.first), backwards(&plan.order.last));
        Self { plan, providers, borrowers: Vec::new(), seen: Seen::default(), first, last }
    }

    /// The next root of a provider of the smallest set.
    fn next_root(&mut self) -> Option<ProviderId> {
        let index = self.plan.index;
        loop {
            if let Some(root) = self.borrowers.pop() {
                return Some(root);
            }
            let provider = self.providers.next()?;
            if index.sharing().is_some_and(|sharing| sharing.contains(provider)) {
                self.borrowers = index.borrowers(provider).iter().rev().collect();
                continue;
            }
            return Some(index.trees().root(provider));
        }
    }

    fn is_new(&mut self, root: ProviderId) -> bool {
        self.seen.add(root) && self.plan.allows_root(root)
    }
}

impl Iterator for Anchors<'_> {
    type Item = ProviderId;

    fn next(&mut self) -> Option<ProviderId> {
        // A host that the order names need not be among those of the set: then nothing is found
        // there.
        while let Some(root) = self.first.pop() {
            if self.is_new(root) {
                return Some(root);
            }
        }
        while let Some(root) = self.next_root() {
            if !self.plan.order.is_last(root) && self.is_new(root) {
                return Some(root);
            }
        }
        while let Some(root) = self.last.pop() {
            if self.is_new(root) {
                return Some(root);
            }
        }
        None
    }
}

/// The set to follow: one without sharing providers if there is one, since these lead to many
/// anchors each; then the smallest.
fn smallest<'p>(plan: &'p Plan<'p>) -> Option<Set<'p>> {
    let mut sets: Vec<Set<'p>> = Vec::new();
    for group in &plan.groups {
        match &group.rule {
            Rule::One(eligible) => sets.push(Cow::Borrowed(eligible)),
            Rule::Many(rule) => match rule.tree {
                Some(root) => sets.push(Cow::Owned(RoaringBitmap::from_iter([root]))),
                None => sets.extend(
                    group.demands.iter().map(|demand| Cow::Borrowed(demand.column.providers())),
                ),
            },
        }
    }
    sets.into_iter().min_by_key(|set| (lends(plan.index, set), set.len()))
}

fn lends(index: &CandidateIndex, set: &RoaringBitmap) -> bool {
    index.sharing().is_some_and(|sharing| !sharing.is_disjoint(set))
}

/// A set of numbers that are mostly dense.
#[derive(Default)]
struct Seen(Vec<u64>);

impl Seen {
    /// Adds a number; false: it was there.
    fn add(&mut self, id: ProviderId) -> bool {
        let (word, bit) = (id as usize / 64, 1u64 << (id % 64));
        if self.0.len() <= word {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        let before = self.0[word];
        self.0[word] |= bit;
        before & bit == 0
    }
}
