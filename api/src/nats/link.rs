//! The connection of one endpoint, and what is sent on it.
//!
//! It has a thread of its own. The client library reads as much as there is and drops what finds no
//! room in a subscription, whoever sent it. So a bounded number of bytes is read at a time, and what
//! was read is taken in before more is: whatever comes, it is this server that chooses whom to turn
//! away, and no computing elsewhere keeps requests unseen.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event, Subject};
use projector::connection::Connection;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, unconstrained};

use super::board::Board;
use super::endpoint::Endpoint;
use super::reply::{self, Outgoing};
use crate::http::failure::Failure;
use crate::http::request_id;

/// Bytes of one read. The runtime lets a connection read 128 times before others have their turn.
const READ: u16 = 4 * 1024;
/// Requests that wait in the library's memory to be taken in: as many as so many bytes can be.
const UNSEEN: usize = 128 * READ as usize / SMALLEST;
/// The least bytes of a request: `MSG`, a subject, a reply subject, lengths and ends of lines.
const SMALLEST: usize = 32;
/// Requests that wait to be told that there are too many. More get no answer.
const TURNED_AWAY: usize = 4_096;
/// How long the last answers may take to go out.
const SENT: Duration = Duration::from_secs(2);

/// A connection.
pub(super) struct Link {
    pub(super) endpoint: Endpoint,
    pub(super) client: Client,
    board: Arc<Board>,
    turned_away: mpsc::Sender<String>,
    thread: Thread,
}

/// The connection's thread.
struct Thread(Option<Runtime>);

impl Thread {
    fn start(name: &str) -> std::io::Result<Self> {
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build()?;
        Ok(Self(Some(runtime)))
    }

    fn spawn<F>(&self, work: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        match &self.0 {
            Some(runtime) => runtime.spawn(work),
            // Only while it is dropped.
            None => tokio::spawn(work),
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Not waiting for it: this may be dropped where nothing may wait.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Link {
    /// Connects.
    ///
    /// # Errors
    /// Why it cannot.
    pub(super) async fn connect(
        board: &Arc<Board>,
        connection: &Connection,
        endpoint: Endpoint,
    ) -> Result<Self, String> {
        let servers = connection.servers().map_err(|error| error.to_string())?;
        let name = match endpoint {
            Endpoint::Command => "allocd commands",
            Endpoint::Query => "allocd queries",
        };
        let options: ConnectOptions =
            connection.options(name).await.map_err(|error| error.to_string())?;
        let noting = Arc::clone(board);
        let options = options
            .read_buffer_capacity(READ)
            .subscription_capacity(UNSEEN)
            .event_callback(move |event| {
                note(&noting, endpoint, &event);
                std::future::ready(())
            });
        let thread = Thread::start(name).map_err(|error| error.to_string())?;
        let client = thread
            .spawn(async move { options.connect(&servers).await })
            .await
            .map_err(|error| error.to_string())?
            .map_err(|error| error.to_string())?;
        let (turned_away, told) = mpsc::channel(TURNED_AWAY);
        thread.spawn(tell(client.clone(), told));
        Ok(Self { endpoint, client, board: Arc::clone(board), turned_away, thread })
    }

    /// Runs on the connection's thread what takes in all that was read, without a pause.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.thread.spawn(unconstrained(work))
    }

    /// Answers 503 without waiting for it to be sent.
    pub(super) fn turn_away(&self, to: Option<Subject>) {
        self.board.turned_away(self.endpoint);
        // A copy of its own: the subject would keep all that was read with it.
        if to.is_some_and(|to| self.turned_away.try_send(to.to_string()).is_err()) {
            self.board.missed(self.endpoint);
        }
    }

    /// Sends an answer.
    pub(super) async fn send(&self, to: Subject, answer: Outgoing, id: &str) {
        let fits = answer.body.len() + 4096 <= self.client.max_payload();
        let answer = match fits {
            true => answer,
            false => reply::message(
                &Err(Failure::too_large(
                    "The answer is larger than a message of this broker may be: ask for less, or over HTTP.",
                )),
                id,
            ),
        };
        send(&self.client, to, answer).await;
    }

    /// Waits until all answers are out; false: it cannot be known.
    pub(super) async fn flush(&self) -> bool {
        // A broker that is away gets no answers; nobody waits for it.
        matches!(tokio::time::timeout(SENT, self.client.flush()).await, Ok(Ok(())))
    }
}

fn note(board: &Board, endpoint: Endpoint, event: &Event) {
    match event {
        Event::Connected => board.connected(endpoint),
        Event::Disconnected | Event::Closed => board.lost(endpoint, None),
        // An answer that may not be published harms nobody but whoever asked for it there.
        Event::ServerError(error) if error.to_string().to_lowercase().contains("publish") => {
            tracing::warn!(%error, "the broker did not take an answer");
        }
        Event::ServerError(error) => board.lost(endpoint, Some(error.to_string())),
        Event::SlowConsumer(_) => {
            board.missed(endpoint);
            tracing::warn!(
                endpoint = endpoint.name(),
                "requests by NATS come faster than they are taken"
            );
        }
        _ => {}
    }
}

/// Tells those who were turned away.
async fn tell(client: Client, mut told: mpsc::Receiver<String>) {
    while let Some(to) = told.recv().await {
        let failure = Failure::busy("too many requests are in hand; try again");
        send(&client, to.into(), reply::message(&Err(failure), &request_id::fresh())).await;
    }
}

async fn send(client: &Client, to: Subject, answer: Outgoing) {
    let sent = client.publish_with_headers(to, answer.headers, answer.body).await;
    if let Err(error) = sent {
        tracing::debug!(%error, "an answer could not be sent");
    }
}
