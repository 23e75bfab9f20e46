//! `/allocations` and `/allocations/{consumer}`.

use std::fmt::Write;

use ledger::command::{Command, ConsumerWrite, ReplaceAllocations, Via};
use ledger::state::{Allocation, State};
use serde_json::Value;

use super::{allocation_forms, lookup};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::microversion::{
    ALLOCATIONS_BY_PROVIDER, CONSUMER_GENERATIONS, CONSUMER_TYPES, Version,
};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::About;
use crate::schema::canonical_uuid;

/// How a consumer without a type is shown.
pub const UNKNOWN_TYPE: &str = "unknown";

/// `GET /allocations/{consumer}`: 200 for a consumer without any, too.
///
/// # Errors
/// None that a client could cause.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let consumer = lookup::consumer_uuid(request.param(0)).and_then(|uuid| view.consumer(uuid));
    let Some(consumer) = consumer else {
        return Ok(Reply::bytes("{\"allocations\":{}}").modified(last_modified::now()));
    };
    let mut body = String::from("{\"allocations\":{");
    write_by_provider(&mut body, &view, &consumer.allocations);
    body.push('}');
    if request.version >= ALLOCATIONS_BY_PROVIDER {
        let project = Value::from(&**view.projects().name(consumer.project));
        let user = Value::from(&**view.users().name(consumer.user));
        // Writing to a string cannot fail, here and below.
        let _ = write!(body, ",\"project_id\":{project},\"user_id\":{user}");
    }
    if request.version >= CONSUMER_GENERATIONS {
        let _ = write!(body, ",\"consumer_generation\":{}", consumer.generation);
    }
    if request.version >= CONSUMER_TYPES {
        let name = consumer.consumer_type.map_or(UNKNOWN_TYPE, |id| view.consumer_types().name(id));
        let _ = write!(body, ",\"consumer_type\":\"{name}\"");
    }
    body.push('}');
    Ok(Reply::bytes(body).modified(consumer.updated_at.micros()))
}

/// Writes allocations, which are in the order of their providers.
fn write_by_provider(out: &mut String, view: &State, allocations: &[Allocation]) {
    for (n, chunk) in allocations.chunk_by(|a, b| a.provider == b.provider).enumerate() {
        let Some(provider) = chunk.first().and_then(|first| view.provider_row(first.provider))
        else {
            continue;
        };
        let comma = if n > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{}\":{{\"resources\":{{", provider.uuid);
        write_amounts(out, view, chunk);
        let _ = write!(out, "}},\"generation\":{}}}", provider.generation);
    }
}

/// Writes the members of `resources`.
pub fn write_amounts(out: &mut String, view: &State, allocations: &[Allocation]) {
    for (n, allocation) in allocations.iter().enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let _ = write!(
            out,
            "{comma}\"{}\":{}",
            view.classes().name(allocation.class),
            allocation.amount
        );
    }
}

/// `PUT /allocations/{consumer}`: replaces all that the consumer holds.
///
/// # Errors
/// 400 or 409.
pub async fn replace(app: &App, request: &Request) -> Result<Reply, Failure> {
    let text = request.param(0);
    let consumer = canonical_uuid(text)
        .and_then(|text| lookup::consumer_uuid(&text))
        .ok_or_else(|| allocation_forms::malformed_consumer(text))?;
    let write = allocation_forms::put(&request.body, consumer, request.version)?;
    let name = consumer.to_string();
    submit(app, request, Via::Put, vec![write], About::ReplaceAllocations(&name)).await
}

/// `POST /allocations`: the same for many consumers, all or nothing.
///
/// # Errors
/// 400 or 409.
pub async fn manage(app: &App, request: &Request) -> Result<Reply, Failure> {
    let writes = allocation_forms::post(&request.body, request.version)?;
    submit(app, request, Via::Post, writes, About::ManageAllocations).await
}

/// `DELETE /allocations/{consumer}`. No provider's generation changes.
///
/// # Errors
/// 404 if there are none.
pub async fn delete(app: &App, request: &Request) -> Result<Reply, Failure> {
    let text = request.param(0);
    let Some(consumer) = lookup::consumer_uuid(text) else {
        return Err(Failure::not_found(format!("No allocations for consumer '{text}'")));
    };
    let nothing = ConsumerWrite {
        consumer,
        allocations: Default::default(),
        project_id: String::new(),
        user_id: String::new(),
        consumer_type: None,
        generation: Default::default(),
    };
    submit(app, request, Via::Delete, vec![nothing], About::DeleteAllocations(text)).await
}

async fn submit(
    app: &App,
    request: &Request,
    via: Via,
    consumers: Vec<ConsumerWrite>,
    about: About<'_>,
) -> Result<Reply, Failure> {
    let command = ReplaceAllocations { via, consumers };
    app.submit(request, Command::ReplaceAllocations(command), about).await?;
    Ok(Reply::no_content())
}

/// Whether a version shows the generations of consumers.
#[must_use]
pub fn shows_generations(version: Version) -> bool {
    version >= CONSUMER_GENERATIONS
}
