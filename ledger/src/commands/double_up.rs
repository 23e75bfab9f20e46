//! `double_up`: the instance holds a destination beside its source, both on itself. Where both
//! name the same provider and class, the larger is stored (Launchpad bugs 1790204, 1709902).

use super::Decision;
use super::find_move::wrong_state;
use super::options::{Taken, take_first};
use super::plan::{self, Planned, check_fits, event_body, generations_after, owner_of, resolve};
use crate::amounts::Holding;
use crate::command::{DoubleUp, MoveKind, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState};
use crate::ids::{ConsumerUuid, MoveId};
use crate::refusal::{Cause, Refusal};
use crate::state::link_of;

pub(super) fn decide(draft: &mut Draft<'_>, command: &DoubleUp) -> Decision {
    let state = &draft.state;
    let latest =
        state.moves().live_of_instance(command.consumer).next().map(|entry| entry.this.clone());
    let open = match latest {
        Some(this) if this.migration.is_none() && this.state == MoveState::Open => Some(this),
        Some(this) if this.migration.is_none() || this.state == MoveState::Open => {
            return Err(wrong_state(&this, "double up"));
        }
        _ => None,
    };
    if state.consumer(command.consumer).is_none() {
        return Err(Cause::HoldsNothing { consumer: command.consumer }.into());
    }
    double_up(draft, command.consumer, command.kind, &command.options, open, None)?;
    Ok(None)
}

/// Takes the first destination that fits beside the source.
///
/// # Errors
/// See [`take_first`].
pub(super) fn double_up(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    kind: MoveKind,
    options: &[Holding],
    open: Option<Move>,
    reason: Option<&str>,
) -> Result<(), Refusal> {
    let move_id = open.as_ref().map(|this| this.id);
    take_first(draft, options, |trial, option, taken| {
        double_up_one(trial, consumer, kind, option, open.clone(), reason, taken)
    })
    .map_err(|refusal| Refusal { move_id, ..refusal })
}

fn double_up_one(
    draft: &mut Draft<'_>,
    consumer: ConsumerUuid,
    kind: MoveKind,
    option: &Holding,
    open: Option<Move>,
    reason: Option<&str>,
    taken: Taken,
) -> Result<(), Refusal> {
    let row = draft.state.consumer(consumer).ok_or(Cause::HoldsNothing { consumer })?.clone();
    let source = draft.state.holding(&row.allocations);
    resolve(&draft.state, option)?;
    let owner = owner_of(&draft.state, &row);
    let plan = vec![Planned {
        consumer,
        after: resolve(&draft.state, &larger_of_both(&source, option))?,
        owner: owner.clone(),
        link: link_of(&draft.state, consumer),
        untouched: false,
        generation: None,
    }];
    check_fits(&draft.state, &plan)?;
    let base = match open {
        Some(this) => this,
        None => Move {
            id: MoveId(draft.new_id()),
            kind,
            inferred: false,
            instance: consumer,
            migration: None,
            state: MoveState::Open,
            attempt: 1,
            request_id: draft.stamp.request_id.clone(),
            source: source.clone(),
            destination: Holding::new(),
            owner,
            ended: false,
            alternates: Vec::new(),
            arrived: false,
        },
    };
    let this = Move { state: MoveState::Claimed, source, destination: option.clone(), ..base };
    let generations = generations_after(&draft.state, &plan);
    let mut body = event_body(&draft.state, &plan, &generations, vec![this], Via::Command);
    body.option = Some(taken.option);
    body.passed_over = taken.passed_over;
    body.reason = reason.map(str::to_owned);
    plan::emit(draft, Event::DoubledUp, body);
    Ok(())
}

fn larger_of_both(source: &Holding, destination: &Holding) -> Holding {
    let mut both = source.clone();
    for (provider, resources) in destination {
        let held = both.entry(*provider).or_default();
        for (class, &amount) in resources {
            let stored = held.entry(class.clone()).or_default();
            *stored = amount.max(*stored);
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::MoveState;

    #[test]
    fn on_one_host_the_larger_of_both_is_stored() {
        let mut world = World::new().host(1, &[("VCPU", 4), ("DISK_GB", 10)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2), ("DISK_GB", 10)])])]));
        world.ok(double_up(1, &[holding(&[(1, &[("VCPU", 4), ("DISK_GB", 5)])])]));
        assert_eq!(world.holds(1), holding(&[(1, &[("VCPU", 4), ("DISK_GB", 10)])]));
        let mut other = World { state: world.state.clone(), ..World::new() };
        other.ok(confirm(1));
        assert_eq!(other.holds(1), holding(&[(1, &[("VCPU", 4), ("DISK_GB", 5)])]));
        world.ok(revert(1));
        assert_eq!(world.holds(1), holding(&[(1, &[("VCPU", 2), ("DISK_GB", 10)])]));
        assert_eq!(world.latest_move(1).state, MoveState::Reverted);
    }

    #[test]
    fn a_second_one_needs_the_first_to_have_ended() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        let option = [holding(&[(2, &[("VCPU", 2)])])];
        world.refused(double_up(1, &option));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(double_up(1, &option));
        world.refused(double_up(1, &option));
        world.ok(reschedule(1, "x", &[]));
        world.ok(double_up(1, &option));
        assert_eq!(world.latest_move(1).state, MoveState::Claimed);
    }
}
