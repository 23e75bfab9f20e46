//! `GET /ledger/v1/events/stream`: events as they become durable, as server-sent events.
//!
//! Each message's id is its event's sequence, so a client that comes back with `Last-Event-ID` goes
//! on without a gap. What waits to be sent is bounded: a reader that takes nothing for a while is
//! sent away, and can come back.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use ledger::log::{LogError, LogReader};
use ledger::record::Record;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};

use super::events::{self, EventBody, Page};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;

/// Streams at a time.
pub const AT_A_TIME: usize = 256;

const CONTENT_TYPE: &str = "text/event-stream; charset=utf-8";
const LAST_EVENT_ID: &str = "last-event-id";
/// Tells proxies not to collect what should go out at once.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// How often a comment is sent when there is nothing else, so that nobody takes silence for death.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a reader may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pieces that wait to be sent ...
const PIECES: usize = 4;
/// ... each of about so many bytes, or of one event.
const PIECE: usize = 64 * 1024;
/// How long clients shall wait before they come back, in milliseconds.
const RETRY: u64 = 1_000;

/// The handler: takes the filters of `GET /ledger/v1/events` but `limit`; `after=latest` begins
/// with what happens from now on.
///
/// # Errors
/// 400; 404 with `cause` `beyond_end` for a position that the ledger has not reached; 503 if there
/// are too many streams.
pub fn open(app: &App, request: &Request) -> Result<Reply, Failure> {
    let query = Query::parse(&request.query)?;
    let head = app.view().sequence();
    let page = events::page_after(&query, position(&request.headers, &query, head)?)?;
    if page.after > head {
        let text = format!("The ledger ends at event {head}; it has no event {}.", page.after);
        return Err(Failure::new(StatusCode::NOT_FOUND, text)
            .field("cause", "beyond_end")
            .field("head", head));
    }
    let turn = Arc::clone(&app.streams).try_acquire_owned();
    let turn = turn.map_err(|_| Failure::busy("Too many streams of events are open."))?;
    let (send, parts) = mpsc::channel(PIECES);
    let feed = Feed {
        reader: app.ledger.reader(),
        durable: app.ledger.durable(),
        ending: app.ending.subscribe(),
        page,
        send,
        _turn: turn,
    };
    tokio::spawn(feed.run());
    Ok(Reply { content_type: CONTENT_TYPE, stream: Some(parts), ..Reply::empty(StatusCode::OK) }
        .header(CACHE_CONTROL, HeaderValue::from_static("no-store"))
        .header(NO_BUFFERING, HeaderValue::from_static("no")))
}

/// After which event the stream begins; none: the query says.
fn position(headers: &HeaderMap, query: &Query, head: u64) -> Result<Option<u64>, Failure> {
    if let Some(value) = headers.get(LAST_EVENT_ID) {
        let id = value.to_str().ok().and_then(|text| text.trim().parse().ok());
        let bad = || Failure::bad_request("The header Last-Event-ID has to be a sequence.");
        return id.map(Some).ok_or_else(bad);
    }
    Ok((query.last("after") == Some("latest")).then_some(head))
}

/// One stream at work.
struct Feed {
    reader: Arc<dyn LogReader>,
    durable: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    page: Page,
    send: mpsc::Sender<Bytes>,
    _turn: OwnedSemaphorePermit,
}

/// The reader is gone, or takes nothing.
struct Gone;

impl Feed {
    async fn run(mut self) {
        let begun = format!("retry: {RETRY}\n: after event {}\n\n", self.page.after);
        if self.give(begun.into()).await.is_err() {
            return;
        }
        loop {
            let until = *self.durable.borrow_and_update();
            if self.send_until(until).await.is_err() {
                return;
            }
            let quiet = tokio::time::sleep(KEEP_ALIVE);
            let comment = tokio::select! {
                changed = self.durable.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                () = quiet => format!(": at event {}\n\n", self.page.after),
                _ = self.ending.wait_for(|ending| *ending) => return,
                () = self.send.closed() => return,
            };
            if self.give(comment.into()).await.is_err() {
                return;
            }
        }
    }

    /// Sends everything up to `until` that passes the filters.
    async fn send_until(&mut self, until: u64) -> Result<(), Gone> {
        while self.page.after < until {
            let read = tokio::task::block_in_place(|| events::collect(&*self.reader, &self.page));
            let (found, reached) = match read {
                Ok(read) => read,
                Err(error) => return self.fail(&error).await,
            };
            let last = found.last().map_or(0, |record| record.header.sequence);
            self.page.after = reached.unwrap_or(until.max(last));
            let mut piece = String::new();
            for record in &found {
                message(&mut piece, record);
                if piece.len() >= PIECE {
                    self.give(std::mem::take(&mut piece).into()).await?;
                }
            }
            if !piece.is_empty() {
                self.give(piece.into()).await?;
            }
        }
        Ok(())
    }

    async fn fail(&self, error: &LogError) -> Result<(), Gone> {
        tracing::error!(%error, "the log cannot be read");
        self.give(Bytes::from_static(b": the log cannot be read\n\n")).await?;
        Err(Gone)
    }

    async fn give(&self, piece: Bytes) -> Result<(), Gone> {
        match tokio::time::timeout(PATIENCE, self.send.send(piece)).await {
            Ok(sent) => sent.map_err(|_| Gone),
            Err(_) => {
                tracing::info!(after = self.page.after, "a reader of events is too slow");
                Err(Gone)
            }
        }
    }
}

/// JSON has no line ends in it, so that its one line is the whole data.
fn message(out: &mut String, record: &Record) {
    let data = serde_json::to_string(&EventBody::of(record)).unwrap_or_default();
    let header = &record.header;
    // Writing to a string cannot fail.
    let _ = write!(out, "id: {}\nevent: {}\ndata: {data}\n\n", header.sequence, header.kind);
}
