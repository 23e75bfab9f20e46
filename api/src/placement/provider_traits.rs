//! `/resource_providers/{uuid}/traits`.

use std::collections::BTreeSet;

use ledger::command::{Command, SetTraits};
use ledger::state::{State, TraitId};
use serde::Serialize;
use serde_json::{Value, json};

use super::inventories::generation_after;
use super::{lookup, numbers};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::About;
use crate::schema;

/// `GET .../traits`.
///
/// # Errors
/// 404.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let text = request.param(0);
    let (_, provider) =
        lookup::provider(&view, text).ok_or_else(|| lookup::unknown_provider_twice(text, ": "))?;
    answer(&view, &provider.traits, provider.generation)
}

/// `PUT .../traits`: replaces the set. The body is looked at before the provider.
///
/// # Errors
/// 400, 404 or 409.
pub async fn replace(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body = schema::parse_checked(&request.body, schema::traits::REPLACE.at(request.version))?;
    let provider = lookup::provider_to_write(app, request)?;
    let traits: Vec<String> = body["traits"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let generation = numbers::generation(&body["resource_provider_generation"]);
    let command = SetTraits { provider, generation: Some(generation), traits: traits.clone() };
    let about = About::Associations(provider);
    let accepted = app.submit(request, Command::SetTraits(command), about).await?;
    let generation = generation_after(&accepted, provider, Some(generation));
    if request.is_named() {
        let names: BTreeSet<&str> = traits.iter().map(String::as_str).collect();
        return Ok(shown(&names, generation)?.modified(accepted.recorded_at()));
    }
    let view = app.view();
    let mut ids: Vec<TraitId> = traits.iter().filter_map(|name| view.traits().id(name)).collect();
    ids.sort_unstable();
    ids.dedup();
    answer(&view, &ids, generation)
}

/// `DELETE .../traits`. The generation is not checked.
///
/// # Errors
/// 404.
pub async fn delete(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let command = SetTraits { provider, generation: None, traits: Vec::new() };
    app.submit(request, Command::SetTraits(command), About::Associations(provider)).await?;
    Ok(Reply::no_content())
}

fn answer(view: &State, ids: &[TraitId], generation: u32) -> Result<Reply, Failure> {
    let names: Vec<&str> = ids.iter().map(|id| &**view.traits().name(*id)).collect();
    let newest = ids.iter().map(|id| view.traits().entry(*id).created_at.micros()).max();
    Ok(shown(&names, generation)?.modified(newest.unwrap_or_else(last_modified::now)))
}

fn shown(names: impl Serialize, generation: u32) -> Result<Reply, Failure> {
    Reply::json(&json!({"traits": names, "resource_provider_generation": generation}))
}
