//! The service at work: it connects, subscribes, and answers each message in a task of its own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions, Event, Message, Subscriber};
use futures::stream::SelectAll;
use futures::{FutureExt, StreamExt};
use ledger::panics::Place;
use projector::connection::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

use super::ask;
use super::board::Board;
use super::endpoint::Endpoint;
use super::reply::{self, Outgoing};
use super::verbs::{Look, QUEUE, Verbs};
use crate::app::App;
use crate::handle::panicked;
use crate::http::failure::Failure;
use crate::http::request_id;

/// Requests in hand at a time; one more is answered 503. As many as the writer's queue holds.
const IN_HAND: usize = ledger::limits::QUEUE;
/// Bytes of the bodies in hand, in KiB.
const KIB_IN_HAND: usize = 128 * 1024;
/// Requests that wait in the client's memory to be looked at.
const WAITING: usize = 16 * 1024;
/// The pause after a connection that could not be made.
const PAUSE: Duration = Duration::from_secs(1);
/// How long requests in hand may take once the server ends.
const GRACE: Duration = Duration::from_secs(20);
/// How long their answers may take to go out.
const SENT: Duration = Duration::from_secs(2);

/// A service at work. It ends with [`Self::stop`].
pub struct Service {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

struct Parts {
    app: Arc<App>,
    board: Arc<Board>,
    verbs: Verbs,
    requests: Arc<Semaphore>,
    kib: Arc<Semaphore>,
}

/// The right to have a request in hand.
struct Turn {
    _request: OwnedSemaphorePermit,
    _kib: OwnedSemaphorePermit,
}

impl Service {
    /// Starts to serve. Returns at once; a broker that cannot be reached is tried again and again.
    #[must_use]
    pub fn start(app: Arc<App>, board: Arc<Board>, connection: Connection) -> Self {
        let (stop, stopped) = watch::channel(false);
        let ledger = app.view().position().ledger_id.to_string();
        let started = jiff::Timestamp::now().to_string();
        let parts = Arc::new(Parts {
            app,
            board,
            verbs: Verbs::new(ledger, started),
            requests: Arc::new(Semaphore::new(IN_HAND)),
            kib: Arc::new(Semaphore::new(KIB_IN_HAND)),
        });
        Self { stop, task: tokio::spawn(run(parts, connection, stopped)) }
    }

    /// Takes no more requests, answers those in hand, and ends.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        if self.task.await.is_err() {
            tracing::error!("the NATS service panicked");
        }
    }
}

