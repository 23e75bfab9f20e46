//! `POST /ledger/v1/living`: a list of the consumers that live, as the caller knows it. It is
//! compared with what is held. It changes nothing: what differs is told, and listed as orphans.

use std::collections::BTreeSet;

use ledger::ids::{ConsumerUuid, ProviderUuid};
use ledger::log::LogReader;
use ledger::state::State;
use ledger::time::Timestamp;
use projector::orphans::{Compared, Kind, Living};
use serde::Deserialize;
use serde_json::{Value, json};

use super::media::Form;
use super::orphans::{last_event, shown};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::orphans::{Fed, Orphan, Scope, Source};

/// The most ids of one list; longer ones are sent in ranges.
const IDS: usize = 100_000;
/// The most findings in the answer; the list of orphans has all.
const TOLD: usize = 1_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    /// When the list was made, in RFC 3339.
    as_of: String,
    #[serde(default)]
    provider: Option<ProviderUuid>,
    #[serde(default)]
    project: Option<String>,
    #[serde(default, rename = "type")]
    consumer_type: Option<String>,
    #[serde(default)]
    first: Option<ConsumerUuid>,
    #[serde(default)]
    last: Option<ConsumerUuid>,
    living: Vec<ConsumerUuid>,
}

/// The handler.
///
/// # Errors
/// 400; 413 for more ids than a list may have.
pub async fn compare(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body: Body = Form::of_body(&request.headers)?.read(&request.body)?;
    let form = Form::of_answer(&request.headers);
    let list = living(body)?;
    app.long_read(|| form.reply(&answer(app, request, &list)?)).await
}

fn living(body: Body) -> Result<Living, Failure> {
    if body.living.len() > IDS {
        return Err(Failure::too_large(format!("A list may have {IDS} ids; send it in ranges.")));
    }
    if body.first.zip(body.last).is_some_and(|(first, last)| first > last) {
        return Err(Failure::bad_request("The range is empty: first is greater than last."));
    }
    let as_of: jiff::Timestamp = body.as_of.parse().map_err(|_| {
        Failure::bad_request(format!("as_of cannot be {}: use RFC 3339.", body.as_of))
    })?;
    let as_of = Timestamp::from_micros(as_of.as_microsecond());
    if as_of.micros() > last_modified::now() {
        return Err(Failure::bad_request("as_of lies in the future."));
    }
    let list = Living {
        as_of,
        provider: body.provider,
        project: body.project,
        consumer_type: body.consumer_type,
        first: body.first,
        last: body.last,
        living: BTreeSet::from_iter(body.living),
    };
    match list.living.iter().find(|consumer| !list.covers(**consumer)) {
        Some(outside) => {
            Err(Failure::bad_request(format!("{outside} is not in the list's range.")))
        }
        None => Ok(list),
    }
}

fn answer(app: &App, request: &Request, list: &Living) -> Result<Value, Failure> {
    let (state, reader) = (app.view(), app.ledger.reader());
    if let Some(provider) = list.provider.filter(|it| state.provider_id(*it).is_none()) {
        return Err(Failure::not_found(format!("There is no resource provider {provider}.")));
    }
    let Compared { compared, mut findings } = list.compare(&state);
    let mut kept = Vec::with_capacity(findings.len());
    for finding in findings.drain(..) {
        let newer = finding.kind == Kind::RunsWithoutAllocation
            && is_newer(&*reader, &state, finding.consumer, list.as_of)?;
        if !newer {
            kept.push(finding);
        }
    }
    let source = Source {
        as_of: list.as_of,
        user: request.identity.user.clone(),
        request_id: request.global_id.clone(),
        provider: list.provider,
    };
    let now = Timestamp::from_micros(last_modified::now());
    let told: Result<Vec<Value>, Failure> = kept
        .iter()
        .take(TOLD)
        .map(|finding| {
            let orphan = Orphan { finding: finding.clone(), source: Some(source.clone()) };
            shown(&state, &*reader, now, &orphan)
        })
        .collect();
    let total = kept.len();
    let fed = kept.into_iter().map(|finding| Fed { finding, source: source.clone() }).collect();
    let scope = Scope { provider: list.provider, first: list.first, last: list.last };
    let left_out = app.orphans.feed(&scope, fed);
    app.orphans.look(&state);
    app.orphans.save();
    Ok(json!({
        "sequence": state.sequence(),
        "compared": compared,
        "living": list.living.len(),
        "total": total,
        "not_listed": left_out,
        "findings": told?,
    }))
}

/// Whether something happened to a consumer after a list was made.
fn is_newer(
    reader: &dyn LogReader,
    state: &State,
    consumer: ConsumerUuid,
    as_of: Timestamp,
) -> Result<bool, Failure> {
    let last = last_event(reader, consumer, state.sequence())?;
    Ok(last.is_some_and(|(header, _)| header.recorded_at > as_of))
}
