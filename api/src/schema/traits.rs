//! Traits, and traits of a provider.

use std::sync::LazyLock;

use serde_json::json;

use super::Versions;
use crate::http::microversion::TRAITS;

/// The body of `PUT .../traits`.
pub static REPLACE: LazyLock<Versions> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "traits": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 255}},
            "resource_provider_generation": {"type": "integer"},
        },
        "required": ["traits", "resource_provider_generation"],
        "additionalProperties": false,
    });
    Versions::new([(TRAITS, schema)])
});

/// The query string of `GET /traits`.
pub static LIST: LazyLock<Versions> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "associated": {"type": "string"}},
        "additionalProperties": false,
    });
    Versions::new([(TRAITS, schema)])
});
