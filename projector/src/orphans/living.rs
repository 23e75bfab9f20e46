//! What a state and a list of the living tell together. The list is compared and not believed: it
//! changes nothing, whatever it says (Launchpad bug 1679750: a host that comes back late).

use super::{Finding, Kind, holds, release, revert};
use ledger::event::Move;
use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::state::{Consumer, ConsumerId, ProviderId, State};
use ledger::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

const INSTANCE: &str = "INSTANCE";

/// Who lives, as a caller knows it: all within a scope.
#[derive(Clone, Debug)]
pub struct Living {
    /// When the caller knew it. What is younger is not compared.
    pub as_of: Timestamp,
    /// Only what this provider, or one below it, is said to run; none: everything.
    pub provider: Option<ProviderUuid>,
    /// Only consumers of this project.
    pub project: Option<String>,
    /// Only consumers of this type; none: instances, and those without a type.
    pub consumer_type: Option<String>,
    /// Only ids from this one on ...
    pub first: Option<ConsumerUuid>,
    /// ... up to this one.
    pub last: Option<ConsumerUuid>,
    /// All within the scope that live.
    pub living: BTreeSet<ConsumerUuid>,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Consumers of the scope that were compared.
    pub compared: u64,
    /// What differs, in the order of consumers. Of one that is said to live and holds nothing the
    /// state does not tell since when: `since` is the list's own time.
    pub findings: Vec<Finding>,
}

impl Living {
    /// Whether an id is in the list's range.
    pub fn covers(&self, consumer: ConsumerUuid) -> bool {
        self.first.is_none_or(|first| first <= consumer)
            && self.last.is_none_or(|last| consumer <= last)
    }

    /// Compares the list with a state.
    pub fn compare(&self, state: &State) -> Compared {
        let place = self.provider.map(|provider| {
            let id = state.provider_id(provider);
            id.map_or_else(BTreeSet::new, |id| state.subtree(id).into_iter().collect())
        });
        let subjects = self.subjects(state, place.as_ref());
        let dead = subjects.iter().filter(|subject| !self.living.contains(subject));
        let mut findings: Vec<Finding> =
            dead.map(|&subject| not_living(state, subject, self.as_of)).collect();
        for &consumer in self.living.iter().filter(|consumer| !subjects.contains(consumer)) {
            findings.extend(self.unheard_of(state, place.as_ref(), consumer));
        }
        findings.sort_unstable_by_key(|finding| (finding.consumer, finding.kind));
        Compared { compared: subjects.len() as u64, findings }
    }

    /// Whether a finding of an earlier comparison is true of a state still.
    pub fn still(finding: &Finding, provider: Option<ProviderUuid>, state: &State) -> bool {
        let rows = sides(state, finding.consumer);
        match finding.kind {
            Kind::NotLiving => rows.iter().any(|row| row.created_at <= finding.since),
            Kind::RunsWithoutAllocation => rows.is_empty(),
            Kind::RunsElsewhere => {
                let id = provider.and_then(|provider| state.provider_id(provider));
                let tree: BTreeSet<ProviderId> =
                    id.map(|id| state.subtree(id).into_iter().collect()).unwrap_or_default();
                !rows.is_empty() && !rows.iter().any(|row| is_on(row, &tree))
            }
            _ => true,
        }
    }

    /// The consumers that are to be in the list: those that hold something within the scope since
    /// before the list was made. For a migration it is the instance.
    fn subjects(
        &self,
        state: &State,
        place: Option<&BTreeSet<ProviderId>>,
    ) -> BTreeSet<ConsumerUuid> {
        let rows: Vec<&Arc<Consumer>> = match place {
            Some(tree) => tree.iter().flat_map(|&id| state.holders(id)).collect(),
            None => state.consumers().map(|(_, row): (ConsumerId, _)| row).collect(),
        };
        let covered = rows.into_iter().filter(|row| self.covers_row(state, row));
        covered
            .filter_map(|row| subject(state, row))
            .filter(|subject| self.covers(*subject))
            .collect()
    }

    fn covers_row(&self, state: &State, row: &Consumer) -> bool {
        let project = &**state.projects().name(row.project);
        row.created_at <= self.as_of
            && self.project.as_deref().is_none_or(|wanted| wanted == project)
            && self.covers_type(state, row)
    }

    fn covers_type(&self, state: &State, row: &Consumer) -> bool {
        let stored = row.consumer_type.map(|id| &**state.consumer_types().name(id));
        // Whose it is that a migration holds, the move tells.
        state.moves().live_of_migration(row.uuid).is_some()
            || match self.consumer_type.as_deref() {
                Some(wanted) => stored == Some(wanted),
                None => stored.is_none_or(|stored| stored == INSTANCE),
            }
    }

    /// One that is said to live, and was not found within the scope.
    fn unheard_of(
        &self,
        state: &State,
        place: Option<&BTreeSet<ProviderId>>,
        consumer: ConsumerUuid,
    ) -> Option<Finding> {
        let rows = sides(state, consumer);
        let elsewhere = place.is_some_and(|tree| !rows.iter().any(|row| is_on(row, tree)));
        let kind = match () {
            () if rows.is_empty() => Kind::RunsWithoutAllocation,
            // One that changed since may have been there when the list was made.
            () if elsewhere && rows.iter().all(|row| row.updated_at <= self.as_of) => {
                Kind::RunsElsewhere
            }
            () => return None,
        };
        let since = rows.iter().map(|row| row.updated_at).max().unwrap_or(self.as_of);
        Some(Finding { kind, consumer, move_id: None, since, mend: Vec::new() })
    }
}

fn is_on(row: &Consumer, tree: &BTreeSet<ProviderId>) -> bool {
    row.allocations.iter().any(|held| tree.contains(&held.provider))
}

/// A consumer and the migrations of its live moves, as far as they hold something.
fn sides(state: &State, consumer: ConsumerUuid) -> Vec<&Arc<Consumer>> {
    let migrations = state.moves().live_of_instance(consumer).filter_map(|it| it.this.migration);
    std::iter::once(consumer).chain(migrations).filter_map(|side| state.consumer(side)).collect()
}

/// Who has to live for a holding: the consumer itself, or the instance of its move. A migration
/// whose move has ended is another finding.
fn subject(state: &State, row: &Consumer) -> Option<ConsumerUuid> {
    match state.moves().live_of_migration(row.uuid) {
        Some(entry) => Some(entry.this.instance),
        None => {
            let latest = state.moves().of(row.uuid).next();
            let left = latest.is_some_and(|entry| {
                entry.this.migration == Some(row.uuid) && row.created_at < entry.changed_at
            });
            (!left).then_some(row.uuid)
        }
    }
}

fn not_living(state: &State, consumer: ConsumerUuid, as_of: Timestamp) -> Finding {
    const REASON: &str = "the list of the living lacks it";
    let moves: Vec<&Move> =
        state.moves().live_of_instance(consumer).map(|entry| &entry.this).collect();
    let held = moves.iter().filter(|this| this.migration.is_some_and(|it| holds(state, it)));
    let mend = std::iter::once(release(consumer, true, REASON))
        .chain(held.map(|this| revert(this, REASON)))
        .collect();
    let born = sides(state, consumer).iter().map(|row| row.created_at).min().unwrap_or(as_of);
    let move_id = moves.first().map(|this| this.id);
    Finding { kind: Kind::NotLiving, consumer, move_id, since: born, mend }
}
