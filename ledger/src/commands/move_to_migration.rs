//! `move_to_migration`: hands what the instance holds, and its link, to a migration consumer that
//! holds nothing. A move opens; or, if it was reverted before with the same migration consumer, its
//! next attempt.

use super::Decision;
use super::find_move::wrong_state;
use super::plan::{self, Planned, check_kept, event_body, generations_after, malformed, owner_of};
use crate::command::{MoveToMigration, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState};
use crate::ids::MoveId;
use crate::refusal::{Cause, Refusal};
use crate::state::{Allocations, State, link_of};

pub(super) fn decide(draft: &mut Draft<'_>, command: &MoveToMigration) -> Decision {
    open(draft, command)?;
    Ok(None)
}

/// Opens the move, and tells it.
///
/// # Errors
/// If the consumer holds nothing, the migration holds something, or a move stands in the way.
pub(super) fn open(draft: &mut Draft<'_>, command: &MoveToMigration) -> Result<Move, Refusal> {
    if command.consumer == command.migration {
        return Err(malformed("a consumer cannot be its own migration".into()).into());
    }
    let row = check(&draft.state, command)?;
    let owner = owner_of(&draft.state, &row);
    let given = Planned {
        consumer: command.migration,
        after: row.allocations.clone(),
        owner: crate::event::Owner { consumer_type: None, ..owner.clone() },
        link: link_of(&draft.state, command.consumer),
        untouched: false,
        generation: None,
    };
    let emptied = Planned {
        consumer: command.consumer,
        after: Allocations::new(),
        owner: owner.clone(),
        link: None,
        ..given.clone()
    };
    let again = draft.state.moves().of(command.migration).find(|entry| {
        entry.this.instance == command.consumer
            && entry.this.migration == Some(command.migration)
            && entry.this.state == MoveState::Reverted
    });
    let (id, attempt) = match again {
        Some(entry) => (entry.this.id, entry.this.attempt.saturating_add(1)),
        None => (MoveId(draft.new_id()), 1),
    };
    let opened = Move {
        id,
        kind: command.kind,
        inferred: false,
        instance: command.consumer,
        migration: Some(command.migration),
        state: MoveState::Open,
        attempt,
        request_id: draft.stamp.request_id.clone(),
        source: draft.state.holding(&row.allocations),
        destination: Default::default(),
        owner,
        ended: false,
        alternates: Vec::new(),
        arrived: false,
    };
    let plan = vec![emptied, given];
    check_kept(&draft.state, &plan)?;
    let generations = generations_after(&draft.state, &plan);
    let moves = vec![opened.clone()];
    let body = event_body(&draft.state, &plan, &generations, moves, Via::Command);
    plan::emit(draft, Event::MovedToMigration, body);
    Ok(opened)
}

fn check(
    state: &State,
    command: &MoveToMigration,
) -> Result<std::sync::Arc<crate::state::Consumer>, Refusal> {
    let alone = state
        .moves()
        .live_of_instance(command.consumer)
        .find(|entry| entry.this.migration.is_none());
    if let Some(entry) = alone {
        return Err(wrong_state(&entry.this, "move to a migration consumer"));
    }
    let Some(row) = state.consumer(command.consumer) else {
        let open = state.moves().live_of_instance(command.consumer).next();
        return Err(open.map_or_else(
            || Cause::HoldsNothing { consumer: command.consumer }.into(),
            |entry| wrong_state(&entry.this, "move to a migration consumer"),
        ));
    };
    if state.consumer(command.migration).is_some() {
        return Err(Cause::HoldsAlready { consumer: command.migration }.into());
    }
    Ok(row.clone())
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::refusal::Cause;

    #[test]
    fn the_migration_gets_exactly_what_the_instance_held() {
        let mut world = World::new().host(1, &[("VCPU", 8), ("DISK_GB", 9)]);
        let held = holding(&[(1, &[("VCPU", 2), ("DISK_GB", 3)])]);
        world.ok(claim(1, std::slice::from_ref(&held)));
        assert_eq!(world.kinds(to_migration(1, 2)), ["MovedToMigration"]);
        assert_eq!((world.holds(1), world.holds(2)), (holding(&[]), held));
        assert_eq!(world.held(1, "VCPU"), 2);
    }

    #[test]
    fn it_needs_a_source_and_a_migration_that_holds_nothing() {
        let mut world = World::new().host(1, &[("VCPU", 8)]);
        assert_eq!(
            world.refused(to_migration(1, 2)).cause,
            Cause::HoldsNothing { consumer: consumer(1) }
        );
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(claim(2, &[holding(&[(1, &[("VCPU", 1)])])]));
        assert_eq!(
            world.refused(to_migration(1, 2)).cause,
            Cause::HoldsAlready { consumer: consumer(2) }
        );
        world.refused(to_migration(1, 1));
        world.ok(to_migration(1, 3));
        assert!(matches!(world.refused(to_migration(1, 4)).cause, Cause::MoveState { .. }));
    }
}
