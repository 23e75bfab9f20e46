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
        sum.consumers += consumers;
        for (class, amount) in amounts.filter(|&(_, amount)| amount > 0) {
            *sum.amounts.entry(class).or_default() += amount;
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
        let Some(project) = self.projects.number(project) else {
            return Vec::new();
        };
        let user = match user.map(|user| self.users.number(user)) {
            Some(None) => return Vec::new(),
            other => other.flatten(),
        };
        let (first, last) = (user.unwrap_or(0), user.unwrap_or(u32::MAX));
        let mut found: BTreeMap<Option<Arc<str>>, TypeUsage> = BTreeMap::new();
        for (key, sum) in self.sums.range((project, first, 0)..=(project, last, u32::MAX)) {
            let name = self.type_name(*key).cloned();
            let usage = found.entry(name.clone()).or_insert_with(|| TypeUsage {
                consumer_type: name,
                consumer_count: 0,
                amounts: BTreeMap::new(),
            });
            usage.consumer_count += sum.consumers;
            for (&class, &amount) in &sum.amounts {
                *usage.amounts.entry(Arc::clone(classes.name(class))).or_default() += amount;
            }
        }
        found.into_values().collect()
    }

    pub(super) fn type_name(&self, key: OwnerKey) -> Option<&Arc<str>> {
        key.2.checked_sub(1).map(|number| self.types.name(number))
    }
}
