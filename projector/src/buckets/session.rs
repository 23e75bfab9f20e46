//! One session with the server: level the buckets with the state, then write what changes.

use super::board::Board;
use super::bucket::Bucket;
use super::capacity::Capacity;
use super::moves::Ended;
use super::touched::Touched;
use super::{AS_OF, BucketsOptions, CAPACITY, MOVES, USAGE, usage};
use crate::connection::ConnectionError;
use async_nats::Event;
use async_nats::jetstream::context::{Context, ContextBuilder};
use ledger::Ledger;
use ledger::state::State;
use ledger::time::Timestamp;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The connection cannot even be tried.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The server is away, or did not do what was asked.
    #[error("{what}: {error}")]
    Server {
        /// What it was about.
        what: &'static str,
        /// What the client said.
        error: String,
    },
    /// The connection was lost.
    #[error("the connection to the server was lost")]
    Disconnected,
    /// The session panicked: a defect in this program.
    #[error("writing the buckets panicked: {0}")]
    Panicked(String),
    /// A bucket is not as it was left.
    #[error("bucket {bucket} changed under its writer: {what}")]
    Changed {
        /// Which.
        bucket: &'static str,
        /// How.
        what: String,
    },
    /// A bucket is another ledger's; it is left alone.
    #[error("bucket {bucket} belongs to ledger {owner}; remove it, nothing is written until then")]
    NotOurs {
        /// Which.
        bucket: &'static str,
        /// Whose.
        owner: String,
    },
}

impl Fault {
    pub(super) fn server(what: &'static str, error: &dyn fmt::Display) -> Self {
        Self::Server { what, error: error.to_string() }
    }
}

/// Writes until the ledger is closed and everything is written.
///
/// # Errors
/// [`Fault`] is what ended the session before that.
pub(super) async fn run(
    ledger: &Ledger,
    options: &BucketsOptions,
    board: &Board,
) -> Result<(), Fault> {
    let lost = Arc::new(Notify::new());
    let context = connect(options, &lost).await?;
    let work = async { Session::begin(ledger, options, board, &context).await?.write().await };
    tokio::select! {
        result = work => result,
        () = lost.notified() => Err(Fault::Disconnected),
    }
}

async fn connect(options: &BucketsOptions, lost: &Arc<Notify>) -> Result<Context, Fault> {
    let lost = Arc::clone(lost);
    let servers = options.connection.servers()?;
    let client = options
        .connection
        .options("allocd buckets")
        .await?
        .request_timeout(Some(options.ack_timeout))
        .max_reconnects(servers.len())
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                lost.notify_one();
            }
            std::future::ready(())
        })
        .connect(&servers)
        .await
        .map_err(|error| Fault::server("connecting", &error))?;
    Ok(ContextBuilder::new()
        .timeout(options.ack_timeout)
        .ack_timeout(options.ack_timeout)
        .build(client))
}

struct Session<'a> {
    ledger: &'a Ledger,
    options: &'a BucketsOptions,
    board: &'a Board,
    usage: Bucket,
    moves: Bucket,
    capacity: Bucket,
    sums: Capacity,
    ended: Ended,
    /// The state that the buckets show.
    state: Arc<State>,
}

impl<'a> Session<'a> {
    async fn begin(
        ledger: &'a Ledger,
        options: &'a BucketsOptions,
        board: &'a Board,
        context: &Context,
    ) -> Result<Self, Fault> {
        let state = ledger.view();
        let id = state.position().ledger_id;
        let open = |name, what| Bucket::open(context, name, what, options, id);
        let mut session = Self {
            ledger,
            options,
            board,
            usage: open(USAGE, "What each resource provider has, holds and has free").await?,
            moves: open(MOVES, "How each move stands").await?,
            capacity: open(CAPACITY, "Sums by resource class and aggregate").await?,
            sums: Capacity::default(),
            ended: Ended::default(),
            state,
        };
        session.level().await?;
        Ok(session)
    }

    async fn write(mut self) -> Result<(), Fault> {
        let mut durable = self.ledger.durable();
        let mut ticks = tokio::time::interval(self.options.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut inspected = Instant::now();
        loop {
            ticks.tick().await;
            let open = durable.has_changed().is_ok();
            if *durable.borrow_and_update() > self.state.sequence() {
                self.follow().await?;
            } else if !open {
                return Ok(());
            }
            self.expire().await?;
            if inspected.elapsed() >= self.options.inspect_every {
                for bucket in [&self.usage, &self.moves, &self.capacity] {
                    bucket.inspect().await?;
                }
                inspected = Instant::now();
            }
        }
    }

    /// Writes everything that differs from the ledger's newest state.
    async fn level(&mut self) -> Result<(), Fault> {
        self.state = self.ledger.view();
        let (state, sequence) = (Arc::clone(&self.state), self.state.sequence());
        self.sums = Capacity::of(&state);
        let moves = self.ended.all(&state, self.oldest());
        self.usage.level(usage::all(&state).collect(), sequence).await?;
        self.moves.level(moves.into_iter().collect(), sequence).await?;
        self.capacity.level(self.sums.all().collect(), sequence).await?;
        self.tell().await
    }

    /// Writes what the events since the last round touched, as it is now.
    async fn follow(&mut self) -> Result<(), Fault> {
        let Some(tail) = self.ledger.tail(self.state.sequence() + 1) else {
            return self.level().await;
        };
        let mut touched = Touched::default();
        tail.batches.iter().flat_map(|batch| &batch.events).for_each(|event| touched.note(event));
        if tail.batches.is_empty() {
            return Ok(());
        }
        if touched.names {
            return self.level().await;
        }
        self.state = tail.state;
        self.put(&touched).await?;
        self.tell().await
    }

    async fn put(&mut self, touched: &Touched) -> Result<(), Fault> {
        let (state, oldest) = (Arc::clone(&self.state), self.oldest());
        let sequence = state.sequence();
        for &provider in &touched.providers {
            match usage::value(&state, provider) {
                Some(value) => self.usage.put(&provider.to_string(), value, sequence).await?,
                None => self.usage.remove(&provider.to_string()).await?,
            }
        }
        for &id in &touched.moves {
            if let Some(value) = self.ended.value(&state, id, oldest) {
                self.moves.put(&id.to_string(), value, sequence).await?;
            }
        }
        for (key, value) in self.sums.change(&state, &touched.providers) {
            match value {
                Some(value) => self.capacity.put(&key, value, sequence).await?,
                None => self.capacity.remove(&key).await?,
            }
        }
        Ok(())
    }

    /// Once a round is written, says so.
    async fn tell(&mut self) -> Result<(), Fault> {
        let position = *self.state.position();
        let value = json!({
            "ledger_id": position.ledger_id,
            "recorded_at": position.recorded_at.to_string(),
        });
        for bucket in [&mut self.usage, &mut self.moves, &mut self.capacity] {
            bucket.settle().await?;
            bucket.put(AS_OF, value.clone(), position.sequence).await?;
            bucket.settle().await?;
        }
        self.board.round(position.sequence);
        Ok(())
    }

    async fn expire(&mut self) -> Result<(), Fault> {
        for id in self.ended.expired(&self.state, self.oldest()) {
            self.moves.remove(&id.to_string()).await?;
        }
        self.moves.settle().await
    }

    /// Moves that ended at or before this are not shown any more.
    fn oldest(&self) -> Timestamp {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(micros(now).saturating_sub(micros(self.options.ended_kept)))
    }
}
