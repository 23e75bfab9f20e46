//! What a submission is answered.

use super::committed::Committed;
use super::unwritable::Unwritable;
use crate::event::{Event, Unchanged};
use crate::record::Header;
use crate::refusal::Refusal;
use std::sync::Arc;

/// The answer to a list of commands, given once it is durable.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Accepted or refused.
    pub outcome: Outcome,
    /// The durable sequence that the answer is true at.
    pub sequence: u64,
    /// The command's id was used before: this is what was answered then.
    pub repeated: bool,
    pub(super) group: Option<Group>,
}

/// Where the events of a group are.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) committed: Arc<Committed>,
    pub(super) first: u64,
    pub(super) count: u32,
}

/// What became of a list of commands.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// All of it was done.
    Accepted {
        /// For each command why it changed nothing, if it changed nothing.
        unchanged: Vec<Option<Unchanged>>,
    },
    /// Nothing of it was done.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The sequence of the record of it, if there is one.
        recorded_at: Option<u64>,
    },
}

impl Answer {
    /// The events of the group, in order: those of what was accepted, or the record of the refusal.
    pub fn events(&self) -> impl Iterator<Item = (&Header, &Event)> {
        self.group.iter().flat_map(|group| {
            let skip =
                usize::try_from(group.first.saturating_sub(group.committed.first)).unwrap_or(0);
            let records = group.committed.records.iter().skip(skip).take(group.count as usize);
            records.map(|record| &record.header).zip(group.committed.events.iter().skip(skip))
        })
    }

    /// Itself; see [`crate::panics::planted`].
    pub(super) fn planted(self) -> Self {
        for (header, _) in self.events() {
            crate::panics::planted("answer", header.request_id.as_deref());
        }
        self
    }

    /// The refusal, if it was refused.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.outcome {
            Outcome::Refused { refusal, .. } => Some(refusal),
            Outcome::Accepted { .. } => None,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// Too many wait already; nothing was done. Try again a little later.
    #[error("the queue of the writer is full; try again")]
    QueueFull,
    /// It may be done or not: ask again with the same command id.
    #[error("the outcome is unknown; ask again with the same command id")]
    OutcomeUnknown,
    /// Nothing is written at present.
    #[error("the ledger is read-only: {0}")]
    ReadOnly(Unwritable),
    /// The ledger is being closed.
    #[error("the ledger is closed")]
    Closed,
}
