//! Following events: each once and in order, whatever the broker loses, repeats or makes up.
//!
//! A message counts by the sequence in its record, never by its place on the broker. Below the next
//! one expected it is a duplicate and is dropped (I15, J13). Above it there is a hole, which is read
//! from the ledger (I25, J19). What is no record, or does not continue the chain of hashes, is
//! foreign; what belongs there comes from the ledger (J17). And if nothing comes for a while, the
//! ledger is asked whether it has gone on: then the subscription has died, and is made anew
//! (J12, J15).

use crate::backoff::Backoff;
use crate::error::FollowError;
use crate::ledger::LedgerHttp;
use crate::record::Record;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::pull::{Ordered, OrderedConfig};
use async_nats::{Client, Message, Subscriber, jetstream};
use futures::StreamExt;
use std::collections::VecDeque;
use std::time::Duration;

/// Where live messages come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// The JetStream stream: also what was published before, as far as it is kept.
    #[default]
    Stream,
    /// A plain subscription: no load on JetStream, and what a slow reader misses, it reads from
    /// the ledger.
    Subscription,
}

/// How a follower is set up.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// The last event that is known already; 0: begin with the first.
    pub after: u64,
    /// Where live messages come from.
    pub source: Source,
    /// The stream's name.
    pub stream: String,
    /// The subjects of events.
    pub subjects: String,
    /// After so long without a message the ledger is asked whether there should have been one.
    pub quiet: Duration,
    /// Records of one answer of the ledger.
    pub page: usize,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            after: 0,
            source: Source::Stream,
            stream: "ALLOC_EVENTS".to_owned(),
            subjects: "alloc.v1.event.>".to_owned(),
            quiet: Duration::from_secs(5),
            page: 1_000,
        }
    }
}

/// What a follower met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records handed out.
    pub delivered: u64,
    /// Messages dropped because their event was handed out before.
    pub duplicates: u64,
    /// Holes: how often messages were missing.
    pub holes: u64,
    /// Records read from the ledger because the broker did not have them.
    pub refilled: u64,
    /// Messages that were no event of this ledger.
    pub foreign: u64,
    /// Subscriptions made, the first included.
    pub subscriptions: u64,
}

/// Follows a ledger's events.
pub struct Follower {
    client: Client,
    ledger: LedgerHttp,
    options: FollowOptions,
    live: Option<Live>,
    /// The sequence that is handed out next.
    next: u64,
    last: Option<Record>,
    /// Up to this event there is a hole, to be read from the ledger; 0: there is none.
    fill_to: u64,
    /// Read from the ledger, to be handed out.
    waiting: VecDeque<Record>,
    counts: Counts,
    backoff: Backoff,
}

enum Live {
    Stream(Box<Ordered>),
    Subscription(Subscriber),
}

/// What came of waiting for a message.
enum Heard {
    Message(Vec<u8>),
    Quiet,
    Ended(String),
}

impl Follower {
    /// Follows by this connection, and reads from the ledger what does not come by it.
    pub fn new(client: Client, ledger: LedgerHttp, options: FollowOptions) -> Self {
        Self {
            client,
            ledger,
            next: options.after + 1,
            options,
            live: None,
            last: None,
            fill_to: 0,
            waiting: VecDeque::new(),
            counts: Counts::default(),
            backoff: Backoff::default(),
        }
    }

    /// What it met so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The last event that was handed out; keep it, to go on after it another time.
    pub fn position(&self) -> u64 {
        self.next - 1
    }

    /// The next event. Waits for as long as there is none; broker and ledger may both be away
    /// meanwhile. It can be given up and called again.
    ///
    /// # Errors
    /// [`FollowError`] if the ledger's history is not what it was.
    pub async fn next(&mut self) -> Result<Record, FollowError> {
        loop {
            if let Some(record) = self.waiting.pop_front() {
                return self.deliver(record);
            }
            if self.next <= self.fill_to {
                self.refill().await?;
                continue;
            }
            if self.live.is_none() {
                self.subscribe().await?;
                continue;
            }
            match self.hear().await {
                Heard::Message(bytes) => {
                    self.backoff.reset();
                    if let Some(record) = self.take(&bytes) {
                        return self.deliver(record);
                    }
                }
                Heard::Quiet => self.look().await?,
                Heard::Ended(why) => {
                    tracing::debug!(why, after = self.position(), "the subscription ended");
                    self.live = None;
                    self.backoff.pause().await;
                }
            }
        }
    }

    fn deliver(&mut self, record: Record) -> Result<Record, FollowError> {
        if let Some(last) = &self.last {
            record.follows(last).map_err(FollowError::History)?;
        }
        self.next = record.header.sequence + 1;
        self.last = Some(record.clone());
        self.counts.delivered += 1;
        Ok(record)
    }

