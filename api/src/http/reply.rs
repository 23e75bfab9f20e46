//! A successful answer, and how both kinds of answer become HTTP.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, LAST_MODIFIED, LOCATION, RETRY_AFTER, VARY,
};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use super::accept::error_form;
use super::error;
use super::failure::Failure;
use super::microversion::{CACHE_HEADERS, Version};
use super::payload::Payload;
use super::request_id;

/// The header that carries the microversion, both ways.
pub const VERSION_HEADER: HeaderName = HeaderName::from_static("openstack-api-version");

/// An answer ready to be sent.
pub type HttpResponse = Response<Payload>;

/// What a client may keep: always nothing without asking again; with a time of last change where
/// Placement gives one. Sent from 1.15 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Neither header.
    Absent,
    /// `cache-control` alone.
    NoCache,
    /// Both; microseconds since the epoch.
    LastModified(i64),
}

/// A successful answer.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The body; none for 201 and 204 that have none, which then have no content type either.
    pub body: Option<Bytes>,
    /// A body that goes on, in place of one that is whole.
    pub stream: Option<mpsc::Receiver<Bytes>>,
    /// The body's type.
    pub content_type: &'static str,
    /// The caching headers.
    pub caching: Caching,
    /// The path for `location`.
    pub location: Option<String>,
    /// Headers of the ledger's own.
    pub extra: Vec<(HeaderName, HeaderValue)>,
}

impl Reply {
    /// A status without a body.
    #[must_use]
    pub fn empty(status: StatusCode) -> Self {
        Self {
            status,
            body: None,
            stream: None,
            content_type: "application/json",
            caching: Caching::Absent,
            location: None,
            extra: Vec::new(),
        }
    }

    /// 204.
    #[must_use]
    pub fn no_content() -> Self {
        Self::empty(StatusCode::NO_CONTENT)
    }

    /// 200 with JSON that is rendered already.
    #[must_use]
    pub fn bytes(body: impl Into<Bytes>) -> Self {
        Self { body: Some(body.into()), ..Self::empty(StatusCode::OK) }
    }

    /// 200 with a value as JSON.
    ///
    /// # Errors
    /// 500 if the value cannot be JSON, which types of this crate always can.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, Failure> {
        let body =
            serde_json::to_vec(value).map_err(|error| Failure::internal(error.to_string()))?;
        Ok(Self::bytes(body))
    }

    /// The same with another status.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// The same with a `location`, given as a path.
    #[must_use]
    pub fn location(mut self, path: impl Into<String>) -> Self {
        self.location = Some(path.into());
        self
    }

    /// The same with both caching headers; microseconds since the epoch.
    #[must_use]
    pub fn modified(mut self, micros: i64) -> Self {
        self.caching = Caching::LastModified(micros);
        self
    }

    /// The same with a header of the ledger's own.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.extra.push((name, value));
        self
    }

    /// The same with `cache-control` alone.
    #[must_use]
    pub fn no_cache(mut self) -> Self {
        self.caching = Caching::NoCache;
        self
    }
}

/// What an answer needs to know of its request.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The microversion in effect, none if it was not understood.
    pub version: Option<Version>,
    /// The id of the request.
    pub request_id: &'a str,
    /// The request's `host`.
    pub host: Option<&'a str>,
    /// The request's `accept`.
    pub accept: Option<&'a str>,
}

/// Makes HTTP of a result.
#[must_use]
pub fn finish(result: Result<Reply, Failure>, frame: &Frame<'_>) -> HttpResponse {
    match result {
        Ok(reply) => success(reply, frame),
        Err(failure) => refusal(&failure, frame),
    }
}

