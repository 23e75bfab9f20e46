//! What a state alone tells.

use super::{Finding, Kind, holds, release, revert};
use ledger::event::{Move, MoveState};
use ledger::ids::ConsumerUuid;
use ledger::state::{MoveEntry, State};
use ledger::time::Timestamp;

const MIGRATION: &str = "MIGRATION";

/// All orphans that a state tells of by itself. A move that is open since before `opened_before`
/// stays open for too long.
pub fn standing(state: &State, opened_before: Timestamp) -> Vec<Finding> {
    let found = state.moves().iter().filter_map(|entry| of_move(state, entry, opened_before));
    let mut found: Vec<Finding> = found.collect();
    found.sort_unstable_by_key(|finding| (finding.consumer, finding.kind));
    found
}

fn of_move(state: &State, entry: &MoveEntry, opened_before: Timestamp) -> Option<Finding> {
    if entry.this.state.is_live() {
        return of_live_move(state, entry, opened_before);
    }
    left_behind(state, entry).or_else(|| abandoned(state, entry))
}

fn of_live_move(state: &State, entry: &MoveEntry, opened_before: Timestamp) -> Option<Finding> {
    let this = &entry.this;
    let (kind, reason) = if this.ended && this.migration.is_some_and(|it| holds(state, it)) {
        (Kind::MoveOfEnded, "its instance has ended")
    } else if this.state == MoveState::Open
        && entry.changed_at < opened_before
        && !is_transfer(state, &entry.this)
    {
        (Kind::MoveStaysOpen, "it stayed open")
    } else {
        return None;
    };
    Some(Finding {
        kind,
        consumer: this.instance,
        move_id: Some(this.id),
        since: entry.changed_at,
        mend: vec![revert(this, reason)],
    })
}

/// Whether a move that was recognised in plain calls is none: its receiver says that it is
/// something else than a migration.
fn is_transfer(state: &State, this: &Move) -> bool {
    let receiver = this.migration.and_then(|migration| state.consumer(migration));
    let stored = receiver.and_then(|row| row.consumer_type);
    this.inferred && stored.is_some_and(|id| &**state.consumer_types().name(id) != MIGRATION)
}

/// A migration that holds something since before its latest move ended.
fn left_behind(state: &State, entry: &MoveEntry) -> Option<Finding> {
    let migration = entry.this.migration.filter(|it| is_latest(state, *it, entry))?;
    let row = state.consumer(migration)?;
    // One that was empty meanwhile leads a life of its own.
    (row.created_at < entry.changed_at).then(|| Finding {
        kind: Kind::MigrationLeftBehind,
        consumer: migration,
        move_id: Some(entry.this.id),
        since: entry.changed_at,
        mend: vec![release(migration, false, "its move has ended")],
    })
}

/// An instance that holds nothing since its latest move was abandoned.
fn abandoned(state: &State, entry: &MoveEntry) -> Option<Finding> {
    let this = &entry.this;
    let bare = this.state == MoveState::Abandoned
        && !this.ended
        && is_latest(state, this.instance, entry)
        && !holds(state, this.instance);
    bare.then(|| Finding {
        kind: Kind::MoveAbandoned,
        consumer: this.instance,
        move_id: Some(this.id),
        since: entry.changed_at,
        mend: vec![release(this.instance, true, "it is gone")],
    })
}

fn is_latest(state: &State, consumer: ConsumerUuid, entry: &MoveEntry) -> bool {
    state.moves().of(consumer).next().is_some_and(|latest| latest.this.id == entry.this.id)
}
