//! `reschedule`: gives up the destination, with a reason, and takes the next: the first of the
//! options given that fits, or else of the alternates that the move keeps. The source is held
//! throughout. If there is neither, the move stays open.
//!
//! A server that is still building has no move: its claim on the first host goes and the next
//! option is taken, in one event (Launchpad bug 1712718).

use super::Decision;
use super::claim::{Destination, claim, claim_one};
use super::double_up::double_up;
use super::find_move::{find, is_claimed, is_latest, wrong_state};
use super::host::host_of;
use super::options::take_first;
use super::options::{Taken, Wanted, pass_over};
use super::plan::{
    self, Planned, check_fits, check_kept, event_body, generations_after, owner_of, resolve,
};
use super::sides::source_kept;
use crate::amounts::Holding;
use crate::command::{Reschedule, Via};
use crate::decide::Draft;
use crate::event::{Event, Move, MoveState, Owner};
use crate::refusal::{Cause, PassedOver, Refusal};
use crate::state::{Allocations, State, link_of};

pub(super) fn decide(draft: &mut Draft<'_>, command: &Reschedule) -> Decision {
    if is_building(&draft.state, command) {
        return elsewhere(draft, command);
    }
    let this = find(&draft.state, command.consumer, command.move_id)?.this;
    if !is_claimed(&this) || this.arrived || !is_latest(&draft.state, &this) {
        return Err(wrong_state(&this, "reschedule"));
    }
    let trial = if command.options.is_empty() && command.candidates.is_none() {
        to_an_alternate(draft, &this, &command.reason)?
    } else {
        let wanted = Wanted::of(
            draft,
            command.consumer,
            &command.options,
            command.candidates.as_deref(),
            command.searched.as_ref(),
        )?;
        wanted
            .take(|options| to_an_option(draft, &this, &command.reason, options))
            .map_err(|refusal| Refusal { move_id: Some(this.id), ..refusal })?
    };
    draft.accept(trial);
    Ok(None)
}

/// Whether the command is about a server that holds something and is in no move: its first claim
/// failed (Launchpad bug 1712718). A server whose last move ended after it began to hold what it
/// holds is none: a late reschedule must not give that up.
fn is_building(state: &State, command: &Reschedule) -> bool {
    let Some(row) = state.consumer(command.consumer).filter(|_| command.move_id.is_none()) else {
        return false;
    };
    let mut moves = state.moves().of(command.consumer);
    moves.all(|entry| !entry.this.state.is_live() && entry.changed_at < row.created_at)
}

/// Gives up the whole claim and takes the first option that fits, in one event.
fn elsewhere(draft: &mut Draft<'_>, command: &Reschedule) -> Decision {
    let wanted = Wanted::of(
        draft,
        command.consumer,
        &command.options,
        command.candidates.as_deref(),
        command.searched.as_ref(),
    )?;
    wanted.take(|options| {
        take_first(draft, options, |trial, option, taken| replace(trial, command, option, taken))
    })?;
    Ok(None)
}

fn replace(
    draft: &mut Draft<'_>,
    command: &Reschedule,
    option: &Holding,
    taken: Taken,
) -> Result<(), Refusal> {
    let consumer = command.consumer;
    let state = &draft.state;
    let row = state.consumer(consumer).ok_or(Cause::HoldsNothing { consumer })?;
    let plan = vec![Planned {
        consumer,
        after: resolve(state, option)?,
        owner: owner_of(state, row),
        link: None,
        untouched: false,
        generation: None,
    }];
    check_fits(state, &plan)?;
    let generations = generations_after(state, &plan);
    let mut body = event_body(state, &plan, &generations, Vec::new(), Via::Command);
    body.option = Some(taken.option);
    body.passed_over = taken.passed_over.to_vec();
    body.host = host_of(state, option);
    body.reason = Some(command.reason.clone());
    plan::emit(draft, Event::Reallocated, body);
    Ok(())
}

