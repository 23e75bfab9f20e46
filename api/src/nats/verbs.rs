//! `$SRV.PING`, `INFO` and `STATS` of the NATS service API: who serves, what, and how busy it is.
//!
//! The client library has these too, but its replies to failed requests have no body, and a
//! refusal without its figures is worth little.

use std::time::Duration;

use async_nats::{Client, Message, SubscribeError, Subscriber};
use futures::StreamExt;
use futures::stream::SelectAll;
use serde_json::{Value, json};
use uuid::Uuid;

use super::board::Board;
use super::endpoint::Endpoint;

/// The service's name.
pub(super) const NAME: &str = "allocd";
/// Of several servers of the group one gets each request.
pub(super) const QUEUE: &str = "allocd";

const VERBS: [&str; 3] = ["PING", "INFO", "STATS"];

/// How long others may take to say that they are there.
const PATIENCE: Duration = Duration::from_millis(300);

/// When it is looked whether another ledger is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Before serving: whoever serves already was first.
    Before,
    /// While serving: of two that began at the same moment the younger leaves.
    After,
}

/// Who serves.
pub(super) struct Verbs {
    id: String,
    ledger: String,
    started: String,
}

impl Verbs {
    pub(super) fn new(ledger: String, started: String) -> Self {
        Self { id: Uuid::new_v4().simple().to_string(), ledger, started }
    }

    /// Subscribes to the verbs for all services, for those of this name, and for this one.
    pub(super) async fn subscribe(
        &self,
        client: &Client,
    ) -> Result<SelectAll<Subscriber>, SubscribeError> {
        let mut all = SelectAll::new();
        for verb in VERBS {
            for whom in ["".to_owned(), format!(".{NAME}"), format!(".{NAME}.{}", self.id)] {
                all.push(client.subscribe(format!("$SRV.{verb}{whom}")).await?);
            }
        }
        Ok(all)
    }

    /// What is answered to a verb; none: it is none, or nobody waits for an answer.
    pub(super) fn answer(&self, board: &Board, message: &Message) -> Option<Value> {
        match message.subject.split('.').nth(1)? {
            "PING" => Some(self.told("ping", json!({}))),
            "INFO" => Some(self.told("info", self.info())),
            "STATS" => Some(self.told("stats", self.stats(board))),
            _ => None,
        }
    }

    /// Whether no other ledger is served under this name on this broker: its group of servers would
    /// take each other's commands.
    ///
    /// # Errors
    /// Who is.
    pub(super) async fn alone(&self, client: &Client, look: Look) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let inbox = client.new_inbox();
        let subscribed = client.subscribe(inbox.clone()).await;
        let mut answers = subscribed.map_err(|error| failed(&error))?;
        let asked = client.publish_with_reply(format!("$SRV.PING.{NAME}"), inbox, "".into()).await;
        asked.map_err(|error| failed(&error))?;
        let until = tokio::time::Instant::now() + PATIENCE;
        while let Ok(Some(message)) = tokio::time::timeout_at(until, answers.next()).await {
            let answer: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            let metadata = &answer["metadata"];
            let (ledger, since) = (metadata["ledger_id"].as_str(), metadata["since"].as_str());
            let (Some(ledger), Some(since)) = (ledger, since) else { continue };
            let elder = (since, ledger) < (self.started.as_str(), self.ledger.as_str());
            if ledger != self.ledger && (look == Look::Before || elder) {
                return Err(format!(
                    "ledger {ledger} is served on this broker under the same subjects; use another \
                     account, or --nats-service false"
                ));
            }
        }
        Ok(())
    }

    fn told(&self, verb: &str, more: Value) -> Value {
        let mut told = json!({
            "type": format!("io.nats.micro.v1.{verb}_response"),
            "name": NAME,
            "id": self.id,
            "version": env!("CARGO_PKG_VERSION"),
            "metadata": {"ledger_id": self.ledger, "since": self.started},
        });
        if let (Some(told), Value::Object(more)) = (told.as_object_mut(), more) {
            told.extend(more);
        }
        told
    }

    fn info(&self) -> Value {
        let endpoints = Endpoint::ALL.map(|endpoint| {
            json!({
                "name": endpoint.name(),
                "subject": endpoint.subject(),
                "queue_group": QUEUE,
                "metadata": {"forms": "application/json, application/msgpack"},
            })
        });
        json!({
            "description": "A ledger of cloud capacity: commands and queries",
            "endpoints": endpoints,
        })
    }

    fn stats(&self, board: &Board) -> Value {
        let endpoints = Endpoint::ALL.map(|it| board.counts(it).told(it, QUEUE));
        json!({ "started": self.started, "endpoints": endpoints })
    }
}
