//! `GET /ledger/v1/moves` and `/ledger/v1/moves/{id}`.

use std::sync::Arc;

use ledger::command::MoveKind;
use ledger::ids::{ConsumerUuid, MoveId};
use ledger::state::{MoveEntry, State};
use projector::moves::{Step, Story, read_story};
use serde_json::{Value, json};

use super::page::no_filter;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;
use crate::unreadable::unreadable;

/// Moves of a page, unless the client says how many.
const PAGE: usize = 1_000;
/// The most moves of a page.
const LARGEST_PAGE: usize = 10_000;

/// `GET /ledger/v1/moves`: in the order in which they opened; filters `consumer` (either side),
/// `state`, `live` (`true`: those that go on), `after` (the sequence that opened a move) and
/// `limit`.
///
/// # Errors
/// 400.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let filter = Filter::parse(&request.query)?;
    let view = app.view();
    let mut entries: Vec<&MoveEntry> = match filter.consumer {
        Some(consumer) => view.moves().of(consumer).map(|entry| &**entry).collect(),
        None => view.moves().iter().map(|entry| &**entry).collect(),
    };
    entries.retain(|entry| filter.covers(entry));
    entries.sort_unstable_by_key(|entry| (entry.opened_sequence, entry.this.id));
    let more = entries.len() > filter.limit;
    entries.truncate(filter.limit);
    let next = entries.last().filter(|_| more).map(|entry| entry.opened_sequence);
    let moves: Vec<Value> = entries.iter().map(|entry| shown(&view, entry)).collect();
    Reply::json(&json!({ "moves": moves, "sequence": view.sequence(), "next_after": next }))
}

/// `GET /ledger/v1/moves/{id}`: the move and its story, step by step.
///
/// # Errors
/// 404.
pub async fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let text = request.param(0);
    let unknown =
        || Failure::not_found(format!("No move {text} is kept. Its events may still be."));
    let id: MoveId = text.parse().map_err(|_| unknown())?;
    let stories = app.moves().await?;
    let view = app.view();
    let entry = view.moves().get(id).ok_or_else(unknown)?;
    let mut body = shown(&view, entry);
    let story = match stories.get(id) {
        Some(story) if story.left_out == 0 => Some(Arc::clone(story)),
        // The view does not keep all steps of all moves.
        _ => app.long_read(|| from_log(app, id, view.sequence())).await?.map(Arc::new),
    };
    if let Some(story) = story {
        body["steps"] = story.steps.iter().map(|step| told(step)).collect();
        body["steps_left_out"] = story.left_out.into();
    }
    body["sequence"] = view.sequence().into();
    Reply::json(&body)
}

fn from_log(app: &App, id: MoveId, until: u64) -> Result<Option<Story>, Failure> {
    read_story(id, until, &*app.ledger.reader()).map_err(|error| unreadable(&error))
}

fn told(step: &Step) -> Value {
    let refused = step
        .refused
        .as_ref()
        .map(|(cause, shortages)| json!({ "cause": cause, "shortages": shortages }));
    json!({
        "sequence": step.sequence,
        "at": step.at.to_string(),
        "kind": step.kind,
        "attempt": step.attempt,
        "state": step.state,
        "request_id": step.request_id,
        "via": step.via,
        "reason": step.reason,
        "finding": step.finding,
        "refused": refused,
        "source": step.source,
        "destination": step.destination,
    })
}

struct Filter {
    consumer: Option<ConsumerUuid>,
    state: Option<String>,
    kind: Option<MoveKind>,
    live: Option<bool>,
    after: u64,
    limit: usize,
}

impl Filter {
    fn parse(query: &str) -> Result<Self, Failure> {
        let mut filter =
            Self { consumer: None, state: None, kind: None, live: None, after: 0, limit: PAGE };
        let query = Query::parse(query)?;
        for (name, value) in query.pairs() {
            let bad = || Failure::bad_request(format!("{name} cannot be {value}."));
            match name {
                "consumer" => filter.consumer = Some(value.parse().map_err(|_| bad())?),
                "state" => filter.state = Some(value.to_owned()),
                "kind" => {
                    filter.kind = Some(serde_json::from_value(value.into()).map_err(|_| bad())?)
                }
                "live" => filter.live = Some(value.parse().map_err(|_| bad())?),
                "after" => filter.after = value.parse().map_err(|_| bad())?,
                "limit" => {
                    filter.limit = value.parse::<usize>().map_err(|_| bad())?.clamp(1, LARGEST_PAGE)
                }
                other => return Err(no_filter(other)),
            }
        }
        Ok(filter)
    }

    fn covers(&self, entry: &MoveEntry) -> bool {
        let this = &entry.this;
        entry.opened_sequence > self.after
            && self.state.as_deref().is_none_or(|state| state == this.state.name())
            && self.kind.is_none_or(|kind| kind == this.kind)
            && self.live.is_none_or(|live| live == this.state.is_live())
    }
}

/// A move, with what each side holds now: who forgot to clean up shows at once.
fn shown(view: &State, entry: &MoveEntry) -> Value {
    let mut body = json!(entry.this);
    let migration_holds = entry.this.migration.map(|migration| view.holding_of(migration));
    let more = json!({
        "inferred": entry.this.inferred,
        "live": entry.this.state.is_live(),
        "opened_at": entry.opened_at.to_string(),
        "opened_sequence": entry.opened_sequence,
        "changed_at": entry.changed_at.to_string(),
        "changed_sequence": entry.changed_sequence,
        "instance_holds": view.holding_of(entry.this.instance),
        "migration_holds": migration_holds,
    });
    if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
        body.extend(more);
    }
    body
}