fn to_an_option<'a>(
    draft: &Draft<'a>,
    this: &Move,
    reason: &str,
    options: &[Holding],
) -> Result<Draft<'a>, Refusal> {
    let mut trial = draft.trial();
    let open = give_up(&mut trial, this, reason, &[])?;
    match open.migration {
        Some(_) => {
            let owner = owner_of_instance(draft, this);
            let destination = Destination { this: open, reason: None };
            claim(&mut trial, this.instance, &owner, options, Some(destination))?;
        }
        None => {
            let kind = open.kind;
            double_up(&mut trial, this.instance, kind, options, Some(open), None)?;
        }
    }
    Ok(trial)
}

/// Takes the next of the alternates that the move keeps and that still fits. Those before it will
/// not be asked again. If none is left, the destination is given up all the same: it has failed.
fn to_an_alternate<'a>(draft: &Draft<'a>, this: &Move, reason: &str) -> Result<Draft<'a>, Refusal> {
    let owner = owner_of_instance(draft, this);
    let mut trial = draft.trial();
    let open = give_up(&mut trial, this, reason, &[])?;
    let mut passed_over = Vec::new();
    for (number, alternate) in (0u32..).zip(&this.alternates) {
        let rest = this.alternates.iter().skip(number as usize).skip(1).cloned().collect();
        let next = Move { alternates: rest, ..open.clone() };
        let destination = Some(Destination { this: next, reason: None });
        let taken = Taken { option: number, passed_over: &passed_over };
        let holding = &alternate.holding;
        match claim_one(&mut trial, this.instance, &owner, holding, destination, taken) {
            Ok(()) => return Ok(trial),
            Err(refusal) => pass_over(&mut passed_over, number, &refusal),
        }
    }
    let mut trial = draft.trial();
    let last = Move { alternates: Vec::new(), ..this.clone() };
    give_up(&mut trial, &last, reason, &passed_over)?;
    Ok(trial)
}

fn owner_of_instance(draft: &Draft<'_>, this: &Move) -> Owner {
    draft
        .state
        .consumer(this.instance)
        .map_or_else(|| this.owner.clone(), |row| owner_of(&draft.state, row))
}

/// Releases the destination; the move is open again.
fn give_up(
    draft: &mut Draft<'_>,
    this: &Move,
    reason: &str,
    passed_over: &[PassedOver],
) -> Result<Move, Refusal> {
    let state = &draft.state;
    let row = state.consumer(this.instance).ok_or_else(|| wrong_state(this, "reschedule"))?;
    let left = match this.migration {
        Some(_) => Allocations::new(),
        None => source_kept(state, this)?,
    };
    let plan = vec![Planned {
        consumer: this.instance,
        link: link_of(state, this.instance).filter(|_| !left.is_empty()),
        after: left,
        owner: owner_of(state, row),
        untouched: false,
        generation: None,
    }];
    check_kept(state, &plan)?;
    let open = Move {
        state: MoveState::Open,
        destination: Default::default(),
        ..plan::refreshed(state, &plan, this, Via::Command)
    };
    let generations = generations_after(state, &plan);
    let mut body = event_body(state, &plan, &generations, vec![open.clone()], Via::Command);
    body.reason = Some(reason.to_owned());
    body.passed_over = passed_over.to_vec();
    plan::emit(draft, Event::DestinationReleased, body);
    Ok(open)
}

#[cfg(test)]
mod tests {
    use crate::commands::testing::*;
    use crate::event::MoveState;
    use crate::refusal::Cause;

