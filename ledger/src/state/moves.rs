//! Moves in the state: all live ones, and the latest that ended, so that a second confirm or
//! revert can be answered with what happened the first time.

use super::Map;
use crate::event::{Move, MoveState};
use crate::ids::{ConsumerUuid, MoveId};
use crate::time::Timestamp;
use std::sync::Arc;

/// How many ended moves the state keeps; the log keeps all.
const ENDED_KEPT: usize = 100_000;

/// A move and when it changed.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MoveEntry {
    /// As its last event left it.
    pub this: Move,
    /// When it first opened.
    pub opened_at: Timestamp,
    /// The sequence of the event that first opened it.
    pub opened_sequence: u64,
    /// When it last changed.
    pub changed_at: Timestamp,
    /// The sequence of the event that last changed it.
    pub changed_sequence: u64,
}

/// All moves that are kept.
#[derive(Clone, Default)]
pub struct Moves {
    by_id: Map<MoveId, Arc<MoveEntry>>,
    /// (instance or migration, first opened at, move)
    by_consumer: imbl::OrdSet<(ConsumerUuid, u64, MoveId)>,
    /// (ended at, move)
    ended: imbl::OrdSet<(u64, MoveId)>,
    /// (request id of the latest opening, move), of those that are open
    open: imbl::OrdSet<(Arc<str>, MoveId)>,
}

impl Moves {
    /// A move.
    pub fn get(&self, id: MoveId) -> Option<&Arc<MoveEntry>> {
        self.by_id.get(&id)
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// All that are kept, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<MoveEntry>> {
        self.by_id.values()
    }

    /// The moves that a consumer is the instance or the migration of, latest first.
    pub fn of(&self, consumer: ConsumerUuid) -> impl Iterator<Item = &Arc<MoveEntry>> {
        let first = (consumer, 0, MoveId(uuid::Uuid::nil()));
        let last = (consumer, u64::MAX, MoveId(uuid::Uuid::max()));
        self.by_consumer.range(first..=last).rev().filter_map(|(_, _, id)| self.by_id.get(id))
    }

    /// The live moves of an instance, latest first.
    pub fn live_of_instance(
        &self,
        instance: ConsumerUuid,
    ) -> impl Iterator<Item = &Arc<MoveEntry>> {
        self.of(instance)
            .filter(move |entry| entry.this.instance == instance && entry.this.state.is_live())
    }

    /// The live move whose source a migration consumer holds.
    pub fn live_of_migration(&self, migration: ConsumerUuid) -> Option<&Arc<MoveEntry>> {
        self.of(migration)
            .find(|entry| entry.this.migration == Some(migration) && entry.this.state.is_live())
    }

    /// The open moves whose latest opening had a request id.
    pub fn opened_by(&self, request_id: &str) -> impl Iterator<Item = &Arc<MoveEntry>> {
        let request_id: Arc<str> = request_id.into();
        let first = (Arc::clone(&request_id), MoveId(uuid::Uuid::nil()));
        let last = (request_id, MoveId(uuid::Uuid::max()));
        self.open.range(first..=last).filter_map(|(_, id)| self.by_id.get(id))
    }

    pub(super) fn put(&mut self, this: &Move, now: Timestamp, sequence: u64) {
        let before = self.by_id.get(&this.id).cloned();
        let (opened_at, opened_sequence) = match &before {
            Some(entry) => {
                self.ended.remove(&(entry.changed_sequence, this.id));
                if let Some(key) = open_key(entry) {
                    self.open.remove(&key);
                }
                (entry.opened_at, entry.opened_sequence)
            }
            None => (now, sequence),
        };
        let entry = MoveEntry {
            this: this.clone(),
            opened_at,
            opened_sequence,
            changed_at: now,
            changed_sequence: sequence,
        };
        self.insert(entry);
        self.forget_oldest();
    }

    pub(super) fn insert(&mut self, entry: MoveEntry) {
        let id = entry.this.id;
        self.by_consumer.insert((entry.this.instance, entry.opened_sequence, id));
        if let Some(migration) = entry.this.migration {
            self.by_consumer.insert((migration, entry.opened_sequence, id));
        }
        if let Some(key) = open_key(&entry) {
            self.open.insert(key);
        }
        if !entry.this.state.is_live() {
            self.ended.insert((entry.changed_sequence, id));
        }
        self.by_id.insert(id, Arc::new(entry));
    }

    /// Live moves follow a class that has another name; those that ended tell what was.
    pub(super) fn rename_class(&mut self, before: &str, after: &str) {
        let is_named =
            |entry: &&Arc<MoveEntry>| entry.this.state.is_live() && entry.this.names_class(before);
        let named: Vec<MoveId> = self.iter().filter(is_named).map(|entry| entry.this.id).collect();
        for id in named {
            if let Some(entry) = self.by_id.get_mut(&id) {
                Arc::make_mut(entry).this.rename_class(before, after);
            }
        }
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_KEPT {
            let Some(&(sequence, id)) = self.ended.get_min() else { return };
            self.ended.remove(&(sequence, id));
            if let Some(entry) = self.by_id.remove(&id) {
                self.by_consumer.remove(&(entry.this.instance, entry.opened_sequence, id));
                if let Some(migration) = entry.this.migration {
                    self.by_consumer.remove(&(migration, entry.opened_sequence, id));
                }
            }
        }
    }
}

fn open_key(entry: &MoveEntry) -> Option<(Arc<str>, MoveId)> {
    let request_id = entry.this.request_id.as_deref()?;
    (entry.this.state == MoveState::Open).then(|| (request_id.into(), entry.this.id))
}
