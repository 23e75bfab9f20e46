//! Commands that name a candidates query: the server searches, hands over what it found, and
//! searches again when that was overtaken. So the choice and the claim are one atomic step: nobody
//! is refused while a host with room exists.

use http::StatusCode;
use ledger::command::Command;
use ledger::ids::ProviderUuid;
use ledger::limits;
use ledger::refusal::Cause;
use ledger::search::{Searched, Terms};
use ledger::state::State;
use ledger::{Answer, Outcome};
use projector::candidates::explain;
use projector::candidates::{self as engine, Candidate, CandidateIndex, HostOrder, Query};

use super::explain::version;
use crate::app::App;
use crate::failed_searches::cut;
use crate::http::failure::Failure;
use crate::http::idempotency;
use crate::http::request::Request;
use crate::placement::candidates;

/// Candidates that one search hands over, unless the query's `limit` says less.
const OPTIONS: usize = 128;
/// Searches for one list of commands. Each time the last one was overtaken somebody else was
/// served, so that this is reached only if others are for ever quicker.
const SEARCHES: usize = 32;

/// Hands commands to the ledger as [`App::ask`] does, and searches for those that name a query.
///
/// # Errors
/// 400 for a query that cannot be understood; 503 if the cloud changes faster than it can be
/// searched, or as [`App::ask`].
pub async fn ask(
    app: &App,
    request: &Request,
    mut commands: Vec<Command>,
) -> Result<Answer, Failure> {
    if commands.iter().all(|command| command.query().is_none()) {
        return app.ask(request, commands).await;
    }
    let queries = queries(request, &commands)?;
    // A command that was sent before gets its first outcome, whatever a search would say now.
    let is_named = idempotency::command_id(&request.headers, &request.identity.project)?.is_some();
    for search in 0..=SEARCHES {
        if search > 0 || !is_named {
            app.search(request, |index| fill(index, &queries, &mut commands, is_named)).await?;
        }
        let answer = app.ask(request, commands.clone()).await?;
        if !is_overtaken(&answer) {
            return Ok(answer);
        }
    }
    Err(Failure::busy("the cloud changes faster than it can be searched")
        .field("cause", "overtaken"))
}

fn is_overtaken(answer: &Answer) -> bool {
    let Outcome::Refused { refusal, .. } = &answer.outcome else { return false };
    refusal.cause == Cause::SearchAgain
}

/// The query of each command that names one.
fn queries(request: &Request, commands: &[Command]) -> Result<Vec<Option<Query>>, Failure> {
    let version = version(request);
    let parsed = |text: &str| {
        if text.len() > limits::COMMAND_QUERY_BYTES {
            let most = limits::COMMAND_QUERY_BYTES;
            return Err(Failure::bad_request(format!("candidates has more than {most} bytes.")));
        }
        let query = candidates::asked(text, version)?;
        let limit = Some(query.limit.unwrap_or(OPTIONS).min(limits::OPTIONS));
        Ok(Query { limit, ..query })
    };
    commands.iter().map(|command| command.query().map(parsed).transpose()).collect()
}

fn fill(
    index: &CandidateIndex,
    queries: &[Option<Query>],
    commands: &mut [Command],
    is_named: bool,
) -> Result<(), Failure> {
    for (command, query) in commands.iter_mut().zip(queries) {
        if let Some(query) = query {
            let terms = command.search_terms(index.state());
            command.searched(match searched(index, query, terms) {
                // The ledger keeps why, so that the id has this outcome whatever exists later.
                Err(failure) if is_named && failure.status == StatusCode::BAD_REQUEST => Searched {
                    as_of: index.sequence(),
                    problem: Some(failure.message),
                    ..Searched::default()
                },
                searched => searched?,
            });
        }
    }
    Ok(())
}

fn searched(index: &CandidateIndex, query: &Query, terms: Terms) -> Result<Searched, Failure> {
    let index = index.giving_back(&terms.given_back);
    let ignored = terms.ignored.len();
    let order = HostOrder::new(terms.first, [], terms.ignored);
    let found = engine::search_in_order(&index, query, &order)
        .map_err(|error| candidates::unknown(&error))?;
    let options = found.candidates().map(|candidate| holding(index.state(), candidate));
    let options: Vec<_> = options.collect();
    let complete = found.complete && query.limit.is_none_or(|limit| options.len() < limit);
    let steps = if options.is_empty() { steps(&index, query, ignored)? } else { Vec::new() };
    Ok(Searched { options, as_of: index.sequence(), complete, steps, problem: None })
}

fn holding(state: &State, candidate: Candidate<'_>) -> ledger::amounts::Holding {
    let uuid = |id| state.provider_row(id).map(|row| row.uuid);
    let parts = candidate.allocations().filter_map(|(id, amounts)| {
        let provider: ProviderUuid = uuid(id)?;
        let resources = amounts.iter().map(|&(class, amount)| {
            // A search finds no amount above the limit of amounts.
            let amount = u32::try_from(amount).unwrap_or(u32::MAX);
            (state.classes().name(class).to_string(), amount)
        });
        Some((provider, resources.collect()))
    });
    parts.collect()
}

/// Why nothing was found: what each condition leaves, those of the first groups.
fn steps(index: &CandidateIndex, query: &Query, ignored: usize) -> Result<Vec<String>, Failure> {
    let groups = explain::steps(index, query).map_err(|error| candidates::unknown(&error))?;
    let lines = groups.iter().flat_map(|group| {
        group.steps.iter().map(|step| {
            let named = if group.suffix.is_empty() { "" } else { ": " };
            let condition = format!("{}{named}{}", group.suffix, step.condition);
            format!("{}: {} left", cut(&condition, limits::CONDITION_BYTES).0, step.left)
        })
    });
    let hosts = (ignored > 0).then(|| format!("hosts that are ignored: {ignored}"));
    Ok(hosts.into_iter().chain(lines).take(limits::STEPS_TOLD).collect())
}
