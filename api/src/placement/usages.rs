//! `GET /usages`: what a project, or a user of it, holds.

use projector::usage::TypeUsage;
use serde_json::{Map, Value, json};

use super::allocations::UNKNOWN_TYPE;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::microversion::CONSUMER_TYPES;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;
use crate::schema;

/// The filter value, and the key of the answer, for consumers of all types together.
const ALL: &str = "all";

/// The handler.
///
/// # Errors
/// 400.
pub async fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    schema::check_query(&query.to_object(), schema::usages::SHOW.at(request.version))?;
    let view = app.usages(request).await?;
    let project = query.last("project_id").unwrap_or_default();
    let by_type = view.project(project, query.last("user_id"));
    let usages = if request.version >= CONSUMER_TYPES {
        filtered(&by_type, query.last("consumer_type"))
    } else {
        sum(&by_type).0
    };
    Ok(Reply::json(&json!({ "usages": usages }))?.modified(last_modified::now()))
}

/// The project that a query is about, for the policy.
#[must_use]
pub fn project(query: &str) -> Option<String> {
    Query::parse(query).ok()?.last("project_id").map(str::to_owned)
}

/// The form from 1.38 on: by type, with the number of consumers.
fn filtered(by_type: &[TypeUsage], filter: Option<&str>) -> Map<String, Value> {
    if filter == Some(ALL) {
        let all = (!by_type.is_empty()).then(|| (ALL.to_owned(), counted(by_type)));
        return all.into_iter().collect();
    }
    let named =
        by_type.iter().map(|usage| (usage.consumer_type.as_deref().unwrap_or(UNKNOWN_TYPE), usage));
    let wanted = named.filter(|(name, _)| filter.is_none_or(|filter| filter == *name));
    wanted.map(|(name, usage)| (name.to_owned(), counted(std::slice::from_ref(usage)))).collect()
}

fn counted(usages: &[TypeUsage]) -> Value {
    let (mut amounts, consumers) = sum(usages);
    amounts.insert("consumer_count".to_owned(), consumers.into());
    Value::Object(amounts)
}

/// Amounts by class, and how many consumers hold them.
fn sum(usages: &[TypeUsage]) -> (Map<String, Value>, u64) {
    let mut amounts = std::collections::BTreeMap::<&str, u64>::new();
    for (class, amount) in usages.iter().flat_map(|usage| &usage.amounts) {
        let sum = amounts.entry(class).or_default();
        *sum = sum.saturating_add(*amount);
    }
    let consumers = usages.iter().map(|usage| usage.consumer_count).sum();
    (
        amounts.into_iter().map(|(class, amount)| (class.to_owned(), amount.into())).collect(),
        consumers,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usages() -> Vec<TypeUsage> {
        let usage = |name: Option<&str>, vcpus, consumer_count| TypeUsage {
            consumer_type: name.map(Into::into),
            consumer_count,
            amounts: [("VCPU".into(), vcpus)].into(),
        };
        vec![usage(None, 1, 1), usage(Some("INSTANCE"), 6, 3)]
    }

    #[test]
    fn types_are_told_apart_unless_all_are_wanted() {
        let by_type = Value::Object(filtered(&usages(), None));
        let expected = json!({
            "unknown": {"VCPU": 1, "consumer_count": 1},
            "INSTANCE": {"VCPU": 6, "consumer_count": 3},
        });
        assert_eq!(by_type, expected);
        assert_eq!(filtered(&usages(), Some("INSTANCE")).len(), 1);
        assert_eq!(filtered(&usages(), Some("unknown")).len(), 1);
        let all = Value::Object(filtered(&usages(), Some(ALL)));
        assert_eq!(all, json!({"all": {"VCPU": 7, "consumer_count": 4}}));
    }

    #[test]
    fn nothing_held_is_an_empty_answer() {
        assert!(filtered(&[], Some(ALL)).is_empty());
        assert!(filtered(&[], None).is_empty());
        assert_eq!(sum(&usages()).0["VCPU"], 7);
    }
}
