//! What lists of the living told.

use std::collections::BTreeMap;

use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::state::State;
use projector::orphans::{Finding, Living};
use serde::{Deserialize, Serialize};

use super::Orphan;

/// The most findings that are kept.
const KEPT: usize = 100_000;

/// Who said what, when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// When the list was made, as its sender says.
    pub as_of: ledger::time::Timestamp,
    /// The user who sent it.
    pub user: String,
    /// The request that it came by.
    pub request_id: Option<String>,
    /// The host that it is about.
    pub provider: Option<ProviderUuid>,
}

/// One finding and who told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fed {
    /// The finding.
    pub finding: Finding,
    /// Who told.
    pub source: Source,
}

/// What a list covers: a later one of the same scope takes its place.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The host that it is about.
    pub provider: Option<ProviderUuid>,
    /// From which id on ...
    pub first: Option<ConsumerUuid>,
    /// ... up to which.
    pub last: Option<ConsumerUuid>,
}

/// All findings of lists, by the host that a list is about and the consumer.
#[derive(Default)]
pub(super) struct Lists {
    kept: BTreeMap<(Option<ProviderUuid>, ConsumerUuid), Fed>,
    /// Something changed since they were last taken to be saved.
    changed: bool,
}

impl Lists {
    /// Those that were saved.
    pub(super) fn restored(saved: Vec<Fed>) -> Self {
        let saved = saved.into_iter().take(KEPT);
        let keyed = saved.map(|one| ((one.source.provider, one.finding.consumer), one));
        Self { kept: keyed.collect(), changed: false }
    }

    /// All of them, if something changed since this was last asked.
    pub(super) fn take_unsaved(&mut self) -> Option<Vec<Fed>> {
        std::mem::take(&mut self.changed).then(|| self.kept.values().cloned().collect())
    }

    /// They were not saved.
    pub(super) fn not_saved(&mut self) {
        self.changed = true;
    }

    pub(super) fn feed(&mut self, scope: &Scope, fed: Vec<Fed>) -> usize {
        let covered = |&(provider, consumer): &(Option<ProviderUuid>, ConsumerUuid)| {
            provider == scope.provider
                && scope.first.is_none_or(|first| first <= consumer)
                && scope.last.is_none_or(|last| consumer <= last)
        };
        let before = self.kept.len();
        self.kept.retain(|key, _| !covered(key));
        self.changed |= self.kept.len() < before || !fed.is_empty();
        let mut left_out = 0;
        for one in fed {
            if self.kept.len() >= KEPT {
                left_out += 1;
                continue;
            }
            self.kept.insert((scope.provider, one.finding.consumer), one);
        }
        left_out
    }

    /// Those that are true of a state still; the others are forgotten.
    pub(super) fn still(&mut self, state: &State) -> Vec<Orphan> {
        let before = self.kept.len();
        self.kept.retain(|_, fed| Living::still(&fed.finding, fed.source.provider, state));
        self.changed |= self.kept.len() < before;
        let all = self.kept.values().cloned();
        all.map(|fed| Orphan { finding: fed.finding, source: Some(fed.source) }).collect()
    }
}
