//! `/resource_providers/{uuid}/allocations` and `.../usages`.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::allocations::{shows_generations, write_amounts};
use super::lookup;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::reply::Reply;
use crate::http::request::Request;

/// `GET .../allocations`: who holds what of the provider.
///
/// # Errors
/// 404.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let text = request.param(0);
    let (id, provider) = lookup::provider(&view, text).ok_or_else(|| {
        Failure::not_found(format!(
            "Resource provider '{text}' not found: {}",
            lookup::unknown_provider(text)
        ))
    })?;
    let mut body = String::from("{\"allocations\":{");
    let mut newest = None;
    for (n, consumer) in view.holders(id).enumerate() {
        let comma = if n > 0 { "," } else { "" };
        let held: Vec<_> =
            consumer.allocations.iter().filter(|held| held.provider == id).copied().collect();
        // Writing to a string cannot fail, here and below.
        let _ = write!(body, "{comma}\"{}\":{{\"resources\":{{", consumer.uuid);
        write_amounts(&mut body, &view, &held);
        body.push('}');
        if shows_generations(request.version) {
            let _ = write!(body, ",\"consumer_generation\":{}", consumer.generation);
        }
        body.push('}');
        newest = newest.max(Some(consumer.updated_at.micros()));
    }
    let _ = write!(body, "}},\"resource_provider_generation\":{}}}", provider.generation);
    Ok(Reply::bytes(body).modified(newest.unwrap_or_else(last_modified::now)))
}

/// `GET .../usages`: what is held of each class the provider has an inventory of.
///
/// # Errors
/// 404.
pub fn usages(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let text = request.param(0);
    let (_, provider) =
        lookup::provider(&view, text).ok_or_else(|| lookup::unknown_provider_twice(text, ": "))?;
    let usages: Map<String, Value> = provider
        .inventories
        .iter()
        .map(|row| (view.classes().name(row.class).to_string(), row.held.into()))
        .collect();
    let body = json!({"resource_provider_generation": provider.generation, "usages": usages});
    Ok(Reply::json(&body)?.modified(last_modified::now()))
}
