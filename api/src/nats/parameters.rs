//! From a query's name and its object of parameters to the path and query string of a GET.
//!
//! A query is called as its operation is in the metrics, without `ledger_`, `list_` and `show_`:
//! `usages`, `candidates`, `fits`, `consumer`, `moves`. Where Placement and the ledger have a list
//! of the same name, it is the ledger's; Placement's goes by its whole name (`list_traits`,
//! `show_usages`). New routes are thus queries at once.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::http::failure::Failure;
use crate::http::operation::Operation;
use crate::http::router;

/// What the variable parts of a path are called in the object of parameters.
const VARIABLES: [&str; 2] = ["id", "class"];

/// A GET: its operation's path with everything filled in, and its query string.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Get {
    pub(super) path: String,
    pub(super) query: String,
}

/// The GET of a query.
///
/// # Errors
/// 404 if there is no such query, 400 for parameters that are none.
pub(super) fn get(name: &str, parameters: Map<String, Value>) -> Result<Get, Failure> {
    let parts = find(name).ok_or_else(|| unknown(name))?;
    let mut parameters = parameters;
    let mut path = String::new();
    let mut variables = VARIABLES.iter();
    for part in parts {
        path.push('/');
        if *part != "*" {
            path.push_str(part);
            continue;
        }
        let variable = variables.next().copied().unwrap_or_default();
        let value = parameters.remove(variable).as_ref().and_then(text).ok_or_else(|| {
            Failure::bad_request(format!("The query {name} needs the parameter {variable}."))
        })?;
        path.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
    }
    Ok(Get { path, query: query_string(&parameters)? })
}

fn find(name: &str) -> Option<&'static [&'static str]> {
    let wanted = match name {
        "explain" => "explain_candidates",
        other => other,
    };
    let of = |prefix: &str| {
        let found = router::readable().find(|(operation, _)| {
            operation.name().strip_prefix(prefix) == Some(wanted) && can_be_asked(*operation)
        });
        found.map(|(_, path)| path)
    };
    ["ledger_", "list_", "show_", ""].into_iter().find_map(of)
}

/// Whether an answer ends: the stream of events does not.
fn can_be_asked(operation: Operation) -> bool {
    operation != Operation::LedgerEventStream
}

fn unknown(name: &str) -> Failure {
    Failure::not_found(format!("There is no query {name}.")).field("cause", "unknown_query")
}

fn query_string(parameters: &Map<String, Value>) -> Result<String, Failure> {
    let mut pairs = Vec::new();
    for (name, value) in parameters {
        let values = match value {
            Value::Null => continue,
            Value::Array(values) => values.as_slice(),
            one => std::slice::from_ref(one),
        };
        for value in values {
            let value = text(value).ok_or_else(|| {
                Failure::bad_request(format!("The parameter {name} cannot be {value}."))
            })?;
            let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            pairs.push(format!("{}={}", encoded(name), encoded(&value)));
        }
    }
    Ok(pairs.join("&"))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(name: &str, parameters: Value) -> Result<(String, String), u16> {
        let parameters = parameters.as_object().cloned().expect("an object");
        get(name, parameters).map(|get| (get.path, get.query)).map_err(|it| it.status.as_u16())
    }

    #[test]
    fn queries_are_the_routes_that_read() {
        let got = |path: &str, query: &str| Ok((path.to_owned(), query.to_owned()));
        assert_eq!(
            asked("show_usages", json!({"project_id": "a b"})),
            got("/usages", "project%5Fid=a%20b")
        );
        assert_eq!(asked("consumer", json!({"id": "x/y"})), got("/ledger/v1/consumers/x%2Fy", ""));
        assert_eq!(
            asked("candidates", json!({"limit": 3, "none": null})),
            got("/allocation_candidates", "limit=3")
        );
        assert_eq!(asked("traits", json!({})), got("/ledger/v1/traits", ""));
        assert_eq!(asked("list_traits", json!({})), got("/traits", ""));
        assert_eq!(
            asked("explain", json!({"a": [1, true]})),
            got("/ledger/v1/explain/candidates", "a=1&a=true")
        );
        assert_eq!(
            asked("inventory", json!({"id": "p", "class": "VCPU"})),
            got("/resource_providers/p/inventories/VCPU", "")
        );
        assert!(asked("moves", json!({})).is_ok() && asked("fits", json!({})).is_ok());
    }

    #[test]
    fn what_cannot_be_asked_is_told() {
        assert_eq!(asked("fly", json!({})), Err(404));
        assert_eq!(asked("event_stream", json!({})), Err(404));
        assert_eq!(asked("create_provider", json!({})), Err(404));
        assert_eq!(asked("consumer", json!({})), Err(400));
        assert_eq!(asked("usages", json!({"a": {}})), Err(400));
    }
}
