//! `Idempotency-Key`: the client's id for what it asks, on every route that writes. The same key of
//! the same project gets the same outcome for as long as the ledger lives, so that a client that
//! lost an answer can ask again (a PUT of allocations without one is answered 409 the second time).

use http::HeaderMap;
use ledger::limits::COMMAND_ID_BYTES;
use ledger::stamp::CommandId;

use crate::http::failure::Failure;

const KEY: &str = "idempotency-key";

/// Whether the headers name a command id. Such a write is answered from what the ledger keeps of
/// its outcome alone, so that the same request gets the same answer whatever has changed.
#[must_use]
pub fn is_named(headers: &HeaderMap) -> bool {
    headers.contains_key(KEY)
}

/// The command id that the headers name for a caller of `project`.
///
/// # Errors
/// 400 if the key is empty, too long, or no visible ASCII.
pub fn command_id(headers: &HeaderMap, project: &str) -> Result<Option<CommandId>, Failure> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text.is_empty() || text.len() > COMMAND_ID_BYTES {
        return Err(Failure::bad_request(format!(
            "An Idempotency-Key has 1 to {COMMAND_ID_BYTES} bytes of visible ASCII."
        )));
    }
    Ok(Some(CommandId { project: project.to_owned(), id: text.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn keys_are_bounded() {
        let with = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(KEY, HeaderValue::try_from(text).expect("a value"));
            command_id(&headers, "p")
        };
        assert_eq!(with("a").expect("an id").map(|id| id.id), Some("a".to_owned()));
        assert!(with("").is_err());
        assert!(with(&"a".repeat(COMMAND_ID_BYTES + 1)).is_err());
        assert_eq!(command_id(&HeaderMap::new(), "p").expect("none"), None);
    }
}
