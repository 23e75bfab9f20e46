//! One session with the server: connect, look at the stream, publish until something goes wrong.
//!
//! A session never reconnects by itself. Whatever happens, the next one looks at the stream again
//! before it publishes anything.

use super::Source;
use super::fault::Fault;
use super::inspect;
use super::message::message;
use super::stream::{Ready, prepare};
use super::warnings::warnings;
use super::window::Window;
use async_nats::Event;
use async_nats::jetstream::context::{Context, ContextBuilder};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Info;
use futures::FutureExt;
use ledger::record::Record;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// Records that are read from the log at once.
const READ_RECORDS: usize = 1_024;

/// Publishes until the ledger is closed and everything is published.
///
/// # Errors
/// [`Fault`] is what ended the session before that.
pub(super) async fn run(source: &Source) -> Result<(), Fault> {
    let lost = Arc::new(Notify::new());
    let context = connect(source, &lost).await?;
    let work = async {
        let ready = prepare(source, &context).await?;
        let (config, server) = (&ready.info.config, context.client().server_info());
        source.board.warn(warnings(config, &server, source.options.first_sequence));
        source.board.session(ready.last);
        Session::new(source, context, ready).publish().await
    };
    tokio::select! {
        result = work => result,
        () = lost.notified() => Err(Fault::Disconnected),
    }
}

async fn connect(source: &Source, lost: &Arc<Notify>) -> Result<Context, Fault> {
    let lost = Arc::clone(lost);
    let connection = &source.options.connection;
    let servers = connection.servers()?;
    let client = connection
        .options("allocd publisher")
        .await?
        .request_timeout(Some(source.options.ack_timeout))
        .max_reconnects(servers.len())
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected | Event::Closed) {
                lost.notify_one();
            }
            std::future::ready(())
        })
        .connect(&servers)
        .await
        .map_err(|error| Fault::server("connecting")(&error))?;
    Ok(ContextBuilder::new()
        .timeout(source.options.ack_timeout)
        .ack_timeout(source.options.ack_timeout)
        .build(client))
}

struct Session<'a> {
    source: &'a Source,
    context: Context,
    /// The stream as it was when the session began.
    begun: Info,
    window: Window,
    /// Records that were read and are to be sent.
    waiting: VecDeque<Record>,
    /// The next event to be read.
    next: u64,
    /// The id of the message that was sent last.
    previous_id: Option<String>,
    acknowledged: u64,
}

impl<'a> Session<'a> {
    fn new(source: &'a Source, context: Context, ready: Ready) -> Self {
        Self {
            source,
            context,
            begun: ready.info,
            window: Window::default(),
            waiting: VecDeque::new(),
            // A stream that ends beyond the ledger was refused when it was looked at.
            next: ready.last.saturating_add(1),
            previous_id: None,
            acknowledged: ready.last,
        }
    }

    async fn publish(mut self) -> Result<(), Fault> {
        let mut durable = self.source.durable.clone();
        let mut open = true;
        let mut inspections = tokio::time::interval(self.source.options.inspect_every);
        inspections.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        inspections.tick().await;
        loop {
            let until = *durable.borrow_and_update();
            self.send(until).await?;
            if !open && self.window.is_empty() && self.next > until {
                return Ok(());
            }
            tokio::select! {
                biased;
                acknowledged = self.window.acknowledged(&self.source.options.stream) => {
                    self.acknowledged = acknowledged?;
                    // Many come at once; then as many are sent at once.
                    while let Some(another) =
                        self.window.acknowledged(&self.source.options.stream).now_or_never()
                    {
                        self.acknowledged = another?;
                    }
                    self.source.board.acknowledged(self.acknowledged);
                }
                changed = durable.changed(), if open && self.window.has_room() => {
                    open = changed.is_ok();
                }
                _ = inspections.tick() => self.inspect().await?,
            }
        }
    }

    /// Sends what is durable, as far as the window has room.
    async fn send(&mut self, until: u64) -> Result<(), Fault> {
        while self.window.has_room() {
            let Some(record) = self.take(until)? else {
                return Ok(());
            };
            let sequence = record.header.sequence;
            let options = &self.source.options;
            let message = message(
                &options.subject_prefix,
                &options.stream,
                &record,
                self.previous_id.as_deref(),
            );
            let bytes = message.body.len();
            let publish = PublishMessage::build().headers(message.headers).payload(message.body);
            let ack = self
                .context
                .send_publish(message.subject, publish)
                .await
                .map_err(|error| Fault::Publish { sequence, error: error.to_string() })?;
            self.window.push(sequence, bytes, ack);
            self.previous_id = Some(record.header.id.to_string());
        }
        Ok(())
    }

    fn take(&mut self, until: u64) -> Result<Option<Record>, Fault> {
        if self.waiting.is_empty() && self.next <= until {
            let records = self.source.reader.read(self.next, READ_RECORDS)?;
            self.waiting = records.into();
        }
        match self.waiting.pop_front() {
            Some(record) if record.header.sequence == self.next => {
                self.next += 1;
                Ok(Some(record))
            }
            None if self.next > until => Ok(None),
            _ => Err(Fault::Missing(self.next)),
        }
    }

    /// Looks whether the stream is still what it was, also when there is nothing to publish.
    async fn inspect(&mut self) -> Result<(), Fault> {
        let stream = self
            .context
            .get_stream(&self.source.options.stream)
            .await
            .map_err(|error| Fault::server("asking for the stream")(&error))?;
        let info = stream.cached_info();
        let server = self.context.client().server_info();
        let first = self.source.options.first_sequence;
        self.source.board.warn(warnings(&info.config, &server, first));
        if info.created != self.begun.created {
            return Err(Fault::Changed("somebody made it anew".into()));
        }
        let last = info.state.last_sequence;
        if last < self.acknowledged || last >= self.next {
            return Err(Fault::Changed(format!(
                "it ends at {last}, and {} to {} were sent",
                self.acknowledged + 1,
                self.next - 1
            )));
        }
        inspect::unlike(self.source, info)
            .map_or(Ok(()), |what| Err(Fault::Changed(format!("it {what}"))))
    }
}
