//! Checking bodies and query strings against JSON schemas, with the sentences that Placement's
//! validator (Python's jsonschema) uses: clients and tests look for them. One file for each
//! resource holds its schemas, by microversion.

pub mod aggregates;
pub mod allocations;
pub mod candidates;
mod check;
mod compile;
pub mod inventories;
mod keyword;
pub mod providers;
pub mod python;
pub mod reshaper;
pub mod resource_classes;
pub mod traits;
pub mod usages;

use serde_json::Value;

use crate::http::failure::Failure;
use crate::http::microversion::Version;

pub use check::Violation;
pub use keyword::Schema;

/// The schemas of one thing, each from some version on.
#[derive(Debug)]
pub struct Versions {
    schemas: Vec<(Version, Schema)>,
}

impl Versions {
    /// From schemas in ascending order of versions.
    ///
    /// # Panics
    /// If one of the schemas, which are part of the program, is none.
    #[must_use]
    pub fn new(schemas: impl IntoIterator<Item = (Version, Value)>) -> Self {
        let schemas =
            schemas.into_iter().map(|(since, source)| (since, compile::compile(&source))).collect();
        Self { schemas }
    }

    /// The schema in effect at a version; the oldest one for versions before it.
    ///
    /// # Panics
    /// If there are no schemas at all.
    #[must_use]
    pub fn at(&self, version: Version) -> &Schema {
        let mut newest_first = self.schemas.iter().rev();
        let found = newest_first.find(|(since, _)| *since <= version);
        // The list is a constant of this program, and none is empty.
        &found.or(self.schemas.first()).expect("a thing has at least one schema").1
    }
}

/// Reads a body as JSON. Of repeated keys the last counts.
///
/// # Errors
/// 400 `Malformed JSON: ...`.
pub fn parse(body: &[u8]) -> Result<Value, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::bad_request(format!("Malformed JSON: {error}")))
}

/// Reads a body as JSON and checks it against a schema.
///
/// # Errors
/// 400 `Malformed JSON: ...` or `JSON does not validate: ...`.
pub fn parse_checked(body: &[u8], schema: &Schema) -> Result<Value, Failure> {
    let value = parse(body)?;
    match check::check(schema, &value) {
        None => Ok(value),
        Some(violation) => {
            Err(Failure::bad_request(format!("JSON does not validate: {violation}")))
        }
    }
}

/// Checks a query string, given as an object of strings.
///
/// # Errors
/// 400 `Invalid query string parameters: ...`.
pub fn check_query(query: &Value, schema: &Schema) -> Result<(), Failure> {
    match check::check(schema, query) {
        None => Ok(()),
        Some(violation) => {
            Err(Failure::bad_request(format!("Invalid query string parameters: {violation}")))
        }
    }
}

/// Whether a text is a uuid as bodies take it: 32 hexadecimal digits once `urn:`, `uuid:`,
/// braces and hyphens are gone, in either case.
#[must_use]
pub fn is_lenient_uuid(text: &str) -> bool {
    canonical_uuid(text).is_some()
}

/// The canonical form (lower case, 8-4-4-4-12) of a text that [`is_lenient_uuid`].
#[must_use]
pub fn canonical_uuid(text: &str) -> Option<String> {
    const LONGEST: usize = 256;
    if text.len() > LONGEST {
        return None;
    }
    let bare = text.replace("urn:", "").replace("uuid:", "");
    let digits: String = bare.trim_matches(['{', '}']).chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    uuid::Uuid::try_parse(&digits).ok().map(|uuid| uuid.hyphenated().to_string())
}

/// Whether a text is a uuid with its hyphens in their places.
#[must_use]
pub fn is_hyphenated_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_taken_leniently_and_made_canonical() {
        let canonical = "0123abcd-0123-abcd-0123-abcd0123abcd";
        for text in [
            canonical,
            "0123ABCD-0123-ABCD-0123-ABCD0123ABCD",
            "0123abcd0123abcd0123abcd0123abcd",
            "urn:uuid:0123abcd-0123-abcd-0123-abcd0123abcd",
            "{0123abcd-0123-abcd-0123-abcd0123abcd}",
            "0123-abcd0123abcd0123abcd0123ab-cd",
        ] {
            assert_eq!(canonical_uuid(text).as_deref(), Some(canonical), "{text}");
        }
        for text in
            ["", "foo", "0123abcd0123abcd0123abcd0123abc", "g123abcd0123abcd0123abcd0123abcd"]
        {
            assert_eq!(canonical_uuid(text), None, "{text}");
        }
        assert!(is_hyphenated_uuid(canonical));
        assert!(!is_hyphenated_uuid("0123abcd0123abcd0123abcd0123abcd"));
    }

    #[test]
    fn the_newest_schema_not_newer_than_the_version_counts() {
        use crate::http::microversion::{MAX, MIN, TREES};
        let versions = Versions::new([
            (MIN, serde_json::json!({"type": "object"})),
            (TREES, serde_json::json!({"type": "array"})),
        ]);
        let list = serde_json::json!([]);
        assert!(check::check(versions.at(MIN), &list).is_some());
        assert!(check::check(versions.at(TREES), &list).is_none());
        assert!(check::check(versions.at(MAX), &list).is_none());
    }
}
