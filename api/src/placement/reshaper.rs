//! `POST /reshaper`: inventories and allocations in one step.

use std::collections::BTreeMap;

use ledger::command::{Command, Reshape, ReshapedInventories};
use ledger::ids::ProviderUuid;
use ledger::refusal::{Cause, Refusal};
use ledger::state::State;
use serde_json::Value;

use super::{allocation_forms, inventories, lookup, numbers};
use crate::app::App;
use crate::http::failure::{Failure, PROVIDER_NOT_FOUND};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::{self, About};
use crate::schema;

/// The handler.
///
/// # Errors
/// 400 or 409.
pub async fn reshape(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body = schema::parse_checked(&request.body, schema::reshaper::RESHAPE.at(request.version))?;
    let providers = &body["inventories"];
    if let Some(fault) = fault_before_misspelt(&app.view_for(request), providers) {
        return Err(fault);
    }
    let reshape = Reshape {
        inventories: inventories_of(providers)?,
        allocations: allocation_forms::writes_of(&body["allocations"], request.version)?,
        order: entries(providers).filter_map(|(uuid, _)| lookup::provider_uuid(uuid)).collect(),
    };
    app.submit(request, Command::Reshape(reshape.clone()), About::Reshape(&reshape)).await?;
    Ok(Reply::no_content())
}

fn entries(body: &Value) -> impl Iterator<Item = (&String, &Value)> {
    body.as_object().into_iter().flatten()
}

/// If a provider's uuid is no canonical one, and so names none: the first fault among the providers,
/// as they are named one after the other. The reshape is refused in any case.
fn fault_before_misspelt(view: &State, body: &Value) -> Option<Failure> {
    entries(body).find(|(uuid, _)| lookup::provider_uuid(uuid).is_none())?;
    entries(body).find_map(|(uuid, entry)| {
        let Some((_, row)) = lookup::provider(view, uuid) else { return Some(unknown(uuid)) };
        let (provider, current) = (row.uuid, row.generation);
        let given = numbers::generation(&entry["resource_provider_generation"]);
        let conflict = Refusal::because(Cause::ProviderGeneration { provider, current, given });
        let nothing = Reshape::default();
        (current != given).then(|| refusals::placement(&conflict, About::Reshape(&nothing)))
    })
}

fn inventories_of(body: &Value) -> Result<BTreeMap<ProviderUuid, ReshapedInventories>, Failure> {
    entries(body)
        .map(|(uuid, entry)| {
            // A spelling that is not canonical names no provider.
            let provider = lookup::provider_uuid(uuid).ok_or_else(|| unknown(uuid))?;
            let reshaped = ReshapedInventories {
                generation: numbers::generation(&entry["resource_provider_generation"]),
                inventories: inventories::records(&entry["inventories"], unknown_class)?,
            };
            Ok((provider, reshaped))
        })
        .collect()
}

fn unknown(uuid: &str) -> Failure {
    let sentence = lookup::unknown_provider(uuid);
    let message = format!("Resource provider {uuid} in inventories not found: {sentence}");
    Failure::bad_request(message).code(PROVIDER_NOT_FOUND)
}

fn unknown_class(class: &str) -> Failure {
    Failure::bad_request(format!("malformed reshaper data: No such resource class {class}."))
}
