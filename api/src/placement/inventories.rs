//! `/resource_providers/{uuid}/inventories` and `.../{class}`.

use std::collections::BTreeMap;

use http::StatusCode;
use ledger::amounts::Inventory;
use ledger::command::{ChangeInventories, Command, InventoryChange};
use ledger::ids::ProviderUuid;
use serde_json::{Map, Value, json};

use super::{lookup, numbers};
use crate::app::{Accepted, App};
use crate::http::failure::Failure;
use crate::http::microversion::{RESERVED_MAY_EQUAL_TOTAL, Version};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::About;
use crate::schema;

/// `GET .../inventories`.
///
/// # Errors
/// 404.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let text = request.param(0);
    let (_, provider) =
        lookup::provider(&view, text).ok_or_else(|| lookup::unknown_provider_twice(text, " : "))?;
    let inventories =
        provider.inventories.iter().map(|row| (&**view.classes().name(row.class), &row.inventory));
    let reply = Reply::json(&set(provider.generation, inventories))?;
    let newest = provider.inventories.iter().map(|row| row.touched_at().micros()).max();
    Ok(match newest {
        Some(time) => reply.modified(time),
        None => reply.no_cache(),
    })
}

/// `GET .../inventories/{class}`.
///
/// # Errors
/// 404, for a class that does not exist too.
pub fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let (text, class) = (request.param(0), request.param(1));
    let (_, provider) =
        lookup::provider(&view, text).ok_or_else(|| lookup::unknown_provider_twice(text, " : "))?;
    let row =
        view.classes().id(class).and_then(|id| provider.inventory(id)).ok_or_else(|| {
            Failure::not_found(format!("No inventory of class {class} for {text}"))
        })?;
    let body = one(provider.generation, &row.inventory);
    Ok(Reply::json(&body)?.modified(row.touched_at().micros()))
}

/// `POST .../inventories`. A generation in the body is ignored.
///
/// # Errors
/// 400, 404 or 409.
pub async fn create(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let body =
        schema::parse_checked(&request.body, schema::inventories::CREATE.at(request.version))?;
    let class = body["resource_class"].as_str().unwrap_or_default().to_owned();
    let inventory = record(&body);
    let change = InventoryChange::Create(class.clone(), inventory);
    let command = change_of(provider, None, change, request.version);
    let accepted =
        app.submit(request, command, About::CreateInventory(provider, request.version)).await?;
    let body = one(generation_after(&accepted, provider, None), &inventory);
    let location = format!("/resource_providers/{provider}/inventories/{class}");
    let reply = Reply::json(&body)?.status(StatusCode::CREATED).location(location);
    Ok(reply.modified(accepted.recorded_at()))
}

/// `PUT .../inventories/{class}`.
///
/// # Errors
/// 400, 404 or 409.
pub async fn update(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let body =
        schema::parse_checked(&request.body, schema::inventories::UPDATE.at(request.version))?;
    let inventory = record(&body);
    let generation = numbers::generation(&body["resource_provider_generation"]);
    let change = InventoryChange::Update(request.param(1).to_owned(), inventory);
    let command = change_of(provider, Some(generation), change, request.version);
    let accepted =
        app.submit(request, command, About::UpdateInventory(provider, request.version)).await?;
    let body = one(generation_after(&accepted, provider, Some(generation)), &inventory);
    Ok(Reply::json(&body)?.modified(accepted.recorded_at()))
}

/// `PUT .../inventories`: the new set replaces the old.
///
/// # Errors
/// 400, 404 or 409.
pub async fn replace(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let body =
        schema::parse_checked(&request.body, schema::inventories::REPLACE.at(request.version))?;
    let unknown = |class: &str| {
        Failure::bad_request(format!(
            "Unknown resource class in inventory for resource provider {provider}: No such resource class {class}."
        ))
    };
    let inventories = records(&body["inventories"], unknown)?;
    let generation = numbers::generation(&body["resource_provider_generation"]);
    let change = InventoryChange::ReplaceAll(inventories.clone());
    let command = change_of(provider, Some(generation), change, request.version);
    let accepted =
        app.submit(request, command, About::ReplaceInventories(provider, request.version)).await?;
    let generation = generation_after(&accepted, provider, Some(generation));
    let shown = inventories.iter().map(|(class, inventory)| (class.as_str(), inventory));
    let reply = Reply::json(&set(generation, shown))?;
    let recorded_at = accepted.recorded_at();
    Ok(if inventories.is_empty() { reply.no_cache() } else { reply.modified(recorded_at) })
}

/// `DELETE .../inventories/{class}`.
///
/// # Errors
/// 404 or 409.
pub async fn delete(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let change = InventoryChange::Delete(request.param(1).to_owned());
    let command = change_of(provider, None, change, request.version);
    app.submit(request, command, About::DeleteInventory(provider)).await?;
    Ok(Reply::no_content())
}

/// `DELETE .../inventories`.
///
/// # Errors
/// 404 or 409.
pub async fn delete_all(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider = lookup::provider_to_write(app, request)?;
    let command = change_of(provider, None, InventoryChange::DeleteAll, request.version);
    app.submit(request, command, About::DeleteInventories(provider)).await?;
    Ok(Reply::no_content())
}

/// A set of records from a body. `unknown` makes the failure for a key that is no class: one
/// that could not be any is let through by the schema, whatever its value.
///
/// # Errors
/// What `unknown` makes.
pub fn records(
    body: &Value,
    unknown: impl Fn(&str) -> Failure,
) -> Result<BTreeMap<String, Inventory>, Failure> {
    let entries = body.as_object().into_iter().flatten();
    entries
        .map(|(class, value)| match value.is_object() {
            true => Ok((class.clone(), record(value))),
            false => Err(unknown(class)),
        })
        .collect()
}

fn record(body: &Value) -> Inventory {
    let total = numbers::unsigned(&body["total"]);
    let defaults = Inventory::of(total);
    let given = |name: &str, default: u32| body.get(name).map_or(default, numbers::unsigned);
    Inventory {
        total,
        reserved: given("reserved", defaults.reserved),
        min_unit: given("min_unit", defaults.min_unit),
        max_unit: given("max_unit", defaults.max_unit),
        step_size: given("step_size", defaults.step_size),
        allocation_ratio: body["allocation_ratio"].as_f64().unwrap_or(defaults.allocation_ratio),
    }
}

fn change_of(
    provider: ProviderUuid,
    generation: Option<u32>,
    change: InventoryChange,
    version: Version,
) -> Command {
    let may_reserve_all = version >= RESERVED_MAY_EQUAL_TOTAL;
    Command::ChangeInventories(ChangeInventories { provider, generation, change, may_reserve_all })
}

/// The generation that a write left the provider with: the one of its own event, whatever came
/// after it; a write that changed nothing left the one that it gave.
pub fn generation_after(accepted: &Accepted, provider: ProviderUuid, given: Option<u32>) -> u32 {
    accepted.provider_generation(provider).or(given).unwrap_or_default()
}

fn shown(inventory: &Inventory) -> Value {
    json!({
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    })
}

fn one(generation: u32, inventory: &Inventory) -> Value {
    let mut body = shown(inventory);
    body["resource_provider_generation"] = generation.into();
    body
}

fn set<'a>(generation: u32, inventories: impl Iterator<Item = (&'a str, &'a Inventory)>) -> Value {
    let inventories: Map<String, Value> =
        inventories.map(|(class, inventory)| (class.to_owned(), shown(inventory))).collect();
    json!({"resource_provider_generation": generation, "inventories": inventories})
}