fn success(reply: Reply, frame: &Frame<'_>) -> HttpResponse {
    let has_body = reply.body.is_some() || reply.stream.is_some();
    let payload = match reply.stream {
        Some(stream) => Payload::Stream(stream),
        None => reply.body.unwrap_or_default().into(),
    };
    let mut response = Response::new(payload);
    *response.status_mut() = reply.status;
    let headers = response.headers_mut();
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    }
    if frame.version.is_some_and(|version| version >= CACHE_HEADERS) {
        if reply.caching != Caching::Absent {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        if let Caching::LastModified(micros) = reply.caching
            && let Ok(value) = HeaderValue::try_from(super::last_modified::text(micros))
        {
            headers.insert(LAST_MODIFIED, value);
        }
    }
    if let Some(path) = reply.location {
        let host = frame.host.unwrap_or("localhost");
        if let Ok(value) = HeaderValue::try_from(format!("http://{host}{path}")) {
            headers.insert(LOCATION, value);
        }
    }
    for (name, value) in reply.extra {
        headers.insert(name, value);
    }
    common(&mut response, frame);
    response
}

fn refusal(failure: &Failure, frame: &Frame<'_>) -> HttpResponse {
    let form = error_form(frame.accept);
    let (content_type, body) = error::render(failure, form, frame.version, frame.request_id);
    let mut response = Response::new(Payload::from(body));
    *response.status_mut() = failure.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(allow) = &failure.allow
        && let Ok(value) = HeaderValue::try_from(allow)
    {
        headers.insert(ALLOW, value);
    }
    if let Some(seconds) = failure.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if failure.close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    // A failure of the server's own tells nothing about versions.
    let frame = Frame {
        version: frame.version.filter(|_| failure.status != StatusCode::INTERNAL_SERVER_ERROR),
        ..*frame
    };
    common(&mut response, &frame);
    if !failure.varies {
        response.headers_mut().remove(VARY);
    }
    response
}

fn common(response: &mut HttpResponse, frame: &Frame<'_>) {
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::try_from(frame.request_id) {
        headers.insert(request_id::HEADER, value);
    }
    if let Some(version) = frame.version {
        if let Ok(value) = HeaderValue::try_from(format!("placement {version}")) {
            headers.insert(VERSION_HEADER, value);
        }
        headers.insert(VARY, HeaderValue::from_static("openstack-api-version"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::microversion::{MAX, MIN};

    fn frame(version: Option<Version>) -> Frame<'static> {
        Frame { version, request_id: "req-1", host: Some("example.com:8778"), accept: None }
    }

    #[test]
    fn no_body_means_no_content_type() {
        let response =
            finish(Ok(Reply::no_content().location("/traits/CUSTOM_A")), &frame(Some(MAX)));
        assert!(response.headers().get(CONTENT_TYPE).is_none());
        assert_eq!(response.headers()[LOCATION], "http://example.com:8778/traits/CUSTOM_A");
        assert_eq!(response.headers()[VERSION_HEADER], "placement 1.39");
        assert_eq!(response.headers()[VARY], "openstack-api-version");
        assert_eq!(response.headers()[request_id::HEADER], "req-1");
    }

    #[test]
    fn caching_headers_come_with_1_15() {
        let reply = || Ok(Reply::bytes("{}").modified(0));
        let old = finish(reply(), &frame(Some(MIN)));
        assert!(
            old.headers().get(CACHE_CONTROL).is_none()
                && old.headers().get(LAST_MODIFIED).is_none()
        );
        let new = finish(reply(), &frame(Some(MAX)));
        assert_eq!(new.headers()[CACHE_CONTROL], "no-cache");
        assert_eq!(new.headers()[LAST_MODIFIED], "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn an_unknown_version_and_a_500_show_none() {
        let unknown = finish(Err(Failure::bad_request("x")), &frame(None));
        assert!(unknown.headers().get(VERSION_HEADER).is_none());
        let broken = finish(Err(Failure::internal("x")), &frame(Some(MAX)));
        assert!(
            broken.headers().get(VERSION_HEADER).is_none() && broken.headers().get(VARY).is_none()
        );
    }
}
