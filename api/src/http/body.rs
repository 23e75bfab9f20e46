//! Request bodies: how long, of what type, and reading them without trusting either.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::failure::Failure;

/// The largest body that is read, in bytes.
pub const LIMIT: usize = 16 * 1024 * 1024;

/// What [`crate::server`] renames a `content-length` to that is no number. It is as long as the
/// real name, so that it fits in its place.
pub const BAD_LENGTH: &str = "invalid-length";

/// Checks the headers about the body that every request may have.
///
/// # Errors
/// 400 for a length that is no whole number, and for a body without a type.
pub fn check_headers(headers: &HeaderMap) -> Result<(), Failure> {
    if headers.contains_key(BAD_LENGTH) {
        let mut failure =
            Failure::bad_request("content-length header must be an integer").let_through();
        failure.close = true;
        return Err(failure);
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let some = length.is_some_and(|text| text.bytes().any(|b| (b'1'..=b'9').contains(&b)));
    if some && headers.get(CONTENT_TYPE).is_none_or(HeaderValue::is_empty) {
        let message = "content-type header required when content-length > 0";
        return Err(Failure::bad_request(message).let_through());
    }
    Ok(())
}

/// Checks that the body is JSON, as far as its type tells.
///
/// # Errors
/// 415. Parameters may follow the type; the comparison is case-sensitive, as Placement's is.
pub fn check_json(headers: &HeaderMap) -> Result<(), Failure> {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = given.split(';').next().unwrap_or_default().trim();
    if kind == "application/json" {
        return Ok(());
    }
    Err(Failure::unsupported_media_type(Some(kind).filter(|kind| !kind.is_empty()), given))
}

/// Reads a whole body.
///
/// # Errors
/// 413 if it is longer than [`LIMIT`]; 400 if it breaks off.
pub async fn read(body: Incoming) -> Result<Bytes, Failure> {
    match Limited::new(body, LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => {
            let mut failure = if error.is::<LengthLimitError>() {
                Failure::too_large(format!("A body may have {LIMIT} bytes at most."))
            } else {
                Failure::bad_request("The body could not be read to its end.")
            };
            failure.close = true;
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, StatusCode};

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn a_body_needs_a_type() {
        assert!(check_headers(&headers(&[])).is_ok());
        assert!(check_headers(&headers(&[("content-length", "0")])).is_ok());
        assert!(
            check_headers(&headers(&[("content-length", "10"), ("content-type", "x/y")])).is_ok()
        );
        let refused = check_headers(&headers(&[("content-length", "10")])).expect_err("no type");
        assert_eq!(refused.message, "content-type header required when content-length > 0");
        let empty = check_headers(&headers(&[("content-length", "10"), ("content-type", "")]));
        assert_eq!(empty.expect_err("no type").status, StatusCode::BAD_REQUEST);
    }

    #[test]
    fn a_bad_length_is_told_and_ends_the_connection() {
        let refused = check_headers(&headers(&[(BAD_LENGTH, "hi mom")])).expect_err("no number");
        assert_eq!(refused.message, "content-length header must be an integer");
        assert!(refused.close);
        assert_eq!(BAD_LENGTH.len(), CONTENT_LENGTH.as_str().len());
    }

    #[test]
    fn only_json_is_json() {
        for text in ["application/json", "application/json; charset=utf-8"] {
            assert!(check_json(&headers(&[("content-type", text)])).is_ok(), "{text}");
        }
        for (text, told) in [("text/plain", "text/plain"), ("Application/JSON", "Application/JSON")]
        {
            let refused = check_json(&headers(&[("content-type", text)])).expect_err("no JSON");
            assert_eq!(refused.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
            assert_eq!(
                refused.message,
                format!("The media type {told} is not supported, use application/json")
            );
        }
        let absent = check_json(&headers(&[])).expect_err("no type");
        assert_eq!(absent.message, "The media type None is not supported, use application/json");
    }
}
