//! `claim`: takes the first of the ordered options that fits for a consumer that holds nothing. If
//! the consumer has an open move, this is the move's destination: it is linked with the source, so
//! that on a provider that both are on only the larger counts (Launchpad bug 1790204).

use super::Decision;
use super::options::{Taken, take_first};
use super::plan::{self, Planned, check_fits, event_body, generations_after, malformed, resolve};
use crate::amounts::Holding;
use crate::command::{Claim, Via};
use crate::decide::Draft;
use crate::event::{Event, Link, Move, MoveState, Overlap, Owner};
use crate::ids::{ConsumerUuid, LinkId};
use crate::refusal::{Cause, Refusal};
use crate::state::{State, link_of};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Claim) -> Decision {
    let owner = Owner {
        project_id: named("project_id", &command.project_id)?,
        user_id: named("user_id", &command.user_id)?,
        consumer_type: command.consumer_type.clone(),
    };
    let state = &draft.state;
    let open = open_move(state, command.consumer);
    if state.consumer(command.consumer).is_some() {
        let cause = Cause::HoldsAlready { consumer: command.consumer };
        return Err(Refusal { move_id: open.map(|this| this.id), ..Refusal::because(cause) });
    }
    let destination = open.map(|this| Destination { this, reason: None });
    claim(draft, command.consumer, &owner, &command.options, destination)?;
    Ok(None)
}

/// A project or user that a command must name.
fn named(field: &str, value: &str) -> Result<String, Cause> {
    if value.is_empty() || value.chars().count() > crate::limits::NAME_CHARS {
        return Err(malformed(format!(
            "{field} has 1 to {} characters",
            crate::limits::NAME_CHARS
        )));
    }
    Ok(value.to_owned())
}

/// The open move of which a consumer is the instance, its source being on a migration consumer.
pub(super) fn open_move(state: &State, consumer: ConsumerUuid) -> Option<Move> {
    let entry = state.moves().live_of_instance(consumer).next()?;
    let is_open = entry.this.state == MoveState::Open && entry.this.migration.is_some();
    is_open.then(|| entry.this.clone())
}

/// The move that a claim is the destination of.
#[derive(Clone)]
pub(super) struct Destination {
    pub(super) this: Move,
    pub(super) reason: Option<String>,
}

/// Claims the first option that fits for a consumer that holds nothing.
///
/// # Errors
/// See [`take_first`].
pub(super) fn claim(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    owner: &Owner,
    options: &[Holding],
    destination: Option<Destination>,
) -> Result<(), Refusal> {
    let move_id = destination.as_ref().map(|destination| destination.this.id);
    take_first(draft, options, |trial, option, taken| {
        claim_one(trial, consumer, owner, option, destination.clone(), taken)
    })
    .map_err(|refusal| Refusal { move_id, ..refusal })
}

fn claim_one(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    owner: &Owner,
    option: &Holding,
    destination: Option<Destination>,
    taken: Taken,
) -> Result<(), Refusal> {
    let after = resolve(&draft.state, option)?;
    let mut claimed = Planned {
        consumer,
        after,
        owner: owner.clone(),
        link: None,
        untouched: false,
        generation: None,
    };
    let mut plan = Vec::new();
    let mut moves = Vec::new();
    let mut reason = None;
    if let Some(Destination { this, reason: why }) = destination {
        if let Some(source) = source_linked(draft, &this) {
            claimed.link.clone_from(&source.link);
            plan.push(source);
        }
        moves.push(Move { state: MoveState::Claimed, destination: option.clone(), ..this });
        reason = why;
    }
    plan.insert(0, claimed);
    check_fits(&draft.state, &plan)?;
    let generations = generations_after(&draft.state, &plan);
    let mut body = event_body(&draft.state, &plan, &generations, moves, Via::Command);
    body.option = Some(taken.option);
    body.passed_over = taken.passed_over;
    body.reason = reason;
    plan::emit(draft, Event::Claimed, body);
    Ok(())
}

/// The migration consumer of a move, in the link group that the destination shall join: its own,
/// or a new one under today's setting.
fn source_linked(draft: &mut Draft<'_>, this: &Move) -> Option<Planned> {
    let migration = this.migration?;
    let row = draft.state.consumer(migration)?.clone();
    let link = link_of(&draft.state, migration).unwrap_or_else(|| Link {
        group: LinkId(draft.new_id()),
        overlap: Overlap::Max(draft.state.settings().overlap_classes.clone()),
    });
    Some(Planned {
        consumer: migration,
        after: row.allocations.clone(),
        owner: plan::owner_of(&draft.state, &row),
        link: Some(link),
        untouched: true,
        generation: None,
    })
}
