//! `/resource_providers/{uuid}/aggregates`.

use ledger::command::{Command, SetAggregates};
use serde_json::{Value, json};

use super::inventories::generation_after;
use super::{lookup, numbers};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::microversion::{AGGREGATE_GENERATION, Version};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::About;
use crate::schema;

/// `GET .../aggregates`.
///
/// # Errors
/// 404.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let (_, provider) = lookup::known_provider(&view, request.param(0))?;
    let names: Vec<&str> =
        provider.aggregates.iter().map(|id| &**view.aggregates().name(*id)).collect();
    answer(&names, provider.generation, request.version)
}

/// `PUT .../aggregates`: replaces the set; the answer repeats the request's order. From 1.19 the
/// generation is checked and moves on, even if nothing changed.
///
/// # Errors
/// 400, 404 or 409.
pub async fn replace(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let body =
        schema::parse_checked(&request.body, schema::aggregates::REPLACE.at(request.version))?;
    let with_generation = request.version >= AGGREGATE_GENERATION;
    let list = if with_generation { &body["aggregates"] } else { &body };
    let aggregates: Vec<String> = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let generation =
        with_generation.then(|| numbers::generation(&body["resource_provider_generation"]));
    let command = SetAggregates { provider, generation, aggregates: aggregates.clone() };
    let about = About::Associations(provider);
    let accepted = app.submit(request, Command::SetAggregates(command), about).await?;
    let names: Vec<&str> = aggregates.iter().map(String::as_str).collect();
    let reply = answer(&names, generation_after(&accepted, provider, generation), request.version)?;
    Ok(reply.modified(accepted.recorded_at()))
}

fn answer(names: &[&str], generation: u32, version: Version) -> Result<Reply, Failure> {
    let body = if version >= AGGREGATE_GENERATION {
        json!({"aggregates": names, "resource_provider_generation": generation})
    } else {
        json!({"aggregates": names})
    };
    Ok(Reply::json(&body)?.modified(last_modified::now()))
}
