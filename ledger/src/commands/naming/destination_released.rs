//! Rule 5: the instance is emptied while the migration holds: the destination is given up, and
//! the move is open again.

use super::{Step, Write};
use crate::event::Event;

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for instance in write.left() {
        if instance.before.is_empty() || !instance.after.is_empty() {
            continue;
        }
        let source_is_held = write
            .state
            .moves()
            .live_of_instance(instance.consumer)
            .filter_map(|entry| entry.this.migration)
            .any(|migration| !write.after(migration).is_empty());
        if !source_is_held {
            continue;
        }
        // The moves follow what the instance holds: the latest is open again.
        steps.push(Step {
            kind: Event::DestinationReleased,
            plan: vec![write.plain(instance)],
            moves: Vec::new(),
            finding: None,
        });
        write.done(instance.consumer);
    }
}
