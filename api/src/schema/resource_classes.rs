//! Resource classes.

use std::sync::LazyLock;

use serde_json::json;

use super::Versions;
use crate::http::microversion::RESOURCE_CLASSES;

/// The body of `POST /resource_classes` and, until 1.6, of `PUT /resource_classes/{name}`; from
/// 1.7 the name in the path is checked as if it were one.
pub static NAME: LazyLock<Versions> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "pattern": "^CUSTOM_[A-Z0-9_]+$", "minLength": 1, "maxLength": 255},
        },
        "required": ["name"],
        "additionalProperties": false,
    });
    Versions::new([(RESOURCE_CLASSES, schema)])
});
