//! How long what a caller says about itself may be. Each event that a request leads to repeats it,
//! so it is bounded at the border, over HTTP as on NATS.

use http::HeaderMap;
use ledger::limits::{NAME_CHARS, REQUEST_ID_BYTES};

use super::auth::Identity;
use super::failure::Failure;
use super::request_id;

/// Checks the caller and the request id. The bound of an `Idempotency-Key` is where it is read.
///
/// # Errors
/// 400 naming what is too long.
pub fn check(headers: &HeaderMap, identity: &Identity) -> Result<(), Failure> {
    let request_id = headers.get(request_id::HEADER).map_or(0, |value| value.len());
    let lengths = [
        ("user", identity.user.chars().count(), NAME_CHARS),
        ("project", identity.project.chars().count(), NAME_CHARS),
        ("X-OpenStack-Request-ID", request_id, REQUEST_ID_BYTES),
    ];
    match lengths.into_iter().find(|(_, length, most)| length > most) {
        Some((what, length, most)) => Err(Failure::bad_request(format!(
            "The {what} of a request has at most {most} characters, not {length}."
        ))
        .field("cause", "too_long")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::nobody;
    use http::HeaderValue;

    #[test]
    fn a_caller_and_a_request_id_are_bounded() {
        let long = |length: usize| "a".repeat(length);
        let who = |user, project| Identity { user, project, ..nobody() };
        let none = HeaderMap::new();
        assert!(check(&none, &who(long(255), long(255))).is_ok());
        let told = check(&none, &who(long(256), long(1))).expect_err("a long user").message;
        assert!(told.contains("user"), "{told}");
        let told = check(&none, &who(long(1), long(20_000))).expect_err("a long project").message;
        assert!(told.contains("project") && told.contains("20000"), "{told}");
        let mut headers = HeaderMap::new();
        headers.insert(request_id::HEADER, HeaderValue::try_from(long(300)).expect("a value"));
        assert!(check(&headers, &nobody()).is_err());
    }
}
