//! Rule 7: a PUT keeps all that the instance has and adds a tree of its own with the same sums per
//! class as one it has, sharing providers aside: it is doubled up (an evacuation). Later the old
//! tree is gone: confirmed; the new one is gone: reverted. A consumer can have several such pairs.

use super::{PlainWrite, Step, Write};
use crate::command::MoveKind;
use crate::commands::host::{hosts, is_sharing, root};
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
    let opened = Move {
        id: MoveId((write.new_id)()),
        kind: MoveKind::Evacuation,
        inferred: true,
        instance: instance.consumer,
        migration: None,
        state: MoveState::Claimed,
        attempt: 1,
        request_id: write.request_id.map(str::to_owned),
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
            && let Some(how) = how_it_ended(state, instance, &entry.this)
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

fn how_it_ended(state: &State, instance: &PlainWrite, this: &Move) -> Option<MoveState> {
    let roots = roots_of(state, &instance.after);
    let (source, destination) = (hosts(state, &this.source), hosts(state, &this.destination));
    if !source.is_disjoint(&destination) {
        // The same host: only the exact amounts tell.
        let after = state.holding(&instance.after);
        return match () {
            () if instance.after.is_empty() => Some(MoveState::Abandoned),
            () if after == this.destination && after != this.source => Some(MoveState::Confirmed),
            () if after == this.source && after != this.destination => Some(MoveState::Reverted),
            () => None,
        };
    }
    match (!source.is_disjoint(&roots), !destination.is_disjoint(&roots)) {
        (true, true) => None,
        (false, true) => Some(MoveState::Confirmed),
        (true, false) => Some(MoveState::Reverted),
        (false, false) => Some(MoveState::Abandoned),
    }
}

fn roots_of(state: &State, allocations: &Allocations) -> BTreeSet<ProviderId> {
    trees(state, allocations).into_keys().collect()
}

/// The sums per class of each tree, sharing providers aside.
fn trees(state: &State, allocations: &Allocations) -> BTreeMap<ProviderId, BTreeMap<ClassId, u64>> {
    let mut trees: BTreeMap<ProviderId, BTreeMap<ClassId, u64>> = BTreeMap::new();
    for held in allocations.iter().filter(|held| !is_sharing(state, held.provider)) {
        let Some(root) = root(state, held.provider) else { continue };
        *trees.entry(root).or_default().entry(held.class).or_default() += u64::from(held.amount);
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
