//! Request ids: ours, made for each request and on each answer, and OpenStack's global one,
//! which a client sends with all calls of one user action.

use http::HeaderMap;
use uuid::Uuid;

/// The header of both ids.
pub const HEADER: &str = "x-openstack-request-id";

const PREFIX: &str = "req-";

/// A new id for a request.
#[must_use]
pub fn fresh() -> String {
    let mut text = String::with_capacity(PREFIX.len() + 36);
    text.push_str(PREFIX);
    text.push_str(Uuid::new_v4().hyphenated().encode_lower(&mut Uuid::encode_buffer()));
    text
}

/// The global id that the client sent; none if it is not of the form `req-<uuid>`, as in
/// oslo.middleware: what is no id is not recorded.
#[must_use]
pub fn global(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(HEADER)?.to_str().ok()?;
    let uuid = text.strip_prefix(PREFIX)?;
    let hyphenated = uuid.len() == 36 && Uuid::try_parse(uuid).is_ok();
    hyphenated.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn sent(text: &'static str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, HeaderValue::from_static(text));
        global(&headers).map(str::to_owned)
    }

    #[test]
    fn our_ids_are_unique_and_of_the_form() {
        let (a, b) = (fresh(), fresh());
        assert_ne!(a, b);
        assert!(a.starts_with("req-") && a.len() == 40);
    }

    #[test]
    fn only_ids_of_the_form_count() {
        let id = "req-1b5b2e3a-4c5d-4e6f-8a9b-0c1d2e3f4a5b";
        assert_eq!(sent(id).as_deref(), Some(id));
        for text in [
            "",
            "req-",
            "req-1",
            "1b5b2e3a-4c5d-4e6f-8a9b-0c1d2e3f4a5b",
            "req-1b5b2e3a4c5d4e6f8a9b0c1d2e3f4a5b",
        ] {
            assert_eq!(sent(text), None, "{text}");
        }
    }
}
