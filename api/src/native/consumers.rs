//! `GET /ledger/v1/consumers`: all who hold something, paged, with filters.

use std::collections::BTreeSet;

use ledger::ids::{ConsumerUuid, MoveId};
use ledger::log::{LogError, LogReader};
use ledger::state::{Consumer, State};
use projector::{ConsumersView, Projection};
use serde_json::{Value, json};

use super::consumer_filter::{Filter, role};
use super::media::Form;
use super::page::Page;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::unreadable::unreadable;

/// Consumers taken from the view at a time.
const CHUNK: usize = 1_000;
/// The most consumers looked at for one page: a page of a filter that few pass may be short, or
/// even empty, and still say where to go on.
const LOOKED_AT: usize = 100_000;

/// `GET /ledger/v1/consumers`: in the order of uuids; filters `project`, `type`, `provider`,
/// `class`, `older_than` (seconds, or such as `1h30m`), `open_moves` (`true` or `false`), and
/// `after` (a uuid) and `limit`. All rows of a page are true at its sequence; no consumer comes
/// twice, and none that is there all the time is left out, whatever is written meanwhile.
///
/// # Errors
/// 400; 503 if the view does not come in time.
pub async fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let (filter, page) = Filter::parse(&request.query)?;
    let listed = app.consumers(request).await?;
    let form = Form::of_answer(&request.headers);
    let read = || {
        // The state is not older than the view: what changed between them is added.
        let state = app.view_for(request);
        let recent = changed(&*app.ledger.reader(), listed.sequence(), state.sequence());
        let recent = recent.map_err(|error: ledger::log::LogError| unreadable(&error))?;
        let list = List { state: &state, listed: &listed, recent, filter: &filter };
        form.reply(&list.page(&page))
    };
    app.long_read(read).await
}

/// The consumers that the events after `from` up to `to` changed.
fn changed(reader: &dyn LogReader, from: u64, to: u64) -> Result<BTreeSet<ConsumerUuid>, LogError> {
    let (mut at, mut found) = (from, BTreeSet::new());
    while at < to {
        let records = reader.read(at + 1, CHUNK)?;
        let Some(last) = records.last() else { break };
        at = last.header.sequence;
        for event in records.iter().filter_map(|record| record.event().ok()) {
            let consumers = event.allocations().map(|body| &*body.consumers).unwrap_or_default();
            found.extend(consumers.iter().map(|change| change.consumer));
        }
    }
    Ok(found)
}

struct List<'a> {
    state: &'a State,
    listed: &'a ConsumersView,
    recent: BTreeSet<ConsumerUuid>,
    filter: &'a Filter,
}

impl List<'_> {
    fn page(&self, page: &Page<ConsumerUuid>) -> Value {
        let (mut rows, mut after, mut looked) = (Vec::new(), page.after, 0);
        let next = 'all: loop {
            let (chunk, more) = self.chunk(after);
            for consumer in chunk {
                if rows.len() == page.limit || looked >= LOOKED_AT {
                    break 'all after;
                }
                looked += 1;
                after = Some(consumer);
                let row = self.state.consumer(consumer);
                if let Some(row) = row.filter(|row| self.filter.covers(self.state, row)) {
                    rows.push(shown(self.state, row));
                }
            }
            if !more {
                break None;
            }
        };
        json!({ "sequence": self.state.sequence(), "next_after": next, "consumers": rows })
    }

    /// The next consumers that may pass the filter, in order, and whether there may be more.
    fn chunk(&self, after: Option<ConsumerUuid>) -> (Vec<ConsumerUuid>, bool) {
        if let Some(provider) = self.filter.provider {
            let id = self.state.provider_id(provider);
            let holders = id.into_iter().flat_map(|id| self.state.holders(id));
            return first(holders.map(|row| row.uuid), after);
        }
        if self.filter.open_moves == Some(true) {
            let live = self.state.moves().iter().filter(|entry| entry.this.state.is_live());
            let sides = live.flat_map(|entry| [Some(entry.this.instance), entry.this.migration]);
            return first(sides.flatten(), after);
        }
        let (mut chunk, more) = first_of_lists(self.lists(after));
        let last = chunk.last().copied().filter(|_| more);
        let start = after.unwrap_or_default();
        let recent = self.recent.range(start..).copied();
        chunk.extend(recent.filter(|consumer| {
            Some(*consumer) != after && last.is_none_or(|last| *consumer <= last)
        }));
        chunk.sort_unstable();
        chunk.dedup();
        (chunk, more)
    }

    /// The view's lists that together have all who may pass the filter.
    fn lists(&self, after: Option<ConsumerUuid>) -> Vec<Vec<ConsumerUuid>> {
        if let Some(project) = &self.filter.project {
            return vec![self.listed.of_project(project, after, CHUNK)];
        }
        let untyped = self.listed.of_type(None, after, CHUNK);
        let typed = self.state.consumer_types().iter().filter(|name| self.filter.may_be(name));
        let typed = typed.map(|name| self.listed.of_type(Some(name), after, CHUNK));
        typed.chain([untyped]).collect()
    }
}

/// The first ones after a key, and whether there are more.
fn first(
    all: impl Iterator<Item = ConsumerUuid>,
    after: Option<ConsumerUuid>,
) -> (Vec<ConsumerUuid>, bool) {
    let mut found: Vec<ConsumerUuid> =
        all.filter(|consumer| after.is_none_or(|after| *consumer > after)).collect();
    found.sort_unstable();
    found.dedup();
    // One list serves the whole page: looking it up costs as much as walking it.
    let more = found.len() > LOOKED_AT;
    found.truncate(LOOKED_AT);
    (found, more)
}

/// The first ones of lists that are cut off after [`CHUNK`] each, and whether there are more.
fn first_of_lists(lists: Vec<Vec<ConsumerUuid>>) -> (Vec<ConsumerUuid>, bool) {
    // Behind the end of a list that was cut off, others may have what it would have before.
    let cut = lists.iter().filter(|list| list.len() == CHUNK).filter_map(|list| list.last());
    let end = cut.min().copied();
    let mut found: Vec<ConsumerUuid> = lists.into_iter().flatten().collect();
    found.retain(|consumer| end.is_none_or(|end| *consumer <= end));
    found.sort_unstable();
    (found, end.is_some())
}

/// A consumer that holds something, as a list shows it.
pub(super) fn shown(state: &State, row: &Consumer) -> Value {
    let live = state.moves().of(row.uuid).filter(|entry| entry.this.state.is_live());
    let live: Vec<MoveId> = live.map(|entry| entry.this.id).collect();
    let stored = row.consumer_type.map(|id| state.consumer_types().name(id));
    json!({
        "uuid": row.uuid,
        "project_id": state.projects().name(row.project),
        "user_id": state.users().name(row.user),
        "consumer_type": stored,
        "role": role(state, row.uuid),
        "generation": row.generation,
        "created_at": row.created_at.to_string(),
        "updated_at": row.updated_at.to_string(),
        "allocations": state.holding(&row.allocations),
        "live_moves": live,
    })
}
