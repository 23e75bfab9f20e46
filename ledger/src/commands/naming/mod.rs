//! What plain Placement writes mean: the eight rules of DESIGN, "Plain Placement traffic gets the
//! same names", tried in order, a file each. Naming never changes the answer: it only sorts the
//! consumers of one write into events and says which moves they touch.

mod destination_claimed;
mod destination_released;
mod doubled_up;
mod migration_emptied;
mod other;
mod returned;
mod whole_holding_moved;

use super::plan::{Planned, allocations_after, refreshed};
use crate::event::{AllocationEvent, Event, Finding, Move, MoveState, Owner};
use crate::ids::ConsumerUuid;
use crate::state::{Allocations, MoveEntry, State, link_of};
use std::sync::Arc;
use uuid::Uuid;

/// One consumer of a plain write.
#[derive(Clone, Debug)]
pub(crate) struct PlainWrite {
    pub(crate) consumer: ConsumerUuid,
    pub(crate) before: Allocations,
    pub(crate) after: Allocations,
    pub(crate) owner: Owner,
}

/// One event to be: its kind, its consumers and the moves it changes.
pub(crate) struct Step {
    pub(crate) kind: fn(AllocationEvent) -> Event,
    pub(crate) plan: Vec<Planned>,
    pub(crate) moves: Vec<Move>,
    pub(crate) finding: Option<Finding>,
}

/// What the rules look at.
pub(crate) struct Write<'a> {
    pub(crate) state: &'a State,
    pub(crate) request_id: Option<&'a str>,
    /// All consumers of the write.
    pub(crate) all: &'a [PlainWrite],
    /// Those that no rule has taken yet, by their place in `all`.
    left: Vec<usize>,
    new_id: &'a mut dyn FnMut() -> Uuid,
}

/// Sorts a write into events by the eight rules.
pub(crate) fn steps(
    state: &State,
    request_id: Option<&str>,
    writes: &[PlainWrite],
    new_id: &mut dyn FnMut() -> Uuid,
) -> Vec<Step> {
    let mut write =
        Write { state, request_id, all: writes, left: (0..writes.len()).collect(), new_id };
    let mut steps = Vec::new();
    returned::take(&mut write, &mut steps);
    whole_holding_moved::take(&mut write, &mut steps);
    migration_emptied::take(&mut write, &mut steps);
    destination_released::take(&mut write, &mut steps);
    destination_claimed::take(&mut write, &mut steps);
    doubled_up::take(&mut write, &mut steps);
    other::take(&mut write, &mut steps);
    assert!(write.left.is_empty(), "each consumer of a write is in one event");
    steps
}

impl<'a> Write<'a> {
    fn left(&self) -> Vec<&'a PlainWrite> {
        self.left.iter().map(|&at| &self.all[at]).collect()
    }

    fn is_left(&self, consumer: ConsumerUuid) -> bool {
        self.left.iter().any(|&at| self.all[at].consumer == consumer)
    }

    fn done(&mut self, consumer: ConsumerUuid) {
        self.left.retain(|&at| self.all[at].consumer != consumer);
    }

    fn of(&self, consumer: ConsumerUuid) -> Option<&'a PlainWrite> {
        self.all.iter().find(|write| write.consumer == consumer)
    }

    /// What a consumer holds once the whole write is carried out.
    fn after(&self, consumer: ConsumerUuid) -> Allocations {
        match self.of(consumer) {
            Some(write) => write.after.clone(),
            None => allocations_after(self.state, &[], consumer),
        }
    }

    /// A consumer's plan when no rule hands it a link: unchanged it keeps its own, emptied or
    /// overwritten it leaves its group.
    fn plain(&self, write: &PlainWrite) -> Planned {
        let same = write.before == write.after;
        Planned {
            consumer: write.consumer,
            after: write.after.clone(),
            owner: write.owner.clone(),
            link: link_of(self.state, write.consumer).filter(|_| same),
            untouched: false,
            generation: None,
        }
    }

    /// The plan of a consumer that gets another's whole holding, and with it its link.
    fn handed(&self, write: &PlainWrite, giver: ConsumerUuid) -> Planned {
        Planned { link: link_of(self.state, giver), ..self.plain(write) }
    }

    /// The plan of a consumer that gave its whole holding away: it is unlinked, even if it gets
    /// something new in the same write.
    fn giver(&self, write: &PlainWrite) -> Planned {
        Planned { link: None, ..self.plain(write) }
    }

    /// The live moves of which a consumer holds the source.
    fn live_of_migration(&self, consumer: ConsumerUuid) -> Option<&'a Arc<MoveEntry>> {
        self.state.moves().live_of_migration(consumer)
    }

    /// A move as it ends.
    fn ended(&self, this: &Move, state: MoveState) -> Move {
        let plan: Vec<Planned> = self.all.iter().map(|write| self.plain(write)).collect();
        let mut ended = refreshed(self.state, &plan, this);
        ended.state = state;
        match state {
            MoveState::Confirmed => ended.source.clear(),
            MoveState::Reverted => {
                ended.source = self.state.holding(&self.after(this.instance));
                ended.destination.clear();
            }
            _ => {}
        }
        ended
    }

    /// Whether the instance of a move holds something itself or through a later live move.
    fn instance_holds(&self, this: &Move) -> bool {
        if !self.after(this.instance).is_empty() {
            return true;
        }
        self.state
            .moves()
            .live_of_instance(this.instance)
            .filter(|later| later.this.id != this.id)
            .filter_map(|later| later.this.migration)
            .any(|migration| Some(migration) != this.migration && !self.after(migration).is_empty())
    }
}
