//! Answers as NATS messages. One that failed has the service API's two headers, and the body that
//! it would have over HTTP.

use async_nats::HeaderMap;
use bytes::Bytes;

use crate::http::accept::ErrorForm;
use crate::http::error;
use crate::http::failure::Failure;
use crate::http::microversion::MAX;
use crate::http::reply::Reply;

const ERROR: &str = "Nats-Service-Error";
const ERROR_CODE: &str = "Nats-Service-Error-Code";
/// Characters of an error's text in its header; the body has it whole.
const TEXT: usize = 300;

/// A message to be sent.
pub(super) struct Outgoing {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The message of an answer to the request `id`.
pub(super) fn message(result: &Result<Reply, Failure>, id: &str) -> Outgoing {
    match result {
        Ok(reply) => done(reply, id),
        Err(failure) => failed(failure, id),
    }
}

fn done(reply: &Reply, id: &str) -> Outgoing {
    let mut headers = headers(reply.content_type, id);
    for (name, value) in &reply.extra {
        if let Ok(value) = value.to_str() {
            headers.insert(name.as_str(), one_line(value));
        }
    }
    Outgoing { headers, body: reply.body.clone().unwrap_or_default() }
}

fn failed(failure: &Failure, id: &str) -> Outgoing {
    let (content_type, body) = error::render(failure, ErrorForm::Json, Some(MAX), id);
    let mut headers = headers(content_type, id);
    headers.insert(ERROR_CODE, failure.status.as_str());
    let text = match failure.message.is_empty() {
        true => failure.status.canonical_reason().unwrap_or("error").to_owned(),
        false => one_line(&failure.message),
    };
    headers.insert(ERROR, text);
    if let Some(seconds) = failure.retry_after {
        headers.insert("Retry-After", seconds.to_string());
    }
    Outgoing { headers, body }
}

fn headers(content_type: &str, id: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("Content-Type", content_type);
    headers.insert("X-OpenStack-Request-ID", id);
    headers
}

/// A header ends with its line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_both_headers_and_its_body() {
        let failure = Failure::conflict("no\r\nroom").field("cause", "capacity");
        let sent = message(&Err(failure), "req-1");
        let header = |name: &str| sent.headers.get(name).map(|value| value.as_str().to_owned());
        assert_eq!(header(ERROR).as_deref(), Some("no  room"));
        assert_eq!(header(ERROR_CODE).as_deref(), Some("409"));
        let body: serde_json::Value = serde_json::from_slice(&sent.body).expect("JSON");
        assert_eq!(body["errors"][0]["cause"], "capacity");
    }
}
