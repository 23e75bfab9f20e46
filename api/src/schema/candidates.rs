//! Allocation candidates.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Versions;
use crate::http::microversion::{
    CANDIDATES, CANDIDATES_IN_TREE, CANDIDATES_LIMIT, CANDIDATES_MEMBER_OF, CANDIDATES_REQUIRED,
    GRANULAR, NAMED_GROUPS, ROOT_REQUIRED, SAME_SUBTREE,
};

/// Suffixes of request groups from 1.25: numbers.
pub const NUMBERED: &str = "([1-9][0-9]*)?";
/// Suffixes of request groups from 1.33: names.
pub const NAMED: &str = "([a-zA-Z0-9_-]{1,64})?";

/// The query string of `GET /allocation_candidates`.
pub static LIST: LazyLock<Versions> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let first = json!({
        "type": "object",
        "properties": {"resources": text},
        "required": ["resources"],
        "additionalProperties": false,
    });
    let with = |schema: &Value, name: &str, property: &Value| {
        let mut schema = schema.clone();
        schema["properties"][name] = property.clone();
        schema
    };
    let limited = with(&first, "limit", &limit());
    let required = with(&limited, "required", &text);
    let member_of = with(&required, "member_of", &text);
    let old = ["resources", "required", "member_of"];
    let new = ["resources", "required", "member_of", "in_tree"];
    let named = granular(&new, NAMED);
    let root = with(&named, "root_required", &text);
    let subtree = with(&root, "same_subtree", &text);
    Versions::new([
        (CANDIDATES, first),
        (CANDIDATES_LIMIT, limited),
        (CANDIDATES_REQUIRED, required),
        (CANDIDATES_MEMBER_OF, member_of),
        (GRANULAR, granular(&old, NUMBERED)),
        (CANDIDATES_IN_TREE, granular(&new, NUMBERED)),
        (NAMED_GROUPS, named),
        (ROOT_REQUIRED, root),
        (SAME_SUBTREE, subtree),
    ])
});

fn limit() -> Value {
    json!({"type": ["integer", "string"], "pattern": "^[1-9][0-9]*$", "minimum": 1, "minLength": 1})
}

/// The form from 1.25 on: parameters with a suffix.
fn granular(parameters: &[&str], suffix: &str) -> Value {
    let text = || json!({"type": "string"});
    let patterns: serde_json::Map<String, Value> =
        parameters.iter().map(|name| (format!("^{name}{suffix}$"), text())).collect();
    json!({
        "type": "object",
        "properties": {"limit": limit(), "group_policy": {"type": "string", "enum": ["none", "isolate"]}},
        "patternProperties": patterns,
        "additionalProperties": false,
    })
}
