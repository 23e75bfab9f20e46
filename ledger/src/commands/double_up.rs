//! `double_up`: the instance holds a destination beside its source, both on itself. Where both
//! name the same provider and class, the larger is stored (Launchpad bugs 1790204, 1709902).

use super::Decision;
use super::find_move::wrong_state;
use super::options::{Taken, take_first};
use super::plan::{
    self, Planned, check_kept, check_units, event_body, generations_after, owner_of, resolve,
};
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
    taken: Taken<'_>,
) -> Result<(), Refusal> {
    let row = draft.state.consumer(consumer).ok_or(Cause::HoldsNothing { consumer })?.clone();
    let source = draft.state.holding(&row.allocations);
    let destination = resolve(&draft.state, option)?;
    let owner = owner_of(&draft.state, &row);
    let plan = vec![Planned {
        consumer,
        after: resolve(&draft.state, &larger_of_both(&source, option))?,
        owner: owner.clone(),
        link: link_of(&draft.state, consumer),
        untouched: false,
        generation: None,
    }];
    check_kept(&draft.state, &plan)?;
    check_units(&draft.state, &destination)?;
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
    body.passed_over = taken.passed_over.to_vec();
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
    use crate::refusal::Cause;

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

    fn two_hosts() -> World {
        let all = [("VCPU", 8), ("MEMORY_MB", 100)];
        let mut world = World::new().host(1, &all).host(2, &all).host(3, &[("DISK_GB", 10)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(double_up(1, &[holding(&[(2, &[("VCPU", 2)])])]));
        world
    }

    /// What is written to the server during an evacuation belongs to the side that it is on: an
    /// amount that grows, a class that is added, a port on a provider below the host; and what is
    /// on neither (shared storage, a network card of its own tree) stays with the server.
    #[test]
    fn what_comes_during_a_double_up_is_not_lost_by_its_end() {
        let whole = |host: u128| -> &[(u128, &[(&str, u32)])] {
            match host {
                1 => &[(1, &[("VCPU", 3)]), (3, &[("DISK_GB", 4)])],
                _ => &[
                    (2, &[("VCPU", 4), ("MEMORY_MB", 5)]),
                    (11, &[("VGPU", 1)]),
                    (3, &[("DISK_GB", 4)]),
                ],
            }
        };
        for (end, left) in [(confirm(1), 2), (revert(1), 1), (fail(1, "x"), 1)] {
            let mut world = two_hosts().host(11, &[("VGPU", 2)]);
            world.ok(crate::commands::providers::tests::under(11, Some(2)));
            let mut all = holding(whole(1));
            all.extend(holding(whole(2)));
            assert_eq!(world.kinds(put(1, all.clone())), ["Reallocated"]);
            let this = world.latest_move(1);
            assert_eq!(this.source, holding(&[(1, &[("VCPU", 3)])]));
            let arrived = holding(&[(2, &[("VCPU", 4), ("MEMORY_MB", 5)]), (11, &[("VGPU", 1)])]);
            assert_eq!(this.destination, arrived);
            world.ok(end);
            assert_eq!(world.holds(1), holding(whole(left)));
        }
    }

    /// On one host the sides share a stored amount: what grows is needed by both.
    #[test]
    fn on_one_host_both_sides_grow() {
        for (end, left) in [(confirm(1), 5), (revert(1), 3)] {
            let mut world = World::new().host(1, &[("VCPU", 8)]);
            world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
            world.ok(double_up(1, &[holding(&[(1, &[("VCPU", 4)])])]));
            world.ok(put(1, holding(&[(1, &[("VCPU", 5)])])));
            world.ok(end);
            assert_eq!(world.holds(1), holding(&[(1, &[("VCPU", left)])]));
        }
    }

    /// A pair that plain calls opened takes only its own trees: another tree of the server stays.
    #[test]
    fn what_is_of_neither_side_stays_whatever_ends() {
        for (end, left) in [(confirm(1), 2), (revert(1), 1)] {
            let mut world = World::new()
                .host(1, &[("VCPU", 8)])
                .host(2, &[("VCPU", 8)])
                .host(5, &[("DISK_GB", 9)]);
            let with = |hosts: &[u128]| {
                let mut all = holding(&[(5, &[("DISK_GB", 3)])]);
                all.extend(hosts.iter().map(|host| (provider(*host), [("VCPU".into(), 2)].into())));
                all
            };
            world.ok(put(1, with(&[1])));
            assert_eq!(world.kinds(put(1, with(&[1, 2]))), ["DoubledUp"]);
            world.ok(end);
            assert_eq!(world.holds(1), with(&[left]));
        }
    }

    /// A consumer whose whole holding is handed over by a plain call has no double-up any more.
    #[test]
    fn a_double_up_of_a_holding_that_is_gone_has_ended() {
        let mut world = two_hosts();
        let id = world.latest_move(1).id;
        let all = world.holds(1);
        world.ok(post(&[(1, Default::default()), (9, all)]));
        let entry = world.state.moves().get(id).unwrap();
        assert_eq!(entry.this.state, MoveState::Abandoned);
        world.ok(revert(1));
        assert_eq!(world.held(1, "VCPU") + world.held(2, "VCPU"), 4);
    }

    /// After a destination was given up any other write leaves the move open.
    #[test]
    fn an_open_double_up_stays_open_when_its_source_is_written() {
        let mut world = two_hosts();
        world.ok(reschedule(1, "no image", &[]));
        assert_eq!(world.latest_move(1).state, MoveState::Open);
        world.ok(put(1, holding(&[(1, &[("VCPU", 3)])])));
        assert_eq!(world.latest_move(1).state, MoveState::Open);
        world.ok(double_up(1, &[holding(&[(2, &[("VCPU", 3)])])]));
        world.ok(confirm(1));
        assert_eq!(world.holds(1), holding(&[(2, &[("VCPU", 3)])]));
    }

    /// An end that would leave nothing of its side is refused by name, and the other works.
    #[test]
    fn an_end_that_would_leave_nothing_of_its_side_is_refused() {
        let mut world = World::new().host(3, &[("DISK_GB", 10)]).host(4, &[("DISK_GB", 10)]);
        world.ok(claim(1, &[holding(&[(3, &[("DISK_GB", 2)])])]));
        world.ok(double_up(1, &[holding(&[(4, &[("DISK_GB", 2)])])]));
        world.ok(reschedule(1, "x", &[]));
        let this = world.latest_move(1);
        assert!(matches!(world.refused(confirm(1)).cause, Cause::MoveState { .. }));
        world.ok(revert(1));
        assert_eq!(world.holds(1), this.source);
    }

    /// The units of an inventory apply to what a destination asks for, and not to what is held.
    #[test]
    fn units_changed_meanwhile_do_not_keep_a_double_up_from_ending() {
        for (end, left) in [(confirm(1), 2), (revert(1), 1), (fail(1, "x"), 1)] {
            let mut world = two_hosts();
            for host in [1, 2] {
                world.ok(units(host, "VCPU", 8, (3, 8, 3)));
            }
            world.refused(put(2, holding(&[(1, &[("VCPU", 2)])])));
            world.ok(end);
            assert_eq!(world.holds(1), holding(&[(left, &[("VCPU", 2)])]));
            let refused = world.refused(double_up(1, &[holding(&[(3 - left, &[("VCPU", 2)])])]));
            assert_eq!(refused.cause, Cause::Constraint);
            world.ok(double_up(1, &[holding(&[(3 - left, &[("VCPU", 3)])])]));
        }
    }
}
