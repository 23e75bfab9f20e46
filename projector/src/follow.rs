//! Following a ledger: one thread takes what became durable to each view.

use crate::fold::{Batch, Projection, ProjectionError, READ_RECORDS, apply_records};
use crate::published::Published;
use ledger::Ledger;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What readers and the follower share of one view.
pub(crate) struct Shared<P> {
    pub(crate) published: Published<P>,
    pub(crate) paused: AtomicBool,
    pub(crate) stopped: Mutex<Option<String>>,
}

impl<P: Projection> Shared<P> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            published: Published::new(),
            paused: AtomicBool::new(false),
            stopped: Mutex::new(None),
        })
    }

    fn stop(&self, error: &ProjectionError) {
        tracing::error!(view = P::NAME, %error, "the view has stopped; the ledger goes on");
        *self.stopped.lock() = Some(error.to_string());
    }
}

/// One view as the follower sees it.
pub(crate) trait Follower: Send {
    /// Takes the view to `durable`, or as far as a call may go. Tells whether more is to be done.
    fn advance(&mut self, ledger: &Ledger, durable: u64) -> bool;
}

/// A view that is built in a thread of its own and then follows.
pub(crate) struct Follow<P> {
    shared: Arc<Shared<P>>,
    view: Option<P>,
    first: crossbeam_channel::Receiver<Result<P, ProjectionError>>,
    builder: Option<JoinHandle<()>>,
}

impl<P: Projection> Follow<P> {
    /// Starts to build the view of the ledger's state; `wake` tells the follower when it is there.
    pub(crate) fn start(
        ledger: &Ledger,
        shared: &Arc<Shared<P>>,
        wake: Arc<tokio::sync::Notify>,
    ) -> std::io::Result<Self> {
        let (send, first) = crossbeam_channel::bounded(1);
        let ledger = ledger.clone();
        let builder =
            std::thread::Builder::new().name(format!("view-{}", P::NAME)).spawn(move || {
                let built = guarded(0, || P::from_state(&ledger.view(), &*ledger.reader()));
                // The follower may be gone already: then nobody needs the view.
                let _ = send.send(built);
                wake.notify_one();
            })?;
        Ok(Self { shared: Arc::clone(shared), view: None, first, builder: Some(builder) })
    }

    fn rests(&self) -> bool {
        self.shared.paused.load(Ordering::Acquire) || self.shared.stopped.lock().is_some()
    }

    fn take_first(&mut self) -> Result<(), ProjectionError> {
        if let (None, Ok(built)) = (&self.view, self.first.try_recv()) {
            let view = built?;
            self.shared.published.publish(view.clone());
            self.view = Some(view);
        }
        Ok(())
    }

    /// One step: a few batches from memory, or a page of the log. Tells whether it got anywhere.
    fn step(&mut self, ledger: &Ledger, durable: u64) -> Result<bool, ProjectionError> {
        self.take_first()?;
        let Some(view) = &self.view else {
            return Ok(false);
        };
        let at = view.sequence();
        if at >= durable {
            return Ok(false);
        }
        let mut next = view.clone();
        guarded(at, || catch_up(&mut next, ledger, durable))?;
        if next.sequence() == at {
            return Ok(false);
        }
        self.shared.published.publish(next.clone());
        self.view = Some(next);
        Ok(true)
    }
}

impl<P> Drop for Follow<P> {
    fn drop(&mut self) {
        // The builder uses the ledger too: whoever waits for the follower's end waits for it.
        if let Some(builder) = self.builder.take()
            && builder.join().is_err()
        {
            tracing::error!("a view's builder panicked");
        }
    }
}

impl<P: Projection> Follower for Follow<P> {
    fn advance(&mut self, ledger: &Ledger, durable: u64) -> bool {
        if self.rests() {
            return false;
        }
        self.step(ledger, durable).unwrap_or_else(|error| {
            self.shared.stop(&error);
            false
        })
    }
}

fn catch_up<P: Projection>(
    view: &mut P,
    ledger: &Ledger,
    durable: u64,
) -> Result<(), ProjectionError> {
    let from = view.sequence() + 1;
    if let Some(batches) = ledger.tail(from) {
        for committed in batches {
            view.apply(&Batch {
                records: &committed.records,
                events: &committed.events,
                state: Some(&committed.state),
            })?;
        }
        return Ok(());
    }
    if P::NEEDS_STATE {
        *view = P::from_state(&ledger.view(), &*ledger.reader())?;
        return Ok(());
    }
    let records = ledger.reader().read(from, READ_RECORDS)?;
    apply_records(view, records, durable).map(drop)
}

/// Runs a fold; a panic in it is an error of that view and nothing else's.
fn guarded<T>(
    at: u64,
    fold: impl FnOnce() -> Result<T, ProjectionError>,
) -> Result<T, ProjectionError> {
    catch_unwind(AssertUnwindSafe(fold)).unwrap_or_else(|panic| {
        let what = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
            .unwrap_or_else(|| "a panic without words".to_owned());
        Err(ProjectionError::Panicked { at, what })
    })
}
