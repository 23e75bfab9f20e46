//! What must be true after each step of an interleaving.

use super::commands::command;
use super::rules::{Held, Rule};
use super::steps::{REQUESTS, Step};
use super::world::{Decided, World};
use crate::amounts::Holding;
use crate::command::{Command, Confirm, Revert};
use crate::event::{Event, Move, MoveState};
use crate::state::State;
use proptest::prelude::TestCaseError;
use std::collections::BTreeSet;

pub(super) fn keeps_the_invariants<R: Rule>(steps: &[(Step, usize)]) -> Result<(), TestCaseError> {
    let mut world = World::new();
    let mut rule = R::default();
    let mut before = rule.after(&world.state, None);
    for (step, request) in steps {
        let command = command(step, &world.state);
        let Some(decided) = world.decide(&command, REQUESTS[*request]) else { continue };
        let told = |what: String| TestCaseError::fail(format!("{step:?}: {what}"));
        world.state.check_invariants().map_err(|wrong| told(format!("{wrong:?}")))?;
        if decided.replayed().digest() != world.state.digest() {
            return Err(told("a replay leads elsewhere".into()));
        }
        let after = rule.after(&world.state, Some(&decided));
        fits(step, &world.state, &before, &after).map_err(told)?;
        ends_exactly(step, &decided, &world.state).map_err(told)?;
        within_quota(step, &decided.before, &world.state).map_err(told)?;
        sides_are_held(&world.state).map_err(told)?;
        every_move_can_end(&world).map_err(told)?;
        before = after;
    }
    Ok(())
}

/// What is held is within capacity or no more than before, and ends never raise it.
fn fits(step: &Step, state: &State, before: &Held, after: &Held) -> Result<(), String> {
    for (key, &now) in after {
        let then = before.get(key).copied().unwrap_or(0);
        let row = state.provider(key.0).and_then(|row| row.inventory(key.1).copied());
        let capacity = row.map_or(0, |row| row.inventory.capacity() as u64);
        if now > capacity && now > then {
            return Err(format!("{now} of {capacity} held of provider {key:?}, {then} before"));
        }
        if never_raises(step) && now > then {
            return Err(format!("raises what is held of {key:?} from {then} to {now}"));
        }
    }
    Ok(())
}

/// Opening, confirming and reverting by whichever call, and letting go.
fn never_raises(step: &Step) -> bool {
    matches!(
        step,
        Step::Open(..)
            | Step::Confirm(_)
            | Step::ConfirmOldest(_)
            | Step::Revert(_)
            | Step::Fail(_)
            | Step::PostOver(..)
            | Step::PostBack(..)
            | Step::HostChanged(..)
            | Step::Delete(_)
            | Step::Release(..)
            | Step::ReleaseAndReserve(..)
            | Step::ReleaseAll(..)
            | Step::Shrink(..)
            | Step::Part(..)
            | Step::Retire(..)
            | Step::Drop(..)
    )
}

/// A confirm leaves exactly the destination and a revert exactly the source, as they then stood,
/// and of a double-up also what is on neither side.
fn ends_exactly(step: &Step, decided: &Decided, after: &State) -> Result<(), String> {
    let is_end =
        matches!(step, Step::Confirm(_) | Step::ConfirmOldest(_) | Step::Revert(_) | Step::Fail(_));
    let [Event::Confirmed(body) | Event::Reverted(body)] = &decided.events[..] else {
        return Ok(());
    };
    // What others release ends a move, too, and leaves what they leave.
    if !is_end {
        return Ok(());
    }
    let then = &decided.before;
    let ended = body.moves.iter().find(|this| !this.state.is_live());
    let live = ended.and_then(|this| then.moves().get(this.id));
    let Some((ended, live)) = ended.zip(live) else { return Err("no move has ended".into()) };
    let this = &live.this;
    let confirmed = ended.state == MoveState::Confirmed;
    let had = then.holding_of(this.instance);
    let expected = match (this.migration, confirmed) {
        (Some(_), true) => had,
        (Some(migration), false) => then.holding_of(migration),
        (None, true) => kept(&had, &this.source, &this.destination),
        (None, false) => kept(&had, &this.destination, &this.source),
    };
    let left = after.holding_of(this.instance);
    let gone = this.migration.is_none_or(|migration| after.holding_of(migration).is_empty());
    // Of a move with a migration the instance may hold nothing: a later one holds it then.
    let lost = this.migration.is_none() && left.is_empty();
    if left != expected || !gone || lost {
        return Err(format!("left {left:?} instead of {expected:?}"));
    }
    Ok(())
}

