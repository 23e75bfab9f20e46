//! Rule 1: a POST empties the migration and gives the instance exactly what it holds: the move is
//! reverted.

use super::{Step, Write};
use crate::event::{Event, MoveState};

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for giver in write.left() {
        if giver.before.is_empty() || !giver.after.is_empty() {
            continue;
        }
        let Some(entry) = write.live_of_migration(giver.consumer) else { continue };
        let Some(receiver) = write.of(entry.this.instance) else { continue };
        if !write.is_left(receiver.consumer) || receiver.after != giver.before {
            continue;
        }
        steps.push(Step {
            kind: Event::Reverted,
            plan: vec![write.giver(giver), write.handed(receiver, giver.consumer)],
            moves: vec![write.ended(&entry.this, MoveState::Reverted)],
            finding: None,
        });
        write.done(giver.consumer);
        write.done(receiver.consumer);
    }
}
