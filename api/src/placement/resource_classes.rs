//! `/resource_classes` and `/resource_classes/{name}`.

use http::StatusCode;
use ledger::command::{Command, Named, RenameResourceClass};
use ledger::refusal::Cause;
use serde_json::{Value, json};

use crate::app::{App, SubmitError};
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::microversion::CLASS_PUT_ENSURES;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::refusals::About;
use crate::schema;

/// `GET /resource_classes`.
///
/// # Errors
/// None that a client could cause.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let classes: Vec<Value> = view.classes().iter().map(|(_, name, _)| shown(name)).collect();
    // Standard classes have no time of their own, so that the newest change is always "now".
    Ok(Reply::json(&json!({ "resource_classes": classes }))?.modified(last_modified::now()))
}

/// `GET /resource_classes/{name}`.
///
/// # Errors
/// 404.
pub fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let view = app.view_for(request);
    let name = request.param(0);
    let id = view.classes().id(name).ok_or_else(|| {
        Failure::not_found(format!("No such resource class {name}.")).let_through()
    })?;
    let entry = view.classes().entry(id);
    let custom = entry.updated_at.unwrap_or(entry.created_at).micros();
    let modified = if entry.standard { last_modified::now() } else { custom };
    Ok(Reply::json(&shown(name))?.modified(modified))
}

/// `POST /resource_classes`.
///
/// # Errors
/// 400 or 409.
pub async fn create(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body =
        schema::parse_checked(&request.body, schema::resource_classes::NAME.at(request.version))?;
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    let location = path(&name);
    app.submit(request, Command::CreateResourceClass(Named { name }), About::CreateClass).await?;
    Ok(Reply::empty(StatusCode::CREATED).location(location))
}

/// `PUT /resource_classes/{name}`: a new name before 1.7, and from then on "create if absent".
///
/// # Errors
/// 400, 404 or 409.
pub async fn put(app: &App, request: &Request) -> Result<Reply, Failure> {
    if request.version >= CLASS_PUT_ENSURES {
        ensure(app, request).await
    } else {
        rename(app, request).await
    }
}

async fn ensure(app: &App, request: &Request) -> Result<Reply, Failure> {
    let name = request.param(0);
    // The name is checked as if it were that of a POST.
    let as_body = json!({ "name": name }).to_string();
    schema::parse_checked(as_body.as_bytes(), schema::resource_classes::NAME.at(request.version))?;
    // With a command id the ledger is asked, which keeps what is answered.
    let known = !request.is_named() && app.view().classes().id(name).is_some();
    let status = if known { StatusCode::NO_CONTENT } else { make(app, request, name).await? };
    Ok(Reply::empty(status).location(path(name)))
}

async fn make(app: &App, request: &Request, name: &str) -> Result<StatusCode, Failure> {
    let command = Command::CreateResourceClass(Named { name: name.to_owned() });
    match app.try_submit(request, command).await {
        Ok(_) => Ok(StatusCode::CREATED),
        // Somebody else was faster.
        Err(SubmitError::Refused(refusal))
            if matches!(refusal.cause, Cause::ClassExists { .. }) =>
        {
            Ok(StatusCode::NO_CONTENT)
        }
        Err(error) => Err(error.told(About::CreateClass)),
    }
}

async fn rename(app: &App, request: &Request) -> Result<Reply, Failure> {
    let body =
        schema::parse_checked(&request.body, schema::resource_classes::NAME.at(request.version))?;
    let new_name = body["name"].as_str().unwrap_or_default().to_owned();
    let command =
        RenameResourceClass { name: request.param(0).to_owned(), new_name: new_name.clone() };
    app.submit(request, Command::RenameResourceClass(command), About::RenameClass).await?;
    Reply::json(&shown(&new_name))
}

/// `DELETE /resource_classes/{name}`.
///
/// # Errors
/// 400, 404 or 409.
pub async fn delete(app: &App, request: &Request) -> Result<Reply, Failure> {
    let command = Command::DeleteResourceClass(Named { name: request.param(0).to_owned() });
    app.submit(request, command, About::DeleteClass).await?;
    Ok(Reply::no_content())
}

fn path(name: &str) -> String {
    format!("/resource_classes/{name}")
}

fn shown(name: &str) -> Value {
    json!({"name": name, "links": [{"rel": "self", "href": path(name)}]})
}