/// What is held without the side that goes.
fn kept(held: &Holding, goes: &Holding, stays: &Holding) -> Holding {
    let mut left = held.clone();
    for (uuid, resources) in &mut left {
        resources.retain(|class, amount| match (of(stays, uuid, class), of(goes, uuid, class)) {
            (0, 0) => true,
            (0, _) => false,
            (stays, _) => {
                *amount = stays;
                true
            }
        });
    }
    left.retain(|_, resources| !resources.is_empty());
    left
}

fn of(holding: &Holding, provider: &crate::ids::ProviderUuid, class: &str) -> u32 {
    holding.get(provider).and_then(|resources| resources.get(class)).copied().unwrap_or(0)
}

/// What a project holds is at most its limit, or no more than before.
fn within_quota(step: &Step, before: &State, after: &State) -> Result<(), String> {
    let Some(vcpu) = after.classes().id("VCPU") else { return Ok(()) };
    let Some(limit) = before.limit_of("p", vcpu) else { return Ok(()) };
    let [then, now] = [before, after].map(|state| state.held_by_project("p", vcpu));
    if now > limit.max(then) && !matches!(step, Step::Quota(_)) {
        return Err(format!("the project holds {now} of {limit}, and held {then}"));
    }
    Ok(())
}

fn live(state: &State) -> Vec<Move> {
    let entries = state.moves().iter().filter(|entry| entry.this.state.is_live());
    entries.map(|entry| entry.this.clone()).collect()
}

/// The sides of each live move are what is held: of a migration its whole holding, of a double-up
/// for each provider and class at least the larger of both, at most their sum.
fn sides_are_held(state: &State) -> Result<(), String> {
    for this in live(state) {
        let held = state.holding_of(this.instance);
        if let Some(migration) = this.migration {
            if this.source != state.holding_of(migration) || this.destination != held {
                return Err(format!("the sides are not what is held: {this:?}"));
            }
            continue;
        }
        for side in [&this.source, &this.destination] {
            for (uuid, class) in side
                .iter()
                .flat_map(|(uuid, resources)| resources.keys().map(move |class| (uuid, class)))
            {
                let sides = [of(&this.source, uuid, class), of(&this.destination, uuid, class)];
                let held_there = of(&held, uuid, class);
                // A reshape may bring one side to where the other is: then both are stored.
                let larger = sides[0].max(sides[1]);
                if !(larger..=sides[0] + sides[1]).contains(&held_there) {
                    return Err(format!("{held:?} is held with sides {this:?}"));
                }
            }
        }
    }
    Ok(())
}

/// For each live move there is a command that ends it, if need be after those that came later.
fn every_move_can_end(world: &World) -> Result<(), String> {
    let servers: BTreeSet<_> = live(&world.state).into_iter().map(|this| this.instance).collect();
    for server in servers {
        let mut ended = Some(world.copy());
        while let Some(now) = ended.take() {
            let moves: Vec<Move> =
                now.state.moves().live_of_instance(server).map(|it| it.this.clone()).collect();
            if moves.is_empty() {
                break;
            }
            let ends = moves.iter().flat_map(|this| {
                let (consumer, move_id) = (this.instance, Some(this.id));
                [
                    Command::Revert(Revert { consumer, move_id, reason: None }),
                    Command::Confirm(Confirm { consumer, move_id }),
                ]
            });
            ended = ends.into_iter().find_map(|end| now.accepts(&end));
            if ended.is_none() {
                return Err(format!("no command ends any of {moves:?}"));
            }
        }
    }
    Ok(())
}
