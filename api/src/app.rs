//! What all handlers share: the ledger, the policy, CORS and the counters.

use std::sync::Arc;

use ledger::command::Command;
use ledger::event::Event;
use ledger::ids::ProviderUuid;
use ledger::refusal::Refusal;
use ledger::stamp::{Actor, CommandId, Stamp};
use ledger::state::State;
use ledger::time::Timestamp;
use ledger::{Answer, Ledger, Outcome};
use projector::candidates::CandidateIndex;
use uuid::Uuid;

use crate::candidate_index::IndexKeeper;
use crate::http::cors::Cors;
use crate::http::failure::{Failure, OUTCOME_UNKNOWN};
use crate::http::last_modified;
use crate::http::policy::Policy;
use crate::http::request::Request;
use crate::metrics::Metrics;
use crate::refusals::{self, About};

/// What all handlers share.
pub struct App {
    /// The ledger: commands go in, states come out.
    pub ledger: Ledger,
    /// The index of candidates.
    pub index: IndexKeeper,
    /// Who may do what.
    pub policy: Policy,
    /// Whether and from where browsers are answered across origins.
    pub cors: Option<Cors>,
    /// Counters.
    pub metrics: Metrics,
}

/// An accepted command.
#[derive(Debug)]
pub struct Accepted(pub Answer);

/// Why a command has no effect, or none that is known.
#[derive(Debug)]
pub enum SubmitError {
    /// The ledger said no.
    Refused(Box<Refusal>),
    /// The ledger could not say.
    Failed(Failure),
}

impl SubmitError {
    /// The answer in Placement's words.
    #[must_use]
    pub fn told(self, about: About<'_>) -> Failure {
        match self {
            Self::Refused(refusal) => refusals::placement(&refusal, about),
            Self::Failed(failure) => failure,
        }
    }
}

impl Accepted {
    /// The generation that the command left a provider with, if one of its events says so.
    #[must_use]
    pub fn provider_generation(&self, wanted: ProviderUuid) -> Option<u32> {
        let events = self.0.events().filter_map(|(_, event)| match event {
            Event::InventoryChanged(body) => Some((body.provider, body.generation)),
            Event::TraitsChanged(body) => Some((body.provider, body.generation)),
            Event::AggregatesChanged(body) => Some((body.provider, body.generation)),
            _ => None,
        });
        events.filter(|(provider, _)| *provider == wanted).map(|(_, generation)| generation).last()
    }
}

impl App {
    /// The durable state. It never changes.
    #[must_use]
    pub fn view(&self) -> Arc<State> {
        self.ledger.view()
    }

    /// The index of candidates, true at the durable state.
    #[must_use]
    pub fn candidates(&self) -> Arc<CandidateIndex> {
        self.index.current()
    }

    /// Hands a command to the ledger and waits until the answer is durable.
    ///
    /// # Errors
    /// The refusal in Placement's words, or 503.
    pub async fn submit(
        &self,
        request: &Request,
        command: Command,
        about: About<'_>,
    ) -> Result<Accepted, Failure> {
        self.try_submit(request, command).await.map_err(|error| error.told(about))
    }

    /// The same for callers who look at the refusal themselves.
    ///
    /// # Errors
    /// The refusal, or 503.
    pub async fn try_submit(
        &self,
        request: &Request,
        command: Command,
    ) -> Result<Accepted, SubmitError> {
        let answer = self.ask(request, vec![command], None).await.map_err(SubmitError::Failed)?;
        match answer.outcome {
            Outcome::Refused { refusal, .. } => Err(SubmitError::Refused(Box::new(refusal))),
            Outcome::Accepted { .. } => Ok(Accepted(answer)),
        }
    }

    /// Hands a list of commands to the ledger as one group and waits for the durable answer.
    ///
    /// # Errors
    /// 503 if the ledger takes no commands or the outcome is not known.
    pub async fn ask(
        &self,
        request: &Request,
        commands: Vec<Command>,
        command_id: Option<CommandId>,
    ) -> Result<Answer, Failure> {
        let waiting = self
            .ledger
            .submit(commands, stamp(request, command_id))
            .map_err(|error| unavailable(&error))?;
        match waiting.await {
            Ok(answer) => answer.map_err(|error| unavailable(&error)),
            // The writer is gone without an answer.
            Err(_) => Err(unavailable(&ledger::SubmitError::OutcomeUnknown)),
        }
    }
}

fn stamp(request: &Request, command_id: Option<CommandId>) -> Stamp {
    Stamp {
        seed: Uuid::new_v4().into_bytes(),
        received_at: Timestamp::from_micros(last_modified::now()),
        actor: Actor {
            user: request.identity.user.clone(),
            project: request.identity.project.clone(),
            address: request.peer.ip().to_string(),
        },
        request_id: request.global_id.clone(),
        command_id,
    }
}

fn unavailable(error: &ledger::SubmitError) -> Failure {
    let failure = Failure::busy(error.to_string());
    match error {
        ledger::SubmitError::OutcomeUnknown => failure.code(OUTCOME_UNKNOWN),
        _ => failure,
    }
}
