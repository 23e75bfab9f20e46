//! Sending commands: again under the same id until the outcome is known.

use crate::backoff::Backoff;
use crate::error::CommandError;
use async_nats::{Client, HeaderMap, Message};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

const ERROR: &str = "Nats-Service-Error";
const ERROR_CODE: &str = "Nats-Service-Error-Code";
/// The ledger could not say: nothing was done, or nobody knows.
const TRY_AGAIN: u16 = 503;

/// How often and how long is asked.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// How long one answer may take.
    pub each: Duration,
    /// How long it is tried in all.
    pub in_all: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { each: Duration::from_secs(3), in_all: Duration::from_secs(60) }
    }
}

/// Sends commands. Cheap to clone.
#[derive(Clone)]
pub struct Commander {
    client: Client,
    headers: HeaderMap,
    retries: Retries,
}

/// An accepted command.
#[derive(Clone, Debug)]
pub struct Done {
    /// The id under which it was sent.
    pub id: String,
    /// The ledger's answer: `sequence`, `repeated`, `unchanged`, `events`.
    pub answer: Value,
    /// How often it was sent.
    pub attempts: u32,
}

impl Commander {
    /// Sends by this connection, in the name of a project and an actor.
    pub fn new(client: Client, project: &str, actor: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert("Content-Type", "application/json");
        headers.insert("X-Project-Id", project);
        headers.insert("Alloc-Actor", actor);
        Self { client, headers, retries: Retries::default() }
    }

    /// The same with other patience.
    #[must_use]
    pub fn retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// The same with OpenStack's global request id (`req-` and a uuid).
    #[must_use]
    pub fn request_id(mut self, id: &str) -> Self {
        self.headers.insert("X-OpenStack-Request-ID", id);
        self
    }

    /// Sends the command `name` under an id of its own.
    ///
    /// # Errors
    /// As [`Self::send_as`].
    pub async fn send(&self, name: &str, body: &impl Serialize) -> Result<Done, CommandError> {
        self.send_as(&Uuid::new_v4().to_string(), name, body).await
    }

    /// Sends the command `name` under an id, as often as needed: whatever was lost on the way, it
    /// is carried out once at most. Keep the id to ask again after a crash of your own.
    ///
    /// # Errors
    /// [`CommandError::Refused`], or [`CommandError::Unknown`] if no answer came in time.
    pub async fn send_as(
        &self,
        id: &str,
        name: &str,
        body: &impl Serialize,
    ) -> Result<Done, CommandError> {
        let subject = format!("alloc.v1.command.{name}");
        let payload = serde_json::to_vec(body)?;
        let mut headers = self.headers.clone();
        headers.insert("Idempotency-Key", id);
        let until = Instant::now() + self.retries.in_all;
        let mut backoff = Backoff::default();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let request = async_nats::Request::new()
                .headers(headers.clone())
                .payload(payload.clone().into())
                .timeout(Some(self.retries.each));
            let last = match self.client.send_request(subject.clone(), request).await {
                Ok(message) => match read(&message)? {
                    Answer::Done(answer) => return Ok(Done { id: id.into(), answer, attempts }),
                    Answer::Refused(refused) => return Err(refused),
                    Answer::TryAgain(why) => why,
                },
                Err(error) => error.to_string(),
            };
            if Instant::now() >= until {
                return Err(CommandError::Unknown { id: id.into(), attempts, last });
            }
            tracing::debug!(id, attempts, last, "asking again");
            backoff.pause().await;
        }
    }
}

enum Answer {
    Done(Value),
    Refused(CommandError),
    TryAgain(String),
}

fn read(message: &Message) -> Result<Answer, CommandError> {
    let header = |name: &str| {
        let headers = message.headers.as_ref();
        headers.and_then(|headers| headers.get(name)).map(|value| value.as_str().to_owned())
    };
    let body = || -> Value { serde_json::from_slice(&message.payload).unwrap_or_default() };
    let Some(code) = header(ERROR_CODE) else {
        return serde_json::from_slice(&message.payload)
            .map(Answer::Done)
            .map_err(|error| CommandError::Answer(error.to_string()));
    };
    let code = code.parse().map_err(|_| CommandError::Answer(format!("the code {code}")))?;
    let text = header(ERROR).unwrap_or_default();
    if code == TRY_AGAIN {
        return Ok(Answer::TryAgain(text));
    }
    let error = body()["errors"][0].take();
    Ok(Answer::Refused(CommandError::Refused { code, text, error }))
}
