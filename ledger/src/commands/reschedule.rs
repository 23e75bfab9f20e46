//! `reschedule`: gives up the destination, with a reason, and takes the next alternate. The source
//! is held throughout. Without alternates the move stays open.

use super::Decision;
use super::claim::{Destination, claim};
use super::double_up::double_up;
use super::find_move::{find, is_claimed, is_latest, wrong_state};
use super::plan::{
    self, Planned, at_most, check_fits, event_body, generations_after, owner_of, resolve,
};
use crate::command::{Reschedule, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState, Owner};
use crate::refusal::Refusal;
use crate::state::{Allocations, link_of};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Reschedule) -> Decision {
    let this = find(&draft.state, command.consumer, command.move_id)?.this;
    if !is_claimed(&this) || !is_latest(&draft.state, &this) {
        return Err(wrong_state(&this, "reschedule"));
    }
    let mut trial = draft.trial();
    let open = give_up(&mut trial, &this, &command.reason)?;
    if !command.options.is_empty() {
        match open.migration {
            Some(_) => {
                let owner = owner_of_instance(draft, &this);
                let destination = Destination { this: open, reason: None };
                claim(&mut trial, command.consumer, &owner, &command.options, Some(destination))?;
            }
            None => {
                let kind = open.kind;
                double_up(&mut trial, command.consumer, kind, &command.options, Some(open), None)?;
            }
        }
    }
    draft.accept(trial);
    Ok(None)
}

fn owner_of_instance(draft: &Draft<'_>, this: &Move) -> Owner {
    draft
        .state
        .consumer(this.instance)
        .map_or_else(|| this.owner.clone(), |row| owner_of(&draft.state, row))
}

/// Releases the destination; the move is open again.
fn give_up(draft: &mut Draft<'_>, this: &Move, reason: &str) -> Result<Move, Refusal> {
    let state = &draft.state;
    let row = state.consumer(this.instance).ok_or_else(|| wrong_state(this, "reschedule"))?;
    let left = match this.migration {
        Some(_) => Allocations::new(),
        None => resolve(state, &at_most(&this.source, &state.holding(&row.allocations)))?,
    };
    let plan = vec![Planned {
        consumer: this.instance,
        link: link_of(state, this.instance).filter(|_| !left.is_empty()),
        after: left,
        owner: owner_of(state, row),
        untouched: false,
        generation: None,
    }];
    check_fits(state, &plan)?;
    let open = Move {
        state: MoveState::Open,
        destination: Default::default(),
        ..plan::refreshed(state, &plan, this)
    };
    let generations = generations_after(state, &plan);
    let mut body = event_body(state, &plan, &generations, vec![open.clone()], Via::Command);
    body.reason = Some(reason.to_owned());
    plan::emit(draft, Event::DestinationReleased, body);
    Ok(open)
}
