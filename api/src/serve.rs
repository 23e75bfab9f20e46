//! `allocd serve`: puts the parts together, serves, and ends cleanly.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use ledger::time::Clock;
use ledger::{FreeSpace, Ledger, Options};
use projector::Projections;
use projector::buckets::{Buckets, BucketsOptions};
use projector::publisher::{Publisher, PublisherOptions};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;
use crate::clock::SystemClock;
use crate::config::Config;
use crate::handle::handle;
use crate::http::cors::Cors;
use crate::http::policy::Policy;
use crate::nats::Service;
use crate::open_files;
use crate::orphans::{Orphans, watch};
use crate::server::{self, Connections};

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
    let connections = open_files::raise(config.max_connections);
    let clock = Arc::new(SystemClock::default());
    let ledger = open(&config, Arc::clone(&clock)).await?;
    let deciding: Arc<dyn Clock> = Arc::clone(&clock) as _;
    config.same_host_moves.record(&ledger, &deciding).await?;
    let mut fatal = ledger.fatal();
    let projections = Projections::start(&ledger)?;
    let publisher = publisher(&config, &ledger)?;
    let buckets = buckets(&config, &ledger)?;
    let app = App {
        buckets,
        nats: config.nats.as_ref().filter(|nats| nats.service).map(|_| Arc::default()),
        clock,
        bounds: config.bounds,
        candidates: config.candidates,
        orphans: Orphans::open(
            config.open_move_bound,
            &config.data_dir,
            ledger.view().position().ledger_id,
        ),
        connections: Arc::new(Connections::new(connections)),
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
    let ending = Arc::clone(&app);
    let stopping = async move {
        let reason = stop.await;
        ending.ending.send_replace(true);
        let _ = tell.send(reason);
    };
    let service = service(&config, &app);
    server::serve(listener, Arc::clone(&app.connections), handler, stopping).await;
    watching.abort();
    if let Some(service) = service {
        service.stop().await;
    }
    tokio::task::spawn_blocking(move || close(&app)).await?;
    match told.await {
        Ok(Some(reason)) => Err(reason.into()),
        _ => Ok(()),
    }
}

/// What is not published yet will be by the next process: the stream's end says how far it is.
fn publisher(config: &Config, ledger: &Ledger) -> Result<Option<Publisher>, Failed> {
    let Some(nats) = &config.nats else { return Ok(None) };
    let options = PublisherOptions::new(nats.connection.clone());
    Ok(Some(Publisher::start(ledger, options)?))
}

fn buckets(config: &Config, ledger: &Ledger) -> Result<Option<Buckets>, Failed> {
    let Some(nats) = config.nats.as_ref().filter(|nats| nats.buckets) else { return Ok(None) };
    Ok(Some(Buckets::start(ledger, BucketsOptions::new(nats.connection.clone()))?))
}

/// Takes commands and queries by NATS, if that is wanted.
fn service(config: &Config, app: &Arc<App>) -> Option<Service> {
    let (nats, board) = (config.nats.as_ref()?, app.nats.as_ref()?);
    let inboxes = nats.inboxes.clone();
    Some(Service::start(Arc::clone(app), Arc::clone(board), nats.connection.clone(), inboxes))
}

fn close(app: &App) {
    app.orphans.save();
    app.projections.stop();
    if let Some(publisher) = &app.publisher {
        publisher.stop();
    }
    if let Some(buckets) = &app.buckets {
        buckets.stop();
    }
    app.ledger.close();
}

/// Opens the ledger, which may have to fold a long log first.
async fn open(config: &Config, clock: Arc<SystemClock>) -> Result<Ledger, Failed> {
    let dir = config.data_dir.clone();
    let seed = uuid::Uuid::new_v4().into_bytes();
    let options = Options {
        owner: owner(config),
        accept_lost_tail: config.accept_lost_tail,
        free_space: config.min_free_bytes.map_or(Options::default().free_space, FreeSpace::Bytes),
        ..Options::default()
    };
    let opened = tokio::task::spawn_blocking(move || Ledger::open(&dir, options, clock, seed));
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
