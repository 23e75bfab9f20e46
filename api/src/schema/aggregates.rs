//! A provider's aggregates.

use std::sync::LazyLock;

use serde_json::json;

use super::Versions;
use crate::http::microversion::{AGGREGATE_GENERATION, PROVIDER_AGGREGATES};

/// The body of `PUT .../aggregates`: a list, and from 1.19 an object with a generation.
pub static REPLACE: LazyLock<Versions> = LazyLock::new(|| {
    let list = json!({
        "type": "array",
        "items": {"type": "string", "format": "uuid"},
        "uniqueItems": true,
    });
    let object = json!({
        "type": "object",
        "properties": {"aggregates": list, "resource_provider_generation": {"type": "integer"}},
        "required": ["aggregates", "resource_provider_generation"],
        "additionalProperties": false,
    });
    Versions::new([(PROVIDER_AGGREGATES, list), (AGGREGATE_GENERATION, object)])
});
