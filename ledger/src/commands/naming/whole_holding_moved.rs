//! Rule 2: a write gives B exactly what A held and takes it from A: a move opens, inferred, or
//! opens again if B is the migration of a reverted attempt of A. If A gets something new in the
//! same write, that is its destination.
//!
//! If A was itself the migration of a live move, that move ends by rules 3 and 4; if B was one,
//! its source is overwritten and its move is abandoned.

use super::{PlainWrite, Step, Write};
use crate::command::MoveKind;
use crate::commands::plan::Planned;
use crate::event::{Event, Finding, Move, MoveState};
use crate::ids::MoveId;
use crate::state::Allocations;
use std::collections::{BTreeMap, VecDeque};

pub(super) fn take(write: &mut Write<'_>, steps: &mut Vec<Step>) {
    // Who gets what, so that each giver looks only at those that get what it has.
    let mut receivers: BTreeMap<&Allocations, VecDeque<&PlainWrite>> = BTreeMap::new();
    for receiver in write.left().into_iter().filter(|to| to.before != to.after) {
        receivers.entry(&receiver.after).or_default().push_back(receiver);
    }
    for giver in write.left() {
        if giver.before.is_empty() || giver.after == giver.before || !write.is_left(giver.consumer)
        {
            continue;
        }
        let Some(candidates) = receivers.get_mut(&giver.before) else { continue };
        while candidates.front().is_some_and(|first| !write.is_left(first.consumer)) {
            candidates.pop_front();
        }
        let mut candidates = candidates.iter().filter(|to| write.is_left(to.consumer));
        let receiver = candidates.find(|to| receives(giver, to)).copied();
        if let Some(receiver) = receiver {
            open(write, giver, receiver, steps);
        }
    }
}

fn receives(giver: &PlainWrite, receiver: &PlainWrite) -> bool {
    receiver.consumer != giver.consumer
        && receiver.after == giver.before
        && receiver.before != receiver.after
        // Two that merely swap are no move: a giver that keeps something needs a fresh receiver.
        && (giver.after.is_empty() || receiver.before.is_empty())
}

fn open(write: &mut Write<'_>, giver: &PlainWrite, receiver: &PlainWrite, steps: &mut Vec<Step>) {
    let mut moves = Vec::new();
    let mut finding = None;
    if let Some(entry) = write.live_of_migration(giver.consumer) {
        let state = if write.instance_holds(&entry.this) {
            MoveState::Confirmed
        } else {
            MoveState::Abandoned
        };
        if state == MoveState::Abandoned {
            finding = Some(Finding::RunsWithoutAllocation);
        }
        moves.push(write.ended(&entry.this, state));
    }
    if let Some(entry) = write.live_of_migration(receiver.consumer) {
        finding = Some(Finding::MigrationOverwritten);
        moves.push(write.ended(&entry.this, MoveState::Abandoned));
    }
    let opened = opened(write, giver, receiver);
    let claims_too = !giver.after.is_empty();
    moves.push(opened.clone());
    // Who gives everything and gets something new does so in two events: the opening, then the claim.
    let mut emptied = giver.clone();
    emptied.after.clear();
    steps.push(Step {
        kind: Event::MovedToMigration,
        plan: vec![write.giver(&emptied), write.handed(receiver, giver.consumer)],
        moves,
        finding,
    });
    if claims_too {
        let destination = write.state.holding(&giver.after);
        let generation =
            write.state.consumer(giver.consumer).map(|row| row.generation.saturating_add(1));
        steps.push(Step {
            kind: Event::Claimed,
            plan: vec![Planned { generation, ..write.giver(giver) }],
            moves: vec![Move { state: MoveState::Claimed, destination, ..opened }],
            finding: None,
        });
    }
    write.done(giver.consumer);
    write.done(receiver.consumer);
}

fn opened(write: &mut Write<'_>, giver: &PlainWrite, receiver: &PlainWrite) -> Move {
    let again = write.state.moves().of(receiver.consumer).find(|entry| {
        entry.this.instance == giver.consumer
            && entry.this.migration == Some(receiver.consumer)
            && entry.this.state == MoveState::Reverted
    });
    let fresh = Move {
        id: MoveId((write.new_id)()),
        kind: MoveKind::Resize,
        inferred: true,
        instance: giver.consumer,
        migration: Some(receiver.consumer),
        state: MoveState::Open,
        attempt: 0,
        request_id: None,
        source: write.state.holding(&giver.before),
        destination: Default::default(),
        owner: giver.owner.clone(),
        ended: false,
        alternates: Vec::new(),
        arrived: false,
    };
    let base = again.map_or(fresh.clone(), |entry| entry.this.clone());
    Move {
        state: MoveState::Open,
        attempt: base.attempt.saturating_add(1),
        request_id: write.request_id.map(str::to_owned),
        source: fresh.source,
        destination: fresh.destination,
        owner: fresh.owner,
        ..base
    }
}
