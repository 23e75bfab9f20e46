//! Looks for orphans now and then, for the log and the metrics.

use std::sync::Arc;
use std::time::Duration;

use crate::app::App;

/// How often.
const INTERVAL: Duration = Duration::from_secs(60);

/// Looks again and again until it is dropped. A look takes a few milliseconds of a thread that
/// answers nobody.
pub async fn watch(app: Arc<App>) {
    loop {
        let looking = Arc::clone(&app);
        let looked = tokio::task::spawn_blocking(move || looking.orphans.look(&looking.view()));
        if looked.await.is_err() {
            tracing::error!("looking for orphans failed");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
