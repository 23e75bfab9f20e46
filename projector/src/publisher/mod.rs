//! The publisher: copies the log to a JetStream stream in which message n is event n.
//!
//! The stream is a copy that the ledger can fill again at any time, so it needs no saved position
//! of its own: the stream's last sequence is the position, and resuming means going on with the
//! event after it. Nothing is deleted or marked in the ledger (J9), and what the callers of the
//! ledger were answered depends on the ledger alone (I23).
//!
//! Each publish carries two expectations: the stream's last sequence, and the id of its last
//! message. The first forbids gaps and doubles, whatever the duplicate window remembers (I15).
//! The second is for the window of messages in flight: if somebody else's message slipped in at
//! n, our n is refused, and n + 1 would be accepted behind the stranger if it asked for the
//! sequence alone.
//!
//! The thread, the connection and the reads of the log are the publisher's own: NATS away, slow
//! or wrong never touches the ledger.

mod backoff;
mod fault;
mod inspect;
mod message;
mod options;
mod session;
mod status;
mod stream;
mod warnings;
mod window;

pub use message::{CONTENT_TYPE, consumer_token, subject};
pub use options::PublisherOptions;
pub use status::PublisherStatus;

pub(crate) use backoff::Backoff;
use fault::Fault;
use futures::FutureExt;
use ledger::Ledger;
use ledger::ids::LedgerId;
use ledger::log::LogReader;
use ledger::panics::{Place, noted};
use parking_lot::Mutex;
use status::Board;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// A publisher at work. It stops with [`Self::stop`], when it is dropped, or when the ledger closes
/// and everything is published.
pub struct Publisher {
    board: Arc<Board>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the publisher's parts need of each other.
struct Source {
    options: PublisherOptions,
    ledger_id: LedgerId,
    reader: Arc<dyn LogReader>,
    durable: watch::Receiver<u64>,
    board: Arc<Board>,
}

impl Publisher {
    /// Starts to publish a ledger. Returns at once; a server that cannot be reached is tried
    /// again and again.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(ledger: &Ledger, options: PublisherOptions) -> std::io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let durable = ledger.durable();
        let board = Arc::new(Board::new(options.stream.clone(), durable.clone()));
        let source = Source {
            options,
            ledger_id: ledger.view().position().ledger_id,
            reader: ledger.reader(),
            durable,
            board: Arc::clone(&board),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("publisher".into()).spawn(move || {
            runtime.block_on(async {
                let watchdog = tokio::spawn(status::watch(Arc::clone(&source.board)));
                publish(&source, stopped).await;
                watchdog.abort();
            });
        })?;
        Ok(Self { board, stop, thread: Mutex::new(Some(thread)) })
    }

    /// How the publisher is.
    pub fn status(&self) -> PublisherStatus {
        self.board.status()
    }

    /// Stops and waits for the thread to end. What is not published yet will be, by the next one.
    pub fn stop(&self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the publisher's thread panicked");
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// One session after another until it is told to stop.
async fn publish(source: &Source, mut stopped: watch::Receiver<bool>) {
    let mut backoff = Backoff::default();
    loop {
        let before = source.board.published();
        let fault = tokio::select! {
            result = AssertUnwindSafe(session::run(source)).catch_unwind() => match result {
                Ok(Ok(())) => return,
                Ok(Err(fault)) => fault,
                Err(panic) => Fault::Panicked(noted(Place::Background, &*panic).to_string()),
            },
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        if source.board.published() > before {
            backoff = Backoff::default();
        }
        source.board.fault(&fault);
        let pause = backoff.next();
        match &fault {
            Fault::NotOurs(_) => {}
            other => tracing::warn!(fault = %other, ?pause, "publishing is interrupted"),
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopped.wait_for(|stop| *stop) => return,
        }
    }
}
