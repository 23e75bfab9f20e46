//! Looks for orphans now and then, for the log and the metrics.

use std::sync::Arc;
use std::time::Duration;

use ledger::panics::{Place, caught};

use crate::app::App;

/// How often.
const INTERVAL: Duration = Duration::from_secs(60);

/// Looks again and again until it is dropped. A look takes a few milliseconds of a thread that
/// answers nobody.
pub async fn watch(app: Arc<App>) {
    loop {
        let looking = Arc::clone(&app);
        let look = move || {
            looking.orphans.look(&looking.view());
            looking.orphans.save();
        };
        let looked = tokio::task::spawn_blocking(move || caught(Place::Background, look)).await;
        if let Ok(Err(panic)) = looked {
            tracing::error!(%panic, "looking for orphans failed");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
