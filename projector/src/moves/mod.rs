//! Moves, each with its story: all live ones, and the latest that ended.

mod load;
mod story;

pub use load::story as read_story;
pub use story::{Side, Step, Story};

use crate::{Batch, Lines, Map, Projection, ProjectionError};
use ledger::event::{Event, Move};
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use ledger::log::LogReader;
use ledger::record::Header;
use ledger::state::State;
use std::sync::Arc;

/// How many ended moves the view keeps, as many as the ledger's state does; the log keeps all.
const ENDED_KEPT: usize = 100_000;
/// How many of these keep their steps: those that somebody may look at just now. The steps of one
/// move take some 5 KB, and the log has them all ([`read_story`]).
const ENDED_TOLD: usize = 1_000;

/// All moves that are kept, at one sequence. Cheap to clone.
#[derive(Clone, Default)]
pub struct MovesView {
    sequence: u64,
    stories: Map<MoveId, Arc<Story>>,
    /// (instance or migration, first opened at, move)
    by_consumer: imbl::OrdSet<(ConsumerUuid, u64, MoveId)>,
    /// (provider that a live move holds something of, move)
    by_provider: imbl::OrdSet<(ProviderUuid, MoveId)>,
    /// (first opened at, move)
    live: imbl::OrdSet<(u64, MoveId)>,
    /// (last changed at, move)
    ended: imbl::OrdSet<(u64, MoveId)>,
    /// Those of them that have their steps.
    told: imbl::OrdSet<(u64, MoveId)>,
}

impl MovesView {
    /// A move.
    pub fn get(&self, id: MoveId) -> Option<&Arc<Story>> {
        self.stories.get(&id)
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.stories.len()
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.stories.is_empty()
    }

    /// The live moves, oldest first.
    pub fn live(&self) -> impl Iterator<Item = &Arc<Story>> {
        self.live.iter().filter_map(|(_, id)| self.stories.get(id))
    }

    /// How many are live.
    pub fn live_count(&self) -> usize {
        self.live.len()
    }

    /// The moves that ended, latest first.
    pub fn ended(&self) -> impl Iterator<Item = &Arc<Story>> {
        self.ended.iter().rev().filter_map(|(_, id)| self.stories.get(id))
    }

    /// The moves that a consumer is the instance or the migration of, latest first.
    pub fn of_consumer(&self, consumer: ConsumerUuid) -> impl Iterator<Item = &Arc<Story>> {
        let first = (consumer, 0, MoveId::default());
        let last = (consumer, u64::MAX, MoveId(uuid::Uuid::max()));
        self.by_consumer.range(first..=last).rev().filter_map(|(_, _, id)| self.stories.get(id))
    }

    /// The live moves that hold something of a provider, on either side.
    pub fn on_provider(&self, provider: ProviderUuid) -> impl Iterator<Item = &Arc<Story>> {
        let first = (provider, MoveId::default());
        let last = (provider, MoveId(uuid::Uuid::max()));
        self.by_provider.range(first..=last).filter_map(|(_, id)| self.stories.get(id))
    }

    fn apply_event(&mut self, header: &Header, event: &Event) {
        if let Some(body) = event.allocations() {
            for this in &body.moves {
                self.change(this, header, event);
            }
            self.forget_oldest();
        }
        if let Event::ResourceClassRenamed(body) = event {
            self.rename_class(&body.name_before, &body.name);
        }
        if let Event::Rejected(body) = event
            && let Some(story) = body.move_id.and_then(|id| self.stories.get_mut(&id))
        {
            let ended = (story.changed_sequence, story.this.id);
            let story = Arc::make_mut(story);
            match self.ended.contains(&ended) && !self.told.contains(&ended) {
                true => story.left_out += 1,
                false => story.note(header, event),
            }
        }
    }

    /// Live moves follow a class that has another name; their steps tell what was.
    fn rename_class(&mut self, before: &str, after: &str) {
        let named: Vec<MoveId> = self
            .live()
            .filter(|story| story.this.names_class(before))
            .map(|story| story.this.id)
            .collect();
        for id in named {
            if let Some(story) = self.stories.get_mut(&id) {
                Arc::make_mut(story).this.rename_class(before, after);
            }
        }
    }

    fn change(&mut self, this: &Move, header: &Header, event: &Event) {
        let mut story = match self.remove(this.id) {
            Some(story) => Arc::unwrap_or_clone(story),
            None => Story::begin(this, header),
        };
        story.go_on(this, header, event);
        self.insert(story);
    }

    fn insert(&mut self, story: Story) {
        let id = story.this.id;
        for consumer in sides(&story.this) {
            self.by_consumer.insert((consumer, story.opened_sequence, id));
        }
        if story.this.state.is_live() {
            self.live.insert((story.opened_sequence, id));
            for &provider in holds(&story.this) {
                self.by_provider.insert((provider, id));
            }
        } else {
            self.ended.insert((story.changed_sequence, id));
            self.told.insert((story.changed_sequence, id));
        }
        self.stories.insert(id, Arc::new(story));
        self.forget_steps();
    }

    fn remove(&mut self, id: MoveId) -> Option<Arc<Story>> {
        let story = self.stories.remove(&id)?;
        for consumer in sides(&story.this) {
            self.by_consumer.remove(&(consumer, story.opened_sequence, id));
        }
        self.live.remove(&(story.opened_sequence, id));
        self.ended.remove(&(story.changed_sequence, id));
        self.told.remove(&(story.changed_sequence, id));
        for &provider in holds(&story.this) {
            self.by_provider.remove(&(provider, id));
        }
        Some(story)
    }

    fn forget_steps(&mut self) {
        while self.told.len() > ENDED_TOLD {
            let Some(&(sequence, id)) = self.told.get_min() else { return };
            self.told.remove(&(sequence, id));
            if let Some(story) = self.stories.get_mut(&id) {
                Arc::make_mut(story).forget_steps();
            }
        }
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_KEPT {
            let Some(&(_, id)) = self.ended.get_min() else {
                return;
            };
            self.remove(id);
        }
    }
}

/// The instance and, if there is one, the migration.
fn sides(this: &Move) -> impl Iterator<Item = ConsumerUuid> {
    std::iter::once(this.instance).chain(this.migration)
}

/// The providers that a move holds something of; one may come twice.
fn holds(this: &Move) -> impl Iterator<Item = &ProviderUuid> {
    this.source.keys().chain(this.destination.keys())
}

impl Projection for MovesView {
    const NAME: &'static str = "moves";

    fn from_state(state: &Arc<State>, reader: &dyn LogReader) -> Result<Self, ProjectionError> {
        load::load(state, reader)
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }

    fn apply(&mut self, batch: &Batch<'_>) -> Result<(), ProjectionError> {
        for (header, event) in batch.after(self.sequence)? {
            self.apply_event(header, event);
            self.sequence = header.sequence;
        }
        Ok(())
    }
}

impl Lines for MovesView {
    fn lines(&self) -> Vec<String> {
        let mut stories: Vec<_> = self.stories.values().collect();
        stories.sort_unstable_by_key(|story| (story.opened_sequence, story.this.id));
        let mut lines = vec![format!("moves as of event {}", self.sequence)];
        lines.extend(stories.iter().map(|story| format!("{story:?}")));
        lines.push(format!("by provider {:?}", self.by_provider));
        lines.push(format!("live {:?} ended {:?}", self.live, self.ended));
        lines
    }
}