    /// Judges a message: the record that is handed out next, if it is that.
    fn take(&mut self, bytes: &[u8]) -> Option<Record> {
        let Ok(record) = Record::read(bytes) else {
            self.counts.foreign += 1;
            self.fill_to = self.next;
            return None;
        };
        let sequence = record.header.sequence;
        if sequence < self.next {
            self.counts.duplicates += 1;
            return None;
        }
        if sequence > self.next {
            self.counts.holes += 1;
            self.fill_to = sequence;
            return None;
        }
        let fits = self.last.as_ref().is_none_or(|last| record.follows(last).is_ok());
        if !fits {
            self.counts.foreign += 1;
            self.fill_to = sequence;
            return None;
        }
        Some(record)
    }

    /// Reads the next page of a hole from the ledger. Where the ledger does not answer, or has no
    /// such events, the subscription is made anew after a pause: the stream may have them by then.
    async fn refill(&mut self) -> Result<(), FollowError> {
        let wanted = usize::try_from(self.fill_to - self.position()).unwrap_or(usize::MAX);
        match self.ledger.page(self.position(), wanted.min(self.options.page)).await {
            Ok(page) if !page.records.is_empty() => {
                self.counts.refilled += page.records.len() as u64;
                self.waiting.extend(page.records);
                return Ok(());
            }
            Ok(page) => self.check_end(page.head)?,
            Err(error) => tracing::debug!(%error, "the ledger cannot fill the hole yet"),
        }
        self.fill_to = 0;
        self.live = None;
        self.backoff.pause().await;
        Ok(())
    }

    fn check_end(&self, head: u64) -> Result<(), FollowError> {
        if head < self.position() {
            return Err(FollowError::BeyondEnd { head, wanted: self.position() });
        }
        Ok(())
    }

    /// Nothing came for a while: asks the ledger whether something should have.
    async fn look(&mut self) -> Result<(), FollowError> {
        match self.ledger.head().await {
            Ok(head) => {
                self.check_end(head)?;
                if head >= self.next {
                    tracing::info!(head, after = self.position(), "the subscription is silent");
                    self.live = None;
                    self.fill_to = head;
                }
            }
            Err(error) => tracing::debug!(%error, "the ledger does not say where it ends"),
        }
        Ok(())
    }

    async fn subscribe(&mut self) -> Result<(), FollowError> {
        self.counts.subscriptions += 1;
        let made = match self.options.source {
            Source::Stream => self.read_stream().await,
            Source::Subscription => self.listen().await,
        };
        match made {
            Ok(live) => self.live = Some(live),
            Err(why) => {
                tracing::debug!(why, "no subscription yet");
                // The broker may be away for long; the ledger has everything.
                self.refill_quietly().await?;
                self.backoff.pause().await;
            }
        }
        Ok(())
    }

    async fn refill_quietly(&mut self) -> Result<(), FollowError> {
        if let Ok(page) = self.ledger.page(self.position(), self.options.page).await {
            self.check_end(page.head)?;
            self.counts.refilled += page.records.len() as u64;
            self.waiting.extend(page.records);
        }
        Ok(())
    }

    async fn read_stream(&self) -> Result<Live, String> {
        let context = jetstream::new(self.client.clone());
        let stream =
            context.get_stream(&self.options.stream).await.map_err(|error| error.to_string())?;
        let config = OrderedConfig {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.next },
            ..OrderedConfig::default()
        };
        let consumer = stream.create_consumer(config).await.map_err(|error| error.to_string())?;
        let messages = consumer.messages().await.map_err(|error| error.to_string())?;
        Ok(Live::Stream(Box::new(messages)))
    }

    /// A plain subscription tells nothing of what was before it.
    async fn listen(&mut self) -> Result<Live, String> {
        let subscribed = self.client.subscribe(self.options.subjects.clone()).await;
        let subscriber = subscribed.map_err(|error| error.to_string())?;
        self.client.flush().await.map_err(|error| error.to_string())?;
        if let Ok(page) = self.ledger.page(self.position(), self.options.page).await {
            self.counts.refilled += page.records.len() as u64;
            self.waiting.extend(page.records);
        }
        Ok(Live::Subscription(subscriber))
    }

    async fn hear(&mut self) -> Heard {
        let quiet = self.options.quiet;
        let heard = match &mut self.live {
            Some(Live::Stream(messages)) => {
                let next = tokio::time::timeout(quiet, messages.next()).await;
                next.map(|next| match next {
                    Some(Ok(message)) => Heard::Message(payload(message.message)),
                    Some(Err(error)) => Heard::Ended(error.to_string()),
                    None => Heard::Ended("the stream of messages ended".to_owned()),
                })
            }
            Some(Live::Subscription(subscriber)) => {
                let next = tokio::time::timeout(quiet, subscriber.next()).await;
                next.map(|next| match next {
                    Some(message) => Heard::Message(payload(message)),
                    None => Heard::Ended("the subscription ended".to_owned()),
                })
            }
            None => Ok(Heard::Ended("there is none".to_owned())),
        };
        heard.unwrap_or(Heard::Quiet)
    }
}

fn payload(message: Message) -> Vec<u8> {
    message.payload.to_vec()
}
