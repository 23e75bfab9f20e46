//! The set of views that follows a ledger.

use crate::follow::{Follow, Follower, Shared};
use crate::{Behind, CandidateIndex, ConsumersView, MovesView, Projection, UsageView};
use ledger::Ledger;
use ledger::panics::{Place, caught};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long a reader waits for its own write to appear in a view.
const PATIENCE: Duration = Duration::from_secs(5);

/// The views that follow one ledger. Cheap to clone; the thread ends with the last clone or
/// with [`Self::stop`].
#[derive(Clone)]
pub struct Projections {
    inner: Arc<Inner>,
}

struct Inner {
    usage: Arc<Shared<UsageView>>,
    candidates: Arc<Shared<CandidateIndex>>,
    consumers: Arc<Shared<ConsumersView>>,
    moves: Arc<Shared<MovesView>>,
    durable: watch::Receiver<u64>,
    wake: Arc<Notify>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Names a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewName {
    /// [`UsageView`]
    Usage,
    /// [`CandidateIndex`]
    Candidates,
    /// [`ConsumersView`]
    Consumers,
    /// [`MovesView`]
    Moves,
}

/// How a view is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewHealth {
    /// Its name.
    pub view: &'static str,
    /// The last event in it; none: it is still being built.
    pub sequence: Option<u64>,
    /// How many durable events it lacks.
    pub lag: u64,
    /// Somebody paused it.
    pub paused: bool,
    /// Why it has stopped. It goes on serving what it has, and says as of when that is.
    pub stopped: Option<String>,
    /// The event that it has stopped at. `skip_event` lets it go on behind it.
    pub stopped_at: Option<u64>,
}

impl Projections {
    /// Starts to follow a ledger. Returns at once; the views are built in the background.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn start(ledger: &Ledger) -> std::io::Result<Self> {
        let inner = Arc::new(Inner {
            usage: Shared::new(),
            candidates: Shared::new(),
            consumers: Shared::new(),
            moves: Shared::new(),
            durable: ledger.durable(),
            wake: Arc::new(Notify::new()),
            stop: Arc::new(AtomicBool::new(false)),
            thread: Mutex::new(None),
        });
        let followers: Vec<Box<dyn Follower>> = vec![
            Box::new(Follow::start(ledger, &inner.candidates, Arc::clone(&inner.wake))?),
            Box::new(Follow::start(ledger, &inner.usage, Arc::clone(&inner.wake))?),
            Box::new(Follow::start(ledger, &inner.consumers, Arc::clone(&inner.wake))?),
            Box::new(Follow::start(ledger, &inner.moves, Arc::clone(&inner.wake))?),
        ];
        spawn(ledger.clone(), followers, Arc::clone(&inner.wake), Arc::clone(&inner.stop))?;
        Ok(Self { inner })
    }

    /// The usage view with event `at_least` in it: a client that was answered sees its own write.
    ///
    /// # Errors
    /// [`Behind`] if the view does not come so far within five seconds.
    pub async fn usage(&self, at_least: u64) -> Result<Arc<UsageView>, Behind> {
        self.inner.usage.published.at_least(at_least, PATIENCE).await
    }

    /// The candidate index with event `at_least` in it. A search runs on this snapshot and holds up
    /// nobody.
    ///
    /// # Errors
    /// As [`Self::usage`].
    pub async fn candidates(&self, at_least: u64) -> Result<Arc<CandidateIndex>, Behind> {
        self.inner.candidates.published.at_least(at_least, PATIENCE).await
    }

    /// The consumers view with event `at_least` in it.
    ///
    /// # Errors
    /// As [`Self::usage`].
    pub async fn consumers(&self, at_least: u64) -> Result<Arc<ConsumersView>, Behind> {
        self.inner.consumers.published.at_least(at_least, PATIENCE).await
    }

    /// The moves view with event `at_least` in it.
    ///
    /// # Errors
    /// As [`Self::usage`].
    pub async fn moves(&self, at_least: u64) -> Result<Arc<MovesView>, Behind> {
        self.inner.moves.published.at_least(at_least, PATIENCE).await
    }

    /// The newest usage view, whatever its position; none while it is being built.
    pub fn newest_usage(&self) -> Option<Arc<UsageView>> {
        self.inner.usage.published.newest()
    }

    /// Lets a view stand still: it goes on serving what it has.
    pub fn pause(&self, view: ViewName) {
        self.paused(view).store(true, Ordering::Release);
    }

    /// Lets a paused view go on.
    pub fn resume(&self, view: ViewName) {
        self.paused(view).store(false, Ordering::Release);
        self.inner.wake.notify_one();
    }

    /// How each view is.
    pub fn health(&self) -> Vec<ViewHealth> {
        let durable = *self.inner.durable.borrow();
        vec![
            health(&self.inner.usage, durable),
            health(&self.inner.candidates, durable),
            health(&self.inner.consumers, durable),
            health(&self.inner.moves, durable),
        ]
    }

    /// Stops following, and waits until nothing here uses the ledger any more. The views stay as
    /// they are.
    pub fn stop(&self) {
        self.inner.halt();
        if let Some(thread) = self.inner.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the projections panicked");
        }
    }

    fn paused(&self, view: ViewName) -> &AtomicBool {
        match view {
            ViewName::Usage => &self.inner.usage.paused,
            ViewName::Candidates => &self.inner.candidates.paused,
            ViewName::Consumers => &self.inner.consumers.paused,
            ViewName::Moves => &self.inner.moves.paused,
        }
    }
}

impl Inner {
    fn halt(&self) {
        self.stop.store(true, Ordering::Release);
        self.wake.notify_one();
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.halt();
    }
}

fn health<P: Projection>(shared: &Shared<P>, durable: u64) -> ViewHealth {
    let sequence = shared.published.newest().map(|view| view.sequence());
    let stopped = shared.stopped.lock().clone();
    ViewHealth {
        view: P::NAME,
        sequence,
        lag: durable.saturating_sub(sequence.unwrap_or(0)),
        paused: shared.paused.load(Ordering::Acquire),
        stopped: stopped.as_ref().map(|stopped| stopped.why.clone()),
        stopped_at: stopped.and_then(|stopped| stopped.at),
    }
}

fn spawn(
    ledger: Ledger,
    mut followers: Vec<Box<dyn Follower>>,
    wake: Arc<Notify>,
    stop: Arc<AtomicBool>,
) -> std::io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    std::thread::Builder::new().name("projections".into()).spawn(move || {
        runtime.block_on(follow(&ledger, &mut followers, &wake, &stop));
    })
}

async fn follow(
    ledger: &Ledger,
    followers: &mut [Box<dyn Follower>],
    wake: &Notify,
    stop: &AtomicBool,
) {
    let mut durable = ledger.durable();
    let mut open = true;
    while !stop.load(Ordering::Acquire) {
        let until = *durable.borrow_and_update();
        // Each view gets one step a round, so that one far behind does not hold up the others.
        let mut more = false;
        for follower in followers.iter_mut() {
            // A fold that panics stops its view; anything else is tried again with the next event.
            match caught(Place::View, || follower.advance(ledger, until)) {
                Ok(advanced) => more |= advanced,
                Err(panic) => tracing::error!(%panic, "a view could not be taken further"),
            }
        }
        if more {
            continue;
        }
        tokio::select! {
            changed = durable.changed(), if open => open = changed.is_ok(),
            () = wake.notified() => {}
        }
    }
}
