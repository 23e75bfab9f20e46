//! `GET /ledger/v1/events` and the histories of consumers and providers: pages of events.

use http::HeaderName;
use http::header::ACCEPT;
use ledger::event::Event;
use ledger::ids::{ConsumerUuid, MoveId, ProviderUuid};
use ledger::log::{IndexKey, LogError, LogReader};
use ledger::record::{Header, Record};
use serde::Serialize;
use serde_json::{Value, json};

use super::page::no_filter;
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;
use crate::unreadable::unreadable;

/// Events of a page, unless the client says how many.
const PAGE: usize = 100;
/// The most events of a page.
const LARGEST_PAGE: usize = 1_000;
/// About the most bytes of a page's records, so that an answer stays of a size that can be sent.
const PAGE_BYTES: usize = 16 * 1024 * 1024;
/// The most events looked at for a page of one kind.
const LOOKED_AT: usize = 20_000;

/// The type of a list of records as stored.
const RECORDS: &str = "application/vnd.allocd.records";
/// Says where the ledger ends.
const SEQUENCE: HeaderName = HeaderName::from_static("ledger-sequence");

/// An event as JSON: its header, by its own names, and its body.
#[derive(Debug, Serialize)]
pub struct EventBody {
    header: Value,
    body: Value,
}

impl EventBody {
    /// From a header and a body.
    #[must_use]
    pub fn new(header: &Header, body: Value) -> Self {
        let mut header = json!(header);
        if let Some(fields) = header.as_object_mut() {
            for field in ["received_at", "recorded_at"] {
                if let Some(micros) = fields.get(field).and_then(Value::as_i64) {
                    let time = ledger::time::Timestamp::from_micros(micros).to_string();
                    fields.insert(field.to_owned(), time.into());
                }
            }
        }
        Self { header, body }
    }

    fn of(record: &Record) -> Self {
        // An event of a kind that this version does not know is shown by its header.
        let body = record.event().map_or(Value::Null, |event| event.body_json());
        Self::new(&record.header, body)
    }
}

/// Which events a page has.
pub(super) struct Page {
    key: Option<IndexKey>,
    kind: Option<String>,
    step: Option<Step>,
    pub(super) after: u64,
    limit: usize,
    /// About the most bytes of its records.
    bytes: usize,
}

impl Page {
    /// Whether nothing is filtered out.
    pub(super) fn is_whole(&self) -> bool {
        self.key.is_none() && self.kind.is_none() && self.step.is_none()
    }
}

/// One step of a provider's generation.
#[derive(Clone, Copy)]
struct Step {
    provider: ProviderUuid,
    /// The generation that the step led to.
    to: u32,
}

/// `GET /ledger/v1/events`: filters `after`, `limit`, `kind`, and one of `consumer`, `provider`,
/// `move` and `request_id`.
///
/// A client that accepts `application/vnd.allocd.records` gets the records as stored, without what
/// names people: for who checks the chain of hashes.
///
/// # Errors
/// 400.
pub fn list(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    let page = page(&query, key_of(&query)?)?;
    let accepted = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    match accepted {
        Some(RECORDS) => as_stored(app, &page),
        _ => answer(app, &page),
    }
}

/// `GET /ledger/v1/consumers/{id}/history`.
///
/// # Errors
/// 400.
pub fn of_consumer(app: &App, request: &Request) -> Result<Reply, Failure> {
    let id: ConsumerUuid = id(request.param(0), "consumer")?;
    let query = Query::parse(&request.query)?;
    check_names(&query, &[])?;
    answer(app, &page(&query, Some(IndexKey::Consumer(id)))?)
}

/// `GET /ledger/v1/providers/{id}/history`; `generation`: only what led to this one.
///
/// # Errors
/// 400.
pub fn of_provider(app: &App, request: &Request) -> Result<Reply, Failure> {
    let provider: ProviderUuid = id(request.param(0), "provider")?;
    let query = Query::parse(&request.query)?;
    check_names(&query, &["generation"])?;
    let to = query.last("generation").map(|text| {
        text.parse::<u32>().map_err(|_| {
            Failure::bad_request(format!("generation has to be a whole number, not {text}."))
        })
    });
    let step = to.transpose()?.map(|to| Step { provider, to });
    answer(app, &Page { step, ..page(&query, Some(IndexKey::Provider(provider)))? })
}

