//! `GET /ledger/v1/consumers/{id}`: one consumer, also when it holds nothing any more.

use ledger::event::Event;
use ledger::ids::ConsumerUuid;
use ledger::log::{IndexKey, LogError, LogReader};
use ledger::record::Header;
use serde_json::{Value, json};

use super::consumers::shown;
use super::media::Form;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::unreadable::unreadable;

/// Sequences read from the index at a time.
const CHUNK: usize = 10_000;
/// The most events looked at for the one that left a consumer with nothing: refusals can follow it.
const LOOKED_AT: usize = 1_000;

/// `GET /ledger/v1/consumers/{id}`: always 200 for a uuid, since holding nothing is an answer too:
/// `state` is `holds`, `released` (and `until` which event it held something) or `unknown`.
///
/// # Errors
/// 400 for what is no uuid.
pub async fn show(app: &App, request: &Request) -> Result<Reply, Failure> {
    let text = request.param(0);
    let id: ConsumerUuid = text
        .parse()
        .map_err(|_| Failure::bad_request(format!("The consumer {text} is no uuid.")))?;
    let view = app.view_for(request);
    let form = Form::of_answer(&request.headers);
    let read = || {
        let mut body = match view.consumer(id) {
            Some(row) => {
                let mut body = shown(&view, row);
                body["state"] = "holds".into();
                body
            }
            None => gone(&*app.ledger.reader(), id, view.sequence())
                .map_err(|error: ledger::log::LogError| unreadable(&error))?,
        };
        body["sequence"] = view.sequence().into();
        form.reply(&body)
    };
    app.long_read(read).await
}

fn gone(reader: &dyn LogReader, id: ConsumerUuid, until: u64) -> Result<Value, LogError> {
    let Some(last) = last_held(reader, id, until)? else {
        return Ok(json!({ "uuid": id, "state": "unknown", "text": "never held anything" }));
    };
    Ok(json!({
        "uuid": id,
        "state": "released",
        "until": {
            "sequence": last.sequence,
            "kind": last.kind,
            "recorded_at": last.recorded_at.to_string(),
            "request_id": last.request_id,
        },
        "text": format!("holds nothing; held something until event {}", last.sequence),
    }))
}

/// The event that left a consumer with nothing.
fn last_held(
    reader: &dyn LogReader,
    id: ConsumerUuid,
    until: u64,
) -> Result<Option<Header>, LogError> {
    for sequence in last_sequences(reader, id, until)?.into_iter().rev() {
        let Some(record) = reader.record(sequence)? else { continue };
        let event = record.event().ok();
        let body = event.as_ref().and_then(Event::allocations);
        if body.is_some_and(|body| body.consumers.iter().any(|change| change.consumer == id)) {
            return Ok(Some(record.header));
        }
    }
    Ok(None)
}

/// The last events about a consumer, ascending.
pub(super) fn last_sequences(
    reader: &dyn LogReader,
    id: ConsumerUuid,
    until: u64,
) -> Result<Vec<u64>, LogError> {
    let (mut last, mut after) = (Vec::new(), 0);
    loop {
        let found = reader.index(&IndexKey::Consumer(id), after, CHUNK)?;
        let more = found.len() == CHUNK;
        after = found.last().copied().unwrap_or(after);
        last.extend(found.into_iter().filter(|sequence| *sequence <= until));
        last.drain(..last.len().saturating_sub(LOOKED_AT));
        if !more || after >= until {
            return Ok(last);
        }
    }
}
