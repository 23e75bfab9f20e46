//! `release`: a consumer lets go of everything, without anybody else having to be alive for it
//! (Launchpad bug 1679750). With `ended` its end is on record: what a later revert would give back
//! is released instead (Launchpad bug 1848343).

use super::Decision;
use super::naming::PlainWrite;
use super::plan::{event_body, owner_of};
use super::replace_allocations::{Note, carry_out};
use crate::command::{Release, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState};
use crate::ids::ConsumerUuid;
use crate::refusal::Cause;
use crate::state::{Allocations, State};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Release) -> Decision {
    let note = Note { via: Via::Command, reason: command.reason.clone(), ended: command.ended };
    let state = &draft.state;
    if let Some(row) = state.consumer(command.consumer) {
        let write = PlainWrite {
            consumer: command.consumer,
            before: row.allocations.clone(),
            after: Allocations::new(),
            owner: owner_of(state, row),
        };
        return carry_out(draft, &[write], &note);
    }
    let moves = open_ends(state, command.consumer);
    if !command.ended || moves.is_empty() {
        return Err(Cause::HoldsNothing { consumer: command.consumer }.into());
    }
    // It holds nothing itself, but a move holds for it, or left it behind: its end is what is on
    // record.
    let ended = moves.into_iter().map(|this| Move { ended: true, ..this }).collect();
    let mut body = event_body(state, &[], &Default::default(), ended, Via::Command);
    body.reason = note.reason;
    super::plan::emit(draft, Event::Released, body);
    Ok(None)
}

/// The moves of which an instance's end is to be known: the live ones, or else the latest if that
/// was abandoned.
fn open_ends(state: &State, instance: ConsumerUuid) -> Vec<Move> {
    let live: Vec<Move> =
        state.moves().live_of_instance(instance).map(|entry| entry.this.clone()).collect();
    if !live.is_empty() {
        return live;
    }
    let latest = state.moves().of(instance).next().map(|entry| &entry.this);
    let abandoned = |this: &&Move| {
        this.instance == instance && this.state == MoveState::Abandoned && !this.ended
    };
    latest.filter(abandoned).cloned().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::{Finding, MoveState};
    use crate::refusal::Cause;

    /// Launchpad bugs 1713796 and 1862633, case B8; bug 1679750, case B13.
    #[test]
    fn everything_goes_at_once_and_only_once() {
        let mut world = World::new().host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        assert_eq!(world.kinds(release(1, false)), ["Released"]);
        assert_eq!(world.held(2, "VCPU"), 0);
        assert_eq!(
            world.refused(release(1, false)).cause,
            Cause::HoldsNothing { consumer: consumer(1) }
        );
    }

    #[test]
    fn during_a_move_the_instance_gives_up_its_destination() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        assert_eq!(world.kinds(release(1, false)), ["DestinationReleased"]);
        assert_eq!(world.latest_move(1).state, MoveState::Open);
        assert_eq!(world.kinds(release(2, false)), ["Released"]);
        assert_eq!(world.last_body().finding, Some(Finding::RunsWithoutAllocation));
        assert_eq!(world.latest_move(1).state, MoveState::Abandoned);
        // That it is gone can be put on record once, though nothing is held any more.
        assert_eq!(world.kinds(release(1, true)), ["Released"]);
        assert!(world.latest_move(1).ended);
        let nothing = Cause::HoldsNothing { consumer: consumer(1) };
        assert_eq!(world.refused(release(1, true)).cause, nothing);
    }
}
