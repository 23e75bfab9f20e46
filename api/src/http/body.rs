//! Request bodies: how long, of what type, and reading them without trusting either.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::failure::Failure;

/// The largest body that is read, in bytes.
pub const LIMIT: usize = 16 * 1024 * 1024;
/// Bytes that all bodies together may take: eight of the largest, or tens of thousands of usual
/// ones.
const TOGETHER: usize = 8 * LIMIT;
/// From so many bytes on a body counts until nobody has it any more, not only while it is read.
const LARGE: usize = 64 * 1024;
/// How long a body may take without being looked at how fast it comes.
const GRACE: Duration = Duration::from_secs(10);
/// Bytes that have to come each second after that: a client that is so far away or so busy that it
/// sends less cannot use an answer any more, and the largest body takes a quarter of an hour so.
const RATE: u64 = 16 * 1024;

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

/// What all bodies together take while they are read and, if they are large, while they are used.
#[derive(Debug, Default)]
pub struct Bodies {
    bytes: AtomicUsize,
}

impl Bodies {
    /// How many bytes they take.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) as u64
    }
}

/// A body's part of [`Bodies`].
struct Share {
    of: Arc<Bodies>,
    bytes: usize,
}

impl Share {
    /// Room for more bytes; false if all bodies together would take too much.
    fn grow(&mut self, by: usize) -> bool {
        self.bytes += by;
        self.of.bytes.fetch_add(by, Ordering::Relaxed) + by <= TOGETHER
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A large body: it counts for as long as somebody has it.
struct Counted {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a whole body. One that comes in time is never waited for longer than it takes; one that
/// trickles is given up.
///
/// # Errors
/// 413 if it is longer than [`LIMIT`]; 400 if it breaks off; 408 if it comes too slowly; 503 if all
/// bodies together take too much memory.
pub async fn read(body: Incoming, all: &Arc<Bodies>) -> Result<Bytes, Failure> {
    let mut share = Share { of: Arc::clone(all), bytes: 0 };
    let ended = collect(body, &mut share).await;
    let bytes = ended.map_err(|mut failure| {
        // What is left of the body cannot be told from the next request.
        failure.close = true;
        failure
    })?;
    if bytes.len() < LARGE {
        return Ok(bytes);
    }
    Ok(Bytes::from_owner(Counted { bytes, _share: share }))
}

async fn collect(body: Incoming, share: &mut Share) -> Result<Bytes, Failure> {
    let mut body = std::pin::pin!(body);
    let began = Instant::now();
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        let read = (first.len() + rest.len()) as u64;
        let deadline = began + GRACE + Duration::from_millis(read * 1_000 / RATE);
        let frame = tokio::time::timeout_at(deadline.into(), body.frame()).await;
        let frame = match frame.map_err(|_| too_slow())? {
            None => break,
            Some(frame) => frame,
        };
        let frame =
            frame.map_err(|_| Failure::bad_request("The body could not be read to its end."))?;
        // Trailers mean nothing here.
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > LIMIT {
            return Err(Failure::too_large(format!("A body may have {LIMIT} bytes at most.")));
        }
        if !share.grow(data.len()) {
            return Err(Failure::busy(
                "The bodies of other requests take all the memory there is.",
            ));
        }
        // Most bodies come in one piece, which is then not copied.
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + rest.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&rest);
    Ok(whole.freeze())
}

fn too_slow() -> Failure {
    let text = format!(
        "The body comes too slowly: after {} seconds at least {RATE} bytes a second.",
        GRACE.as_secs()
    );
    Failure::new(StatusCode::REQUEST_TIMEOUT, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

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
