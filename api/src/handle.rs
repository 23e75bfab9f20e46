//! One request from its head to its answer: the checks that come before any handler, in
//! Placement's order, and the handlers by operation.

use std::any::Any;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures::FutureExt;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use hyper::body::Incoming;
use ledger::panics::{self, Place};
use tracing::Instrument;

use crate::app::App;
use crate::http::failure::{Code, Failure};
use crate::http::microversion::{self, MAX, MIN, Version, VersionError};
use crate::http::operation::Operation;
use crate::http::reply::{Frame, HttpResponse, Reply, VERSION_HEADER, finish};
use crate::http::request::{Origin, Request};
use crate::http::router::{self, Endpoint, Media};
use crate::http::{accept, auth, body, bounds, error, request_id};
use crate::placement::{
    aggregates, allocations, candidates, inventories, provider_allocations, provider_traits,
    reshaper, resource_classes, resource_providers, root, traits, usages,
};
use crate::server::Crowded;
use crate::{native, ops, past};

/// Says as of which event an answer about the past is.
const SEQUENCE: HeaderName = HeaderName::from_static("ledger-sequence");

/// Answers a request.
pub async fn handle(app: &App, request: http::Request<Incoming>, peer: SocketAddr) -> HttpResponse {
    let id = request_id::fresh();
    let told = id.clone();
    let span = tracing::error_span!("request", request_id = %id, method = %request.method(), path = request.uri().path());
    // Whatever is not caught further in, where more is known of how to answer.
    let answered = AssertUnwindSafe(answer(app, request, peer, id)).catch_unwind();
    answered.instrument(span).await.unwrap_or_else(|panic| {
        let failure = panicked(Place::Http, &*panic, &told);
        let frame = Frame { version: None, request_id: &told, host: None, accept: None };
        finish(Err(failure), &frame)
    })
}

/// The answer to a request whose handler panicked: 500 with the id that the log tells more under.
/// What the request may have asked of the ledger stands or not, as after a lost connection.
#[must_use]
pub fn panicked(place: Place, panic: &(dyn Any + Send), id: &str) -> Failure {
    let panic = panics::noted(place, panic);
    tracing::error!(id, place = place.name(), %panic, "answering panicked");
    Failure::internal(
        "The server has met a defect of its own; its log tells more beside the id of this request.",
    )
    .field("cause", "internal")
    .field("id", id)
}

async fn answer(
    app: &App,
    request: http::Request<Incoming>,
    peer: SocketAddr,
    id: String,
) -> HttpResponse {
    let (parts, incoming) = request.into_parts();
    if let Some(reply) = ops::answer(app, &parts).await {
        return finish(
            Ok(reply),
            &Frame { version: None, request_id: &id, host: None, accept: None },
        );
    }
    if parts.extensions.get::<Crowded>().is_some() {
        let mut failure = Failure::busy("The server has as many connections as it may have.");
        failure.close = true;
        return finish(
            Err(failure),
            &Frame { version: None, request_id: &id, host: None, accept: None },
        );
    }
    if let (Some(cors), true) = (&app.cors, parts.method == Method::OPTIONS) {
        return cors.preflight(&parts.headers);
    }
    let timer = app.metrics.start();
    let mut version = None;
    let mut operation = None;
    let work = carry_out(app, &parts, incoming, peer, &id, &mut version, &mut operation);
    let result = AssertUnwindSafe(work).catch_unwind().await;
    let result = result.unwrap_or_else(|panic| Err(panicked(Place::Http, &*panic, &id)));
    let own = parts.uri.path().starts_with("/ledger/");
    let frame = Frame {
        version,
        request_id: &id,
        host: text(&parts.headers, &HOST),
        // The ledger's own API tells its errors in JSON, whatever else the client takes.
        accept: if own { None } else { text(&parts.headers, &ACCEPT) },
    };
    let mut response = finish(result, &frame);
    if parts.method == Method::HEAD {
        // Nothing answers HEAD but errors, and of those Placement sends the head it has by default.
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(error::HTML));
    }
    if let Some(cors) = &app.cors {
        cors.decorate(&parts.headers, &mut response);
    }
    app.metrics.finish(timer, operation, response.status());
    log(&response);
    response
}

