//! The arithmetic of what is held (DESIGN, "Moves"):
//!
//! ```text
//! held(p,c) = sum over unlinked consumers of their current allocations
//!           + sum over link groups of the largest current allocation among the members
//! ```
//!
//! A group's rule may cover some classes only; for the others its members add up.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::expect_used)]

use super::consumer::{Allocation, Allocations};
use super::provider::{ClassId, ProviderId};
use super::{Covered, Group, State};
use crate::event::Link;
use crate::ids::{ConsumerUuid, LinkId};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap};

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

/// What `held` becomes on every (provider, class) that the writes touch, before or after. The time
/// it takes grows with what the writes and the groups that they touch name, and no faster.
pub fn held_after(state: &State, writes: &[Write]) -> Demand {
    let groups = groups_touched(state, writes);
    let written: HashMap<ConsumerUuid, &Write> =
        writes.iter().map(|write| (write.consumer, write)).collect();
    // What goes and what comes, by (provider, class).
    let mut sums: BTreeMap<(ProviderId, ClassId), (u64, u64)> = BTreeMap::new();
    for write in writes {
        let row = state.consumer(write.consumer);
        for held in row.into_iter().flat_map(|row| &row.allocations) {
            let (gone, _) = sums.entry((held.provider, held.class)).or_default();
            if row.is_some_and(|row| row.link.is_none()) {
                *gone = gone.saturating_add(u64::from(held.amount));
            }
        }
        for held in &write.after {
            let (_, come) = sums.entry((held.provider, held.class)).or_default();
            if write.link.is_none() {
                *come = come.saturating_add(u64::from(held.amount));
            }
        }
    }
    for group in &groups {
        let then = |member: ConsumerUuid| match written.get(&member) {
            Some(write) => &write.after[..],
            None => now(state, member),
        };
        for (key, amount) in counted(group, group.before.iter().map(|&m| now(state, m))) {
            let (gone, _) = sums.entry(key).or_default();
            *gone = gone.saturating_add(amount);
        }
        for (key, amount) in counted(group, group.after.iter().map(|&m| then(m))) {
            let (_, come) = sums.entry(key).or_default();
            *come = come.saturating_add(amount);
        }
    }
    let mut demand = Demand::new();
    for ((provider, class), (gone, come)) in sums {
        let before = state
            .provider_row(provider)
            .and_then(|row| row.inventory(class))
            .map_or(0, |inventory| inventory.held);
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

/// What the members of a group count for together.
fn counted<'a>(
    group: &Touched,
    members: impl Iterator<Item = &'a [Allocation]>,
) -> BTreeMap<(ProviderId, ClassId), u64> {
    let mut sums: BTreeMap<(ProviderId, ClassId), u64> = BTreeMap::new();
    for held in members.flatten() {
        let sum = sums.entry((held.provider, held.class)).or_default();
        let amount = u64::from(held.amount);
        let covered = group.covered.covers(held.class);
        *sum = if covered { amount.max(*sum) } else { sum.saturating_add(amount) };
    }
    sums
}

fn now(state: &State, consumer: ConsumerUuid) -> &[Allocation] {
    state.consumer(consumer).map_or(&[], |row| &row.allocations)
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
    let of_group: HashMap<ConsumerUuid, LinkId> = groups
        .iter()
        .flat_map(|(id, group)| group.before.iter().map(|member| (*member, *id)))
        .collect();
    for write in writes {
        if let Some(group) = of_group.get(&write.consumer).and_then(|id| groups.get_mut(id)) {
            group.after.retain(|member| *member != write.consumer);
        }
        if let Some(group) = write.link.as_ref().and_then(|link| groups.get_mut(&link.group)) {
            group.after.push(write.consumer);
        }
    }
    groups.into_values().collect()
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
