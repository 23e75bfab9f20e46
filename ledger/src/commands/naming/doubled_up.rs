//! Rule 7: a PUT keeps all that the instance has and adds a tree of its own with the same sums per
//! class as one it has, sharing providers aside: it is doubled up (an evacuation). Later the old
//! tree is gone: confirmed; the new one is gone: reverted. A consumer can have several such pairs.

use super::{PlainWrite, Step, Write};
use crate::command::{MoveKind, Via};
use crate::commands::host::{is_sharing, root};
use crate::commands::sides::{Sides, hosts_of, is_left};
use crate::event::{Event, Move, MoveState};
use crate::ids::MoveId;
use crate::state::consumer::amount_in;
use crate::state::{Allocation, Allocations, ClassId, ProviderId, State};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    for instance in write.left() {
        if instance.before.is_empty() {
            continue;
        }
        let step = ended_pairs(write, instance).or_else(|| new_pair(write, instance));
        if let Some(step) = step {
            steps.push(step);
            write.done(instance.consumer);
        }
    }
}

fn new_pair(write: &mut Write<'_>, instance: &PlainWrite) -> Option<Step> {
    let state = write.state;
    let keeps = instance.before.iter().all(|held| {
        let after = amount_in(&instance.after, held.provider, held.class);
        after == held.amount || (is_sharing(state, held.provider) && after >= held.amount)
    });
    if !keeps {
        return None;
    }
    let before = trees(state, &instance.before);
    let mut added = trees(state, &instance.after);
    added.retain(|root, _| !before.contains_key(root));
    let (new_root, sums) = added.pop_first().filter(|_| added.is_empty())?;
    let (old_root, _) = before.into_iter().find(|(_, old)| *old == sums)?;
    let open = state
        .moves()
        .live_of_instance(instance.consumer)
        .next()
        .filter(|entry| entry.this.migration.is_none() && entry.this.state == MoveState::Open);
    let opened = Move {
        id: open.map_or_else(|| MoveId((write.new_id)()), |entry| entry.this.id),
        kind: open.map_or(MoveKind::Evacuation, |entry| entry.this.kind),
        inferred: open.is_none_or(|entry| entry.this.inferred),
        instance: instance.consumer,
        migration: None,
        state: MoveState::Claimed,
        attempt: open.map_or(1, |entry| entry.this.attempt),
        request_id: match open {
            Some(entry) => entry.this.request_id.clone(),
            None => write.request_id.map(str::to_owned),
        },
        source: state.holding(&without_tree(state, &instance.before, |root| root == old_root)),
        destination: state.holding(&without_tree(state, &instance.after, |root| root == new_root)),
        owner: instance.owner.clone(),
        ended: false,
        alternates: Vec::new(),
        arrived: false,
    };
    Some(Step {
        kind: Event::DoubledUp,
        plan: vec![write.plain(instance)],
        moves: vec![opened],
        finding: None,
    })
}

fn ended_pairs(write: &mut Write<'_>, instance: &PlainWrite) -> Option<Step> {
    let state = write.state;
    let mut ended = Vec::new();
    for entry in state.moves().live_of_instance(instance.consumer) {
        if entry.this.migration.is_none()
            && let Some(how) = how_it_ended(write, instance, &entry.this)
        {
            ended.push(write.ended(&entry.this, how));
        }
    }
    let kind = match ended.first()?.state {
        MoveState::Confirmed => Event::Confirmed,
        MoveState::Reverted => Event::Reverted,
        _ if instance.after.is_empty() => Event::Released,
        _ => Event::Reallocated,
    };
    Some(Step { kind, plan: vec![write.plain(instance)], moves: ended, finding: None })
}

fn how_it_ended(write: &Write<'_>, instance: &PlainWrite, this: &Move) -> Option<MoveState> {
    let state = write.state;
    let reshaped = write.via == Via::Reshaper;
    let old = Sides::of(state, this);
    let new = old.follow(state, &instance.before, &instance.after, reshaped);
    let source_left = is_left(state, &old.source, &new.source);
    let destination_left = is_left(state, &old.destination, &new.destination);
    if old.source.is_empty() || old.destination.is_empty() {
        return (!source_left && !destination_left).then_some(MoveState::Abandoned);
    }
    let is_apart = places(state, &old.source).is_disjoint(&places(state, &old.destination));
    match (source_left, destination_left) {
        (false, false) => Some(MoveState::Abandoned),
        (false, true) if is_apart => Some(MoveState::Confirmed),
        (true, false) if is_apart => Some(MoveState::Reverted),
        _ if is_apart || reshaped => None,
        // The same host: only the exact amounts tell.
        _ => match part_of(&instance.after, &old) {
            part if part == old.destination && part != old.source => Some(MoveState::Confirmed),
            part if part == old.source && part != old.destination => Some(MoveState::Reverted),
            _ => None,
        },
    }
}

/// Where a side is: its hosts, or if it is on shared storage alone, that.
fn places(state: &State, side: &Allocations) -> BTreeSet<ProviderId> {
    let hosts = hosts_of(state, side);
    match hosts.is_empty() {
        true => side.iter().map(|held| held.provider).collect(),
        false => hosts,
    }
}

/// What is held of the providers and classes that either side names.
fn part_of(held: &Allocations, sides: &Sides) -> Allocations {
    let names = |side: &Allocations, one: &Allocation| amount_in(side, one.provider, one.class) > 0;
    let of_either = |one: &&Allocation| names(&sides.source, one) || names(&sides.destination, one);
    held.iter().filter(of_either).copied().collect()
}

/// The sums per class of each tree, sharing providers aside.
fn trees(state: &State, allocations: &Allocations) -> BTreeMap<ProviderId, BTreeMap<ClassId, u64>> {
    let mut trees: BTreeMap<ProviderId, BTreeMap<ClassId, u64>> = BTreeMap::new();
    for held in allocations.iter().filter(|held| !is_sharing(state, held.provider)) {
        let Some(root) = root(state, held.provider) else { continue };
        let sum = trees.entry(root).or_default().entry(held.class).or_default();
        *sum = sum.saturating_add(held.amount.into());
    }
    trees
}

/// One side of a pair: its tree, and what it holds of sharing providers.
fn without_tree(
    state: &State,
    allocations: &Allocations,
    is_mine: impl Fn(ProviderId) -> bool,
) -> Vec<Allocation> {
    allocations
        .iter()
        .filter(|held| {
            is_sharing(state, held.provider) || root(state, held.provider).is_some_and(&is_mine)
        })
        .copied()
        .collect()
}
