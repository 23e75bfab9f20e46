//! Watching a key-value bucket: all of it first, then what changes.

use crate::backoff::Backoff;
use crate::error::ViewError;
use async_nats::Client;
use async_nats::jetstream::kv::{Operation, Watch};
use async_nats::jetstream::{self, Context};
use futures::StreamExt;
use serde_json::Value;
use std::time::Duration;

/// How often it is looked whether the bucket is still the one that is watched.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Something about a view.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Everything that follows comes from the beginning again: forget what you have. This comes
    /// first, and when the bucket was made anew.
    Begin,
    /// A key has this value.
    Put {
        /// The key.
        key: String,
        /// The value; its `sequence` says as of which event it was written.
        value: Value,
    },
    /// A key is gone.
    Gone {
        /// The key.
        key: String,
    },
    /// Up to this event everything that changed has come.
    AsOf {
        /// The sequence.
        sequence: u64,
    },
}

/// A bucket that is watched.
pub struct View {
    context: Context,
    bucket: String,
    watch: Option<(Watch, String)>,
    backoff: Backoff,
}

impl View {
    /// Watches `bucket`: `alloc_usage`, `alloc_moves` or `alloc_capacity`.
    pub fn new(client: Client, bucket: &str) -> Self {
        Self {
            context: jetstream::new(client),
            bucket: bucket.to_owned(),
            watch: None,
            backoff: Backoff::default(),
        }
    }

    /// The next change. Waits for as long as there is none; the broker may be away meanwhile.
    ///
    /// # Errors
    /// [`ViewError`] for a value that is none.
    pub async fn next(&mut self) -> Result<Change, ViewError> {
        loop {
            let Some((watch, created)) = &mut self.watch else {
                match self.open().await {
                    Some(opened) => {
                        self.watch = Some(opened);
                        self.backoff.reset();
                        return Ok(Change::Begin);
                    }
                    None => self.backoff.pause().await,
                }
                continue;
            };
            match tokio::time::timeout(LOOK_EVERY, watch.next()).await {
                Ok(Some(Ok(entry))) => {
                    return change(entry.key, &entry.value, entry.operation);
                }
                Ok(Some(Err(error))) => {
                    tracing::debug!(%error, bucket = self.bucket, "the watch ended");
                    self.watch = None;
                }
                Ok(None) => self.watch = None,
                Err(_) => {
                    let created = created.clone();
                    if self.created().await.is_some_and(|now| now != created) {
                        self.watch = None;
                    }
                }
            }
        }
    }

    async fn open(&self) -> Option<(Watch, String)> {
        let created = self.created().await?;
        let store = self.context.get_key_value(&self.bucket).await.ok()?;
        let watch = store.watch_with_history(">").await.ok()?;
        Some((watch, created))
    }

    /// When the bucket was made; none: it is not known.
    async fn created(&self) -> Option<String> {
        let stream = self.context.get_stream(format!("KV_{}", self.bucket)).await.ok()?;
        Some(stream.cached_info().created.to_string())
    }
}

fn change(key: String, value: &[u8], operation: Operation) -> Result<Change, ViewError> {
    if operation != Operation::Put {
        return Ok(Change::Gone { key });
    }
    match serde_json::from_slice::<Value>(value) {
        Ok(value) if key == "_as_of" => {
            Ok(Change::AsOf { sequence: value["sequence"].as_u64().unwrap_or_default() })
        }
        Ok(value) => Ok(Change::Put { key, value }),
        Err(error) => Err(ViewError::Value { key, error }),
    }
}
