//! `--same-host-moves`: what counts while a move by plain Placement calls has both sides on one
//! provider. The ledger keeps it as an event, so that a replay decides alike.

use std::sync::Arc;

use clap::ValueEnum;
use ledger::Ledger;
use ledger::Outcome;
use ledger::command::{self, ChangeSettings, Command};
use ledger::stamp::{Actor, Stamp};
use ledger::time::Clock;
use serde::Deserialize;
use uuid::Uuid;

/// Sum or max.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SameHostMoves {
    /// Both sides count, as Placement does it.
    #[default]
    Sum,
    /// The larger side counts, if both calls have one request id.
    Max,
}

impl SameHostMoves {
    fn rule(self) -> command::SameHostMoves {
        match self {
            Self::Sum => command::SameHostMoves::Sum,
            Self::Max => command::SameHostMoves::Max,
        }
    }

    /// Records the setting if the ledger has another one.
    ///
    /// # Errors
    /// If the ledger does not take it.
    pub async fn record(self, ledger: &Ledger, clock: &Arc<dyn Clock>) -> Result<(), String> {
        if ledger.view().settings().same_host_moves == self.rule() {
            return Ok(());
        }
        let change = ChangeSettings { same_host_moves: Some(self.rule()), ..Default::default() };
        let stamp = Stamp {
            seed: Uuid::new_v4().into_bytes(),
            received_at: clock.now(),
            actor: Actor::default(),
            request_id: None,
            command_id: None,
        };
        let failed = |why: &str| format!("the setting same-host-moves is not recorded: {why}");
        let waiting = ledger
            .submit(vec![Command::ChangeSettings(change)], stamp)
            .map_err(|error| failed(&error.to_string()))?;
        match waiting.await {
            Ok(Ok(answer)) => match answer.outcome {
                Outcome::Accepted { .. } => Ok(()),
                Outcome::Refused { refusal, .. } => Err(failed(&refusal.cause.name())),
            },
            Ok(Err(error)) => Err(failed(&error.to_string())),
            Err(_) => Err(failed("the ledger is closed")),
        }
    }
}
