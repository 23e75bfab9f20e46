//! How the buckets are set up.

use crate::connection::Connection;
use std::time::Duration;

/// How the buckets are set up.
#[derive(Clone, Debug)]
pub struct BucketsOptions {
    /// How NATS is reached.
    pub connection: Connection,
    /// Servers that keep a copy of each bucket: 1, 3 or 5.
    pub replicas: usize,
    /// How often what changed is written.
    pub every: Duration,
    /// How often the buckets are looked at while nothing is wrong.
    pub inspect_every: Duration,
    /// How long a move that ended is kept.
    pub ended_kept: Duration,
    /// How long a single write may stay unacknowledged.
    pub ack_timeout: Duration,
}

impl BucketsOptions {
    /// The defaults for a server.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            replicas: 1,
            every: Duration::from_millis(250),
            inspect_every: Duration::from_secs(5),
            ended_kept: Duration::from_secs(24 * 60 * 60),
            ack_timeout: Duration::from_secs(5),
        }
    }
}
