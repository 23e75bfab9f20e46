//! `GET /ledger/v1/fits`: how many more of a request fit, and where.

use ledger::state::{Provider, State};
use projector::candidates::{self as engine, CandidateIndex, Query};
use serde_json::{Value, json};

use super::explain;
use super::filling::{Fill, Filling};
use super::media::Form;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::placement::candidates;

/// Places told, unless the query's `limit` says how many.
const PLACES: usize = 1_000;
/// The most places told.
const MOST_PLACES: usize = 10_000;

/// `GET /ledger/v1/fits`: takes the query of `GET /allocation_candidates`; its `limit` is how many
/// places are told, the count covers all.
///
/// # Errors
/// 400 as `GET /allocation_candidates` answers it; 503 if the index does not come in time.
pub async fn count(app: &App, request: &Request) -> Result<Reply, Failure> {
    let mut query = explain::asked(request)?;
    let limit = query.limit.take().unwrap_or(PLACES).min(MOST_PLACES);
    let told = app.search(request, |index| answer(index, &query, limit)).await?;
    Form::of_answer(&request.headers).reply(&told)
}

fn answer(index: &CandidateIndex, query: &Query, limit: usize) -> Result<Value, Failure> {
    let found = engine::search(index, query).map_err(|error| candidates::unknown(&error))?;
    let state = index.state();
    let filling = Filling::of(state, &found);
    let fills = filling.fills.iter();
    let places: Vec<Value> = fills.take(limit).map(|fill| place(state, fill)).collect();
    Ok(json!({
        "sequence": index.sequence(),
        "fits": filling.total,
        "exact": filling.is_exact(),
        "at_most": filling.at_most,
        "candidates": found.len(),
        "places_left_out": filling.fills.len() - places.len(),
        "places": places,
    }))
}

/// So many of the request, each with these allocations.
fn place(state: &State, fill: &Fill<'_>) -> Value {
    let allocations: serde_json::Map<String, Value> = fill
        .candidate
        .allocations()
        .filter_map(|(id, amounts)| {
            let names = amounts.iter().map(|(class, amount)| {
                (state.classes().name(*class).to_string(), Value::from(*amount))
            });
            let resources: serde_json::Map<String, Value> = names.collect();
            Some((state.provider_row(id)?.uuid.to_string(), json!({ "resources": resources })))
        })
        .collect();
    let host = host(state, fill);
    json!({
        "host": host.map(|row| row.uuid),
        "name": host.map(|row| &*row.name),
        "count": fill.count,
        "allocations": allocations,
    })
}

/// The root of the first provider that does not lend what it has, or else of the first.
fn host<'a>(state: &'a State, fill: &Fill<'_>) -> Option<&'a Provider> {
    let sharing = state.traits().id("MISC_SHARES_VIA_AGGREGATE");
    let lends = |row: &Provider| sharing.is_some_and(|id| row.has_trait(id));
    let rows = || fill.candidate.parts().iter().filter_map(|(id, _)| state.provider_row(*id));
    let first = rows().find(|row| !lends(row)).or_else(|| rows().next())?;
    state.provider_row(first.root).map(|root| &**root)
}
