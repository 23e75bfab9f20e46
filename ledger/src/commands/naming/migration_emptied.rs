//! Rules 3 and 4: the migration is emptied.
//!
//! While the instance keeps a destination the move is confirmed. While the instance is empty the
//! move is abandoned, and that is a finding: the server may run without an allocation. A migration
//! overwritten with something else ends its move as abandoned, too.

use super::{PlainWrite, Step, Write};
use crate::command::Via;
use crate::event::{Event, Finding, MoveState};

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for migration in write.left() {
        let Some(entry) = write.live_of_migration(migration.consumer) else { continue };
        if migration.before == migration.after {
            continue;
        }
        let (kind, state, finding) = if !migration.after.is_empty() {
            // A reshape says anew where things are held: it overwrites nothing.
            if is_part(migration) || write.via == Via::Reshaper {
                continue;
            }
            (
                Event::Reallocated as fn(_) -> _,
                MoveState::Abandoned,
                Some(Finding::MigrationOverwritten),
            )
        } else if kept_a_destination(write, entry) {
            (Event::Confirmed as fn(_) -> _, MoveState::Confirmed, None)
        } else {
            let finding = Finding::RunsWithoutAllocation;
            let bare = !write.instance_holds(&entry.this);
            (Event::Released as fn(_) -> _, MoveState::Abandoned, bare.then_some(finding))
        };
        steps.push(Step {
            kind,
            plan: vec![write.plain(migration)],
            moves: vec![write.ended(&entry.this, state)],
            finding,
        });
        write.done(migration.consumer);
    }
}

/// Whether the migration only lets go of a part of the source, on the same providers.
fn is_part(migration: &PlainWrite) -> bool {
    migration.after.iter().all(|after| {
        migration
            .before
            .iter()
            .any(|before| before.provider == after.provider && before.class == after.class)
    })
}

fn kept_a_destination(write: &Write<'_>, entry: &crate::state::MoveEntry) -> bool {
    let had = entry.this.state == MoveState::Claimed;
    had && write.instance_holds(&entry.this)
}
