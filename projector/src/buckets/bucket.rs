//! One bucket on the server: made, read, written.

use super::session::Fault;
use super::{AS_OF, BucketsOptions};
use async_nats::HeaderMap;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::OrderedConfig;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::kv::{Config, Store};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::stream::{Info, StorageType};
use async_nats::jetstream::{Context, context};
use futures::StreamExt;
use futures::future::BoxFuture;
use ledger::ids::LedgerId;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::future::IntoFuture;
use std::time::Duration;

/// Writes in flight.
const WINDOW: usize = 512;
/// How long the mark of a removed key stays, where the server can let marks expire.
const MARK: Duration = Duration::from_secs(60 * 60);
const OPERATION: &str = "KV-Operation";
const ROLLUP: &str = "Nats-Rollup";
const TTL: &str = "Nats-TTL";

type Ack = BoxFuture<'static, Result<PublishAck, context::PublishError>>;

/// A bucket that is written by one session.
pub(super) struct Bucket {
    name: &'static str,
    context: Context,
    store: Store,
    begun: Info,
    /// The last write that the server acknowledged, by its own count.
    last: u64,
    marks_expire: bool,
    sent: VecDeque<Ack>,
}

impl Bucket {
    /// Opens the bucket, or makes it.
    ///
    /// # Errors
    /// [`Fault`] if the server does not answer, or the bucket is another ledger's.
    pub(super) async fn open(
        context: &Context,
        name: &'static str,
        description: &str,
        options: &BucketsOptions,
        ledger: LedgerId,
    ) -> Result<Self, Fault> {
        let marks_expire = context.client().is_server_compatible(2, 11, 0);
        let config = Config {
            bucket: name.to_owned(),
            description: description.to_owned(),
            history: 1,
            storage: StorageType::File,
            num_replicas: options.replicas,
            limit_markers: marks_expire.then_some(MARK),
            ..Config::default()
        };
        let store = match context.get_key_value(name).await {
            Ok(store) => store,
            Err(_) => context
                .create_key_value(config)
                .await
                .map_err(|error| Fault::server(name, &error))?,
        };
        let begun = store.stream.get_info().await.map_err(|error| Fault::server(name, &error))?;
        let last = begun.state.last_sequence;
        let marks_expire = begun.config.allow_message_ttl;
        let sent = VecDeque::new();
        let bucket =
            Self { name, context: context.clone(), store, begun, last, marks_expire, sent };
        bucket.check_owner(ledger).await?;
        Ok(bucket)
    }