/// A filter that does not exist is more likely misspelt than meant for another route.
fn check_names(query: &Query, own: &[&str]) -> Result<(), Failure> {
    let known = |name: &str| matches!(name, "after" | "limit" | "kind") || own.contains(&name);
    match query.pairs().find(|(name, _)| !known(name)) {
        Some((name, _)) => Err(no_filter(name)),
        None => Ok(()),
    }
}

fn key_of(query: &Query) -> Result<Option<IndexKey>, Failure> {
    let mut keys = Vec::new();
    for (name, value) in query.pairs() {
        keys.push(match name {
            "consumer" => IndexKey::Consumer(id::<ConsumerUuid>(value, name)?),
            "provider" => IndexKey::Provider(id::<ProviderUuid>(value, name)?),
            "move" => IndexKey::Move(id::<MoveId>(value, name)?),
            "request_id" => IndexKey::RequestId(value.to_owned()),
            "after" | "limit" | "kind" => continue,
            other => return Err(no_filter(other)),
        });
    }
    if keys.len() > 1 {
        return Err(Failure::bad_request(
            "Only one of consumer, provider, move and request_id can be given.",
        ));
    }
    Ok(keys.pop())
}

/// A page of a stream, of about so many bytes: after the event that is given, or else that of the
/// query.
pub(super) fn page_after(query: &Query, after: Option<u64>, bytes: usize) -> Result<Page, Failure> {
    if query.last("limit").is_some() {
        return Err(Failure::bad_request("A stream has no limit."));
    }
    let key = key_of(query)?;
    match after {
        Some(after) => {
            let kind = query.last("kind").map(str::to_owned);
            Ok(Page { key, kind, step: None, after, limit: LARGEST_PAGE, bytes })
        }
        None => Ok(Page { limit: LARGEST_PAGE, bytes, ..page(query, key)? }),
    }
}

fn page(query: &Query, key: Option<IndexKey>) -> Result<Page, Failure> {
    let number = |name: &str| match query.last(name) {
        None => Ok(None),
        Some(text) => text.parse::<u64>().map(Some).map_err(|_| {
            Failure::bad_request(format!("{name} has to be a whole number, not {text}."))
        }),
    };
    let limit =
        number("limit")?.map_or(PAGE, |limit| usize::try_from(limit).unwrap_or(LARGEST_PAGE));
    Ok(Page {
        key,
        kind: query.last("kind").map(str::to_owned),
        step: None,
        after: number("after")?.unwrap_or(0),
        limit: limit.clamp(1, LARGEST_PAGE),
        bytes: PAGE_BYTES,
    })
}

fn id<T: std::str::FromStr>(text: &str, name: &str) -> Result<T, Failure> {
    text.parse().map_err(|_| Failure::bad_request(format!("The {name} {text} is no uuid.")))
}

fn answer(app: &App, page: &Page) -> Result<Reply, Failure> {
    let (records, sequence, next) = read(app, page)?;
    let events: Vec<EventBody> = records.iter().map(EventBody::of).collect();
    Reply::json(&json!({ "events": events, "sequence": sequence, "next_after": next }))
}

/// Each record after its length in 4 bytes, big endian.
fn as_stored(app: &App, page: &Page) -> Result<Reply, Failure> {
    let (records, sequence, _) = read(app, page)?;
    let mut body = Vec::new();
    for record in &records {
        let length = u32::try_from(record.bytes().len())
            .map_err(|_| Failure::internal("A record is too long."))?;
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(record.bytes());
    }
    let reply = Reply { content_type: RECORDS, ..Reply::bytes(body) };
    Ok(reply.header(SEQUENCE, sequence.into()))
}

