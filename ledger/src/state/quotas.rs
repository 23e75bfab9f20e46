//! Limits of what projects hold, and what each holds.
//!
//! ```text
//! held by project P of class c = sum over P's unlinked consumers of their current allocations
//!                              + sum over link groups of the largest allocation among P's members,
//!                                on each provider
//! ```
//!
//! So both sides of a move count while both are held, and once where the larger covers the other.
//! A group's rule may cover some classes only; for the others its members add up.

use super::consumer::{Allocations, Consumer};
use super::provider::{ClassId, ProviderId};
use super::{Group, Map, State};
use crate::command::Limit;
use crate::event::{AllocationEvent, QuotaChanged};
use crate::ids::{ConsumerUuid, LinkId};
use std::collections::{BTreeMap, BTreeSet};

/// Amounts by the number of a project and a class.
pub(crate) type OfProjects = BTreeMap<(u32, ClassId), u64>;

/// Limits, and what they are compared with.
#[derive(Clone, Default)]
pub(super) struct Quotas {
    /// By project; none: all that have no limit of their own.
    pub(super) limits: imbl::OrdMap<(Option<u32>, ClassId), Limit>,
    /// What each project holds: kept while there is any limit, and a copy of what consumers hold.
    held: Map<(u32, ClassId), u64>,
}

/// What a command leads to for one project and class.
pub(crate) struct Member<'a> {
    pub(crate) project: u32,
    pub(crate) allocations: &'a Allocations,
}

impl State {
    /// Whether there is any limit.
    pub fn has_quotas(&self) -> bool {
        !self.quotas.limits.is_empty()
    }

    /// How many limits there are.
    pub fn quota_count(&self) -> usize {
        self.quotas.limits.len()
    }

    /// The limit that was set for a project itself, or (none) for all others.
    pub fn limit_set(&self, project: Option<&str>, class: ClassId) -> Option<Limit> {
        let number = match project {
            Some(name) => Some(self.projects.number(name)?),
            None => None,
        };
        self.quotas.limits.get(&(number, class)).copied()
    }

    /// How much of a class a project may hold: by its own limit, or else that of all; none: any
    /// amount.
    pub fn limit_of(&self, project: &str, class: ClassId) -> Option<u64> {
        let limit = self.limit_set(Some(project), class).or_else(|| self.limit_set(None, class));
        match limit? {
            Limit::AtMost(limit) => Some(limit),
            Limit::Unlimited => None,
        }
    }

    /// What a project holds of a class. It is kept only while there is any limit.
    pub(crate) fn held_by_project(&self, project: &str, class: ClassId) -> u64 {
        let number = self.projects.number(project);
        number.and_then(|number| self.quotas.held.get(&(number, class))).copied().unwrap_or(0)
    }

    pub(super) fn apply_quota(&mut self, body: &QuotaChanged) {
        let project = body.project_id.as_deref().map(|name| self.projects.intern(name));
        let kept = self.has_quotas();
        for change in &body.limits {
            let key = (project, self.class_known(&change.class));
            match change.after {
                Some(limit) => self.quotas.limits.insert(key, limit),
                None => self.quotas.limits.remove(&key),
            };
        }
        match (kept, self.has_quotas()) {
            (false, true) => self.count_projects(),
            (true, false) => self.quotas.held = Map::default(),
            _ => {}
        }
    }

    /// Works out from nothing what each project holds.
    pub(super) fn count_projects(&mut self) {
        self.quotas.held = self.held_by_projects().into_iter().collect();
    }

    /// What each project holds, from its consumers.
    pub(super) fn held_by_projects(&self) -> OfProjects {
        let mut held = OfProjects::new();
        for (_, row) in self.consumers.iter().filter(|(_, row)| row.link.is_none()) {
            add_alone(&mut held, row.project, &row.allocations);
        }
        for group in self.links.values() {
            add_group(&mut held, group, &self.members(&group.members));
        }
        held
    }

    /// Whether what is kept is what the consumers hold.
    pub(super) fn check_quotas(&self, wrong: &mut Vec<String>) {
        let counted = if self.has_quotas() { self.held_by_projects() } else { OfProjects::new() };
        let kept: OfProjects = self.quotas.held.iter().map(|(key, held)| (*key, *held)).collect();
        if kept != counted {
            wrong.push(format!("projects are on record with {kept:?}, they hold {counted:?}"));
        }
    }

    /// What the consumers of an event, and the groups they are in before or after it, count for.
    /// Taken before it is folded in and after, the difference is what the event does.
    pub(super) fn part_of(&self, touched: &Touched) -> OfProjects {
        let mut held = OfProjects::new();
        for row in touched.consumers.iter().filter_map(|consumer| self.consumer(*consumer)) {
            if row.link.is_none() {
                add_alone(&mut held, row.project, &row.allocations);
            }
        }
        for group in touched.groups.iter().filter_map(|id| self.link(*id)) {
            add_group(&mut held, group, &self.members(&group.members));
        }
        held
    }

    /// Puts what projects hold right after an event, by [`Self::part_of`] before and after it.
    pub(super) fn recount(&mut self, before: &OfProjects, after: &OfProjects) {
        for (key, gone) in before {
            let held = self.quotas.held.get(key).copied().unwrap_or(0);
            // Never below, unless an older version counted wrongly; `verify` tells of that.
            self.quotas.held.insert(*key, held.saturating_sub(*gone));
        }
        for (key, come) in after {
            let held = self.quotas.held.entry(*key).or_insert(0);
            *held = held.saturating_add(*come);
        }
        for key in before.keys().chain(after.keys()) {
            if self.quotas.held.get(key) == Some(&0) {
                self.quotas.held.remove(key);
            }
        }
    }

    fn members(&self, members: &[ConsumerUuid]) -> Vec<Member<'_>> {
        let rows = members.iter().filter_map(|member| self.consumer(*member));
        rows.map(|row: &std::sync::Arc<Consumer>| Member {
            project: row.project,
            allocations: &row.allocations,
        })
        .collect()
    }
}

/// Whom an event touches: consumers, and the link groups they are in before or after it.
pub(super) struct Touched {
    consumers: Vec<ConsumerUuid>,
    groups: BTreeSet<LinkId>,
}

impl Touched {
    pub(super) fn by(state: &State, body: &AllocationEvent) -> Self {
        let consumers: Vec<ConsumerUuid> =
            body.consumers.iter().map(|change| change.consumer).collect();
        let before = consumers.iter().filter_map(|it| state.consumer(*it)?.link);
        let after = body.consumers.iter().filter_map(|change| change.link.as_ref());
        let groups = before.chain(after.map(|link| link.group)).collect();
        Self { consumers, groups }
    }
}

/// Adds what one unlinked consumer counts for.
pub(crate) fn add_alone(held: &mut OfProjects, project: u32, allocations: &Allocations) {
    for one in allocations {
        let sum = held.entry((project, one.class)).or_default();
        *sum = sum.saturating_add(one.amount.into());
    }
}

/// Adds what a link group with these members counts for.
pub(crate) fn add_group(held: &mut OfProjects, group: &Group, members: &[Member]) {
    let mut most: BTreeMap<(u32, ProviderId, ClassId), u64> = BTreeMap::new();
    for member in members {
        for one in member.allocations {
            let counted = most.entry((member.project, one.provider, one.class)).or_default();
            *counted = match group.covered.covers(one.class) {
                true => u64::from(one.amount).max(*counted),
                false => counted.saturating_add(one.amount.into()),
            };
        }
    }
    for ((project, _, class), amount) in most {
        let sum = held.entry((project, class)).or_default();
        *sum = sum.saturating_add(amount);
    }
}
