//! `confirm`: the move succeeded. The source goes; the destination stays as it stands.

use super::Decision;
use super::find_move::{already, find, is_claimed, wrong_state};
use super::plan::{self, Planned, check_end, event_body, generations_after, owner_of};
use super::sides::destination_kept;
use crate::command::{Confirm, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState};
use crate::refusal::Refusal;
use crate::state::{Allocations, MoveEntry};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Confirm) -> Decision {
    let entry = find(&draft.state, command.consumer, command.move_id)?;
    if entry.this.state == MoveState::Confirmed {
        return Ok(Some(already(&entry)));
    }
    confirm(draft, entry, None)
}

/// Ends a move on its destination.
///
/// # Errors
/// If it has none.
pub(super) fn confirm(draft: &mut Draft<'_>, entry: MoveEntry, reason: Option<&str>) -> Decision {
    if !is_claimed(&entry.this) {
        return Err(wrong_state(&entry.this, "confirm"));
    }
    let plan = match entry.this.migration {
        Some(_) => source_gone(draft, &entry.this)?,
        None => destination_alone(draft, &entry.this)?,
    };
    // It only lets go of things, so it fits whatever the capacity has become.
    check_end(&draft.state, &plan)?;
    let generations = generations_after(&draft.state, &plan);
    let destination =
        draft.state.holding(&plan::allocations_after(&draft.state, &plan, entry.this.instance));
    let ended = Move {
        state: MoveState::Confirmed,
        source: Default::default(),
        destination,
        alternates: Vec::new(),
        ..entry.this
    };
    let mut body = event_body(&draft.state, &plan, &generations, vec![ended], Via::Command);
    body.reason = reason.map(str::to_owned);
    plan::emit(draft, Event::Confirmed, body);
    Ok(None)
}

/// The migration consumer lets go of the source.
fn source_gone(draft: &Draft<'_>, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let migration = this.migration.ok_or_else(|| wrong_state(this, "confirm"))?;
    let row = draft.state.consumer(migration).ok_or_else(|| wrong_state(this, "confirm"))?;
    Ok(vec![Planned {
        consumer: migration,
        after: Allocations::new(),
        owner: owner_of(&draft.state, row),
        link: None,
        untouched: false,
        generation: None,
    }])
}

/// The instance held both sides itself: it keeps all but what was the source's alone.
fn destination_alone(draft: &Draft<'_>, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let row = draft.state.consumer(this.instance).ok_or_else(|| wrong_state(this, "confirm"))?;
    Ok(vec![Planned {
        consumer: this.instance,
        after: destination_kept(&draft.state, this)?,
        owner: owner_of(&draft.state, row),
        link: crate::state::link_of(&draft.state, this.instance),
        untouched: false,
        generation: None,
    }])
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::{MoveState, Unchanged};
    use crate::refusal::Cause;

    #[test]
    fn the_source_goes_and_the_destination_stays() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 4));
        assert_eq!(world.kinds(confirm(1)), ["Confirmed"]);
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 4));
    }

    #[test]
    fn a_second_confirm_answers_what_happened_the_first_time() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        world.ok(confirm(1));
        let ended_at = world.state.sequence();
        let again = world.ok(confirm(1));
        assert!(again.events.is_empty());
        let Some(Unchanged::AlreadyEnded { state, sequence, .. }) = again.unchanged[0] else {
            panic!("not told")
        };
        assert_eq!((state, sequence), (MoveState::Confirmed, ended_at));
        let Cause::MoveState { state, wanted, .. } = world.refused(revert(1)).cause else {
            panic!("a confirmed move is not reverted")
        };
        assert_eq!((state, wanted.as_str()), (MoveState::Confirmed, "revert"));
    }

    #[test]
    fn an_open_move_cannot_be_confirmed() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        assert_eq!(world.refused(confirm(1)).cause, Cause::MoveNotFound { consumer: consumer(1) });
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        assert!(matches!(
            world.refused(confirm(1)).cause,
            Cause::MoveState { state: MoveState::Open, .. }
        ));
    }

    /// Launchpad bugs 1709902 and 1721652, case B3: the dead host need not speak again.
    #[test]
    fn after_an_evacuation_only_the_destination_is_held() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        assert_eq!(world.kinds(double_up(1, &[holding(&[(2, &[("VCPU", 4)])])])), ["DoubledUp"]);
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (4, 4));
        assert_eq!(world.kinds(confirm(1)), ["Confirmed"]);
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 4));
    }

    /// Even when the capacity has shrunk below what is held: it only lets go of things.
    #[test]
    fn it_does_not_depend_on_capacity() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 8)])])]));
        world.ok(shrink(1, "VCPU", 1));
        world.ok(confirm(1));
        assert_eq!(world.held(1, "VCPU"), 8);
    }
}
