//! Who could satisfy a group's conditions: single providers, or hosts with all that is theirs.

use super::condition::{Condition, Lack};
use super::totals;
use crate::candidates::index::CandidateIndex;
use crate::candidates::query::Group;
use ledger::ids::ProviderUuid;
use ledger::state::{Provider, ProviderId};
use roaring::{MultiOps, RoaringBitmap};
use serde::Serialize;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Single providers.
    Providers,
    /// Roots, each with its tree and what is lent to it.
    Hosts,
}

/// A group and those who may serve it.
pub(super) struct Scope<'a> {
    index: &'a CandidateIndex,
    group: &'a Group,
    subject: Subject,
}

impl<'a> Scope<'a> {
    pub(super) fn new(index: &'a CandidateIndex, group: &'a Group) -> Self {
        let flat = !index.trees().any_nested() && index.sharing().is_none();
        let together = group.is_unsuffixed() && !group.resources.is_empty() && !flat;
        let subject = if together { Subject::Hosts } else { Subject::Providers };
        Self { index, group, subject }
    }

    pub(super) fn subject(&self) -> Subject {
        self.subject
    }

    /// The providers with inventory of any class asked for (without resources: all), or the roots
    /// of their trees.
    pub(super) fn subjects(&self) -> Vec<ProviderId> {
        let classes = self.group.resources.iter().filter_map(|(name, _)| {
            let id = self.index.state().classes().id(name)?;
            Some(self.index.class(id)?.providers())
        });
        let providers: RoaringBitmap = match self.group.resources.is_empty() {
            true => self.index.state().providers().map(|(id, _)| id).collect(),
            false => classes.union(),
        };
        match self.subject {
            Subject::Providers => providers.into_iter().collect(),
            Subject::Hosts => {
                let roots: RoaringBitmap =
                    providers.iter().map(|id| self.index.trees().root(id)).collect();
                roots.into_iter().collect()
            }
        }
    }

    /// The conditions that do not hold for a subject: their numbers, ascending, and why.
    pub(super) fn lacks(
        &self,
        subject: ProviderId,
        conditions: &[Condition],
    ) -> Vec<(usize, Lack)> {
        let mut theirs = vec![subject];
        if self.subject == Subject::Hosts {
            if self.index.sharing().is_some() && self.group.in_tree.is_none() {
                self.index.lenders(subject, &mut theirs);
            } else {
                theirs.clear();
            }
            theirs.extend_from_slice(self.index.trees().members(&subject));
        }
        let rows: Vec<&Provider> = theirs.iter().filter_map(|&id| self.index.row(id)).collect();
        let lack = |(at, condition)| Some((at, self.lack(subject, &rows, condition)?));
        conditions.iter().enumerate().filter_map(lack).collect()
    }

    fn lack(&self, subject: ProviderId, rows: &[&Provider], condition: &Condition) -> Option<Lack> {
        let met = match condition {
            Condition::Resource { class, amount } => {
                return totals::lack_of_all(self.index, rows, class, *amount);
            }
            Condition::Trait { any_of } => {
                rows.iter().any(|row| any_of.iter().any(|name| self.has(row, name)))
            }
            // Of a host's providers, those that give something must not have it.
            Condition::NoTrait { name } => {
                self.group.resources.iter().all(|(class, amount)| {
                    let mut serving =
                        rows.iter().filter(|row| self.serves(row, class, *amount)).peekable();
                    serving.peek().is_none() || serving.any(|row| !self.has(row, name))
                }) && (!self.group.resources.is_empty()
                    || !rows.iter().any(|row| self.has(row, name)))
            }
            Condition::Aggregate { any_of } => {
                rows.iter().any(|row| any_of.iter().any(|name| self.is_in(row, name)))
            }
            Condition::NoAggregate { name } => {
                let own = self.index.row(subject);
                !own.is_some_and(|row| self.is_in(row, name))
                    && rows.iter().any(|row| !self.is_in(row, name))
            }
            Condition::Tree { provider } => {
                let root = self.root_of(provider);
                root == Some(self.index.trees().root(subject))
            }
            Condition::RootTrait { name } => {
                self.root(subject).is_some_and(|row| self.has(row, name))
            }
            Condition::NoRootTrait { name } => {
                !self.root(subject).is_some_and(|row| self.has(row, name))
            }
        };
        (!met).then(|| Lack::Condition { unmet: condition.clone() })
    }

    fn root(&self, subject: ProviderId) -> Option<&Provider> {
        self.index.row(self.index.trees().root(subject))
    }

    fn root_of(&self, text: &str) -> Option<ProviderId> {
        let uuid = text.parse::<ProviderUuid>().ok()?;
        let id = self.index.state().provider_id(uuid)?;
        (uuid.to_string() == text).then(|| self.index.trees().root(id))
    }

    fn serves(&self, row: &Provider, class: &str, amount: u64) -> bool {
        totals::lack_of_all(self.index, &[row], class, amount).is_none()
    }

    fn has(&self, row: &Provider, name: &str) -> bool {
        self.index.state().traits().id(name).is_some_and(|id| row.has_trait(id))
    }

    fn is_in(&self, row: &Provider, name: &str) -> bool {
        self.index.state().aggregates().number(name).is_some_and(|number| row.is_in(number))
    }
}
