//! The service at work: it connects, subscribes, and answers each message in a task of its own.
//! Commands and queries each have a connection and a budget of their own.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Message, Subject, SubscribeError, Subscriber};
use bytes::Bytes;
use futures::stream::SelectAll;
use futures::{FutureExt, StreamExt};
use ledger::panics::Place;
use projector::connection::Connection;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use super::ask;
use super::board::Board;
use super::endpoint::Endpoint;
use super::fair::Turn;
use super::inboxes::Inboxes;
use super::lane::{Asked, Lane};
use super::link::Link;
use super::reply;
use super::verbs::{Look, QUEUE, Verbs};
use crate::app::App;
use crate::handle::panicked;
use crate::http::failure::Failure;
use crate::http::request_id;

/// Questions about the service itself that are answered at a time; more get no answer.
const VERBS_IN_HAND: usize = 64;
/// The pause after a connection that could not be made.
const PAUSE: Duration = Duration::from_secs(1);
/// How long requests in hand may take once the server ends.
const GRACE: Duration = Duration::from_secs(20);
/// Characters of a peer's words in a line of the log.
const LOGGED: usize = 128;

/// A service at work. It ends with [`Self::stop`].
pub struct Service {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

struct Parts {
    app: Arc<App>,
    board: Arc<Board>,
    inboxes: Inboxes,
    verbs: Verbs,
    verbs_in_hand: Arc<Semaphore>,
    commands: Lane,
    queries: Lane,
    /// Where requests are answered.
    runtime: Handle,
}

impl Parts {
    fn lane(&self, endpoint: Endpoint) -> &Lane {
        match endpoint {
            Endpoint::Command => &self.commands,
            Endpoint::Query => &self.queries,
        }
    }
}

impl Service {
    /// Starts to serve, on the runtime that it is called on. Returns at once; a broker that cannot be
    /// reached is tried again and again.
    #[must_use]
    pub fn start(
        app: Arc<App>,
        board: Arc<Board>,
        connection: Connection,
        inboxes: Inboxes,
    ) -> Self {
        let (stop, stopped) = watch::channel(false);
        let ledger = app.view().position().ledger_id.to_string();
        let started = jiff::Timestamp::now().to_string();
        let parts = Arc::new(Parts {
            app,
            board,
            inboxes,
            verbs: Verbs::new(ledger, started),
            verbs_in_hand: Arc::new(Semaphore::new(VERBS_IN_HAND)),
            commands: Lane::new(Endpoint::Command),
            queries: Lane::new(Endpoint::Query),
            runtime: Handle::current(),
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

/// One pair of connections after another. Connections that were made once mend themselves.
async fn run(parts: Arc<Parts>, connection: Connection, mut stopped: watch::Receiver<bool>) {
    loop {
        // A client whose broker goes away in between waits for ever, and is given up at the end.
        let begun = tokio::select! {
            begun = begin(&parts, &connection) => begun,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        let why = match begun {
            Ok((links, heard)) => match serve(&parts, &links, heard, &mut stopped).await {
                Ok(()) => return finish(&parts, &links).await,
                Err(error) => error,
            },
            Err(error) => error,
        };
        tracing::warn!(%connection, error = why, "commands and queries by NATS are interrupted");
        parts.board.all_lost(Some(why));
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
    }
}

/// The two connections.
struct Links {
    commands: Arc<Link>,
    queries: Arc<Link>,
}

/// What is listened to.
struct Subscriptions {
    verbs: SelectAll<Subscriber>,
    commands: Subscriber,
    queries: Subscriber,
}

/// Connects and subscribes.
async fn begin(
    parts: &Arc<Parts>,
    connection: &Connection,
) -> Result<(Links, Subscriptions), String> {
    let connect = |endpoint| Link::connect(&parts.board, connection, endpoint);
    let links = Links {
        commands: Arc::new(connect(Endpoint::Command).await?),
        queries: Arc::new(connect(Endpoint::Query).await?),
    };
    let heard = subscribe(parts, &links).await?;
    Ok((links, heard))
}

async fn subscribe(parts: &Parts, links: &Links) -> Result<Subscriptions, String> {
    let failed = |error: SubscribeError| error.to_string();
    let (commanding, querying) = (&links.commands.client, &links.queries.client);
    parts.verbs.alone(querying, Look::Before).await?;
    let [command, query] = Endpoint::ALL.map(Endpoint::subject);
    let heard = Subscriptions {
        verbs: parts.verbs.subscribe(querying).await.map_err(failed)?,
        commands: commanding.queue_subscribe(command, QUEUE.into()).await.map_err(failed)?,
        queries: querying.queue_subscribe(query, QUEUE.into()).await.map_err(failed)?,
    };
    for client in [commanding, querying] {
        client.flush().await.map_err(|error| error.to_string())?;
    }
    // Both may have begun at the same moment: then one of them leaves.
    parts.verbs.alone(querying, Look::After).await?;
    Ok(heard)
}

/// Serves until it is told to stop, or a connection is given up.
async fn serve(
    parts: &Arc<Parts>,
    links: &Links,
    heard: Subscriptions,
    stopped: &mut watch::Receiver<bool>,
) -> Result<(), String> {
    Endpoint::ALL.into_iter().for_each(|endpoint| parts.board.connected(endpoint));
    tracing::info!("commands and queries are taken by NATS");
    let Subscriptions { verbs, commands, queries } = heard;
    // Each on its connection's thread: a flood of the one never keeps the other unread.
    let listen =
        |link: &Arc<Link>, heard| link.spawn(listen(Arc::clone(parts), Arc::clone(link), heard));
    let mut commands = listen(&links.commands, commands);
    let mut queries = listen(&links.queries, queries);
    let result = tokio::select! {
        _ = &mut commands => Err("the connection was closed".to_owned()),
        _ = &mut queries => Err("the connection was closed".to_owned()),
        () = tell_all(parts, &links.queries.client, verbs) => Err("the connection was closed".to_owned()),
        _ = stopped.wait_for(|stop| *stop) => Ok(()),
    };
    commands.abort();
    queries.abort();
    result
}

/// Takes requests until the connection is given up.
async fn listen(parts: Arc<Parts>, link: Arc<Link>, mut heard: Subscriber) {
    while let Some(message) = heard.next().await {
        take(&parts, &link, message);
    }
}

/// Answers what is in hand, and turns away what waits.
async fn finish(parts: &Arc<Parts>, links: &Links) {
    for link in [&links.commands, &links.queries] {
        for asked in parts.lane(link.endpoint).drain() {
            link.turn_away(asked.message.reply);
        }
    }
    let all = async {
        parts.commands.idle().await;
        parts.queries.idle().await;
    };
    let answered = tokio::time::timeout(GRACE, all).await.is_ok();
    let sent = links.commands.flush().await & links.queries.flush().await;
    if !answered || !sent {
        tracing::warn!("some requests by NATS were perhaps not answered at the end");
    }
    parts.board.all_lost(None);
}

async fn tell_all(parts: &Parts, client: &Client, mut verbs: SelectAll<Subscriber>) {
    while let Some(message) = verbs.next().await {
        tell(parts, client, message);
    }
}

fn tell(parts: &Parts, client: &Client, message: Message) {
    // Other servers ask from an inbox of the library's, whatever clients use.
    let usual = message.reply.as_ref().is_some_and(|reply| Inboxes::default().take(reply));
    if !usual && !is_answerable(parts, &message) {
        return;
    }
    let Ok(turn) = Arc::clone(&parts.verbs_in_hand).try_acquire_owned() else { return };
    let answer = parts.verbs.answer(&parts.board, &message);
    let (Some(to), Some(answer)) = (message.reply, answer) else { return };
    let client = client.clone();
    tokio::spawn(async move {
        if let Err(error) = client.publish(to, answer.to_string().into()).await {
            tracing::debug!(%error, "a question about the service was not answered");
        }
        drop(turn);
    });
}

/// Whether the answer may go where it is asked for. What is asked with another reply subject is not
/// carried out either, since whoever asked could not be told how it ended.
fn is_answerable(parts: &Parts, message: &Message) -> bool {
    let Some(reply) = &message.reply else { return true };
    if parts.inboxes.take(reply) {
        return true;
    }
    parts.board.no_inbox();
    let cut = |text: &str| text.chars().take(LOGGED).collect::<String>();
    let (reply, subject) = (cut(reply), cut(&message.subject));
    tracing::warn!(
        ?reply,
        ?subject,
        "a request by NATS wants its answer at a subject that is no inbox; it is ignored"
    );
    false
}

/// Takes a message in, and turns away what is too much.
fn take(parts: &Arc<Parts>, link: &Arc<Link>, message: Message) {
    let unheard = link.endpoint == Endpoint::Query && message.reply.is_none();
    if unheard || !is_answerable(parts, &message) {
        return;
    }
    let caller = parts.inboxes.caller(message.reply.as_deref(), message.headers.as_ref());
    for asked in parts.lane(link.endpoint).push(caller, copied(message)) {
        turn_away(parts, link, asked);
    }
    pump(parts, link);
}

/// A message in memory of its own. The library's shares the whole buffer that it was read in, which
/// each request that waits would keep: many times the bytes that it is counted as.
fn copied(message: Message) -> Message {
    let own = |subject: &Subject| Subject::from(subject.to_string());
    Message {
        subject: own(&message.subject),
        reply: message.reply.as_ref().map(own),
        payload: Bytes::copy_from_slice(&message.payload),
        ..message
    }
}

fn turn_away(parts: &Parts, link: &Link, asked: Asked) {
    let failure = Failure::busy("too many requests are in hand");
    let timer = parts.app.metrics.start();
    parts.app.metrics.finish(timer, None, failure.status);
    parts.board.counts(link.endpoint).count(asked.begun.elapsed(), Some(&failure));
    link.turn_away(asked.message.reply);
}

/// Has as many requests in hand as may be.
fn pump(parts: &Arc<Parts>, link: &Arc<Link>) {
    while let Some((asked, turn)) = parts.lane(link.endpoint).pop() {
        let in_hand = InHand { parts: Arc::clone(parts), endpoint: link.endpoint, turn };
        parts.runtime.spawn(answer(in_hand, Arc::clone(link), asked));
    }
}

/// A request in hand; it gives back its turn also if its task panics.
struct InHand {
    parts: Arc<Parts>,
    endpoint: Endpoint,
    turn: Turn,
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.parts.lane(self.endpoint).done(&self.turn);
    }
}

/// Answers one message.
async fn answer(in_hand: InHand, link: Arc<Link>, asked: Asked) {
    let parts = Arc::clone(&in_hand.parts);
    let id = request_id::fresh();
    let timer = parts.app.metrics.start();
    let mut operation = None;
    let work = ask::answer(&parts.app, link.endpoint, &asked.message, &id, &mut operation);
    let answered = AssertUnwindSafe(work).catch_unwind().await;
    let result = answered.unwrap_or_else(|panic| Err(panicked(Place::Nats, &*panic, &id)));
    let status = match &result {
        Ok(reply) => reply.status,
        Err(failure) => failure.status,
    };
    parts.app.metrics.finish(timer, operation, status);
    parts.board.counts(link.endpoint).count(asked.begun.elapsed(), result.as_ref().err());
    if let Some(to) = asked.message.reply {
        link.send(to, reply::message(&result, &id), &id).await;
    }
    drop(in_hand);
    pump(&parts, &link);
}
