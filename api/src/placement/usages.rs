//! `GET /usages`: what a project, or a user of it, holds.

use std::collections::BTreeMap;

use ledger::state::{Consumer, State};
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

/// Amounts by class, and how many consumers hold them.
#[derive(Default)]
struct Sum {
    amounts: BTreeMap<u32, u64>,
    consumers: u64,
}

impl Sum {
    fn add(&mut self, consumer: &Consumer) {
        self.consumers += 1;
        for allocation in &consumer.allocations {
            *self.amounts.entry(allocation.class).or_default() += u64::from(allocation.amount);
        }
    }

    fn shown(&self, view: &State) -> Map<String, Value> {
        let amounts = self.amounts.iter();
        amounts
            .map(|(class, amount)| (view.classes().name(*class).to_string(), (*amount).into()))
            .collect()
    }
}

/// The handler.
///
/// # Errors
/// 400.
pub fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    schema::check_query(&query.to_object(), schema::usages::SHOW.at(request.version))?;
    let view = app.view();
    let consumers = consumers(&view, &query);
    let usages = if request.version >= CONSUMER_TYPES {
        by_type(&view, consumers, query.last("consumer_type"))
    } else {
        let mut sum = Sum::default();
        consumers.for_each(|consumer| sum.add(consumer));
        sum.shown(&view)
    };
    Ok(Reply::json(&json!({ "usages": usages }))?.modified(last_modified::now()))
}

/// The project that a query is about, for the policy.
#[must_use]
pub fn project(query: &str) -> Option<String> {
    Query::parse(query).ok()?.last("project_id").map(str::to_owned)
}

fn consumers<'a>(view: &'a State, query: &Query) -> impl Iterator<Item = &'a Consumer> {
    let project = query.last("project_id").and_then(|name| view.projects().number(name));
    let user = query.last("user_id").map(|name| view.users().number(name));
    let wanted = move |consumer: &Consumer| {
        Some(consumer.project) == project && user.is_none_or(|user| user == Some(consumer.user))
    };
    view.consumers().map(|(_, consumer)| &**consumer).filter(move |consumer| wanted(consumer))
}

fn by_type<'a>(
    view: &State,
    consumers: impl Iterator<Item = &'a Consumer>,
    filter: Option<&str>,
) -> Map<String, Value> {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for consumer in consumers {
        let name = consumer.consumer_type.map_or(UNKNOWN_TYPE, |id| view.consumer_types().name(id));
        match filter {
            Some(ALL) => sums.entry(ALL).or_default().add(consumer),
            Some(filter) if filter != name => {}
            _ => sums.entry(name).or_default().add(consumer),
        }
    }
    let shown = sums.iter().map(|(name, sum)| {
        let mut shown = sum.shown(view);
        shown.insert("consumer_count".to_owned(), sum.consumers.into());
        ((*name).to_owned(), Value::Object(shown))
    });
    shown.collect()
}
