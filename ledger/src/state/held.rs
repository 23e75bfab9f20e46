//! The arithmetic of what is held (DESIGN, "Moves"):
//!
//! ```text
//! held(p,c) = sum over unlinked consumers of their current allocations
//!           + sum over link groups of the largest current allocation among the members
//! ```
//!
//! A group's rule may cover some classes only; for the others its members add up.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::expect_used)]

use super::consumer::{Allocations, amount_in};
use super::provider::{ClassId, ProviderId};
use super::{Covered, Group, State};
use crate::event::Link;
use crate::ids::{ConsumerUuid, LinkId};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// One consumer's holding and link after a command, if it is accepted.
#[derive(Clone, Debug)]
pub struct Write {
    /// Who.
    pub consumer: ConsumerUuid,
    /// What it holds after.
    pub after: Allocations,
    /// The group it is in after.
    pub link: Option<Link>,
}

/// `held` of one (provider, class) before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldChange {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// Every (provider, class) that some writes touch.
pub type Demand = BTreeMap<(ProviderId, ClassId), HeldChange>;

/// What `held` becomes on every (provider, class) that the writes touch, before or after.
pub fn held_after(state: &State, writes: &[Write]) -> Demand {
    let mut demand = Demand::new();
    let groups = groups_touched(state, writes);
    for (provider, class) in touched(state, writes, &groups) {
        let before = state
            .provider_row(provider)
            .and_then(|row| row.inventory(class))
            .map_or(0, |inventory| inventory.held);
        let (mut gone, mut come) = (0u64, 0u64);
        for write in writes {
            let row = state.consumer(write.consumer);
            if row.is_some_and(|row| row.link.is_none()) {
                let amount = row.map_or(0, |row| u64::from(row.amount(provider, class)));
                gone = gone.saturating_add(amount);
            }
            if write.link.is_none() {
                come = come.saturating_add(amount_in(&write.after, provider, class).into());
            }
        }
        for group in &groups {
            let covered = group.covered.covers(class);
            let before = group.before.iter().map(|&m| amount_now(state, m, provider, class));
            gone = gone.saturating_add(count(covered, before));
            let after = group.after.iter().map(|&m| amount_then(state, writes, m, provider, class));
            come = come.saturating_add(count(covered, after));
        }
        // A ledger that an older version wrote may have a figure on record that is too small; then
        // the holders say what there is, and the figure is right from this command on.
        let counted = match before.checked_sub(gone) {
            Some(rest) => rest,
            None => held_from_holders(state, provider, class).saturating_sub(gone),
        };
        let after = counted.saturating_add(come);
        demand.insert((provider, class), HeldChange { before, after });
    }
    demand
}

/// A group that gains, loses or rewrites a member.
struct Touched {
    covered: Covered,
    before: SmallVec<[ConsumerUuid; 4]>,
    after: SmallVec<[ConsumerUuid; 4]>,
}

fn count(covered: bool, amounts: impl Iterator<Item = u64>) -> u64 {
    let all = if covered { u64::max } else { u64::saturating_add };
    amounts.fold(0, all)
}

fn amount_now(state: &State, consumer: ConsumerUuid, provider: ProviderId, class: ClassId) -> u64 {
    state.consumer(consumer).map_or(0, |row| u64::from(row.amount(provider, class)))
}

fn amount_then(
    state: &State,
    writes: &[Write],
    consumer: ConsumerUuid,
    provider: ProviderId,
    class: ClassId,
) -> u64 {
    match writes.iter().find(|write| write.consumer == consumer) {
        Some(write) => u64::from(amount_in(&write.after, provider, class)),
        None => amount_now(state, consumer, provider, class),
    }
}

fn groups_touched(state: &State, writes: &[Write]) -> Vec<Touched> {
    let mut groups: BTreeMap<LinkId, Touched> = BTreeMap::new();
    let of = |group: &Group| Touched {
        covered: group.covered.clone(),
        before: group.members.clone(),
        after: group.members.clone(),
    };
    for write in writes {
        if let Some(link) = &write.link {
            groups.entry(link.group).or_insert_with(|| match state.link(link.group) {
                Some(group) => of(group),
                None => Touched {
                    covered: state.covered(&link.overlap),
                    before: SmallVec::new(),
                    after: SmallVec::new(),
                },
            });
        }
        if let Some(id) = state.consumer(write.consumer).and_then(|row| row.link)
            && let Some(group) = state.link(id)
        {
            groups.entry(id).or_insert_with(|| of(group));
        }
    }
    for (id, group) in &mut groups {
        for write in writes {
            group.after.retain(|member| *member != write.consumer);
            if write.link.as_ref().is_some_and(|link| link.group == *id) {
                group.after.push(write.consumer);
            }
        }
    }
    groups.into_values().collect()
}

fn touched(state: &State, writes: &[Write], groups: &[Touched]) -> Vec<(ProviderId, ClassId)> {
    let mut keys = Vec::new();
    let mut add = |allocations: &Allocations| {
        keys.extend(allocations.iter().map(|held| (held.provider, held.class)));
    };
    for write in writes {
        add(&write.after);
        if let Some(row) = state.consumer(write.consumer) {
            add(&row.allocations);
        }
    }
    for member in groups.iter().flat_map(|group| &group.before) {
        if let Some(row) = state.consumer(*member) {
            add(&row.allocations);
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// `held` of one (provider, class) computed from nothing: what the kept figure must equal.
pub(crate) fn held_from_holders(state: &State, provider: ProviderId, class: ClassId) -> u64 {
    let mut sum = 0u64;
    let mut groups: BTreeMap<LinkId, Vec<u64>> = BTreeMap::new();
    for consumer in state.holders(provider) {
        let amount = u64::from(consumer.amount(provider, class));
        match consumer.link {
            None => sum = sum.saturating_add(amount),
            Some(link) => groups.entry(link).or_default().push(amount),
        }
    }
    for (id, amounts) in groups {
        let covered = state.link(id).is_some_and(|group| group.covered.covers(class));
        sum = sum.saturating_add(count(covered, amounts.into_iter()));
    }
    sum
}

/// The link that a consumer is in, spelled for an event.
pub(crate) fn link_of(state: &State, consumer: ConsumerUuid) -> Option<Link> {
    state.link_of(consumer)
}

impl State {
    /// The link that a consumer is in, as events spell it.
    pub fn link_of(&self, consumer: ConsumerUuid) -> Option<Link> {
        let id = self.consumer(consumer)?.link?;
        let group: &Group = self.link(id)?;
        Some(Link { group: id, overlap: group.covered.spelled(self.classes()) })
    }
}
