//! What a consumer is: Placement knows only ids, but its role in a move tells more.

use ledger::command::MoveKind;
use ledger::event::Move;
use ledger::ids::ConsumerUuid;
use ledger::state::{MoveEntry, State};
use std::sync::Arc;

/// What a consumer is, as far as its moves and its type tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// It is or was moved.
    Instance,
    /// It holds or held the source of a move.
    Migration,
    /// Nothing more is known.
    Consumer,
}

impl Role {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Migration => "migration",
            Self::Consumer => "consumer",
        }
    }
}

/// The role that a move gives to a consumer.
pub(crate) fn role_in(this: &Move, consumer: ConsumerUuid) -> Option<Role> {
    if this.migration == Some(consumer) {
        Some(Role::Migration)
    } else if this.instance == consumer {
        Some(Role::Instance)
    } else {
        None
    }
}

/// The role of a consumer, and the move that gives it: a live one before one that ended.
pub(crate) fn role(state: &State, consumer: ConsumerUuid) -> (Role, Option<&Arc<MoveEntry>>) {
    let of = || state.moves().of(consumer);
    let entry = of().find(|entry| entry.this.state.is_live()).or_else(|| of().next());
    match entry.and_then(|entry| role_in(&entry.this, consumer)) {
        Some(role) => (role, entry),
        None => (role_by_type(state, consumer), None),
    }
}

/// The role that a consumer's type gives it (Placement 1.38: INSTANCE and MIGRATION are Nova's).
fn role_by_type(state: &State, consumer: ConsumerUuid) -> Role {
    let number = state.consumer(consumer).and_then(|row| row.consumer_type);
    match number.map(|number| &**state.consumer_types().name(number)) {
        Some("INSTANCE") => Role::Instance,
        Some("MIGRATION") => Role::Migration,
        _ => Role::Consumer,
    }
}

/// The word for a kind of move.
pub(crate) fn kind_word(kind: MoveKind) -> &'static str {
    match kind {
        MoveKind::Resize => "resize",
        MoveKind::Migration => "migration",
        MoveKind::LiveMigration => "live migration",
        MoveKind::Evacuation => "evacuation",
    }
}
