//! `GET /`: which versions there are. It needs no authentication.

use serde_json::json;

use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::microversion::{MAX, MIN};
use crate::http::reply::Reply;

/// The version document.
///
/// # Errors
/// None that a client could cause.
pub fn show() -> Result<Reply, Failure> {
    let document = json!({
        "versions": [{
            "id": "v1.0",
            "status": "CURRENT",
            "min_version": MIN.to_string(),
            "max_version": MAX.to_string(),
            "links": [{"rel": "self", "href": ""}],
        }],
    });
    Ok(Reply::json(&document)?.modified(last_modified::now()))
}
