//! `GET /ledger/v1/events/stream`: events as they become durable, as server-sent events.
//!
//! Each message's id is its event's sequence, so a client that comes back with `Last-Event-ID`
//! resumes without a gap. What waits to be sent is bounded by bytes, for each stream and for all
//! together: a reader that takes nothing for a while is ended, with the reason, and can come back.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use ledger::Ledger;
use ledger::log::LogError;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::events::{self, Page};
use super::shared_events::{EACH, Ended, PIECE, SharedEvents, TOGETHER, message};
use crate::app::App;
use crate::http::failure::Failure;
use crate::http::reply::Reply;
use crate::http::request::Request;
use crate::query::Query;

const CONTENT_TYPE: &str = "text/event-stream; charset=utf-8";
const LAST_EVENT_ID: &str = "last-event-id";
/// Tells proxies not to collect what should go out at once.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// How often a comment is sent when there is nothing else, so that silence is not taken for death.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// How long a reader may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// The least that a piece counts for: each takes some memory besides its bytes.
const LEAST: usize = 1024;
/// Pieces that wait to be sent at most, and the reason why a stream ends.
const PIECES: usize = EACH / LEAST + 1;
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
    let page = events::page_after(&query, position(&request.headers, &query, head)?, PIECE)?;
    if page.after > head {
        let text = format!("The ledger ends at event {head}; it has no event {}.", page.after);
        return Err(Failure::new(StatusCode::NOT_FOUND, text)
            .field("cause", "beyond_end")
            .field("head", head));
    }
    let turn = Arc::clone(&app.streams.turns).try_acquire_owned();
    let turn = turn.map_err(|_| Failure::busy("Too many streams of events are open."))?;
    let (send, parts) = mpsc::channel(PIECES);
    let feed = Feed {
        ledger: app.ledger.clone(),
        shared: Arc::clone(&app.streams),
        durable: app.ledger.durable(),
        ending: app.ending.subscribe(),
        page,
        window: Arc::new(Semaphore::new(EACH)),
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
    ledger: Ledger,
    shared: Arc<SharedEvents>,
    durable: watch::Receiver<u64>,
    ending: watch::Receiver<bool>,
    page: Page,
    /// A permit for each byte that may wait for this reader.
    window: Arc<Semaphore>,
    send: mpsc::Sender<Bytes>,
    _turn: OwnedSemaphorePermit,
}

/// Why a stream is over.
enum Gone {
    /// The reader is gone, or the log cannot be read.
    Away,
    /// The server ends it.
    Ended(Ended),
}

/// Bytes that count until they are written to the connection.
struct Counted {
    bytes: Bytes,
    _window: OwnedSemaphorePermit,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Feed {
    async fn run(mut self) {
        let Err(Gone::Ended(why)) = self.follow().await else { return };
        self.shared.note(why);
        let told = match why {
            Ended::Slow => "the reader takes nothing",
            Ended::Crowded => "other readers take nothing, and there is no more room",
        };
        // What was given last may not be there yet, but whatever comes back says where it is.
        tracing::info!(after = self.page.after, told, "a stream of events is ended");
        // There is room for this one piece, and it counts for nothing.
        let _ = self.send.try_send(format!(": ended: {told}; Last-Event-ID resumes\n\n").into());
    }

    async fn follow(&mut self) -> Result<(), Gone> {
        let begun = format!("retry: {RETRY}\n: after event {}\n\n", self.page.after);
        self.give(begun.into()).await?;
        loop {
            let until = *self.durable.borrow_and_update();
            self.send_until(until).await?;
            let quiet = tokio::time::sleep(KEEP_ALIVE);
            let comment = tokio::select! {
                changed = self.durable.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return Ok(()),
                },
                () = quiet => format!(": at event {}\n\n", self.page.after),
                _ = self.ending.wait_for(|ending| *ending) => return Ok(()),
                () = self.send.closed() => return Ok(()),
            };
            self.give(comment.into()).await?;
        }
    }

    /// Sends everything up to `until` that passes the filters.
    async fn send_until(&mut self, until: u64) -> Result<(), Gone> {
        while self.page.after < until {
            if self.page.is_whole()
                && let Some((piece, last)) = self.shared.after(&self.ledger, self.page.after)
            {
                self.give(piece).await?;
                self.page.after = last;
                continue;
            }
            let (pieces, after) = match self.read(until).await {
                Ok(read) => read,
                Err(error) => return self.fail(&error).await,
            };
            for piece in pieces {
                self.give(piece).await?;
            }
            self.page.after = after;
        }
        Ok(())
    }

    /// A page from the log, and the sequence that it reaches to.
    async fn read(&self, until: u64) -> Result<(Vec<Bytes>, u64), LogError> {
        // The semaphore is never closed.
        let _turn = self.shared.reads.acquire().await.ok();
        tokio::task::block_in_place(|| {
            let (found, reached) = events::collect(&*self.ledger.reader(), &self.page)?;
            let last = found.last().map_or(0, |record| record.header.sequence);
            let mut pieces = Vec::new();
            let mut piece = String::new();
            for record in &found {
                // An event of a kind that this version does not know is shown by its header.
                let body = record.event().map_or(Value::Null, |event| event.body_json());
                message(&mut piece, &record.header, body);
                if piece.len() >= PIECE {
                    pieces.push(std::mem::take(&mut piece).into());
                }
            }
            if !piece.is_empty() {
                pieces.push(piece.into());
            }
            Ok((pieces, reached.unwrap_or(until.max(last))))
        })
    }

    async fn fail(&self, error: &LogError) -> Result<(), Gone> {
        tracing::error!(%error, "the log cannot be read");
        self.give(Bytes::from_static(b": the log cannot be read\n\n")).await?;
        Err(Gone::Away)
    }

    /// Hands a piece over as soon as there is room for it.
    async fn give(&self, bytes: Bytes) -> Result<(), Gone> {
        let window = take(&self.window, bytes.len().clamp(LEAST, EACH));
        let window = tokio::select! {
            window = window => window.ok_or(Gone::Ended(Ended::Slow))?,
            () = self.send.closed() => return Err(Gone::Away),
        };
        let room = take(&self.shared.room, bytes.len().clamp(LEAST, TOGETHER)).await;
        let room = room.ok_or(Gone::Ended(Ended::Crowded))?;
        let counted = Counted { bytes, _window: window, _room: room };
        self.send.send(Bytes::from_owner(counted)).await.map_err(|_| Gone::Away)
    }
}

/// Permits for some bytes; none if there are none within [`PATIENCE`].
async fn take(from: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    // Both bounds are far below 4 GiB.
    let permits = u32::try_from(bytes).ok()?;
    let taken = Arc::clone(from).acquire_many_owned(permits);
    tokio::time::timeout(PATIENCE, taken).await.ok()?.ok()
}
