//! `/resource_providers` and `/resource_providers/{uuid}`.

use http::StatusCode;
use ledger::command::{Command, CreateProvider, DeleteProvider, ParentChange, UpdateProvider};
use ledger::ids::ProviderUuid;
use ledger::refusal::Cause;
use serde_json::Value;
use uuid::Uuid;

use super::{lookup, provider_body, provider_list};
use crate::app::{Accepted, App};
use crate::http::failure::Failure;
use crate::http::idempotency;
use crate::http::last_modified;
use crate::http::microversion::{PROVIDER_POST_ANSWERS, REPARENTING};
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query;
use crate::refusals::About;
use crate::schema::{self, canonical_uuid};

/// `GET /resource_providers`.
///
/// # Errors
/// 400 for a query that cannot be understood or names what does not exist.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let filters = query::providers::parse(&request.query, request.version)?;
    let view = app.view_for(request);
    let mut body = String::from("{\"resource_providers\":[");
    let mut newest = None;
    for (n, provider) in provider_list::matching(&view, &filters)?.into_iter().enumerate() {
        if n > 0 {
            body.push(',');
        }
        provider_body::write(&mut body, &view, provider, request.version);
        newest = newest.max(Some(provider_body::modified(provider)));
    }
    body.push_str("]}");
    Ok(Reply::bytes(body).modified(newest.unwrap_or_else(last_modified::now)))
}

/// `GET /resource_providers/{uuid}`.
///
/// # Errors
/// 404.
pub fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let (_, provider) = lookup::known_provider(&view, request.param(0))?;
    let mut body = String::new();
    provider_body::write(&mut body, &view, provider, request.version);
    Ok(Reply::bytes(body).modified(provider_body::modified(provider)))
}

/// `POST /resource_providers`.
///
/// # Errors
/// 400 or 409.
pub async fn create(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body = schema::parse_checked(&request.body, schema::providers::CREATE.at(request.version))?;
    let name = body["name"].as_str().unwrap_or_default();
    let uuid = match body["uuid"].as_str().and_then(canonical_uuid) {
        Some(text) => lookup::provider_uuid(&text).unwrap_or_default(),
        None => ProviderUuid(drawn(app, request)?),
    };
    let about = About::CreateProvider { uuid, name };
    let parent = match body.get("parent_provider_uuid") {
        Some(Value::String(text)) => Some(parent(text, about)?),
        _ => None,
    };
    let command = CreateProvider { uuid, name: name.to_owned(), parent };
    let accepted = app.submit(request, Command::CreateProvider(command), about).await?;
    let location = format!("/resource_providers/{uuid}");
    if request.version < PROVIDER_POST_ANSWERS {
        return Ok(Reply::empty(StatusCode::CREATED).location(location));
    }
    Ok(answer(app, request, uuid, &accepted)?.location(location))
}

/// The uuid of a provider for which the client named none.
fn drawn(app: &App, request: &Request) -> Result<Uuid, Failure> {
    let id = idempotency::command_id(&request.headers, &request.identity.project)?;
    let of = app.view().position().ledger_id;
    Ok(id.map_or_else(Uuid::new_v4, |id| ledger::ids::drawn_uuid(&id, of)))
}

/// `PUT /resource_providers/{uuid}`. The generation does not change.
///
/// # Errors
/// 400, 404 or 409.
pub async fn update(app: &App, request: &Request) -> Result<Reply, Failure> {
    let uuid = lookup::provider_to_write(app, request)?;
    let before = app.view().provider(uuid).and_then(|provider| provider.updated_at);
    let body = schema::parse_checked(&request.body, schema::providers::UPDATE.at(request.version))?;
    let about = About::UpdateProvider(uuid);
    let parent = match body.get("parent_provider_uuid") {
        Some(Value::String(text)) => ParentChange::Set(Some(parent(text, about)?)),
        Some(_) => ParentChange::Set(None),
        None => ParentChange::Keep,
    };
    let command = UpdateProvider {
        uuid,
        name: body["name"].as_str().unwrap_or_default().to_owned(),
        parent,
        may_reparent: request.version >= REPARENTING,
    };
    let accepted = app.submit(request, Command::UpdateProvider(command), about).await?;
    let reply = answer(app, request, uuid, &accepted)?;
    // The time of the change before this one: that is what Placement shows here. With a command
    // id it is the time of this one, which the ledger keeps.
    Ok(match before {
        Some(time) if !request.is_named() => reply.modified(time.micros()),
        _ => reply,
    })
}

/// `DELETE /resource_providers/{uuid}`. Inventories and associations go with it.
///
/// # Errors
/// 404 or 409.
pub async fn delete(app: &App, request: &Request) -> Result<Reply, Failure> {
    let text = request.param(0);
    let Some(uuid) = lookup::provider_uuid(text) else {
        return Err(Failure::not_found(format!("{} for delete", lookup::unknown_provider(text))));
    };
    let command = Command::DeleteProvider(DeleteProvider { uuid });
    app.submit(request, command, About::DeleteProvider(uuid)).await?;
    Ok(Reply::no_content())
}

/// A parent as a body names it. A spelling that is not canonical names no provider.
fn parent(text: &str, about: About<'_>) -> Result<ProviderUuid, Failure> {
    lookup::provider_uuid(text).ok_or_else(|| {
        let parent =
            canonical_uuid(text).and_then(|text| lookup::provider_uuid(&text)).unwrap_or_default();
        crate::refusals::placement(&Cause::ParentNotFound { parent }.into(), about)
    })
}

/// A provider as a command left it, whatever became of it since.
fn answer(
    app: &App,
    request: &Request,
    uuid: ProviderUuid,
    accepted: &Accepted,
) -> Result<Reply, Failure> {
    let mut body = String::new();
    if let Some(shown) = accepted.provider(uuid) {
        provider_body::write_as_answered(&mut body, &shown, request.version);
        return Ok(Reply::bytes(body).modified(accepted.recorded_at()));
    }
    // Nothing was recorded, or by a version that did not keep the root: as it stands now, unless
    // somebody has removed it in the meantime.
    let view = app.view();
    let provider = view
        .provider(uuid)
        .ok_or_else(|| Failure::not_found(lookup::unknown_provider(&uuid.to_string())))?;
    provider_body::write(&mut body, &view, provider, request.version);
    Ok(Reply::bytes(body).modified(provider_body::modified(provider)))
}
