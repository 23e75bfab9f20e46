//! Resource providers.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Versions;
use crate::http::microversion::{
    MIN, PROVIDERS_MEMBER_OF, PROVIDERS_REQUIRED, PROVIDERS_RESOURCES, TREES,
};

/// The body of `POST /resource_providers`.
pub static CREATE: LazyLock<Versions> = LazyLock::new(|| {
    let mut first = update_1_0();
    first["properties"]["uuid"] = json!({"type": "string", "format": "uuid"});
    let trees = with_parent(first.clone());
    Versions::new([(MIN, first), (TREES, trees)])
});

/// The body of `PUT /resource_providers/{uuid}`.
pub static UPDATE: LazyLock<Versions> =
    LazyLock::new(|| Versions::new([(MIN, update_1_0()), (TREES, with_parent(update_1_0()))]));

/// The query string of `GET /resource_providers`.
pub static LIST: LazyLock<Versions> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let uuid = json!({"type": "string", "format": "hyphenated-uuid"});
    let first = json!({
        "type": "object",
        "properties": {"name": text, "uuid": uuid},
        "additionalProperties": false,
    });
    let with = |schema: &Value, name: &str, property: &Value| {
        let mut schema = schema.clone();
        schema["properties"][name] = property.clone();
        schema
    };
    let member_of = with(&first, "member_of", &text);
    let resources = with(&member_of, "resources", &text);
    let in_tree = with(&resources, "in_tree", &uuid);
    let required = with(&in_tree, "required", &text);
    Versions::new([
        (MIN, first),
        (PROVIDERS_MEMBER_OF, member_of),
        (PROVIDERS_RESOURCES, resources),
        (TREES, in_tree),
        (PROVIDERS_REQUIRED, required),
    ])
});

fn update_1_0() -> Value {
    json!({
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 200}},
        "required": ["name"],
        "additionalProperties": false,
    })
}

fn with_parent(mut schema: Value) -> Value {
    schema["properties"]["parent_provider_uuid"] =
        json!({"type": ["string", "null"], "format": "uuid"});
    schema
}