/// One connection after another. A connection that was made once mends itself.
async fn run(parts: Arc<Parts>, connection: Connection, mut stopped: watch::Receiver<bool>) {
    loop {
        // A client whose broker goes away in between waits for ever, and is given up at the end.
        let begun = tokio::select! {
            begun = begin(&parts, &connection) => begun,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        let why = match begun {
            Ok((client, heard)) => match serve(&parts, &client, heard, &mut stopped).await {
                Ok(()) => return finish(&parts, &client).await,
                Err(error) => error,
            },
            Err(error) => error,
        };
        tracing::warn!(%connection, error = why, "commands and queries by NATS are interrupted");
        parts.board.lost(Some(why));
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
    }
}

/// Connects and subscribes.
async fn begin(
    parts: &Arc<Parts>,
    connection: &Connection,
) -> Result<(Client, Subscriptions), String> {
    let client = connect(parts, connection).await?;
    let heard = subscribe(parts, &client).await?;
    Ok((client, heard))
}

async fn connect(parts: &Arc<Parts>, connection: &Connection) -> Result<Client, String> {
    let board = Arc::clone(&parts.board);
    let servers = connection.servers().map_err(|error| error.to_string())?;
    let options: ConnectOptions =
        connection.options("allocd service").await.map_err(|error| error.to_string())?;
    options
        .subscription_capacity(WAITING)
        .event_callback(move |event| {
            match event {
                Event::Connected => board.connected(),
                Event::Disconnected | Event::Closed => board.lost(None),
                Event::ServerError(error) => board.lost(Some(error.to_string())),
                Event::SlowConsumer(_) => {
                    tracing::warn!("requests by NATS come faster than they are taken");
                }
                _ => {}
            }
            std::future::ready(())
        })
        .connect(&servers)
        .await
        .map_err(|error| error.to_string())
}

/// What is listened to.
struct Subscriptions {
    verbs: SelectAll<Subscriber>,
    commands: Subscriber,
    queries: Subscriber,
}

async fn subscribe(parts: &Parts, client: &Client) -> Result<Subscriptions, String> {
    let failed = |error: async_nats::SubscribeError| error.to_string();
    parts.verbs.alone(client, Look::Before).await?;
    let [command, query] = Endpoint::ALL.map(Endpoint::subject);
    let heard = Subscriptions {
        verbs: parts.verbs.subscribe(client).await.map_err(failed)?,
        commands: client.queue_subscribe(command, QUEUE.into()).await.map_err(failed)?,
        queries: client.queue_subscribe(query, QUEUE.into()).await.map_err(failed)?,
    };
    client.flush().await.map_err(|error| error.to_string())?;
    // Both may have begun at the same moment: then one of them leaves.
    parts.verbs.alone(client, Look::After).await?;
    Ok(heard)
}

/// Serves until it is told to stop, or the connection is given up.
async fn serve(
    parts: &Arc<Parts>,
    client: &Client,
    mut heard: Subscriptions,
    stopped: &mut watch::Receiver<bool>,
) -> Result<(), String> {
    parts.board.connected();
    tracing::info!("commands and queries are taken by NATS");
    let closed = || "the connection was closed".to_owned();
    loop {
        tokio::select! {
            message = heard.commands.next() => {
                take(parts, client, Endpoint::Command, message.ok_or_else(closed)?);
            }
            message = heard.queries.next() => {
                take(parts, client, Endpoint::Query, message.ok_or_else(closed)?);
            }
            message = heard.verbs.next() => tell(parts, client, message.ok_or_else(closed)?),
            _ = stopped.wait_for(|stop| *stop) => return Ok(()),
        }
    }
}

/// Answers what is in hand. What waits in the connection is left to other servers, or to a retry.
async fn finish(parts: &Parts, client: &Client) {
    let all = u32::try_from(IN_HAND).unwrap_or(u32::MAX);
    // The semaphore is never closed.
    let answered = tokio::time::timeout(GRACE, parts.requests.acquire_many(all)).await;
    // A broker that is away gets no answers; nobody waits for it.
    let sent = tokio::time::timeout(SENT, client.flush()).await;
    if answered.is_err() || !matches!(sent, Ok(Ok(()))) {
        tracing::warn!("some requests by NATS were perhaps not answered at the end");
    }
    parts.board.lost(None);
}

fn tell(parts: &Parts, client: &Client, message: Message) {
    let answer = parts.verbs.answer(&parts.board, &message);
    let (Some(to), Some(answer)) = (message.reply, answer) else { return };
    let client = client.clone();
    tokio::spawn(async move {
        if let Err(error) = client.publish(to, answer.to_string().into()).await {
            tracing::debug!(%error, "a question about the service was not answered");
        }
    });
}

/// Answers one message in a task of its own, or says at once that there are too many.
fn take(parts: &Arc<Parts>, client: &Client, endpoint: Endpoint, message: Message) {
    if endpoint == Endpoint::Query && message.reply.is_none() {
        return;
    }
    let (parts, client) = (Arc::clone(parts), client.clone());
    let begun = Instant::now();
    let turn = turn(&parts, &message);
    tokio::spawn(async move {
        let id = request_id::fresh();
        let timer = parts.app.metrics.start();
        let mut operation = None;
        let result = match &turn {
            Some(_) => {
                let work = ask::answer(&parts.app, endpoint, &message, &id, &mut operation);
                let answered = AssertUnwindSafe(work).catch_unwind().await;
                answered.unwrap_or_else(|panic| Err(panicked(Place::Nats, &*panic, &id)))
            }
            None => Err(Failure::busy("too many requests are in hand; try again")),
        };
        let status = match &result {
            Ok(reply) => reply.status,
            Err(failure) => failure.status,
        };
        parts.app.metrics.finish(timer, operation, status);
        parts.board.counts(endpoint).count(begun.elapsed(), result.as_ref().err());
        send(&client, &message, reply::message(&result, &id), &id).await;
        drop(turn);
    });
}

fn turn(parts: &Parts, message: &Message) -> Option<Turn> {
    let kib = u32::try_from(message.payload.len() / 1024 + 1).unwrap_or(u32::MAX);
    Some(Turn {
        _request: Arc::clone(&parts.requests).try_acquire_owned().ok()?,
        _kib: Arc::clone(&parts.kib).try_acquire_many_owned(kib).ok()?,
    })
}

async fn send(client: &Client, message: &Message, answer: Outgoing, id: &str) {
    let Some(to) = &message.reply else { return };
    let fits = answer.body.len() + 4096 <= client.max_payload();
    let answer = match fits {
        true => answer,
        false => reply::message(
            &Err(Failure::too_large(
                "The answer is larger than a message of this broker may be: ask for less, or over HTTP.",
            )),
            id,
        ),
    };
    let sent = client.publish_with_headers(to.clone(), answer.headers, answer.body).await;
    if let Err(error) = sent {
        tracing::debug!(%error, "an answer could not be sent");
    }
}
