//! What all handlers share: the ledger, the policy, CORS and the counters.

use std::sync::Arc;

use ledger::command::Command;
use ledger::event::{Event, ProviderAsAnswered};
use ledger::ids::ProviderUuid;
use ledger::refusal::Refusal;
use ledger::stamp::{Actor, CommandId, Stamp};
use ledger::state::State;
use ledger::time::Timestamp;
use ledger::{Answer, Ledger, Outcome};
use projector::buckets::Buckets;
use projector::publisher::Publisher;
use projector::{
    Behind, CandidateIndex, ConsumersView, MovesView, Projection, Projections, UsageView,
};
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use crate::clock::SystemClock;
use crate::config::{CandidatesConfig, DEFAULT_CONNECTIONS, DEFAULT_OPEN_MOVE_BOUND};
use crate::failed_searches::FailedSearches;
use crate::http::body::Bodies;
use crate::http::cors::Cors;
use crate::http::failure::{Failure, OUTCOME_UNKNOWN};
use crate::http::idempotency;
use crate::http::last_modified;
use crate::http::policy::Policy;
use crate::http::request::Request;
use crate::lag::Bounds;
use crate::metrics::Metrics;
use crate::native::shared_events::SharedEvents;
use crate::nats;
use crate::orphans::Orphans;
use crate::past;
use crate::placement::summaries::Summaries;
use crate::refusals::{self, About};
use crate::server::Connections;

/// What all handlers share.
pub struct App {
    /// The ledger: commands go in, states come out.
    pub ledger: Ledger,
    /// Views of what happened, each true at a sequence that it names.
    pub projections: Projections,
    /// What copies events to NATS, if it is wanted.
    pub publisher: Option<Publisher>,
    /// What writes the buckets on NATS, if it is wanted.
    pub buckets: Option<Buckets>,
    /// How the service on NATS is, if it is wanted.
    pub nats: Option<Arc<nats::Board>>,
    /// So many look at the past at a time.
    pub pasts: Arc<Semaphore>,
    /// What those who follow events over HTTP share.
    pub streams: Arc<SharedEvents>,
    /// The connections of HTTP clients.
    pub connections: Arc<Connections>,
    /// What requests' bodies take.
    pub bodies: Arc<Bodies>,
    /// Set when the server ends: whoever would go on for ever ends too.
    pub ending: watch::Sender<bool>,
    /// How searches for candidates answer.
    pub candidates: CandidatesConfig,
    /// As many searches at a time as there are processors.
    pub searches: Semaphore,
    /// As many other long reads at a time: those of the log, and whole lists.
    pub reads: Semaphore,
    /// Which searches that found nothing are recorded.
    pub failed_searches: FailedSearches,
    /// Texts of providers that answers have in common.
    pub summaries: Summaries,
    /// The clock that the ledger goes by.
    pub clock: Arc<SystemClock>,
    /// How far what follows the ledger may lag before the server counts as not ready.
    pub bounds: Bounds,
    /// Who may do what.
    pub policy: Policy,
    /// Whether and from where browsers are answered across origins.
    pub cors: Option<Cors>,
    /// Holdings that were left behind.
    pub orphans: Orphans,
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
    /// When it was recorded, in microseconds since the epoch; now, if there is nothing of it to
    /// record. A command that is sent again gets the time of the first.
    #[must_use]
    pub fn recorded_at(&self) -> i64 {
        let first = self.0.events().next();
        first.map_or_else(last_modified::now, |(header, _)| header.recorded_at.micros())
    }

    /// Whether it changed nothing, because things were as wished.
    #[must_use]
    pub fn changed_nothing(&self) -> bool {
        match &self.0.outcome {
            Outcome::Accepted { unchanged } => unchanged.iter().any(Option::is_some),
            Outcome::Refused { .. } => true,
        }
    }

