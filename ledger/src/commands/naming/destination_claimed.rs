//! Rule 6: the instance is empty, its move is open, and a write gives it something: the
//! destination, if the request id is that of the move's opening (or neither has one). With another
//! request id it is a finding, and the move stays live until the migration is emptied.

use super::{Step, Write};
use crate::event::{Event, Finding, MoveState};

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
            plan: vec![write.plain(instance)],
            moves: Vec::new(),
            finding: (!same_action).then_some(Finding::ForeignRequestId),
        });
        write.done(instance.consumer);
    }
}
