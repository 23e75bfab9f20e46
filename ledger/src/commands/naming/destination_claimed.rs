//! Rule 6: the instance is empty, its move is open, and a write gives it something: the
//! destination, if the request id is that of the move's opening (or neither has one). With another
//! request id it is a finding, and the move stays live until the migration is emptied.
//!
//! With the setting `same_host_moves: max`, a PUT with the request id of the latest opening is
//! granted overlap: the destination is linked with the source, so that on a provider that both are
//! on only the larger counts (Launchpad bug 1790204). Without a request id, or with another, both
//! count, as Placement does it.

use super::{PlainWrite, Step, Write};
use crate::command::{SameHostMoves, Via};
use crate::commands::claim::source_linked;
use crate::commands::plan::Planned;
use crate::event::{Event, Finding, Move, MoveState};

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for instance in write.left() {
        if !instance.before.is_empty() || instance.after.is_empty() {
            continue;
        }
        let Some(entry) = write.state.moves().live_of_instance(instance.consumer).next() else {
            continue;
        };
        if entry.this.state != MoveState::Open || entry.this.migration.is_none() {
            continue;
        }
        let same_action = entry.this.request_id.as_deref() == write.request_id;
        // The event names both holdings: the move's source and its destination.
        steps.push(Step {
            kind: Event::Claimed,
            plan: plan(write, instance, &entry.this),
            moves: Vec::new(),
            finding: (!same_action).then_some(Finding::ForeignRequestId),
        });
        write.done(instance.consumer);
    }
}

fn plan(write: &mut Write<'_>, instance: &PlainWrite, this: &Move) -> Vec<Planned> {
    let claimed = write.plain(instance);
    if !is_granted_overlap(write, this) {
        return vec![claimed];
    }
    match source_linked(write.state, this, write.new_id) {
        Some(source) => vec![Planned { link: source.link.clone(), ..claimed }, source],
        None => vec![claimed],
    }
}

fn is_granted_overlap(write: &Write<'_>, this: &Move) -> bool {
    let has_id = write.request_id.is_some_and(|id| !id.is_empty());
    write.state.settings().same_host_moves == SameHostMoves::Max
        && write.via == Via::Put
        && has_id
        && this.request_id.as_deref() == write.request_id
}
