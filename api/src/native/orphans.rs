//! `GET /ledger/v1/orphans`: holdings that nobody will give back by himself, each with the request
//! that left it behind and the commands that put it right.

use std::collections::BTreeMap;

use ledger::ids::ConsumerUuid;
use ledger::log::LogReader;
use ledger::record::Header;
use ledger::stamp::Actor;
use ledger::state::State;
use ledger::time::Timestamp;
use projector::orphans::Kind;
use serde_json::{Map, Value, json};

use super::consumer::last_sequences;
use super::consumer_filter::{micros_of, role};
use super::media::Form;
use super::page::{self, Page};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::last_modified;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::orphans::Orphan;
use crate::query::Query;
use crate::unreadable::unreadable;

/// Which orphans are wanted.
#[derive(Default)]
struct Filter {
    kind: Option<String>,
    /// Microseconds that they have been so.
    older_than: Option<i64>,
    /// Microseconds that a move may be open, if it is not the option.
    open_longer_than: Option<i64>,
}

/// `GET /ledger/v1/orphans`: in the order of consumers; filters `kind`, `older_than`,
/// `open_longer_than` (seconds, or such as `1h30m`), and `after` (a uuid) and `limit`.
///
/// # Errors
/// 400.
pub async fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let (filter, page) = Filter::parse(&request.query)?;
    let form = Form::of_answer(&request.headers);
    app.long_read(|| form.reply(&body(app, &filter, &page)?)).await
}

fn body(app: &App, filter: &Filter, page: &Page<ConsumerUuid>) -> Result<Value, Failure> {
    let state = app.view();
    app.orphans.look(&state);
    let now = Timestamp::from_micros(last_modified::now());
    let bound = filter.open_longer_than.unwrap_or(app.orphans.bound());
    let mut found = app.orphans.of(&state, now, bound);
    found.retain(|_, orphan| filter.covers(now, orphan));
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for orphan in found.values() {
        *by_kind.entry(orphan.finding.kind.name()).or_default() += 1;
    }
    let total = found.len();
    let (rows, next) = page::cut(page, found.into_iter());
    let reader = app.ledger.reader();
    let rows: Result<Vec<Value>, Failure> =
        rows.iter().map(|(_, orphan)| shown(&state, &*reader, now, orphan)).collect();
    Ok(json!({
        "sequence": state.sequence(),
        "as_of": now.to_string(),
        "open_longer_than_seconds": bound / 1_000_000,
        "total": total,
        "by_kind": by_kind,
        "next_after": next,
        "orphans": rows?,
    }))
}

/// An orphan as it is listed, with the last event about its consumer up to the state's sequence.
pub(super) fn shown(
    state: &State,
    reader: &dyn LogReader,
    now: Timestamp,
    orphan: &Orphan,
) -> Result<Value, Failure> {
    let finding = &orphan.finding;
    let row = state.consumer(finding.consumer);
    let entry = finding.move_id.and_then(|id| state.moves().get(id));
    let owner = row.map(|row| {
        let (project, user) = (state.projects().name(row.project), state.users().name(row.user));
        json!({ "project_id": project, "user_id": user })
    });
    let owner = owner.or_else(|| entry.map(|entry| json!(entry.this.owner)));
    let last = last_event(reader, finding.consumer, state.sequence())?;
    let mut shown = json!({
        "kind": finding.kind,
        "text": finding.kind.words(),
        "consumer": finding.consumer,
        "consumer_type": row.and_then(|row| row.consumer_type).map(|id| state.consumer_types().name(id)),
        "role": role(state, finding.consumer),
        "holds": state.holding_of(finding.consumer),
        "move": finding.move_id,
        "migration": entry.and_then(|entry| entry.this.migration),
        "inferred": entry.is_some_and(|entry| entry.this.inferred),
        "source": entry.map(|entry| &entry.this.source),
        "since": finding.since.to_string(),
        "age_seconds": now.seconds().saturating_sub(finding.since.seconds()).max(0),
        "last": last.map(|(header, actor)| told(&header, &actor)),
        "mend": finding.mend,
    });
    let more = orphan.source.as_ref().map(|source| {
        json!({ "told": {
            "as_of": source.as_of.to_string(),
            "user": source.user,
            "request_id": source.request_id,
            "provider": source.provider,
        } })
    });
    for part in [owner, more].into_iter().flatten() {
        if let (Some(shown), Value::Object(part)) = (shown.as_object_mut(), part) {
            shown.extend(Map::from_iter(
                part.into_iter().filter(|(name, _)| name != "consumer_type"),
            ));
        }
    }
    Ok(shown)
}

fn told(header: &Header, actor: &Option<Actor>) -> Value {
    json!({
        "sequence": header.sequence,
        "kind": header.kind,
        "at": header.recorded_at.to_string(),
        "request_id": header.request_id,
        "actor": actor,
    })
}

/// The last event about a consumer, refusals included, and who asked (none: that was erased).
pub(super) fn last_event(
    reader: &dyn LogReader,
    consumer: ConsumerUuid,
    until: u64,
) -> Result<Option<(Header, Option<Actor>)>, Failure> {
    let read = || {
        let Some(&last) = last_sequences(reader, consumer, until)?.last() else { return Ok(None) };
        let Some(record) = reader.record(last)? else { return Ok(None) };
        let private = reader.private(last)?;
        let actor = private.and_then(|private| private.actor().ok());
        Ok(Some((record.header, actor)))
    };
    read().map_err(|error: ledger::log::LogError| unreadable(&error))
}

impl Filter {
    fn parse(text: &str) -> Result<(Self, Page<ConsumerUuid>), Failure> {
        let (mut filter, mut page) = (Self::default(), Page::default());
        for (name, text) in Query::parse(text)?.pairs() {
            match name {
                "kind" if Kind::ALL.iter().any(|kind| kind.name() == text) => {
                    filter.kind = Some(text.to_owned());
                }
                "kind" => return Err(Failure::bad_request(format!("{name} cannot be {text}."))),
                "older_than" => filter.older_than = Some(micros_of(name, text)?),
                "open_longer_than" => filter.open_longer_than = Some(micros_of(name, text)?),
                _ if page.take(name, text)? => {}
                _ => return Err(page::no_filter(name)),
            }
        }
        Ok((filter, page))
    }

    fn covers(&self, now: Timestamp, orphan: &Orphan) -> bool {
        let age = now.micros().saturating_sub(orphan.finding.since.micros());
        self.kind.as_deref().is_none_or(|kind| kind == orphan.finding.kind.name())
            && self.older_than.is_none_or(|wanted| age > wanted)
    }
}