fn log(response: &HttpResponse) {
    let status = response.status().as_u16();
    if response.status().is_server_error() {
        tracing::warn!(status, "answered");
    } else {
        tracing::debug!(status, "answered");
    }
}

async fn carry_out(
    app: &App,
    parts: &Parts,
    incoming: Incoming,
    peer: SocketAddr,
    id: &str,
    version: &mut Option<Version>,
    operation: &mut Option<Operation>,
) -> Result<Reply, Failure> {
    let path = parts.uri.path();
    let identity = if path == "/" || path.is_empty() {
        auth::noauth2(&parts.headers).unwrap_or_else(auth::nobody)
    } else {
        auth::noauth2(&parts.headers).ok_or_else(Failure::unauthorized)?
    };
    bounds::check(&parts.headers, &identity)?;
    let in_effect = requested_version(&parts.headers)?;
    *version = Some(in_effect);
    body::check_headers(&parts.headers)?;
    let (endpoint, params) = router::find(&parts.method, path)?;
    *operation = Some(endpoint.operation);
    check_endpoint(endpoint, in_effect, &parts.headers)?;
    let query = parts.uri.query().unwrap_or_default().to_owned();
    if let Some(rule) = endpoint.rule {
        let project = match endpoint.operation {
            Operation::ShowUsages => usages::project(&query),
            _ => None,
        };
        app.policy.check(rule, &identity, project.as_deref())?;
    }
    let body = if reads_body(&parts.method) {
        body::read(incoming, &app.bodies).await?
    } else {
        Bytes::new()
    };
    let request = Request {
        version: in_effect,
        identity,
        params,
        query,
        body,
        headers: parts.headers.clone(),
        id: id.to_owned(),
        global_id: request_id::global(&parts.headers).map(str::to_owned),
        origin: Origin::Http(peer.ip()),
        past: past::asked(app, &parts.headers, &parts.method, endpoint.operation).await?,
    };
    run(app, endpoint.operation, &request).await
}

/// Has the operation's handler answer.
///
/// # Errors
/// The handler's.
pub async fn run(app: &App, operation: Operation, request: &Request) -> Result<Reply, Failure> {
    panics::planted("handler", request.global_id.as_deref());
    let reply = dispatch(app, operation, request).await?;
    Ok(match &request.past {
        Some(past) => reply.header(SEQUENCE, past.state.sequence().into()),
        None => reply,
    })
}

fn reads_body(method: &Method) -> bool {
    *method == Method::PUT || *method == Method::POST
}

/// The version that the headers ask for; the oldest if they do not say.
///
/// # Errors
/// 400 and 406.
pub fn requested_version(headers: &HeaderMap) -> Result<Version, Failure> {
    let mut values = headers.get_all(VERSION_HEADER).iter().filter_map(|value| value.to_str().ok());
    let first = values.next().unwrap_or_default();
    let found = match values.next() {
        None => microversion::requested(first),
        Some(second) => {
            let rest: Vec<&str> = [first, second].into_iter().chain(values).collect();
            microversion::requested(&rest.join(","))
        }
    };
    found.map_err(|error| {
        let mut failure = match &error {
            VersionError::Malformed(_) => Failure::bad_request(error.to_string()),
            VersionError::Unacceptable(_) => {
                let mut failure = Failure::new(http::StatusCode::NOT_ACCEPTABLE, error.to_string())
                    .field("min_version", MIN.to_string())
                    .field("max_version", MAX.to_string());
                failure.subject = Some(accept::in_effect(text(headers, &ACCEPT)).to_owned());
                failure
            }
        };
        failure.code = Code::Absent;
        failure
    })
}

fn check_endpoint(
    endpoint: &Endpoint,
    version: Version,
    headers: &HeaderMap,
) -> Result<(), Failure> {
    if endpoint.media_first() {
        check_media(endpoint.media, version, headers)?;
        return endpoint.check_version(version);
    }
    endpoint.check_version(version)?;
    check_media(endpoint.media, version, headers)
}

