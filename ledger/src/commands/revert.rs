//! `revert`: the move failed or is not wanted. The destination goes, the source comes back to the
//! instance as it stands. If the instance's end is on record the source is released instead of
//! re-creating it (Launchpad bug 1848343).

use super::Decision;
use super::find_move::{already, find, is_latest, wrong_state};
use super::plan::{self, Planned, check_end, event_body, generations_after, owner_of};
use super::sides::source_kept;
use crate::command::{Revert, Via};
use crate::decide::Draft;
use crate::event::{Event, Finding, Move, MoveState};
use crate::refusal::Refusal;
use crate::state::{Allocations, MoveEntry, State, link_of};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Revert) -> Decision {
    let entry = find(&draft.state, command.consumer, command.move_id)?;
    let state = entry.this.state;
    if state == MoveState::Reverted || (state == MoveState::Abandoned && entry.this.ended) {
        return Ok(Some(already(&entry)));
    }
    revert(draft, entry, command.reason.as_deref())
}

/// Ends a move on its source.
///
/// # Errors
/// If it has ended, or a later move of the same consumer goes on.
pub(super) fn revert(draft: &mut Draft<'_>, entry: MoveEntry, reason: Option<&str>) -> Decision {
    let state = entry.this.state;
    if !state.is_live() || !is_latest(&draft.state, &entry.this) {
        return Err(wrong_state(&entry.this, "revert"));
    }
    let this = entry.this;
    let plan = match this.migration {
        Some(_) if this.ended => source_released(&draft.state, &this)?,
        Some(_) => source_back(&draft.state, &this)?,
        None => source_alone(&draft.state, &this)?,
    };
    check_end(&draft.state, &plan)?;
    let generations = generations_after(&draft.state, &plan);
    let source = draft.state.holding(&plan::allocations_after(&draft.state, &plan, this.instance));
    let state = if this.ended { MoveState::Abandoned } else { MoveState::Reverted };
    let finding = this.ended.then_some(Finding::ReleasedOwnerEnded);
    let kind = if this.ended { Event::Released } else { Event::Reverted };
    let ended = Move {
        state,
        source,
        destination: Default::default(),
        alternates: Vec::new(),
        arrived: false,
        ..this
    };
    let mut body = event_body(&draft.state, &plan, &generations, vec![ended], Via::Command);
    body.reason = reason.map(str::to_owned);
    body.finding = finding;
    plan::emit(draft, kind, body);
    Ok(None)
}

/// The migration gives its whole holding, and its link, back to the instance.
fn source_back(state: &State, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let migration = this.migration.ok_or_else(|| wrong_state(this, "revert"))?;
    let row = state.consumer(migration).ok_or_else(|| wrong_state(this, "revert"))?;
    let back = Planned {
        consumer: this.instance,
        after: row.allocations.clone(),
        owner: state
            .consumer(this.instance)
            .map_or_else(|| this.owner.clone(), |row| owner_of(state, row)),
        link: link_of(state, migration),
        untouched: false,
        generation: None,
    };
    Ok(vec![back, emptied(state, this)?])
}

fn source_released(state: &State, this: &Move) -> Result<Vec<Planned>, Refusal> {
    Ok(vec![emptied(state, this)?])
}

fn emptied(state: &State, this: &Move) -> Result<Planned, Refusal> {
    let migration = this.migration.ok_or_else(|| wrong_state(this, "revert"))?;
    let row = state.consumer(migration).ok_or_else(|| wrong_state(this, "revert"))?;
    Ok(Planned {
        consumer: migration,
        after: Allocations::new(),
        owner: owner_of(state, row),
        link: None,
        untouched: false,
        generation: None,
    })
}

/// The instance held both sides itself: it keeps all but what was the destination's alone.
fn source_alone(state: &State, this: &Move) -> Result<Vec<Planned>, Refusal> {
    let row = state.consumer(this.instance).ok_or_else(|| wrong_state(this, "revert"))?;
    Ok(vec![Planned {
        consumer: this.instance,
        after: source_kept(state, this)?,
        owner: owner_of(state, row),
        link: link_of(state, this.instance),
        untouched: false,
        generation: None,
    }])
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::{Finding, MoveState, Unchanged};

    #[test]
    fn the_destination_goes_and_the_source_comes_back() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        assert_eq!(world.kinds(revert(1)), ["Reverted"]);
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 0));
        let row = world.state.consumer(consumer(1)).unwrap().clone();
        let kind = world.state.consumer_types().name(row.consumer_type.unwrap());
        assert_eq!(&**kind, "INSTANCE", "the owner is what it was");
        let again = world.ok(revert(1));
        assert!(matches!(
            again.unchanged[0],
            Some(Unchanged::AlreadyEnded { state: MoveState::Reverted, .. })
        ));
    }

    /// Launchpad bug 1848343, case B1.
    #[test]
    fn a_server_that_ended_meanwhile_is_not_given_its_source_back() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        assert_eq!(world.kinds(release(1, true)), ["Released"]);
        assert_eq!(world.held(1, "VCPU"), 2, "the migration holds it still");
        assert_eq!(world.kinds(revert(1)), ["Released"]);
        assert_eq!(world.last_body().finding, Some(Finding::ReleasedOwnerEnded));
        assert_eq!((world.held(1, "VCPU"), world.holds(1)), (0, holding(&[])));
        assert!(world.ok(revert(1)).events.is_empty(), "a second one answers what happened");
    }

    #[test]
    fn the_same_migration_may_open_again() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        let first = world.latest_move(1);
        world.ok(revert(1));
        world.ok(to_migration(1, 2));
        let second = world.latest_move(1);
        assert_eq!((second.id, second.attempt, second.state), (first.id, 2, MoveState::Open));
    }

    /// A revert gives back what the source is then, not what it was.
    #[test]
    fn a_chain_of_moves_reverts_the_latest_only() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 3)])])]));
        let older = world.latest_move(1).id;
        world.ok(to_migration(1, 3));
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 4));
        let named =
            crate::command::Revert { consumer: consumer(1), move_id: Some(older), reason: None };
        world.refused(crate::command::Command::Revert(named));
        world.ok(revert(1));
        assert_eq!(world.holds(1), holding(&[(2, &[("VCPU", 3)])]));
        world.ok(revert(1));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 0));
    }

    /// What is held may stay, also with units that came later.
    #[test]
    fn units_changed_meanwhile_do_not_keep_the_source_from_coming_back() {
        for units_now in [(3, 8, 1), (1, 1, 1), (1, 8, 3)] {
            for end in [revert(1), fail(1, "x")] {
                let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
                world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
                world.ok(units(1, "VCPU", 8, units_now));
                world.ok(to_migration(1, 2));
                world.ok(claim(1, &[holding(&[(2, &[("VCPU", 4)])])]));
                world.ok(end);
                assert_eq!(world.holds(1), holding(&[(1, &[("VCPU", 2)])]));
            }
        }
    }
}
