//! `allocd serve`: puts the parts together, serves, and ends cleanly.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use ledger::time::Clock;
use ledger::{Ledger, Options};
use projector::Projections;
use projector::publisher::{Publisher, PublisherOptions};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::handle::handle;
use crate::http::cors::Cors;
use crate::http::policy::Policy;
use crate::orphans::{Orphans, watch};
use crate::server;

/// Why the server could not start, or had to end.
pub type Failed = Box<dyn Error + Send + Sync>;

/// Serves until SIGTERM or SIGINT, or until the ledger cannot go on.
///
/// # Errors
/// If the settings, the data or the address cannot be used, or the ledger gave up.
pub async fn serve(config: Config) -> Result<(), Failed> {
    let policy = Policy::load(config.policy_file.as_deref(), config.enforce_new_defaults)?;
    let cors =
        Cors::new(config.cors_allowed_origin.as_deref(), config.cors_allow_headers.as_deref());
    // A taken address is told before the ledger is opened, which may take a while.
    let listener = TcpListener::bind(config.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", config.listen))?;
    let ledger = open(&config).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    config.same_host_moves.record(&ledger, &clock).await?;
    let mut fatal = ledger.fatal();
    let projections = Projections::start(&ledger)?;
    let publisher = publisher(&config, &ledger)?;
    let app = App {
        orphans: Orphans::new(config.open_move_bound),
        ..App::new(ledger.clone(), projections, publisher, policy, cors)
    };
    let app = Arc::new(app);
    let watching = tokio::spawn(watch(Arc::clone(&app)));
    tracing::info!(address = %listener.local_addr()?, data = %config.data_dir.display(), "serving");
    let gave_up = async move {
        let reason = fatal.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    };
    let shared = Arc::clone(&app);
    let handler = move |request, peer| {
        let app = Arc::clone(&shared);
        async move { handle(&app, request, peer).await }
    };
    let stop = stop(gave_up)?;
    let (tell, told) = tokio::sync::oneshot::channel();
    let stopping = async move {
        let reason = stop.await;
        let _ = tell.send(reason);
    };
    server::serve(listener, config.max_connections, handler, stopping).await;
    watching.abort();
    tokio::task::spawn_blocking(move || close(&app)).await?;
    match told.await {
        Ok(Some(reason)) => Err(reason.into()),
        _ => Ok(()),
    }
}

/// What is not published yet will be by the next process: the stream's end says how far it is.
fn publisher(config: &Config, ledger: &Ledger) -> Result<Option<Publisher>, Failed> {
    let Some(url) = &config.nats else { return Ok(None) };
    Ok(Some(Publisher::start(ledger, PublisherOptions::new(url))?))
}

fn close(app: &App) {
    app.projections.stop();
    if let Some(publisher) = &app.publisher {
        publisher.stop();
    }
    app.ledger.close();
}

/// Opens the ledger, which may have to fold a long log first.
async fn open(config: &Config) -> Result<Ledger, Failed> {
    let dir = config.data_dir.clone();
    let seed = uuid::Uuid::new_v4().into_bytes();
    let options = Options { owner: owner(config), ..Options::default() };
    let opened = tokio::task::spawn_blocking(move || {
        Ledger::open(&dir, options, Arc::new(SystemClock), seed)
    });
    Ok(opened.await??)
}

/// Who has the ledger, as a second process that wants it is told.
fn owner(config: &Config) -> String {
    format!("allocd, process {}, serving {}", std::process::id(), config.listen)
}

/// Ready when the server shall end: with the reason if the ledger gave up.
fn stop(
    gave_up: impl Future<Output = String>,
) -> Result<impl Future<Output = Option<String>>, Failed> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("ending on SIGTERM"),
            _ = interrupt.recv() => tracing::info!("ending on SIGINT"),
            reason = gave_up => {
                tracing::error!(reason, "ending because the ledger cannot go on");
                return Some(reason);
            }
        }
        None
    })
}
