//! Orphans: holdings that nobody will give back by himself, and servers that may run without one.
//! Each is found from a state alone, or from a state and a list of the living that a caller knows.

mod living;
mod standing;

pub use living::{Compared, Living};
pub use standing::standing;

use ledger::command::{Command, Release, Revert};
use ledger::event::Move;
use ledger::ids::{ConsumerUuid, MoveId};
use ledger::state::State;
use ledger::time::Timestamp;
use serde::{Deserialize, Serialize};

/// What is wrong. In the order in which one is told if several are true of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The instance's end is on record, and the migration of its move holds the source still.
    MoveOfEnded,
    /// A list of the living lacks the consumer, which holds something.
    NotLiving,
    /// The move of a migration ended, and the migration holds something still.
    MigrationLeftBehind,
    /// A move is open, without a destination, for longer than the bound.
    MoveStaysOpen,
    /// A move ended without confirm or revert and its instance holds nothing: it may run so.
    MoveAbandoned,
    /// A list of the living has the consumer, which holds nothing.
    RunsWithoutAllocation,
    /// A host says that it runs the consumer, which holds nothing there.
    RunsElsewhere,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::MoveOfEnded,
        Self::NotLiving,
        Self::MigrationLeftBehind,
        Self::MoveStaysOpen,
        Self::MoveAbandoned,
        Self::RunsWithoutAllocation,
        Self::RunsElsewhere,
    ];

    /// The name in answers and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::MoveOfEnded => "move_of_ended",
            Self::NotLiving => "not_living",
            Self::MigrationLeftBehind => "migration_left_behind",
            Self::MoveStaysOpen => "move_stays_open",
            Self::MoveAbandoned => "move_abandoned",
            Self::RunsWithoutAllocation => "runs_without_allocation",
            Self::RunsElsewhere => "runs_elsewhere",
        }
    }

    /// What it means, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::MoveOfEnded => {
                "the instance's end is on record, and its move holds the source still"
            }
            Self::NotLiving => "it holds something, and the list of the living lacks it",
            Self::MigrationLeftBehind => "its move ended, and it holds something still",
            Self::MoveStaysOpen => {
                "the move is open without a destination for longer than the bound"
            }
            Self::MoveAbandoned => {
                "the move ended without confirm or revert, and the instance holds nothing: if it is gone say so by \
                 the command, if it runs claim for it"
            }
            Self::RunsWithoutAllocation => {
                "it is said to live, and holds nothing: end it, or claim for it"
            }
            Self::RunsElsewhere => "this host is said to run it, and it holds nothing there",
        }
    }
}

/// One orphan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// With whom.
    pub consumer: ConsumerUuid,
    /// The move it is about.
    pub move_id: Option<MoveId>,
    /// Since when it is so, as far as the state tells.
    pub since: Timestamp,
    /// The commands, one atomic list, that put it right; none: a person has to decide.
    pub mend: Vec<Command>,
}

fn revert(this: &Move, reason: &str) -> Command {
    Command::Revert(Revert {
        consumer: this.instance,
        move_id: Some(this.id),
        reason: Some(reason.to_owned()),
    })
}

fn release(consumer: ConsumerUuid, ended: bool, reason: &str) -> Command {
    Command::Release(Release { consumer, ended, reason: Some(reason.to_owned()) })
}

/// Whether a consumer holds something itself.
fn holds(state: &State, consumer: ConsumerUuid) -> bool {
    state.consumer(consumer).is_some()
}
