//! Inventories. Numbers are 32-bit signed, as in Placement's database.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Versions;
use crate::http::microversion::MIN;

const LARGEST: i64 = 2_147_483_647;

/// The body of `POST .../inventories`.
pub static CREATE: LazyLock<Versions> = LazyLock::new(|| {
    let mut schema = record();
    schema["properties"]["resource_class"] = json!({"type": "string", "pattern": "^[A-Z0-9_]+$"});
    schema["required"] = json!(["resource_class", "total"]);
    Versions::new([(MIN, schema)])
});

/// The body of `PUT .../inventories/{class}`.
pub static UPDATE: LazyLock<Versions> = LazyLock::new(|| {
    let mut schema = record();
    schema["required"] = json!(["total", "resource_provider_generation"]);
    Versions::new([(MIN, schema)])
});

/// The body of `PUT .../inventories`.
pub static REPLACE: LazyLock<Versions> = LazyLock::new(|| Versions::new([(MIN, replace())]));

/// The schema of a whole set of inventories, which the reshaper takes too. Keys that could not
/// be a class are let through here: that they are unknown is told later.
pub(super) fn replace() -> Value {
    json!({
        "type": "object",
        "properties": {
            "resource_provider_generation": {"type": "integer"},
            "inventories": {"type": "object", "patternProperties": {"^[A-Z0-9_]+$": record()}},
        },
        "required": ["resource_provider_generation", "inventories"],
        "additionalProperties": false,
    })
}

fn record() -> Value {
    let from = |least: i64| json!({"type": "integer", "minimum": least, "maximum": LARGEST});
    json!({
        "type": "object",
        "properties": {
            "resource_provider_generation": {"type": "integer"},
            "total": from(1),
            "reserved": from(0),
            "min_unit": from(1),
            "max_unit": from(1),
            "step_size": from(1),
            "allocation_ratio": {"type": "number", "maximum": 3.40282e38},
        },
        "required": ["total"],
        "additionalProperties": false,
    })
}
