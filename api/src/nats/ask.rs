//! From a message to what the handlers get, and to their answer.

use async_nats::Message;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use super::parameters;
use crate::app::App;
use crate::handle;
use crate::http::auth::{Identity, Scope};
use crate::http::failure::Failure;
use crate::http::microversion::MAX;
use crate::http::operation::Operation;
use crate::http::reply::{Reply, VERSION_HEADER};
use crate::http::request::{Origin, Params, Request};
use crate::http::{body, bounds, request_id, router};
use crate::native::media::Form;
use crate::native::{commands, named_command};
use crate::past;

/// Names who asks, beside the word "nats": the broker tells the ledger nothing about its users.
const ACTOR: &str = "alloc-actor";
/// The project in whose name something is asked; ids of commands are a project's own.
const PROJECT: &str = "x-project-id";
/// Who asks, and in which project, if the message does not say.
const NOBODY: &str = "nats";

/// Answers a message.
///
/// # Errors
/// As the handlers, 413 for a body that is too large, 404 for what there is not.
pub(super) async fn answer(
    app: &App,
    endpoint: Endpoint,
    message: &Message,
    id: &str,
    operation: &mut Option<Operation>,
) -> Result<Reply, Failure> {
    if message.payload.len() > body::LIMIT {
        return Err(Failure::too_large(format!("A body may have {} bytes at most.", body::LIMIT)));
    }
    let name = endpoint.asked(&message.subject);
    match endpoint {
        Endpoint::Command => {
            *operation = Some(Operation::LedgerCommands);
            let request = request(message, id)?;
            let form = Form::of_body(&request.headers)?;
            let command = named_command::read(name, form, &request.body)?;
            ledger::panics::planted("handler", request.global_id.as_deref());
            commands::carry_out(app, &request, vec![command]).await
        }
        Endpoint::Query => {
            let mut request = request(message, id)?;
            let get = parameters::get(name, object(&request)?)?;
            let (found, params) = router::find(&Method::GET, &get.path)?;
            *operation = Some(found.operation);
            found.check_version(request.version)?;
            request.params = params;
            request.query = get.query;
            request.past =
                past::asked(app, &request.headers, &Method::GET, found.operation).await?;
            let form = Form::of_answer(&request.headers);
            in_form(form, handle::run(app, found.operation, &request).await?)
        }
    }
}

/// The parameters of a query; an empty body has none.
fn object(request: &Request) -> Result<Map<String, Value>, Failure> {
    if request.body.is_empty() {
        return Ok(Map::new());
    }
    Form::of_body(&request.headers)?.read(&request.body)
}

fn request(message: &Message, id: &str) -> Result<Request, Failure> {
    let headers = headers(message);
    let version = match headers.contains_key(VERSION_HEADER) {
        true => handle::requested_version(&headers)?,
        // Who comes this way is new, and needs no old answers.
        false => MAX,
    };
    let identity = identity(&headers);
    bounds::check(&headers, &identity)?;
    Ok(Request {
        version,
        identity,
        params: Params::new(),
        query: String::new(),
        body: Bytes::clone(&message.payload),
        id: id.to_owned(),
        global_id: request_id::global(&headers).map(str::to_owned),
        origin: Origin::Nats,
        past: None,
        headers,
    })
}

/// The message's headers as HTTP would have them. An answer has the form of the question unless
/// the message asks for another.
fn headers(message: &Message) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, values) in message.headers.iter().flat_map(|headers| headers.iter()) {
        let Ok(name) = HeaderName::try_from(AsRef::<str>::as_ref(name)) else { continue };
        for value in values {
            if let Ok(value) = HeaderValue::try_from(value.as_str()) {
                headers.append(name.clone(), value);
            }
        }
    }
    if let (false, Some(form)) = (headers.contains_key(ACCEPT), headers.get(CONTENT_TYPE).cloned())
    {
        headers.insert(ACCEPT, form);
    }
    headers
}

fn identity(headers: &HeaderMap) -> Identity {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.map(str::trim).filter(|text| !text.is_empty())
    };
    Identity {
        user: text(ACTOR).map_or_else(|| NOBODY.to_owned(), |actor| format!("{NOBODY}:{actor}")),
        project: text(PROJECT).unwrap_or(NOBODY).to_owned(),
        roles: Vec::new(),
        scope: Scope::Project,
    }
}

/// Handlers that know JSON alone are helped out.
fn in_form(form: Form, reply: Reply) -> Result<Reply, Failure> {
    match (form, &reply.body) {
        (Form::MessagePack, Some(body)) if reply.content_type == Form::Json.content_type() => {
            let value: Value = Form::Json.read(body)?;
            let packed = form.reply(&value)?;
            Ok(Reply { body: packed.body, content_type: packed.content_type, ..reply })
        }
        _ => Ok(reply),
    }
}
