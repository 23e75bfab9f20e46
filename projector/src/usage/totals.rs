//! Sums by project, user and consumer type, for Placement's `GET /usages`.

use crate::class_names::{ClassNames, ClassNumber};
use ledger::event::{ConsumerChange, Owner};
use ledger::state::Names;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Project, user, and type plus one (0: no type), all by number.
pub(super) type OwnerKey = (u32, u32, u32);

/// What the consumers of one type hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeUsage {
    /// The type; none: they have no type (Placement shows it as `unknown`).
    pub consumer_type: Option<Arc<str>>,
    /// How many consumers, each once.
    pub consumer_count: u64,
    /// What they hold by class, in the class's unit. Classes of which nothing counts are absent.
    pub amounts: BTreeMap<Arc<str>, u64>,
}

/// The sums of one (project, user, type).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) consumers: u64,
    pub(super) amounts: BTreeMap<ClassNumber, u64>,
}

/// All sums.
#[derive(Clone, Default)]
pub(super) struct Totals {
    pub(super) projects: Names,
    pub(super) users: Names,
    pub(super) types: Names,
    pub(super) sums: imbl::OrdMap<OwnerKey, Arc<Sum>>,
}

/// Figures by consumer type, those without a type first.
pub(super) type ByType = BTreeMap<Option<Arc<str>>, TypeUsage>;

/// Whose figures are wanted, by number; none: everybody's.
#[derive(Clone, Copy)]
pub(super) struct Whose {
    project: Option<u32>,
    user: Option<u32>,
}

impl Whose {
    pub(super) fn covers(self, key: OwnerKey) -> bool {
        self.project.is_none_or(|project| project == key.0)
            && self.user.is_none_or(|user| user == key.1)
    }
}

/// A figure would fall below zero: the events contradict the view.
pub(super) struct Negative;

impl Totals {
    /// The key of who a consumer belongs to; numbers are given to names that are new.
    pub(super) fn key(
        &mut self,
        project: &str,
        user: &str,
        consumer_type: Option<&str>,
    ) -> OwnerKey {
        (
            self.projects.intern(project),
            self.users.intern(user),
            consumer_type.map_or(0, |name| self.types.intern(name) + 1),
        )
    }

    /// The key of a consumer after a change.
    pub(super) fn key_after(&mut self, change: &ConsumerChange) -> OwnerKey {
        self.key(&change.project_id, &change.user_id, change.consumer_type.as_deref())
    }

    /// The key of a consumer before a change.
    pub(super) fn key_before(&mut self, change: &ConsumerChange) -> OwnerKey {
        match &change.owner_before {
            Some(Owner { project_id, user_id, consumer_type }) => {
                self.key(project_id, user_id, consumer_type.as_deref())
            }
            None => self.key_after(change),
        }
    }

    pub(super) fn add(
        &mut self,
        key: OwnerKey,
        consumers: u64,
        amounts: impl Iterator<Item = (ClassNumber, u64)>,
    ) {
        let sum = Arc::make_mut(self.sums.entry(key).or_default());
        sum.consumers = sum.consumers.saturating_add(consumers);
        for (class, amount) in amounts.filter(|&(_, amount)| amount > 0) {
            let sum = sum.amounts.entry(class).or_default();
            *sum = sum.saturating_add(amount);
        }
        self.tidy(key);
    }

    pub(super) fn take(
        &mut self,
        key: OwnerKey,
        consumers: u64,
        amounts: impl Iterator<Item = (ClassNumber, u64)>,
    ) -> Result<(), Negative> {
        let sum = Arc::make_mut(self.sums.entry(key).or_default());
        sum.consumers = sum.consumers.checked_sub(consumers).ok_or(Negative)?;
        for (class, amount) in amounts.filter(|&(_, amount)| amount > 0) {
            let left = sum.amounts.get_mut(&class).ok_or(Negative)?;
            *left = left.checked_sub(amount).ok_or(Negative)?;
            if *left == 0 {
                sum.amounts.remove(&class);
            }
        }
        self.tidy(key);
        Ok(())
    }

    fn tidy(&mut self, key: OwnerKey) {
        if self.sums.get(&key).is_some_and(|sum| **sum == Sum::default()) {
            self.sums.remove(&key);
        }
    }

    pub(super) fn project(
        &self,
        classes: &ClassNames,
        project: &str,
        user: Option<&str>,
    ) -> Vec<TypeUsage> {
        let Some(whose) = self.whose(Some(project), user) else { return Vec::new() };
        self.by_type(classes, whose)
    }

    /// Whose figures are wanted, by number; none: nobody is called so.
    pub(super) fn whose(&self, project: Option<&str>, user: Option<&str>) -> Option<Whose> {
        let project = match project {
            Some(name) => Some(self.projects.number(name)?),
            None => None,
        };
        let user = match user {
            Some(name) => Some(self.users.number(name)?),
            None => None,
        };
        Some(Whose { project, user })
    }

    /// What consumers hold, by their type.
    pub(super) fn by_type(&self, classes: &ClassNames, whose: Whose) -> Vec<TypeUsage> {
        let (first, last) = (whose.project.unwrap_or(0), whose.project.unwrap_or(u32::MAX));
        let (from, to) = (whose.user.unwrap_or(0), whose.user.unwrap_or(u32::MAX));
        let mut found = ByType::default();
        for (key, sum) in self.sums.range((first, from, 0)..=(last, to, u32::MAX)) {
            if whose.covers(*key) {
                let amounts = sum.amounts.iter().map(|(&class, &amount)| (class, amount));
                self.add_to(&mut found, classes, *key, sum.consumers, amounts);
            }
        }
        found.into_values().collect()
    }

    /// Adds figures of one owner to those of its consumer type.
    pub(super) fn add_to(
        &self,
        found: &mut ByType,
        classes: &ClassNames,
        key: OwnerKey,
        consumers: u64,
        amounts: impl Iterator<Item = (ClassNumber, u64)>,
    ) {
        let name = self.type_name(key).cloned();
        let usage = found.entry(name.clone()).or_insert_with(|| TypeUsage {
            consumer_type: name,
            consumer_count: 0,
            amounts: BTreeMap::new(),
        });
        usage.consumer_count = usage.consumer_count.saturating_add(consumers);
        for (class, amount) in amounts {
            let sum = usage.amounts.entry(Arc::clone(classes.name(class))).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    pub(super) fn type_name(&self, key: OwnerKey) -> Option<&Arc<str>> {
        key.2.checked_sub(1).map(|number| self.types.name(number))
    }
}
