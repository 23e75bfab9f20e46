//! `alloc_moves`: how each move stands; those that ended go after a while.

use ledger::ids::MoveId;
use ledger::state::{MoveEntry, State};
use ledger::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The moves in the bucket that ended, oldest first.
#[derive(Default)]
pub(super) struct Ended {
    by_time: BTreeSet<(Timestamp, MoveId)>,
}

impl Ended {
    /// The value of a move; none: it is not kept, or it ended at or before `oldest`. It is noted if
    /// it ended.
    pub(super) fn value(&mut self, state: &State, id: MoveId, oldest: Timestamp) -> Option<Value> {
        let entry = state.moves().get(id)?;
        self.note(entry, oldest).then(|| shown(entry))
    }

    /// The values of all moves that belong into the bucket.
    pub(super) fn all(&mut self, state: &State, oldest: Timestamp) -> Vec<(String, Value)> {
        self.by_time.clear();
        let mut values = Vec::new();
        for entry in state.moves().iter() {
            if self.note(entry, oldest) {
                values.push((entry.this.id.to_string(), shown(entry)));
            }
        }
        values
    }

    /// The moves that ended at or before `oldest` and are to go, each told once. One that opened
    /// again since is none of them.
    pub(super) fn expired(&mut self, state: &State, oldest: Timestamp) -> Vec<MoveId> {
        let mut gone = Vec::new();
        while let Some(&(at, id)) = self.by_time.first() {
            if at > oldest {
                break;
            }
            self.by_time.pop_first();
            let still = state
                .moves()
                .get(id)
                .is_none_or(|entry| !entry.this.state.is_live() && entry.changed_at <= oldest);
            if still {
                gone.push(id);
            }
        }
        gone
    }

    /// Whether a move belongs into the bucket.
    fn note(&mut self, entry: &MoveEntry, oldest: Timestamp) -> bool {
        if entry.this.state.is_live() {
            return true;
        }
        let kept = entry.changed_at > oldest;
        if kept {
            self.by_time.insert((entry.changed_at, entry.this.id));
        }
        kept
    }
}

fn shown(entry: &MoveEntry) -> Value {
    let mut value = json!(entry.this);
    value["live"] = entry.this.state.is_live().into();
    value["opened_at"] = entry.opened_at.to_string().into();
    value["opened_sequence"] = entry.opened_sequence.into();
    value["changed_at"] = entry.changed_at.to_string().into();
    value["changed_sequence"] = entry.changed_sequence.into();
    value
}