    /// A provider as the command left it, if its events tell.
    #[must_use]
    pub fn provider(&self, wanted: ProviderUuid) -> Option<ProviderAsAnswered> {
        self.0.events().find_map(|(_, event)| match event {
            Event::ProviderCreated(body) => Some(ProviderAsAnswered {
                provider: body.provider,
                name: body.name.clone(),
                parent: body.parent,
                root: body.root?,
                generation: body.generation,
            }),
            Event::ProviderUpdated(body) => Some(ProviderAsAnswered {
                provider: body.provider,
                name: body.name.clone(),
                parent: body.parent,
                root: body.root?,
                generation: body.generation,
            }),
            Event::Answered(body) => {
                body.providers.iter().find(|shown| shown.provider == wanted).cloned()
            }
            _ => None,
        })
    }

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
    /// A server's heart: a ledger and the views that follow it, with nothing counted yet.
    #[must_use]
    pub fn new(
        ledger: Ledger,
        projections: Projections,
        publisher: Option<Publisher>,
        policy: Policy,
        cors: Option<Cors>,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            ledger,
            projections,
            publisher,
            buckets: None,
            nats: None,
            pasts: Arc::new(Semaphore::new(past::AT_A_TIME)),
            streams: Arc::default(),
            connections: Arc::new(Connections::new(DEFAULT_CONNECTIONS)),
            bodies: Arc::default(),
            ending: watch::Sender::new(false),
            candidates: CandidatesConfig::default(),
            searches: Semaphore::new(processors),
            reads: Semaphore::new(processors),
            failed_searches: FailedSearches::default(),
            summaries: Summaries::default(),
            clock: Arc::default(),
            bounds: Bounds::default(),
            policy,
            cors,
            orphans: Orphans::new(DEFAULT_OPEN_MOVE_BOUND),
            metrics: Metrics::default(),
        }
    }

    /// The durable state. It never changes.
    #[must_use]
    pub fn view(&self) -> Arc<State> {
        self.ledger.view()
    }

    /// The state that a request is answered from: the durable one, or the one of the past that it
    /// asks for.
    #[must_use]
    pub fn view_for(&self, request: &Request) -> Arc<State> {
        request.past.as_ref().map_or_else(|| self.view(), |past| Arc::clone(&past.state))
    }

    /// The usages by project, with everything in it that was answered so far, or of the past.
    ///
    /// # Errors
    /// 503 if the view does not come so far in time.
    pub async fn usages(&self, request: &Request) -> Result<Arc<UsageView>, Failure> {
        if let Some(past) = &request.past {
            return self.of_past(&past.state);
        }
        self.projections.usage(self.view().sequence()).await.map_err(|behind| late(&behind))
    }

    /// The moves with their stories, likewise.
    ///
    /// # Errors
    /// As [`Self::usages`].
    pub async fn moves(&self) -> Result<Arc<MovesView>, Failure> {
        self.projections.moves(self.view().sequence()).await.map_err(|behind| late(&behind))
    }

    /// The consumers by project and type, likewise.
    ///
    /// # Errors
    /// As [`Self::usages`].
    pub async fn consumers(&self, request: &Request) -> Result<Arc<ConsumersView>, Failure> {
        if let Some(past) = &request.past {
            return self.of_past(&past.state);
        }
        self.projections.consumers(self.view().sequence()).await.map_err(|behind| late(&behind))
    }

    /// Runs a read that may take a while, such as one of the log or of a whole list. It does not
    /// hold up the requests that share its thread, and there are no more at a time than
    /// processors; searches have turns of their own.
    ///
    /// # Errors
    /// The read's own, or 503 while the server ends.
    pub async fn long_read<T>(
        &self,
        run: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.metrics.long_read();
        in_turn(&self.reads, run).await
    }

    /// Runs a search on the index of candidates, which has everything in it that was answered so
    /// far. A search may take a while: it does not hold up the requests that share its thread,
    /// and there are no more at a time than processors.
    ///
    /// # Errors
    /// As [`Self::usages`], or the search's own.
    pub async fn search<T>(
        &self,
        request: &Request,
        run: impl FnOnce(&CandidateIndex) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if let Some(past) = &request.past {
            return in_turn(&self.searches, || run(&CandidateIndex::from_state(&past.state))).await;
        }
        let index = self.projections.candidates(self.view().sequence()).await;
        let index = index.map_err(|behind| late(&behind))?;
        in_turn(&self.searches, || run(&index)).await
    }

    /// A view of the past, made for one request.
    fn of_past<P: Projection>(&self, state: &Arc<State>) -> Result<Arc<P>, Failure> {
        let made = tokio::task::block_in_place(|| P::from_state(state, &*self.ledger.reader()));
        made.map(Arc::new).map_err(|error| {
            tracing::error!(%error, view = P::NAME, "a view of the past cannot be made");
            Failure::internal("The past cannot be read.")
        })
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
        let answer = self.ask(request, vec![command]).await.map_err(SubmitError::Failed)?;
        match answer.outcome {
            Outcome::Refused { refusal, .. } => Err(SubmitError::Refused(Box::new(refusal))),
            Outcome::Accepted { .. } => Ok(Accepted(answer)),
        }
    }

    /// Hands the server's own command to the ledger and does not wait for the answer.
    ///
    /// # Errors
    /// If the ledger does not take it.
    pub fn tell(&self, request: &Request, command: Command) -> Result<(), ledger::SubmitError> {
        self.ledger.submit(vec![command], stamp(request, None)).map(drop)
    }

    /// Hands a list of commands to the ledger as one group, under the request's `Idempotency-Key`
    /// if it has one, and waits for the durable answer.
    ///
    /// # Errors
    /// 400 if the key is none;
    /// 503 if the ledger takes no commands or the outcome is not known.
    pub async fn ask(&self, request: &Request, commands: Vec<Command>) -> Result<Answer, Failure> {
        let command_id = idempotency::command_id(&request.headers, &request.identity.project)?;
        let waiting = self
            .ledger
            .submit(commands, stamp(request, command_id))
            .map_err(|error| unavailable(&error))?;
        match waiting.await {
            Ok(Ok(mut answer)) => {
                if let Outcome::Refused { refusal, .. } = &mut answer.outcome {
                    refusals::hide(refusal, &self.policy, &request.identity);
                }
                Ok(answer)
            }
            Ok(Err(error)) => Err(unavailable(&error)),
            // The writer is gone without an answer.
            Err(_) => Err(unavailable(&ledger::SubmitError::OutcomeUnknown)),
        }
    }
}

/// Runs what takes a while when it is its turn, on a thread that others do not wait for.
async fn in_turn<T>(
    turns: &Semaphore,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let _turn = turns.acquire().await.map_err(|_| Failure::busy("the server is ending"))?;
    tokio::task::block_in_place(run)
}

fn stamp(request: &Request, command_id: Option<CommandId>) -> Stamp {
    Stamp {
        seed: Uuid::new_v4().into_bytes(),
        received_at: Timestamp::from_micros(last_modified::now()),
        actor: Actor {
            user: request.identity.user.clone(),
            project: request.identity.project.clone(),
            address: request.origin.to_string(),
        },
        request_id: request.global_id.clone(),
        command_id,
    }
}

fn late(behind: &Behind) -> Failure {
    Failure::busy(behind.to_string())
}

fn unavailable(error: &ledger::SubmitError) -> Failure {
    let failure = Failure::busy(error.to_string());
    match error {
        ledger::SubmitError::OutcomeUnknown => failure.code(OUTCOME_UNKNOWN),
        ledger::SubmitError::ReadOnly(why) => failure.field("cause", why.cause.name()),
        _ => failure,
    }
}
