//! Usages of a project.

use std::sync::LazyLock;

use serde_json::json;

use super::Versions;
use crate::http::microversion::{CONSUMER_TYPES, PROJECT_USAGES};

/// The query string of `GET /usages`.
pub static SHOW: LazyLock<Versions> = LazyLock::new(|| {
    let id = json!({"type": "string", "minLength": 1, "maxLength": 255});
    let first = json!({
        "type": "object",
        "properties": {"project_id": id, "user_id": id},
        "required": ["project_id"],
        "additionalProperties": false,
    });
    let mut types = first.clone();
    types["properties"]["consumer_type"] = json!({
        "type": "string",
        "pattern": "^[A-Z0-9_]+$|^all|^unknown$",
        "minLength": 1,
        "maxLength": 255,
    });
    Versions::new([(PROJECT_USAGES, first), (CONSUMER_TYPES, types)])
});
