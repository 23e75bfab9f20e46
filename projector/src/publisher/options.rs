//! How a publisher is set up.

use crate::connection::Connection;
use std::time::Duration;

/// How a publisher is set up.
#[derive(Clone, Debug)]
pub struct PublisherOptions {
    /// How NATS is reached.
    pub connection: Connection,
    /// The stream's name.
    pub stream: String,
    /// What the subjects begin with: events go to `<prefix>.event.>`.
    pub subject_prefix: String,
    /// Servers that keep a copy of the stream: 1, 3 or 5.
    pub replicas: usize,
    /// The first event that a newly made stream holds.
    pub first_sequence: u64,
    /// Events that are published again at most because something foreign stands behind them. With
    /// more, the stream begins anew where that stands, and older events are in the ledger only.
    pub refilled: u64,
    /// Whether the server refuses to remove or purge messages of a newly made stream.
    pub protected: bool,
    /// How often the stream is looked at while nothing is wrong.
    pub inspect_every: Duration,
    /// How long a single message may stay unacknowledged.
    pub ack_timeout: Duration,
}

impl PublisherOptions {
    /// The defaults for a server.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            stream: "ALLOC_EVENTS".into(),
            subject_prefix: "alloc.v1".into(),
            replicas: 1,
            first_sequence: 1,
            // About a second's work, at the rate that the server takes them.
            refilled: 100_000,
            protected: true,
            inspect_every: Duration::from_secs(5),
            ack_timeout: Duration::from_secs(5),
        }
    }

    /// The subjects of the stream.
    pub(super) fn subjects(&self) -> String {
        format!("{}.event.>", self.subject_prefix)
    }
}
