//! Allocations of consumers, as PUT, POST and the reshaper take them.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::Versions;
use crate::http::microversion::{
    ALLOCATIONS_BY_PROVIDER, CONSUMER_GENERATIONS, CONSUMER_TYPES, MAPPINGS, MIN, POST_ALLOCATIONS,
    PROJECT_AND_USER, Version,
};

/// Keys that are uuids.
pub(super) const UUID_KEY: &str = "^[0-9a-fA-F-]{36}$";

/// The body of `PUT /allocations/{consumer}`.
pub static REPLACE: LazyLock<Versions> = LazyLock::new(|| {
    let mut by_provider = by_provider();
    by_provider["properties"]["allocations"]["minProperties"] = json!(1);
    let mut schemas = vec![
        (MIN, listed()),
        (PROJECT_AND_USER, with_owner(listed())),
        (ALLOCATIONS_BY_PROVIDER, by_provider),
    ];
    schemas.extend(with_generations());
    Versions::new(schemas)
});

/// The body of `POST /allocations`.
pub static MANAGE: LazyLock<Versions> = LazyLock::new(|| Versions::new(manage()));

/// The schemas of a set of consumers with their allocations, by version; not empty.
pub(super) fn manage() -> Vec<(Version, Value)> {
    let mut schemas = vec![(POST_ALLOCATIONS, by_provider())];
    schemas.extend(with_generations());
    let of_many = |(since, one): (Version, Value)| {
        let many = json!({
            "type": "object",
            "minProperties": 1,
            "additionalProperties": false,
            "patternProperties": {UUID_KEY: one},
        });
        (since, many)
    };
    schemas.into_iter().map(of_many).collect()
}

fn resources() -> Value {
    json!({
        "type": "object",
        "minProperties": 1,
        "patternProperties": {"^[A-Z0-9_]+$": {"type": "integer", "minimum": 1}},
        "additionalProperties": false,
    })
}

fn listed() -> Value {
    json!({
        "type": "object",
        "properties": {
            "allocations": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "resource_provider": {
                            "type": "object",
                            "properties": {"uuid": {"type": "string", "format": "uuid"}},
                            "additionalProperties": false,
                            "required": ["uuid"],
                        },
                        "resources": resources(),
                    },
                    "required": ["resource_provider", "resources"],
                    "additionalProperties": false,
                },
            },
        },
        "required": ["allocations"],
        "additionalProperties": false,
    })
}

fn by_provider() -> Value {
    let mut schema = listed();
    schema["properties"]["allocations"] = json!({
        "type": "object",
        "patternProperties": {
            UUID_KEY: {
                "type": "object",
                "properties": {"generation": {"type": "integer"}, "resources": resources()},
                "required": ["resources"],
                "additionalProperties": false,
            },
        },
        "additionalProperties": false,
    });
    let mut schema = with_owner(schema);
    // The order of keywords says which of two violations is told.
    if let Some(keywords) = schema.as_object_mut()
        && let Some(required) = keywords.shift_remove("required")
    {
        keywords.insert("required".to_owned(), required);
    }
    schema
}

fn with_owner(mut schema: Value) -> Value {
    let id = json!({"type": "string", "minLength": 1, "maxLength": 255});
    schema["properties"]["project_id"] = id.clone();
    schema["properties"]["user_id"] = id;
    schema["required"] = json!(["allocations", "project_id", "user_id"]);
    schema
}

/// The forms from 1.28 on, which PUT and POST share: allocations may be empty in both.
fn with_generations() -> [(Version, Value); 3] {
    let mut generations = by_provider();
    generations["properties"]["consumer_generation"] = json!({"type": ["integer", "null"]});
    generations["required"] =
        json!(["allocations", "project_id", "user_id", "consumer_generation"]);

    let mut mappings = generations.clone();
    mappings["properties"]["mappings"] = json!({
        "type": "object",
        "minProperties": 1,
        "patternProperties": {
            "^([a-zA-Z0-9_-]{1,64})?$": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "format": "uuid"},
            },
        },
        "additionalProperties": false,
    });

    let mut types = mappings.clone();
    types["properties"]["consumer_type"] =
        json!({"type": "string", "pattern": "^[A-Z0-9_]+$", "minLength": 1, "maxLength": 255});
    types["required"] =
        json!(["allocations", "project_id", "user_id", "consumer_generation", "consumer_type"]);
    [(CONSUMER_GENERATIONS, generations), (MAPPINGS, mappings), (CONSUMER_TYPES, types)]
}
