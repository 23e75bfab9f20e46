//! `POST /reshaper`: inventories and allocations in one step.

use std::collections::BTreeMap;

use ledger::command::{Command, Reshape, ReshapedInventories};
use ledger::ids::ProviderUuid;
use serde_json::Value;

use super::{allocation_forms, inventories, lookup, numbers};
use crate::app::App;
use crate::http::failure::{Failure, PROVIDER_NOT_FOUND};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::About;
use crate::schema;

/// The handler.
///
/// # Errors
/// 400 or 409.
pub async fn reshape(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body = schema::parse_checked(&request.body, schema::reshaper::RESHAPE.at(request.version))?;
    let reshape = Reshape {
        inventories: inventories_of(&body["inventories"])?,
        allocations: allocation_forms::writes_of(&body["allocations"], request.version)?,
    };
    app.submit(request, Command::Reshape(reshape.clone()), About::Reshape(&reshape)).await?;
    Ok(Reply::no_content())
}

fn inventories_of(body: &Value) -> Result<BTreeMap<ProviderUuid, ReshapedInventories>, Failure> {
    let entries = body.as_object().into_iter().flatten();
    entries
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
