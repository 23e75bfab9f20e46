//! `revert`: the move failed or is not wanted. The destination goes, the source comes back to the
//! instance as it stands. If the instance's end is on record the source is released instead of
//! re-creating it (Launchpad bug 1848343).

use super::Decision;
use super::find_move::{already, find, is_latest, wrong_state};
use super::plan::{
    self, Planned, at_most, check_fits, event_body, generations_after, owner_of, resolve,
};
use crate::command::{Revert, Via};
use crate::decide::Draft;
use crate::event::{Event, Finding, Move, MoveState};
use crate::refusal::Refusal;
use crate::state::{Allocations, State, link_of};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Revert) -> Decision {
    let entry = find(&draft.state, command.consumer, command.move_id)?;
    let state = entry.this.state;
    if state == MoveState::Reverted || (state == MoveState::Abandoned && entry.this.ended) {
        return Ok(Some(already(&entry)));
    }
    if !state.is_live() || !is_latest(&draft.state, &entry.this) {
        return Err(wrong_state(&entry.this, "revert"));
    }
    let this = entry.this;
    let plan = match this.migration {
        Some(_) if this.ended => source_released(&draft.state, &this)?,
        Some(_) => source_back(&draft.state, &this)?,
        None => source_alone(&draft.state, &this)?,
    };
    check_fits(&draft.state, &plan)?;
    let generations = generations_after(&draft.state, &plan);
    let source =
        draft.state.holding(&plan::allocations_after(&draft.state, &plan, command.consumer));
    let state = if this.ended { MoveState::Abandoned } else { MoveState::Reverted };
    let finding = this.ended.then_some(Finding::ReleasedOwnerEnded);
    let kind = if this.ended { Event::Released } else { Event::Reverted };
    let ended = Move { state, source, destination: Default::default(), ..this };
    let mut body = event_body(&draft.state, &plan, &generations, vec![ended], Via::Command);
    body.reason.clone_from(&command.reason);
    body.finding = finding;
    plan::emit(draft, kind, body);
    Ok(None)
}

/// The migration gives its whole holding, and its link, back to the instance.
fn source_back(state: &State, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let migration = this.migration.ok_or_else(|| wrong_state(this, "revert"))?;
    let row = state.consumer(migration).ok_or_else(|| wrong_state(this, "revert"))?;
    let back = Planned {
        consumer: this.instance,
        after: row.allocations.clone(),
        owner: state
            .consumer(this.instance)
            .map_or_else(|| this.owner.clone(), |row| owner_of(state, row)),
        link: link_of(state, migration),
        untouched: false,
        generation: None,
    };
    Ok(vec![back, emptied(state, this)?])
}

fn source_released(state: &State, this: &Move) -> Result<Vec<Planned>, Refusal> {
    Ok(vec![emptied(state, this)?])
}

fn emptied(state: &State, this: &Move) -> Result<Planned, Refusal> {
    let migration = this.migration.ok_or_else(|| wrong_state(this, "revert"))?;
    let row = state.consumer(migration).ok_or_else(|| wrong_state(this, "revert"))?;
    Ok(Planned {
        consumer: migration,
        after: Allocations::new(),
        owner: owner_of(state, row),
        link: None,
        untouched: false,
        generation: None,
    })
}

/// The instance held both sides itself: it keeps what it still has of the source.
fn source_alone(state: &State, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let row = state.consumer(this.instance).ok_or_else(|| wrong_state(this, "revert"))?;
    let held = state.holding(&row.allocations);
    Ok(vec![Planned {
        consumer: this.instance,
        after: resolve(state, &at_most(&this.source, &held))?,
        owner: owner_of(state, row),
        link: link_of(state, this.instance),
        untouched: false,
        generation: None,
    }])
}
