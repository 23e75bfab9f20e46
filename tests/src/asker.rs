//! A client of the command and query service on NATS.

use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions, HeaderMap, Message};
use futures::StreamExt;
use serde_json::Value;
use tokio::runtime::Runtime;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection of its own.
pub struct Asker {
    runtime: Runtime,
    client: Client,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Reply {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.as_str())
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The service error's code; none: it went well.
    pub fn error(&self) -> Option<u16> {
        let code = self.header("Nats-Service-Error-Code")?;
        assert!(self.header("Nats-Service-Error").is_some_and(|text| !text.is_empty()));
        Some(code.parse().expect("a code is a number"))
    }

    /// Itself, if there is no error.
    #[track_caller]
    pub fn ok(self) -> Reply {
        assert_eq!(self.error(), None, "{}", String::from_utf8_lossy(&self.body));
        self
    }

    fn of(message: Message) -> Reply {
        let Message { headers, payload, .. } = message;
        Reply { headers: headers.unwrap_or_default(), body: payload.to_vec() }
    }
}

impl Asker {
    /// Connects.
    pub fn new(url: &str) -> Asker {
        Asker::with(url, ConnectOptions::new())
    }

    /// Connects with these options.
    pub fn with(url: &str, options: ConnectOptions) -> Asker {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let client = runtime.block_on(options.connect(url)).expect("the broker answers");
        Asker { runtime, client }
    }

    /// Ask once; none: nobody answered in time, or nobody listens.
    pub fn try_ask(&self, subject: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, *value);
        }
        let asked = self.client.request_with_headers(subject.to_owned(), map, body.to_vec().into());
        let answer = self.runtime.block_on(async { tokio::time::timeout(PATIENCE, asked).await });
        answer.ok()?.ok().map(Reply::of)
    }

    /// Ask until somebody listens: a server subscribes a moment after it starts.
    #[track_caller]
    pub fn ask(&self, subject: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(reply) = self.try_ask(subject, headers, body) {
                return reply;
            }
            assert!(Instant::now() < deadline, "nobody answers {subject}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A command in JSON.
    #[track_caller]
    pub fn command(&self, name: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.ask(&format!("alloc.v1.command.{name}"), headers, body.to_string().as_bytes())
    }

    /// A query in JSON.
    #[track_caller]
    pub fn query(&self, name: &str, body: &Value) -> Reply {
        self.ask(&format!("alloc.v1.query.{name}"), &[], body.to_string().as_bytes())
    }

    /// Send a request whose answer shall go to `reply`, and do not wait for it.
    pub fn send(&self, subject: &str, reply: &str, body: &[u8]) {
        let (subject, reply) = (subject.to_owned(), reply.to_owned());
        self.runtime.block_on(async {
            let sent = self.client.publish_with_reply(subject, reply, body.to_vec().into());
            sent.await.expect("the broker takes it");
            self.client.flush().await.expect("the broker answers");
        });
    }

    /// All answers to a question that several may answer: the first whenever it comes, and those
    /// that come within `within` after it.
    pub fn all(&self, subject: &str, within: Duration) -> Vec<Value> {
        self.runtime.block_on(async {
            let inbox = self.client.new_inbox();
            let mut answers = self.client.subscribe(inbox.clone()).await.expect("subscribed");
            let subject = subject.to_owned();
            let asked = self.client.publish_with_reply(subject, inbox, "".into()).await;
            asked.expect("the broker takes it");
            let mut all = Vec::new();
            let mut until = tokio::time::Instant::now() + PATIENCE;
            while let Ok(Some(message)) = tokio::time::timeout_at(until, answers.next()).await {
                if all.is_empty() {
                    until = tokio::time::Instant::now() + within;
                }
                all.push(serde_json::from_slice(&message.payload).expect("JSON"));
            }
            all
        })
    }
}
