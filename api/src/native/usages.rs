//! `GET /ledger/v1/usages`: what projects hold, with and without what moves hold, and their limits.

use std::collections::BTreeMap;

use ledger::state::State;
use projector::usage::TypeUsage;
use projector::{Projection, UsageView};
use serde::Serialize;

use super::media::Form;
use super::page::no_filter;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::placement::allocations::UNKNOWN_TYPE;
use crate::query::Query;

/// What is asked for; none: everybody, every type.
#[derive(Default)]
struct Filter {
    project: Option<String>,
    user: Option<String>,
    consumer_type: Option<String>,
}

#[derive(Serialize)]
struct Body {
    sequence: u64,
    project: Option<String>,
    user: Option<String>,
    #[serde(rename = "type")]
    consumer_type: Option<String>,
    consumers: u64,
    classes: BTreeMap<String, Figures>,
    types: BTreeMap<String, OfType>,
}

#[derive(Default, Serialize)]
struct OfType {
    consumers: u64,
    classes: BTreeMap<String, Figures>,
}

/// What is held of one class, in its unit.
#[derive(Clone, Copy, Default, Serialize)]
struct Figures {
    held: u64,
    held_by_moves: u64,
    without_moves: u64,
    /// How much may be held; told only of a whole project.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<Option<u64>>,
}

/// `GET /ledger/v1/usages`: filters `project`, `user` and `type`.
///
/// # Errors
/// 400; 503 if the view does not come in time.
pub async fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let filter = Filter::parse(&request.query)?;
    let view = app.usages(request).await?;
    let state = app.view_for(request);
    let form = Form::of_answer(&request.headers);
    app.long_read(|| form.reply(&body(&view, &state, filter))).await
}

fn body(view: &UsageView, state: &State, filter: Filter) -> Body {
    let mut types: BTreeMap<String, OfType> = BTreeMap::new();
    let (project, user) = (filter.project.as_deref(), filter.user.as_deref());
    for usage in view.held_of(project, user).iter().filter(|usage| filter.covers(usage)) {
        let of_type = types.entry(name(usage).to_owned()).or_default();
        of_type.consumers = usage.consumer_count;
        for (class, &held) in &usage.amounts {
            let figures = Figures { held, without_moves: held, ..Figures::default() };
            of_type.classes.insert(class.to_string(), figures);
        }
    }
    for usage in view.held_by_moves_of(project, user).iter().filter(|usage| filter.covers(usage)) {
        let of_type = types.entry(name(usage).to_owned()).or_default();
        for (class, &amount) in &usage.amounts {
            let figures = of_type.classes.entry(class.to_string()).or_default();
            figures.held_by_moves = amount;
            figures.without_moves = figures.held.saturating_sub(amount);
        }
    }
    let mut body = Body {
        sequence: view.sequence(),
        consumers: types.values().map(|of_type| of_type.consumers).sum(),
        classes: sum(&types),
        types,
        project: filter.project,
        user: filter.user,
        consumer_type: filter.consumer_type,
    };
    body.add_limits(state);
    body
}

fn sum(types: &BTreeMap<String, OfType>) -> BTreeMap<String, Figures> {
    let mut sums: BTreeMap<String, Figures> = BTreeMap::new();
    for (class, figures) in types.values().flat_map(|of_type| &of_type.classes) {
        let sum = sums.entry(class.clone()).or_default();
        sum.held = sum.held.saturating_add(figures.held);
        sum.held_by_moves = sum.held_by_moves.saturating_add(figures.held_by_moves);
        sum.without_moves = sum.without_moves.saturating_add(figures.without_moves);
    }
    sums
}

fn name(usage: &TypeUsage) -> &str {
    usage.consumer_type.as_deref().unwrap_or(UNKNOWN_TYPE)
}

impl Body {
    /// Adds the limits, also of classes of which the project holds nothing.
    fn add_limits(&mut self, state: &State) {
        let Some(project) = &self.project else { return };
        if self.user.is_some() || self.consumer_type.is_some() {
            return;
        }
        for (id, class, _) in state.classes().iter() {
            let limit = state.limit_of(project, id);
            if limit.is_some() || self.classes.contains_key(&**class) {
                self.classes.entry(class.to_string()).or_default().limit = Some(limit);
            }
        }
    }
}

impl Filter {
    fn parse(query: &str) -> Result<Self, Failure> {
        let mut filter = Self::default();
        for (name, value) in Query::parse(query)?.pairs() {
            match name {
                "project" => filter.project = Some(value.to_owned()),
                "user" => filter.user = Some(value.to_owned()),
                "type" => filter.consumer_type = Some(value.to_owned()),
                other => return Err(no_filter(other)),
            }
        }
        Ok(filter)
    }

    fn covers(&self, usage: &TypeUsage) -> bool {
        self.consumer_type.as_deref().is_none_or(|wanted| wanted == name(usage))
    }
}