    async fn check_owner(&self, ledger: LedgerId) -> Result<(), Fault> {
        let found =
            self.store.get(AS_OF).await.map_err(|error| Fault::server(self.name, &error))?;
        let Some(value) = found else { return Ok(()) };
        let value: Value = serde_json::from_slice(&value).unwrap_or_default();
        match value["ledger_id"].as_str() {
            Some(owner) if owner != ledger.to_string() => {
                Err(Fault::NotOurs { bucket: self.name, owner: owner.to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// Writes what differs from `wanted`, and removes what is not in it.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) async fn level(
        &mut self,
        wanted: BTreeMap<String, Value>,
        sequence: u64,
    ) -> Result<(), Fault> {
        let there = self.entries().await?;
        for key in there.keys().filter(|key| !wanted.contains_key(*key) && *key != AS_OF) {
            self.remove(key).await?;
        }
        for (key, value) in wanted {
            let same = there.get(&key).is_some_and(|old| without_sequence(old) == value);
            if !same {
                self.put(&key, value, sequence).await?;
            }
        }
        Ok(())
    }

    /// Writes a value, with the sequence that it is true at.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) async fn put(
        &mut self,
        key: &str,
        mut value: Value,
        sequence: u64,
    ) -> Result<(), Fault> {
        value["sequence"] = sequence.into();
        self.send(key, HeaderMap::new(), value.to_string()).await
    }

    /// Removes a key.
    ///
    /// # Errors
    /// [`Fault`].
    pub(super) async fn remove(&mut self, key: &str) -> Result<(), Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(OPERATION, "PURGE");
        headers.insert(ROLLUP, "sub");
        if self.marks_expire {
            headers.insert(TTL, format!("{}s", MARK.as_secs()));
        }
        self.send(key, headers, String::new()).await
    }

    async fn send(&mut self, key: &str, headers: HeaderMap, body: String) -> Result<(), Fault> {
        while self.sent.len() >= WINDOW {
            self.acknowledged().await?;
        }
        let message = PublishMessage::build().headers(headers).payload(body.into());
        let subject = format!("{}{key}", self.store.prefix);
        let ack: PublishAckFuture = self
            .context
            .send_publish(subject, message)
            .await
            .map_err(|error| Fault::server(self.name, &error))?;
        self.sent.push_back(ack.into_future());
        Ok(())
    }

    /// Waits until all writes are acknowledged.
    ///
    /// # Errors
    /// [`Fault`] if one is not, or somebody else wrote between them.
    pub(super) async fn settle(&mut self) -> Result<(), Fault> {
        while !self.sent.is_empty() {
            self.acknowledged().await?;
        }
        Ok(())
    }

    async fn acknowledged(&mut self) -> Result<(), Fault> {
        let Some(oldest) = self.sent.pop_front() else { return Ok(()) };
        let ack = oldest.await.map_err(|error| Fault::server(self.name, &error))?;
        if self.last.checked_add(1) != Some(ack.sequence) {
            let what = format!("write {} came after {}", ack.sequence, self.last);
            return Err(Fault::Changed { bucket: self.name, what });
        }
        self.last = ack.sequence;
        Ok(())
    }

    /// Whether the bucket is still the one that was opened, and nobody else wrote to it.
    ///
    /// # Errors
    /// [`Fault::Changed`] if not.
    pub(super) async fn inspect(&self) -> Result<(), Fault> {
        let changed = |what: String| Fault::Changed { bucket: self.name, what };
        let info = match self.context.get_stream(&self.begun.config.name).await {
            Ok(stream) => stream.cached_info().clone(),
            Err(error) => match error.kind() {
                context::GetStreamErrorKind::JetStream(_) => {
                    return Err(changed(format!("it is gone: {error}")));
                }
                _ => return Err(Fault::server(self.name, &error)),
            },
        };
        if info.created != self.begun.created {
            return Err(changed("somebody made it anew".into()));
        }
        if info.state.last_sequence != self.last {
            let last = info.state.last_sequence;
            return Err(changed(format!("its last write is {last}, not {}", self.last)));
        }
        if info.state.messages == 0 {
            return Err(changed("somebody emptied it".into()));
        }
        Ok(())
    }

    /// Everything that is in the bucket.
    async fn entries(&self) -> Result<BTreeMap<String, Value>, Fault> {
        let failed = |error: &dyn std::fmt::Display| Fault::server(self.name, error);
        let mut entries = BTreeMap::new();
        let info = self.store.stream.get_info().await.map_err(|error| failed(&error))?;
        if info.state.messages == 0 {
            return Ok(entries);
        }
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::LastPerSubject,
            filter_subject: format!("{}>", self.store.prefix),
            ..OrderedConfig::default()
        };
        let consumer =
            self.store.stream.create_consumer(config).await.map_err(|error| failed(&error))?;
        let mut messages = consumer.messages().await.map_err(|error| failed(&error))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| failed(&error))?;
            let pending = message.info().map_err(|error| failed(&error))?.pending;
            let removed = message.headers.as_ref().is_some_and(|it| it.get(OPERATION).is_some());
            let key = message.subject.strip_prefix(&self.store.prefix);
            if let (Some(key), false) = (key, removed) {
                let value = serde_json::from_slice(&message.payload).unwrap_or_default();
                entries.insert(key.to_owned(), value);
            }
            if pending == 0 {
                break;
            }
        }
        Ok(entries)
    }
}

fn without_sequence(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("sequence");
    }
    value
}
