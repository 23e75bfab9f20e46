//! The moves view of a state. The state keeps how each move stands, the log how it came there:
//! the events of each move that the state keeps are read by the log's index.

use super::{MovesView, Story};
use crate::{Projection, ProjectionError};
use ledger::event::{Event, Move};
use ledger::ids::MoveId;
use ledger::log::{IndexKey, LogReader};
use ledger::state::State;
use std::sync::Arc;

/// Sequences that are asked of the index at once.
const INDEX_PAGE: usize = 1_024;

/// The view that folding the whole log up to the state's sequence gives.
pub(super) fn load(
    state: &Arc<State>,
    reader: &dyn LogReader,
) -> Result<MovesView, ProjectionError> {
    let mut view = MovesView { sequence: state.sequence(), ..MovesView::default() };
    for entry in state.moves().iter() {
        if let Some(mut story) = story(entry.this.id, state.sequence(), reader)? {
            // Since its last event a class may have got another name.
            story.this.clone_from(&entry.this);
            view.insert(story);
        }
    }
    debug_assert_eq!(view.sequence(), state.sequence());
    Ok(view)
}

/// The story of a move up to event `target`, as its events in the log tell it; none: there are none.
///
/// # Errors
/// [`ProjectionError`] if the log cannot be read.
pub fn story(
    id: MoveId,
    target: u64,
    reader: &dyn LogReader,
) -> Result<Option<Story>, ProjectionError> {
    let mut story = None;
    let mut after = 0;
    loop {
        let page = reader.index(&IndexKey::Move(id), after, INDEX_PAGE)?;
        for &sequence in page.iter().filter(|&&sequence| sequence <= target) {
            tell(&mut story, id, sequence, reader)?;
        }
        match page.last() {
            Some(&last) if page.len() == INDEX_PAGE && last < target => after = last,
            _ => return Ok(story),
        }
    }
}

fn tell(
    story: &mut Option<Story>,
    id: MoveId,
    sequence: u64,
    reader: &dyn LogReader,
) -> Result<(), ProjectionError> {
    let Some(record) = reader.record(sequence)? else {
        return Err(ProjectionError::Contradiction {
            sequence,
            what: "the index names it and the log lacks it".into(),
        });
    };
    let event = record.event().map_err(|error| ProjectionError::Event { sequence, error })?;
    match (move_in(&event, id), story) {
        (Some(this), story) => {
            story.get_or_insert_with(|| Story::begin(this, &record.header)).go_on(
                this,
                &record.header,
                &event,
            );
        }
        (None, Some(story)) if is_refusal_of(&event, id) => story.note(&record.header, &event),
        _ => {}
    }
    Ok(())
}

fn move_in(event: &Event, id: MoveId) -> Option<&Move> {
    event.allocations()?.moves.iter().find(|this| this.id == id)
}

fn is_refusal_of(event: &Event, id: MoveId) -> bool {
    matches!(event, Event::Rejected(body) if body.move_id == Some(id))
}
