//! Current views as JetStream key-value buckets, for dashboards that want figures, not events.
//!
//! ```text
//! alloc_usage      <provider uuid>         what a provider has, what is held and free of each class
//! alloc_moves      <move id>               how a move stands; one that ended goes after a day
//! alloc_capacity   <class>.<aggregate>     sums over the providers of an aggregate; `_all`: of all
//! each             _as_of                  the ledger, and up to which event the bucket is true
//! ```
//!
//! Values are JSON. Each has the `sequence` at which it was written, and is true until it is
//! written again, at least up to the bucket's `_as_of`. What changed is written every 250 ms, the
//! newest value only, and `_as_of` after it: whoever reads it knows that everything up to there was
//! written before.
//!
//! Buckets are copies. Each session compares them with the ledger's state and writes what differs,
//! so that one that was removed, emptied or written to by others is made right again.

mod board;
mod bucket;
mod capacity;
mod key;
mod moves;
mod options;
mod session;
mod touched;
mod usage;

pub use board::BucketsStatus;
pub use options::BucketsOptions;

use crate::publisher::Backoff;
use board::Board;
use futures::FutureExt;
use ledger::Ledger;
use ledger::panics::{Place, noted};
use parking_lot::Mutex;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The key that says up to which event a bucket is true.
pub const AS_OF: &str = "_as_of";
/// What each provider has, holds and has free.
pub const USAGE: &str = "alloc_usage";
/// How each move stands.
pub const MOVES: &str = "alloc_moves";
/// Sums by class and aggregate.
pub const CAPACITY: &str = "alloc_capacity";

/// The buckets' writer at work. It stops with [`Self::stop`], or when it is dropped.
pub struct Buckets {
    board: Arc<Board>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Buckets {
    /// Starts to write. Returns at once; a server that cannot be reached is tried again and again.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(ledger: &Ledger, options: BucketsOptions) -> std::io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let board = Arc::new(Board::new(ledger.durable()));
        let (ledger, shared) = (ledger.clone(), Arc::clone(&board));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("buckets".into()).spawn(move || {
            runtime.block_on(write(&ledger, &options, &shared, stopped));
        })?;
        Ok(Self { board, stop, thread: Mutex::new(Some(thread)) })
    }

    /// How the buckets are.
    pub fn status(&self) -> BucketsStatus {
        self.board.status()
    }

    /// Stops and waits for the thread to end.
    pub fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the buckets panicked");
        }
    }
}

impl Drop for Buckets {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// One session after another until it is told to stop.
async fn write(
    ledger: &Ledger,
    options: &BucketsOptions,
    board: &Board,
    mut stopped: watch::Receiver<bool>,
) {
    let mut backoff = Backoff::default();
    loop {
        let before = board.rounds();
        let fault = tokio::select! {
            result = AssertUnwindSafe(session::run(ledger, options, board)).catch_unwind() => match result {
                Ok(Ok(())) => return,
                Ok(Err(fault)) => fault,
                Err(panic) => session::Fault::Panicked(noted(Place::Background, &*panic).to_string()),
            },
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        if board.rounds() > before {
            backoff = Backoff::default();
        }
        board.fault(&fault);
        let pause = backoff.next();
        tracing::warn!(%fault, ?pause, "writing the buckets is interrupted");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
    }
}
