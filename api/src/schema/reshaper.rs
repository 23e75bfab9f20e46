//! The reshaper: inventories of providers and allocations of consumers in one request.

use std::sync::LazyLock;

use serde_json::json;

use super::allocations::UUID_KEY;
use super::{Versions, allocations, inventories};
use crate::http::microversion::RESHAPER;

/// The body of `POST /reshaper`. Its allocations have the form of `POST /allocations`, but may
/// be empty.
pub static RESHAPE: LazyLock<Versions> = LazyLock::new(|| {
    let schemas = allocations::manage().into_iter().map(|(since, mut allocations)| {
        if let Some(object) = allocations.as_object_mut() {
            object.remove("minProperties");
        }
        let schema = json!({
            "type": "object",
            "properties": {
                "inventories": {
                    "type": "object",
                    "minProperties": 1,
                    "patternProperties": {UUID_KEY: inventories::replace()},
                    "additionalProperties": false,
                },
                "allocations": allocations,
            },
            "required": ["inventories", "allocations"],
            "additionalProperties": false,
        });
        // The oldest form that counts is the newest before the reshaper.
        (since.max(RESHAPER), schema)
    });
    Versions::new(schemas)
});
