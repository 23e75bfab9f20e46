//! Consumers by project and by type, for lists that are paged.

use crate::{Batch, Lines, Map, Projection, ProjectionError};
use ledger::event::{AllocationEvent, ConsumerChange, Event};
use ledger::ids::ConsumerUuid;
use ledger::log::LogReader;
use ledger::state::{Names, State};
use std::sync::Arc;

/// A type's number plus one; 0: no type.
type TypeKey = u32;

/// All consumers that hold something, at one sequence. Cheap to clone.
#[derive(Clone, Default)]
pub struct ConsumersView {
    sequence: u64,
    projects: Names,
    types: Names,
    owners: Map<ConsumerUuid, (u32, TypeKey)>,
    by_project: imbl::OrdSet<(u32, ConsumerUuid)>,
    by_type: imbl::OrdSet<(TypeKey, ConsumerUuid)>,
}

impl ConsumersView {
    /// How many consumers there are.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether nobody holds anything.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// A consumer's project and type; none: it holds nothing.
    pub fn owner(&self, consumer: ConsumerUuid) -> Option<(&Arc<str>, Option<&Arc<str>>)> {
        let &(project, consumer_type) = self.owners.get(&consumer)?;
        Some((self.projects.name(project), self.type_name(consumer_type)))
    }

    /// The consumers of a project in the order of their ids, from the one after `after` on, at
    /// most `limit`. The next page starts after the last of this one.
    pub fn of_project(
        &self,
        project: &str,
        after: Option<ConsumerUuid>,
        limit: usize,
    ) -> Vec<ConsumerUuid> {
        let Some(project) = self.projects.number(project) else {
            return Vec::new();
        };
        page(&self.by_project, project, after, limit)
    }

    /// The consumers of a type, or those without one, in pages as [`Self::of_project`].
    pub fn of_type(
        &self,
        consumer_type: Option<&str>,
        after: Option<ConsumerUuid>,
        limit: usize,
    ) -> Vec<ConsumerUuid> {
        let key = match consumer_type.map(|name| self.types.number(name)) {
            None => 0,
            Some(Some(number)) => number + 1,
            Some(None) => return Vec::new(),
        };
        page(&self.by_type, key, after, limit)
    }

    /// How many consumers have a type, or none.
    pub fn count_of_type(&self, consumer_type: Option<&str>) -> usize {
        self.of_type(consumer_type, None, usize::MAX).len()
    }

    fn type_name(&self, key: TypeKey) -> Option<&Arc<str>> {
        key.checked_sub(1).map(|number| self.types.name(number))
    }

    fn allocations(&mut self, body: &AllocationEvent) {
        for change in &body.consumers {
            self.forget(change.consumer);
            if change.generation.is_some() {
                self.note(change);
            }
        }
    }

    fn forget(&mut self, consumer: ConsumerUuid) {
        if let Some((project, consumer_type)) = self.owners.remove(&consumer) {
            self.by_project.remove(&(project, consumer));
            self.by_type.remove(&(consumer_type, consumer));
        }
    }

    fn note(&mut self, change: &ConsumerChange) {
        let project = self.projects.intern(&change.project_id);
        let key = change.consumer_type.as_deref().map_or(0, |name| self.types.intern(name) + 1);
        self.put(change.consumer, project, key);
    }

    fn put(&mut self, consumer: ConsumerUuid, project: u32, key: TypeKey) {
        self.owners.insert(consumer, (project, key));
        self.by_project.insert((project, consumer));
        self.by_type.insert((key, consumer));
    }
}

fn page(
    set: &imbl::OrdSet<(u32, ConsumerUuid)>,
    key: u32,
    after: Option<ConsumerUuid>,
    limit: usize,
) -> Vec<ConsumerUuid> {
    let first = (key, after.unwrap_or_default());
    set.range(first..)
        .take_while(|(found, _)| *found == key)
        .map(|&(_, consumer)| consumer)
        .filter(|consumer| Some(*consumer) != after)
        .take(limit)
        .collect()
}

impl Projection for ConsumersView {
    const NAME: &'static str = "consumers";

    fn from_state(state: &Arc<State>, _reader: &dyn LogReader) -> Result<Self, ProjectionError> {
        let mut view = Self {
            sequence: state.sequence(),
            projects: state.projects().clone(),
            types: state.consumer_types().clone(),
            ..Self::default()
        };
        for (_, row) in state.consumers() {
            view.put(row.uuid, row.project, row.consumer_type.map_or(0, |number| number + 1));
        }
        Ok(view)
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn apply(&mut self, batch: &Batch<'_>) -> Result<(), ProjectionError> {
        for (header, event) in batch.after(self.sequence)? {
            if let Some(body) = allocation_body(event) {
                self.allocations(body);
            }
            self.sequence = header.sequence;
        }
        Ok(())
    }
}

impl Lines for ConsumersView {
    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .owners
            .iter()
            .map(|(consumer, &(project, key))| {
                assert!(
                    self.by_project.contains(&(project, *consumer)),
                    "{consumer} is not listed"
                );
                assert!(self.by_type.contains(&(key, *consumer)), "{consumer} is not listed");
                format!(
                    "{consumer} of {} type {:?}",
                    self.projects.name(project),
                    self.type_name(key)
                )
            })
            .collect();
        lines.sort_unstable();
        let listed = (self.by_project.len(), self.by_type.len());
        lines.push(format!("consumers as of event {}: {listed:?} listed", self.sequence));
        lines
    }
}

/// The allocations that an event changed; none for kinds that change none.
pub fn allocation_body(event: &Event) -> Option<&AllocationEvent> {
    match event {
        Event::Claimed(body)
        | Event::DoubledUp(body)
        | Event::MovedToMigration(body)
        | Event::DestinationReleased(body)
        | Event::HostChanged(body)
        | Event::Reverted(body)
        | Event::Confirmed(body)
        | Event::Released(body)
        | Event::Reallocated(body) => Some(body),
        Event::Reshaped(body) => Some(&body.allocations),
        _ => None,
    }
}
