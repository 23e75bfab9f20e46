//! What commands may use, or queries: each has a budget of its own, so that no flood of queries
//! keeps a command waiting.

use std::time::Instant;

use async_nats::Message;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::endpoint::Endpoint;
use super::fair::{Bounds, FairQueue, Turn};
use super::inboxes::Caller;

/// Commands wait for the disk, many in one commit. As many may wait as the writer's queue holds;
/// a quarter of these in hand is more than one commit takes.
const COMMANDS: Bounds = Bounds {
    running: ledger::limits::QUEUE / 4,
    waiting: ledger::limits::QUEUE,
    bytes: 64 * 1024 * 1024,
};
/// Queries compute, at most one for each processor at a time where they take long; more in hand
/// only hold memory for their answers. A query's parameters are small.
const QUERIES: Bounds = Bounds { running: 32, waiting: 2_048, bytes: 16 * 1024 * 1024 };
/// What a message costs beside its subjects, headers and body: its places in queues.
const OVERHEAD: usize = 256;

/// A request that came.
pub(super) struct Asked {
    pub(super) message: Message,
    pub(super) begun: Instant,
}

/// The budget of one endpoint.
pub(super) struct Lane {
    queue: Mutex<FairQueue<Asked>>,
    idle: Notify,
}

impl Lane {
    pub(super) fn new(endpoint: Endpoint) -> Self {
        let bounds = match endpoint {
            Endpoint::Command => COMMANDS,
            Endpoint::Query => QUERIES,
        };
        Self { queue: Mutex::new(FairQueue::new(bounds)), idle: Notify::new() }
    }

    /// Takes a request in; those that are turned away for it, perhaps itself.
    pub(super) fn push(&self, caller: Caller, message: Message) -> Vec<Asked> {
        let bytes = message.length + OVERHEAD;
        self.queue.lock().push(caller, Asked { message, begun: Instant::now() }, bytes)
    }

    /// The next request that may be in hand.
    pub(super) fn pop(&self) -> Option<(Asked, Turn)> {
        self.queue.lock().pop()
    }

    /// A request is answered.
    pub(super) fn done(&self, turn: &Turn) {
        let mut queue = self.queue.lock();
        queue.done(turn);
        if queue.is_idle() {
            self.idle.notify_waiters();
        }
    }

    /// Takes out everything that waits.
    pub(super) fn drain(&self) -> Vec<Asked> {
        self.queue.lock().drain()
    }

    /// Waits until nothing is in hand.
    pub(super) async fn idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.queue.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }
}