    /// Launchpad bug 1712850, case A5: also when the failed host is the source itself.
    #[test]
    fn a_failed_attempt_is_taken_back_before_the_next_is_claimed() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        assert_eq!(world.held(1, "VCPU"), 4);
        let next = [holding(&[(2, &[("VCPU", 4)])])];
        assert_eq!(
            world.kinds(reschedule(1, "libvirt says no", &next)),
            ["DestinationReleased", "Claimed"]
        );
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (2, 4));
        world.ok(confirm(1));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 4));
    }

    /// Launchpad bug 1712411, case B6.
    #[test]
    fn host_after_host_fails_and_nothing_stays_behind() {
        let mut world = (1..=4).fold(World::new(), |world, host| world.host(host, &[("VCPU", 8)]));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 9));
        world.ok(claim(1, &[holding(&[(2, &[("VCPU", 2)])])]));
        world.ok(reschedule(1, "pre-check on 2", &[holding(&[(3, &[("VCPU", 2)])])]));
        world.ok(reschedule(1, "pre-check on 3", &[holding(&[(4, &[("VCPU", 2)])])]));
        world.ok(reschedule(1, "pre-check on 4", &[]));
        assert_eq!(world.latest_move(1).state, MoveState::Open);
        world.ok(revert(1));
        let held: Vec<u64> = (1..=4).map(|host| world.held(host, "VCPU")).collect();
        assert_eq!(held, [2, 0, 0, 0]);
        let count = |kind| world.events.iter().filter(|event| event.kind() == kind).count();
        assert_eq!((count("Claimed"), count("DestinationReleased")), (4, 3));
    }

    /// Launchpad bug 1713786, case B5: releases what that step claimed, on the instance itself.
    #[test]
    fn a_failed_evacuation_gives_up_the_destination_only() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        world.ok(double_up(1, &[holding(&[(2, &[("VCPU", 4)])])]));
        let generation = world.state.consumer(consumer(1)).unwrap().generation;
        world.ok(reschedule(1, "no such image", &[]));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (4, 0));
        assert_eq!(world.state.consumer(consumer(1)).unwrap().generation, generation + 1);
    }

    #[test]
    fn without_an_alternate_that_fits_nothing_changes() {
        let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 1)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        world.ok(to_migration(1, 2));
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 4)])])]));
        let refusal = world.refused(reschedule(1, "x", &[holding(&[(2, &[("VCPU", 4)])])]));
        assert_eq!(refusal.cause, Cause::Capacity);
        assert_eq!(world.latest_move(1).state, MoveState::Claimed);
        assert_eq!(world.held(1, "VCPU"), 4);
    }

    /// Launchpad bug 1712718, case L1: a build is rescheduled before there is any move.
    #[test]
    fn a_server_that_is_still_building_goes_elsewhere_in_one_event() {
        let mut world = World::new().host(1, &[("VCPU", 2)]).host(2, &[("VCPU", 2)]);
        world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
        let next = [holding(&[(1, &[("VCPU", 3)])]), holding(&[(2, &[("VCPU", 2)])])];
        assert_eq!(world.kinds(reschedule(1, "no PCI device", &next)), ["Reallocated"]);
        let body = world.last_body();
        assert_eq!((body.option, body.passed_over.len()), (Some(1), 1));
        assert_eq!((body.host, body.reason.as_deref()), (Some(provider(2)), Some("no PCI device")));
        assert_eq!((world.held(1, "VCPU"), world.held(2, "VCPU")), (0, 2));
        // Nothing that fits: the claim stays as it is. Nothing to go to: told so.
        world.refused(reschedule(1, "x", &next[..1]));
        assert!(matches!(world.refused(reschedule(1, "x", &[])).cause, Cause::Malformed { .. }));
        assert_eq!(world.held(2, "VCPU"), 2);
        let nobody = Cause::MoveNotFound { consumer: consumer(5) };
        assert_eq!(world.refused(reschedule(5, "x", &next)).cause, nobody);
    }

    /// A reschedule that comes after its move ended must not give up what the move left; a server
    /// that was claimed anew since is building again.
    #[test]
    fn a_late_reschedule_of_a_move_that_ended_is_refused() {
        for end in [confirm(1), revert(1)] {
            let mut world = World::new().host(1, &[("VCPU", 8)]).host(2, &[("VCPU", 8)]);
            world.ok(claim(1, &[holding(&[(1, &[("VCPU", 2)])])]));
            world.ok(resize(1, 9, &[holding(&[(2, &[("VCPU", 2)])])]));
            world.ok(end);
            let before = world.holds(1);
            let next = [holding(&[(1, &[("VCPU", 1)])])];
            assert!(matches!(
                world.refused(reschedule(1, "late", &next)).cause,
                Cause::MoveState { .. }
            ));
            assert_eq!(world.holds(1), before);
            world.ok(release(1, false));
            world.ok(claim(1, &[holding(&[(2, &[("VCPU", 2)])])]));
            world.ok(reschedule(1, "spawn", &next));
            assert_eq!(world.holds(1), next[0]);
        }
    }
}
