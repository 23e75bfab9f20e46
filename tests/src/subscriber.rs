//! A subscriber of the event stream, as any other service would write one: it asks for the
//! message after the last one it has, whatever happens to the broker meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::{self, Message};
use futures::StreamExt;
use tokio::sync::watch;

/// The stream of events.
pub const STREAM: &str = "ALLOC_EVENTS";

/// How long the broker is given for each step of a session.
const PATIENCE: Duration = Duration::from_secs(2);

/// How soon it tries again after a session has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// Messages that the broker sends ahead.
const AHEAD: usize = 1_000;

/// A message as it came.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its place in the stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
    /// Its headers, in the broker's order.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Vec<u8>,
}

impl Delivery {
    /// The first header of a name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// A subscriber in a thread of its own, from message 1 on.
pub struct Subscriber {
    url: String,
    received: Arc<Mutex<Vec<Delivery>>>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Subscriber {
    /// Subscribe. The broker need not be there yet.
    pub fn start(url: &str) -> Subscriber {
        let received = Arc::new(Mutex::new(Vec::new()));
        let (stop, mut stopped) = watch::channel(false);
        let (address, into) = (url.to_owned(), Arc::clone(&received));
        let thread = thread::spawn(move || {
            runtime().block_on(async {
                tokio::select! {
                    () = subscribe(&address, &into) => {}
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
            });
        });
        Subscriber { url: url.to_owned(), received, stop, thread: Some(thread) }
    }

    /// How many messages have come.
    pub fn count(&self) -> usize {
        lock(&self.received).len()
    }

    /// Wait until this many have come. Panics if they do not within `patience`.
    #[track_caller]
    pub fn wait_for(&self, count: usize, patience: Duration) {
        let deadline = Instant::now() + patience;
        while self.count() < count {
            assert!(
                Instant::now() < deadline,
                "{} of {count} messages within {patience:?}; the stream ends at {:?}",
                self.count(),
                last_sequence(&self.url)
            );
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// End it; everything that came, in the order it came.
    pub fn finish(mut self) -> Vec<Delivery> {
        self.stop.send_replace(true);
        self.thread.take().expect("it was started").join().expect("the subscriber did not panic");
        std::mem::take(&mut lock(&self.received))
    }
}

/// The last sequence in the stream; none if the broker or the stream is not there.
pub fn last_sequence(url: &str) -> Option<u64> {
    runtime().block_on(async {
        let client = tokio::time::timeout(PATIENCE, async_nats::connect(url)).await.ok()?.ok()?;
        let stream = jetstream::new(client).get_stream(STREAM).await.ok()?;
        Some(stream.cached_info().state.last_sequence)
    })
}

/// Put messages of somebody else's where the events go, in one go; the place of the last one.
pub fn intrude(url: &str, count: usize) -> u64 {
    runtime().block_on(async {
        let client = async_nats::connect(url).await.expect("the broker answers");
        let broker = jetstream::new(client);
        let mut stored = Vec::new();
        for _ in 0..count {
            let message = broker.publish("alloc.v1.event.Claimed.x.-", "not an event".into());
            stored.push(message.await.expect("a message can be sent"));
        }
        let mut last = 0;
        for message in stored {
            last = message.await.expect("the stream takes it").sequence;
        }
        last
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
}

fn lock(received: &Mutex<Vec<Delivery>>) -> MutexGuard<'_, Vec<Delivery>> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One session after another, for ever.
async fn subscribe(url: &str, received: &Mutex<Vec<Delivery>>) {
    loop {
        if let Err(error) = session(url, received).await {
            println!("subscriber at {}: {error}", lock(received).len());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Receive until the broker goes silent: it is asked for a sign of life each half second.
async fn session(url: &str, received: &Mutex<Vec<Delivery>>) -> Result<(), async_nats::Error> {
    let client = tokio::time::timeout(PATIENCE, async_nats::connect(url)).await??;
    let stream = jetstream::new(client).get_stream(STREAM).await?;
    let next = lock(received).last().map_or(1, |last| last.sequence + 1);
    let consumer = stream
        .create_consumer(pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: next },
            ack_policy: AckPolicy::None,
            memory_storage: true,
            ..pull::Config::default()
        })
        .await?;
    let mut messages = consumer
        .stream()
        .max_messages_per_batch(AHEAD)
        .expires(Duration::from_secs(5))
        .heartbeat(Duration::from_millis(500))
        .messages()
        .await?;
    while let Some(message) = messages.next().await {
        lock(received).push(delivery(&message?)?);
    }
    Ok(())
}

fn delivery(message: &Message) -> Result<Delivery, async_nats::Error> {
    let headers = message.headers.iter().flat_map(|headers| headers.iter());
    Ok(Delivery {
        sequence: message.info()?.stream_sequence,
        subject: message.subject.to_string(),
        headers: headers
            .flat_map(|(name, values)| {
                values.iter().map(|value| (name.to_string(), value.to_string()))
            })
            .collect(),
        body: message.payload.to_vec(),
    })
}
