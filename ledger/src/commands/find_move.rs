//! The move that a native command is about: the one it names, or the consumer's latest.

use crate::event::{Move, MoveState, Unchanged};
use crate::ids::{ConsumerUuid, MoveId};
use crate::refusal::{Cause, Refusal};
use crate::state::{MoveEntry, State};

/// The move with an id, or the latest of which the consumer is the instance (a live one before one
/// that ended).
///
/// # Errors
/// [`Cause::MoveNotFound`].
pub(super) fn find(
    state: &State,
    instance: ConsumerUuid,
    id: Option<MoveId>,
) -> Result<MoveEntry, Refusal> {
    let found = match id {
        Some(id) => state.moves().get(id).filter(|entry| entry.this.instance == instance),
        None => state
            .moves()
            .live_of_instance(instance)
            .next()
            .or_else(|| latest_ended(state, instance)),
    };
    found
        .map(|entry| (**entry).clone())
        .ok_or_else(|| Cause::MoveNotFound { consumer: instance }.into())
}

fn latest_ended(state: &State, instance: ConsumerUuid) -> Option<&std::sync::Arc<MoveEntry>> {
    let ended = state.moves().of(instance).filter(|entry| entry.this.instance == instance);
    ended.max_by_key(|entry| entry.changed_sequence)
}

/// The refusal of a transition that the move's state does not allow.
pub(super) fn wrong_state(this: &Move, wanted: &str) -> Refusal {
    let cause = Cause::MoveState { move_id: this.id, state: this.state, wanted: wanted.into() };
    Refusal { move_id: Some(this.id), ..Refusal::because(cause) }
}

/// What a second confirm or revert of the same attempt is answered.
pub(super) fn already(entry: &MoveEntry) -> Unchanged {
    Unchanged::AlreadyEnded {
        move_id: entry.this.id,
        state: entry.this.state,
        sequence: entry.changed_sequence,
    }
}

/// Whether the move is the latest live one of its instance.
pub(super) fn is_latest(state: &State, this: &Move) -> bool {
    state
        .moves()
        .live_of_instance(this.instance)
        .next()
        .is_none_or(|entry| entry.this.id == this.id)
}

/// Whether the move has both sides.
pub(super) fn is_claimed(this: &Move) -> bool {
    this.state == MoveState::Claimed && !this.destination.is_empty()
}
