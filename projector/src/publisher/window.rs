//! Messages that were sent and are not acknowledged yet.

use super::fault::Fault;
use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::publish::PublishAck;
use futures::future::BoxFuture;
use std::collections::VecDeque;
use std::future::IntoFuture;

/// Messages in flight at most ...
const MESSAGES: usize = 1_024;
/// ... and bytes of their bodies, so that large events do not fill the memory.
const BYTES: usize = 8 * 1024 * 1024;

type Ack = BoxFuture<'static, Result<PublishAck, async_nats::jetstream::context::PublishError>>;

/// The window, oldest first. The server answers in the order it was asked.
#[derive(Default)]
pub(super) struct Window {
    sent: VecDeque<Sent>,
    bytes: usize,
}

struct Sent {
    sequence: u64,
    bytes: usize,
    ack: Ack,
}

impl Window {
    /// Whether another message may be sent.
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < MESSAGES && self.bytes < BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn push(&mut self, sequence: u64, bytes: usize, ack: PublishAckFuture) {
        self.bytes += bytes;
        self.sent.push_back(Sent { sequence, bytes, ack: ack.into_future() });
    }

    /// Waits for the oldest to be acknowledged, and tells its sequence. It can be given up and
    /// called again. With nothing in flight it waits for ever.
    ///
    /// # Errors
    /// [`Fault`] if the server did not take it, or not at its place.
    pub(super) async fn acknowledged(&mut self, stream: &str) -> Result<u64, Fault> {
        let Some(oldest) = self.sent.front_mut() else {
            return std::future::pending().await;
        };
        let answer = (&mut oldest.ack).await;
        let sequence = oldest.sequence;
        self.bytes -= oldest.bytes;
        self.sent.pop_front();
        let ack = answer.map_err(|error| Fault::Publish { sequence, error: describe(&error) })?;
        if ack.sequence != sequence || ack.stream != stream {
            return Err(Fault::Misplaced { sequence, stored: ack.sequence, stream: ack.stream });
        }
        Ok(sequence)
    }
}

/// An error with what caused it.
fn describe(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
