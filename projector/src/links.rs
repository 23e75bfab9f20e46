//! Link groups and what each member counts for.
//!
//! ```text
//! held(p,c) of a group = the largest amount among its members, for the classes its rule covers;
//!                        the sum of them for the others
//! ```
//!
//! Totals by project and consumer type need to know whose that is. It is the instance's as far as
//! it has it itself; a migration counts for what it holds beyond that. So the members' shares add
//! up to the group's amount, and nobody is shown with more than it holds.

use crate::Map;
use crate::class_names::ClassNumber;
use ledger::ids::{ConsumerUuid, LinkId, ProviderUuid};
use ledger::state::Covered;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Amounts by (provider, class), in that order.
pub type Amounts = Vec<(ProviderUuid, ClassNumber, u64)>;

/// A consumer that is in a link group.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Its group.
    pub group: LinkId,
    /// What it holds.
    pub holds: Amounts,
    /// The keys under which its share is summed up.
    pub owner: (u32, u32, u32),
    /// Its share of the group's amounts, where it has one.
    pub counted: BTreeMap<(ProviderUuid, ClassNumber), u64>,
}

/// All link groups.
#[derive(Clone, Default)]
pub struct Links {
    members: Map<ConsumerUuid, Arc<Member>>,
    groups: Map<LinkId, Arc<Group>>,
}

/// A group's rule and members.
#[derive(Clone)]
struct Group {
    covered: Covered,
    members: SmallVec<[ConsumerUuid; 4]>,
}

impl Member {
    /// Its share by class; a class comes once for each provider.
    pub(crate) fn shares(&self) -> impl Iterator<Item = (ClassNumber, u64)> + '_ {
        self.counted.iter().map(|(&(_, class), &share)| (class, share))
    }
}

impl Links {
    /// A consumer's part in its group, if it is in one.
    pub fn member(&self, consumer: ConsumerUuid) -> Option<&Arc<Member>> {
        self.members.get(&consumer)
    }

    /// The members of a group.
    pub(crate) fn members_of(&self, group: LinkId) -> &[ConsumerUuid] {
        self.groups.get(&group).map_or(&[], |group| &group.members)
    }

    pub(crate) fn member_mut(&mut self, consumer: ConsumerUuid) -> Option<&mut Member> {
        self.members.get_mut(&consumer).map(Arc::make_mut)
    }

    /// Takes a consumer out of its group.
    pub(crate) fn leave(&mut self, consumer: ConsumerUuid) {
        let Some(member) = self.members.remove(&consumer) else {
            return;
        };
        let Some(group) = self.groups.get_mut(&member.group) else {
            return;
        };
        let group = Arc::make_mut(group);
        group.members.retain(|other| *other != consumer);
        if group.members.is_empty() {
            self.groups.remove(&member.group);
        }
    }

    /// Puts a consumer, which is in no group, into one. A group keeps the rule that it has.
    pub(crate) fn join(
        &mut self,
        consumer: ConsumerUuid,
        (id, covered): (LinkId, Covered),
        holds: Amounts,
        owner: (u32, u32, u32),
    ) {
        let member = Member { group: id, holds, owner, counted: BTreeMap::new() };
        self.members.insert(consumer, Arc::new(member));
        match self.groups.get_mut(&id) {
            Some(group) => Arc::make_mut(group).members.push(consumer),
            None => {
                let group = Group { covered, members: SmallVec::from_slice(&[consumer]) };
                self.groups.insert(id, Arc::new(group));
            }
        }
    }

    /// Works out each member's share of the group's amounts. `is_migration` tells whether a
    /// consumer holds the source of a move in flight; those come last.
    pub(crate) fn share_out(&mut self, group: LinkId, is_migration: impl Fn(ConsumerUuid) -> bool) {
        let Some(found) = self.groups.get(&group).cloned() else {
            return;
        };
        let mut members: Vec<ConsumerUuid> = found.members.to_vec();
        members.sort_unstable_by_key(|&member| (is_migration(member), member));
        let mut most: BTreeMap<(ProviderUuid, ClassNumber), u64> = BTreeMap::new();
        for consumer in members {
            let Some(member) = self.member_mut(consumer) else {
                continue;
            };
            member.counted.clear();
            for &(provider, class, amount) in &member.holds {
                let share = if found.covered.covers(class) {
                    let most = most.entry((provider, class)).or_default();
                    let share = amount.saturating_sub(*most);
                    *most = amount.max(*most);
                    share
                } else {
                    amount
                };
                if share > 0 {
                    let counted = member.counted.entry((provider, class)).or_default();
                    *counted = counted.saturating_add(share);
                }
            }
        }
    }
}