fn check_media(media: Media, version: Version, headers: &HeaderMap) -> Result<(), Failure> {
    match media {
        Media::Answers => {
            let accepted = text(headers, &ACCEPT);
            if accept::takes_json(accepted) {
                return Ok(());
            }
            Err(Failure::not_acceptable(accepted.unwrap_or_default()))
        }
        Media::Takes => body::check_json(headers),
        Media::TakesBefore(end) if version < end => body::check_json(headers),
        Media::TakesBefore(_) | Media::Any => Ok(()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn dispatch(app: &App, operation: Operation, request: &Request) -> Result<Reply, Failure> {
    use Operation as Op;
    match operation {
        Op::ShowRoot => root::show(),
        Op::ListProviders => app.long_read(|| resource_providers::list(app, request)).await,
        Op::CreateProvider => resource_providers::create(app, request).await,
        Op::ShowProvider => resource_providers::show(app, request),
        Op::UpdateProvider => resource_providers::update(app, request).await,
        Op::DeleteProvider => resource_providers::delete(app, request).await,
        Op::ListInventories => inventories::list(app, request),
        Op::CreateInventory => inventories::create(app, request).await,
        Op::ReplaceInventories => inventories::replace(app, request).await,
        Op::DeleteInventories => inventories::delete_all(app, request).await,
        Op::ShowInventory => inventories::show(app, request),
        Op::UpdateInventory => inventories::update(app, request).await,
        Op::DeleteInventory => inventories::delete(app, request).await,
        Op::ShowProviderUsages => provider_allocations::usages(app, request),
        Op::ListAggregates => aggregates::list(app, request),
        Op::ReplaceAggregates => aggregates::replace(app, request).await,
        Op::ListProviderAllocations => {
            app.long_read(|| provider_allocations::list(app, request)).await
        }
        Op::ListProviderTraits => provider_traits::list(app, request),
        Op::ReplaceProviderTraits => provider_traits::replace(app, request).await,
        Op::DeleteProviderTraits => provider_traits::delete(app, request).await,
        Op::ListTraits => app.long_read(|| traits::list(app, request)).await,
        Op::ShowTrait => traits::show(app, request),
        Op::EnsureTrait => traits::ensure(app, request).await,
        Op::DeleteTrait => traits::delete(app, request).await,
        Op::ListClasses => app.long_read(|| resource_classes::list(app, request)).await,
        Op::CreateClass => resource_classes::create(app, request).await,
        Op::ShowClass => resource_classes::show(app, request),
        Op::PutClass => resource_classes::put(app, request).await,
        Op::DeleteClass => resource_classes::delete(app, request).await,
        Op::ManageAllocations => allocations::manage(app, request).await,
        Op::ListAllocations => allocations::list(app, request),
        Op::ReplaceAllocations => allocations::replace(app, request).await,
        Op::DeleteAllocations => allocations::delete(app, request).await,
        Op::ListCandidates => candidates::list(app, request).await,
        Op::ShowUsages => usages::show(app, request).await,
        Op::Reshape => reshaper::reshape(app, request).await,
        Op::LedgerCommands => native::commands::submit(app, request).await,
        Op::LedgerEvents => app.long_read(|| native::events::list(app, request)).await,
        Op::LedgerEventStream => native::stream::open(app, request),
        Op::LedgerMoves => app.long_read(|| native::moves::list(app, request)).await,
        Op::LedgerMove => native::moves::show(app, request).await,
        Op::LedgerConsumerHistory => {
            app.long_read(|| native::events::of_consumer(app, request)).await
        }
        Op::LedgerProviderHistory => {
            app.long_read(|| native::events::of_provider(app, request)).await
        }
        Op::LedgerExplainCandidates => native::explain::candidates(app, request).await,
        Op::LedgerFits => native::fits::count(app, request).await,
        Op::LedgerConsumers => native::consumers::list(app, request).await,
        Op::LedgerConsumer => native::consumer::show(app, request).await,
        Op::LedgerProviders => native::providers::list(app, request).await,
        Op::LedgerTraits => app.long_read(|| native::traits::list(app, request)).await,
        Op::LedgerUsages => native::usages::show(app, request).await,
        Op::LedgerOrphans => native::orphans::list(app, request).await,
        Op::LedgerLiving => native::living::compare(app, request).await,
    }
}
