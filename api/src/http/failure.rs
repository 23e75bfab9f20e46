//! What went wrong with a request, before it is known how the client wants to be told.

use http::StatusCode;
use serde_json::{Map, Value};

/// The `code` of most errors.
pub const UNDEFINED: &str = "placement.undefined_code";
/// The generation given was not the current one.
pub const CONCURRENT_UPDATE: &str = "placement.concurrent_update";
/// A provider of that name or uuid exists.
pub const DUPLICATE_NAME: &str = "placement.duplicate_name";
/// An inventory is in use.
pub const INVENTORY_INUSE: &str = "placement.inventory.inuse";
/// A provider has allocations.
pub const PROVIDER_INUSE: &str = "placement.resource_provider.inuse";
/// A provider has children.
pub const CANNOT_DELETE_PARENT: &str = "placement.resource_provider.cannot_delete_parent";
/// The reshaper was given a provider that does not exist.
pub const PROVIDER_NOT_FOUND: &str = "placement.resource_provider.not_found";
/// A query parameter was given more than once.
pub const DUPLICATE_KEY: &str = "placement.query.duplicate_key";
/// A query parameter has a value that cannot be.
pub const BAD_VALUE: &str = "placement.query.bad_value";
/// A query parameter is missing.
pub const MISSING_VALUE: &str = "placement.query.missing_value";
/// Whether the command was carried out is not known; ask again with the same command id.
pub const OUTCOME_UNKNOWN: &str = "outcome_unknown";

/// What an error body has besides status, title and detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A code, shown from 1.23.
    Shown(&'static str),
    /// No code at all, at any version (errors about the version itself).
    Absent,
}

/// An answer other than success.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The HTTP status.
    pub status: StatusCode,
    /// Placement's message, which follows the status's standard sentence.
    pub message: String,
    /// The error's code.
    pub code: Code,
    /// Machine-readable fields of the error object: `cause`, `class`, `provider`, `needed` ...
    pub fields: Box<Map<String, Value>>,
    /// Methods for the `allow` header.
    pub allow: Option<String>,
    /// Seconds for the `retry-after` header.
    pub retry_after: Option<u32>,
    /// What the standard sentence names: the method, or the media type.
    pub subject: Option<String>,
    /// Whether the connection is closed after the answer, because the rest of the request cannot
    /// be told from the next one.
    pub close: bool,
    /// Whether the answer says that it depends on the version (`vary`). Placement leaves that out
    /// where its handlers let the failure through to what is around them.
    pub varies: bool,
}

impl Failure {
    /// A failure with a status and a message.
    #[must_use]
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            code: Code::Shown(UNDEFINED),
            fields: Box::default(),
            allow: None,
            retry_after: None,
            subject: None,
            close: false,
            varies: true,
        }
    }

    /// 400.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 403.
    #[must_use]
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message).let_through()
    }

    /// 404.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// 409.
    #[must_use]
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// 409 because of a generation that is not the current one.
    #[must_use]
    pub fn concurrent_update(message: impl Into<String>) -> Self {
        Self::conflict(message).code(CONCURRENT_UPDATE)
    }

    /// 401, before anything else about the request is looked at.
    #[must_use]
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "")
    }

    /// 405 with the methods that there are.
    #[must_use]
    pub fn method_not_allowed(method: &http::Method, allow: Option<String>) -> Self {
        let mut failure = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "The method specified is not allowed for this resource.",
        );
        failure.subject = Some(method.to_string());
        failure.allow = allow;
        failure
    }

    /// 406: the client does not take JSON.
    #[must_use]
    pub fn not_acceptable(accept: &str) -> Self {
        let mut failure =
            Self::new(StatusCode::NOT_ACCEPTABLE, "Only application/json is provided");
        failure.subject = Some(accept.to_owned());
        failure
    }

    /// 415: the body is no JSON. `kind` is its type, `header` all that `content-type` says.
    #[must_use]
    pub fn unsupported_media_type(kind: Option<&str>, header: &str) -> Self {
        let kind_told = kind.unwrap_or("None");
        let mut failure = Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("The media type {kind_told} is not supported, use application/json"),
        );
        failure.subject = Some(kind.map_or(kind_told, |_| header).to_owned());
        failure
    }

    /// 413.
    #[must_use]
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// 503: nothing was done, try again.
    #[must_use]
    pub fn busy(message: impl Into<String>) -> Self {
        let mut failure = Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        failure.retry_after = Some(1);
        failure
    }

    /// 500. What happened goes to the log, not to the client.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// The same without `vary` ([`Self::varies`]).
    #[must_use]
    pub fn let_through(mut self) -> Self {
        self.varies = false;
        self
    }

    /// The same with a code.
    #[must_use]
    pub fn code(mut self, code: &'static str) -> Self {
        self.code = Code::Shown(code);
        self
    }

    /// The same with a machine-readable field.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}
