//! `confirm`: the move succeeded. The source goes; the destination stays as it stands.

use super::Decision;
use super::find_move::{already, find, is_claimed, wrong_state};
use super::plan::{
    self, Planned, at_most, check_fits, event_body, generations_after, owner_of, resolve,
};
use crate::command::{Confirm, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState};
use crate::refusal::Refusal;
use crate::state::Allocations;

pub(super) fn decide(draft: &mut Draft<'_>, command: &Confirm) -> Decision {
    let entry = find(&draft.state, command.consumer, command.move_id)?;
    if entry.this.state == MoveState::Confirmed {
        return Ok(Some(already(&entry)));
    }
    if !is_claimed(&entry.this) {
        return Err(wrong_state(&entry.this, "confirm"));
    }
    let plan = match entry.this.migration {
        Some(_) => source_gone(draft, &entry.this)?,
        None => destination_alone(draft, &entry.this)?,
    };
    // It only lets go of things, so it fits whatever the capacity has become.
    check_fits(&draft.state, &plan)?;
    let generations = generations_after(&draft.state, &plan);
    let destination =
        draft.state.holding(&plan::allocations_after(&draft.state, &plan, command.consumer));
    let ended =
        Move { state: MoveState::Confirmed, source: Default::default(), destination, ..entry.this };
    let body = event_body(&draft.state, &plan, &generations, vec![ended], Via::Command);
    plan::emit(draft, Event::Confirmed, body);
    Ok(None)
}

/// The migration consumer lets go of the source.
fn source_gone(draft: &Draft<'_>, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let migration = this.migration.ok_or_else(|| wrong_state(this, "confirm"))?;
    let row = draft.state.consumer(migration).ok_or_else(|| wrong_state(this, "confirm"))?;
    Ok(vec![Planned {
        consumer: migration,
        after: Allocations::new(),
        owner: owner_of(&draft.state, row),
        link: None,
        untouched: false,
        generation: None,
    }])
}

/// The instance held both sides itself: it keeps what it still has of the destination.
fn destination_alone(draft: &Draft<'_>, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let row = draft.state.consumer(this.instance).ok_or_else(|| wrong_state(this, "confirm"))?;
    let held = draft.state.holding(&row.allocations);
    Ok(vec![Planned {
        consumer: this.instance,
        after: resolve(&draft.state, &at_most(&this.destination, &held))?,
        owner: owner_of(&draft.state, row),
        link: crate::state::link_of(&draft.state, this.instance),
        untouched: false,
        generation: None,
    }])
}