/// A page's records, where the ledger ends, and the sequence to go on after if there may be more.
fn read(app: &App, page: &Page) -> Result<(Vec<Record>, u64, Option<u64>), Failure> {
    let sequence = app.view().sequence();
    let (records, reached) = collect(&*app.ledger.reader(), page)
        .map_err(|error: ledger::log::LogError| unreadable(&error))?;
    // There is more to ask for if the end was not reached.
    Ok((records, sequence, reached.filter(|reached| *reached < sequence)))
}

/// The records of a page, and the sequence that was looked at last if there may be more. A page has
/// about as many bytes as it may have.
pub(super) fn collect(
    reader: &dyn LogReader,
    page: &Page,
) -> Result<(Vec<Record>, Option<u64>), LogError> {
    let (mut found, mut after, mut looked, mut bytes) = (Vec::new(), page.after, 0, 0);
    let mut steps = Steps::start(reader, page)?;
    loop {
        let records = next(reader, page, after)?;
        if records.is_empty() {
            return Ok((found, None));
        }
        for record in records {
            after = record.header.sequence;
            looked += 1;
            let stepped = steps.as_mut().is_none_or(|steps| steps.led_there(&record));
            if stepped && page.kind.as_ref().is_none_or(|kind| *kind == record.header.kind) {
                bytes += record.bytes().len();
                found.push(record);
            }
            if found.len() == page.limit || looked >= LOOKED_AT || bytes >= page.bytes {
                return Ok((found, Some(after)));
            }
        }
    }
}

/// Follows a provider's generation through its history.
struct Steps {
    step: Step,
    /// Its generation after the event before; none: not known, or it was not there.
    before: Option<u32>,
}

impl Steps {
    fn start(reader: &dyn LogReader, page: &Page) -> Result<Option<Self>, LogError> {
        let Some(step) = page.step else { return Ok(None) };
        // A page that goes on begins behind an event of the history.
        let last = if page.after > 0 { reader.record(page.after)? } else { None };
        let before = last.and_then(|record| generation_after(&record, step.provider));
        Ok(Some(Self { step, before }))
    }

    /// Whether an event, the next of the history, raised the generation to the wanted one, or
    /// past it: a reshape takes several steps at once.
    fn led_there(&mut self, record: &Record) -> bool {
        let Some(after) = generation_after(record, self.step.provider) else { return false };
        let to = self.step.to;
        match self.before.replace(after) {
            Some(before) if before <= after => before < to && to <= after,
            // The first one, or a provider that was made anew.
            _ => after == to,
        }
    }
}

/// The generation that an event left a provider with, if it says so.
fn generation_after(record: &Record, provider: ProviderUuid) -> Option<u32> {
    match record.event().ok()? {
        Event::ProviderCreated(body) => Some((body.provider, body.generation)),
        Event::ProviderUpdated(body) => Some((body.provider, body.generation)),
        Event::InventoryChanged(body) => Some((body.provider, body.generation)),
        Event::TraitsChanged(body) => Some((body.provider, body.generation)),
        Event::AggregatesChanged(body) => Some((body.provider, body.generation)),
        Event::Reshaped(body) => {
            // A provider whose inventories were written too has its generation there.
            let inventories = body.inventories.iter().map(|it| (it.provider, it.generation));
            let allocations = &body.allocations.providers;
            let allocations = allocations.iter().map(|it| (it.provider, it.generation));
            inventories.chain(allocations).find(|(whose, _)| *whose == provider)
        }
        event => {
            let changes = &event.allocations()?.providers;
            changes.iter().map(|it| (it.provider, it.generation)).find(|it| it.0 == provider)
        }
    }
    .filter(|(whose, _)| *whose == provider)
    .map(|(_, generation)| generation)
}

fn next(reader: &dyn LogReader, page: &Page, after: u64) -> Result<Vec<Record>, LogError> {
    let Some(key) = &page.key else {
        return reader.read(after.saturating_add(1), LARGEST_PAGE);
    };
    let mut records = Vec::new();
    for sequence in reader.index(key, after, page.limit)? {
        records.extend(reader.record(sequence)?);
    }
    Ok(records)
}
