//! The newest snapshot of a view, for any number of readers that never wait for the follower.

use crate::fold::Projection;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// A view has not come as far as a reader needs it, and did not in the time that was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the view {view} is at event {at}, not yet at {wanted}")]
pub struct Behind {
    /// Which view.
    pub view: &'static str,
    /// The event that the reader needs in it.
    pub wanted: u64,
    /// The last event in it; 0: it is still being built.
    pub at: u64,
}

/// Where the follower puts snapshots and readers take them.
pub(crate) struct Published<P> {
    view: ArcSwapOption<P>,
    position: watch::Sender<Option<u64>>,
}

impl<P: Projection> Published<P> {
    pub(crate) fn new() -> Self {
        Self { view: ArcSwapOption::empty(), position: watch::Sender::new(None) }
    }

    /// The newest snapshot; none while the first is being built.
    pub(crate) fn newest(&self) -> Option<Arc<P>> {
        self.view.load_full()
    }

    /// Publishes a snapshot and wakes who waits for it.
    pub(crate) fn publish(&self, view: P) {
        let sequence = view.sequence();
        self.view.store(Some(Arc::new(view)));
        self.position.send_replace(Some(sequence));
    }

    /// A snapshot that holds event `wanted`.
    pub(crate) async fn at_least(&self, wanted: u64, patience: Duration) -> Result<Arc<P>, Behind> {
        if let Some(view) = self.newest().filter(|view| view.sequence() >= wanted) {
            return Ok(view);
        }
        let mut position = self.position.subscribe();
        let reached = position.wait_for(|at| at.is_some_and(|at| at >= wanted));
        let _ = tokio::time::timeout(patience, reached).await;
        match self.newest() {
            Some(view) if view.sequence() >= wanted => Ok(view),
            other => {
                Err(Behind { view: P::NAME, wanted, at: other.map_or(0, |view| view.sequence()) })
            }
        }
    }
}
