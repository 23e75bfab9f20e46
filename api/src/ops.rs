//! For those who run the server: `/healthz`, `/readyz` and `/metrics`. They need no
//! authentication and tell of providers, never of consumers, projects or users.

use std::fmt::Write;

use http::request::Parts;
use http::{Method, StatusCode};
use ledger::panics;
use ledger::{Health, UnwritableCause};
use projector::ViewHealth;
use projector::buckets::{Buckets, BucketsStatus};
use projector::publisher::{Publisher, PublisherStatus};
use serde_json::{Value, json};

use crate::app::App;
use crate::clock::Jumps;
use crate::http::reply::Reply;
use crate::lag::{self, Follower};
use crate::memory_metrics;
use crate::native::shared_events::Ended;
use crate::nats::{Flood, ServiceStatus};
use crate::provider_metrics;

/// From so many caught panics on `/readyz` has an alarm: one may be a freak, three are a defect that
/// somebody meets again and again.
const INTERNAL_ERRORS_ALARM: u64 = 3;

/// The answer if the request is for one of these.
#[must_use]
pub async fn answer(app: &App, parts: &Parts) -> Option<Reply> {
    let path = parts.uri.path();
    // Whatever else can be asked for starts differently, so that most requests end here.
    if parts.method != Method::GET || !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return None;
    }
    Some(match path {
        "/healthz" => text("ok\n".to_owned()),
        "/readyz" => ready(app),
        _ => text(metrics(app).await),
    })
}

fn text(body: String) -> Reply {
    Reply { content_type: "text/plain; version=0.0.4; charset=utf-8", ..Reply::bytes(body) }
}

/// 200 if commands are taken and nothing lags further than it may, else 503 with the reason. Reads
/// may still be served. How far what is published may lag has no bound unless the operator sets
/// one: commands do not need NATS.
fn ready(app: &App) -> Reply {
    let health = app.ledger.health();
    let followers = lag::followers(app);
    let unready = followers.iter().find_map(|follower| follower.unready.clone());
    let reason = health.read_only.as_ref().map(ToString::to_string).or(unready);
    let ready = reason.is_none();
    let body = json!({
        "ready": ready,
        "reason": reason,
        "clock": clock(app.clock.jumps()),
        "internal_errors": internal_errors(),
        "lag": followers.iter().map(lagging).collect::<Value>(),
        "sequence": health.durable,
        "queued": health.queued,
        "store": store(&health),
        "views": app.projections.health().iter().map(view).collect::<Vec<_>>(),
        "publisher": app.publisher.as_ref().map(|publisher| nats(&publisher.status())),
        "buckets": app.buckets.as_ref().map(|buckets| written(&buckets.status())),
        "service": app.nats.as_ref().map(|board| service(&board.status())),
    });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Reply::bytes(body.to_string()).status(status)
}

fn store(health: &Health) -> Value {
    json!({
        "read_only": health.read_only.as_ref().map(|why| why.cause.name()),
        "free_bytes": health.free_bytes,
        "min_free_bytes": health.min_free_bytes,
        "background_errors": health.background_errors,
    })
}

fn clock(jumps: Jumps) -> Value {
    json!({ "jumps": jumps.count, "last_jump_seconds": jumps.last as f64 / 1e6 })
}

/// Panics that were caught. They alone never make the server unready: each cost one request, and
/// whoever can cause them shall not be able to take the server out of service.
fn internal_errors() -> Value {
    let total: u64 = panics::counts().map(|(_, count)| count).sum();
    let alarm = (total >= INTERNAL_ERRORS_ALARM).then(|| {
        format!("{total} requests or works met a defect of this program; see the log for panics")
    });
    json!({ "count": total, "alarm": alarm })
}

fn lagging(follower: &Follower) -> Value {
    json!({
        "who": follower.name,
        "events": follower.lag.events,
        "seconds": follower.lag.seconds,
        "unready": follower.unready,
    })
}

fn view(health: &ViewHealth) -> Value {
    json!({
        "view": health.view,
        "sequence": health.sequence,
        "lag": health.lag,
        "paused": health.paused,
        "stopped": health.stopped,
        "stopped_at": health.stopped_at,
    })
}

fn nats(status: &PublisherStatus) -> Value {
    json!({
        "stream": status.stream,
        "connected": status.connected,
        "published": status.published,
        "lag": status.lag,
        "alarm": status.alarm,
        "fault": status.fault,
        "warnings": status.warnings,
    })
}

fn written(status: &BucketsStatus) -> Value {
    json!({
        "connected": status.connected,
        "sequence": status.sequence,
        "lag": status.lag,
        "fault": status.fault,
        "repairs": status.repairs,
    })
}

fn service(status: &ServiceStatus) -> Value {
    json!({
        "connected": status.connected,
        "fault": status.fault,
        "requests": status.requests,
        "errors": status.errors,
        "no_inbox": status.no_inbox,
    })
}

async fn metrics(app: &App) -> String {
    let _turn = app.metrics.scrape.lock().await;
    // Writing all providers may take a while; nobody else waits for this thread meanwhile.
    tokio::task::block_in_place(|| {
        let mut out = general(app);
        provider_metrics::write(&mut out, &app.view());
        out
    })
}

fn general(app: &App) -> String {
    let mut out = String::new();
    app.metrics.write(&mut out);
    let health = app.ledger.health();
    let view = app.view();
    let read_only = u64::from(health.read_only.is_some());
    gauge(&mut out, "allocd_ledger_sequence", "The last durable sequence.", health.durable);
    gauge(&mut out, "allocd_ledger_queued", "Submissions waiting to be decided.", health.queued);
    gauge(&mut out, "allocd_ledger_read_only", "1 if no commands are taken.", read_only);
    store_metrics(&mut out, &health);
    gauge(&mut out, "allocd_ledger_commits", "Commits to disk since the start.", health.batches);
    let nanos = health.last_commit_nanos;
    gauge(
        &mut out,
        "allocd_ledger_last_commit_nanoseconds",
        "How long the last commit took.",
        nanos,
    );
    decisions(app, &mut out);
    gauge(&mut out, "allocd_providers", "Resource providers.", view.provider_count() as u64);
    gauge(
        &mut out,
        "allocd_consumers",
        "Consumers that hold something.",
        view.consumer_count() as u64,
    );
    let jumps = app.clock.jumps().count;
    gauge(&mut out, "allocd_clock_jumps", "Jumps of the system's clock since the start.", jumps);
    streams(app, &mut out);
    app.connections.write(&mut out);
    memory_metrics::write(&mut out, app);
    if let Some(status) = app.publisher.as_ref().map(Publisher::status) {
        let connected = u64::from(status.connected);
        gauge(&mut out, "allocd_nats_connected", "1 if a session with NATS stands.", connected);
        gauge(&mut out, "allocd_nats_lag", "Durable events that the stream lacks.", status.lag);
        gauge(&mut out, "allocd_nats_alarms", "Alarms of the publisher so far.", status.alarms);
    }
    let (recorded, left_out) = app.failed_searches.counts();
    if let Some(status) = app.buckets.as_ref().map(Buckets::status) {
        let (lag, repairs) = (status.lag, status.repairs);
        gauge(&mut out, "allocd_nats_buckets_lag", "Durable events that the buckets lack.", lag);
        gauge(&mut out, "allocd_nats_buckets_repairs", "Times a bucket was made right.", repairs);
    }
    if let Some(status) = app.nats.as_ref().map(|board| board.status()) {
        let connected = u64::from(status.connected);
        gauge(&mut out, "allocd_nats_service_connected", "1 if requests can come.", connected);
        requests_lost(&mut out, &status);
    }
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(out, "# HELP allocd_failed_searches_total Searches that found nothing.");
    let _ = writeln!(out, "# TYPE allocd_failed_searches_total counter");
    let _ = writeln!(out, "allocd_failed_searches_total{{recorded=\"true\"}} {recorded}");
    let _ = writeln!(out, "allocd_failed_searches_total{{recorded=\"false\"}} {left_out}");
    let _ = writeln!(out, "# HELP allocd_view_lag Durable events that a view lacks.");
    let _ = writeln!(out, "# TYPE allocd_view_lag gauge");
    for health in app.projections.health() {
        let _ = writeln!(out, "allocd_view_lag{{view=\"{}\"}} {}", health.view, health.lag);
    }
    orphans(app, &mut out);
    for (unit, help) in [
        ("events", "Durable events that what follows the ledger lacks."),
        ("seconds", "How long the oldest of them has been waiting."),
    ] {
        let _ = writeln!(out, "# HELP allocd_lag_{unit} {help}\n# TYPE allocd_lag_{unit} gauge");
        for Follower { name, lag, .. } in lag::followers(app) {
            let value = if unit == "events" { lag.events as f64 } else { lag.seconds };
            let _ = writeln!(out, "allocd_lag_{unit}{{who=\"{name}\"}} {value}");
        }
    }
    let _ = writeln!(out, "# HELP allocd_internal_errors_total Panics that were caught, by place.");
    let _ = writeln!(out, "# TYPE allocd_internal_errors_total counter");
    for (place, count) in panics::counts() {
        let place = place.name();
        let _ = writeln!(out, "allocd_internal_errors_total{{where=\"{place}\"}} {count}");
    }
    let _ = writeln!(out, "# HELP allocd_refusals_total Refused commands by cause.");
    let _ = writeln!(out, "# TYPE allocd_refusals_total counter");
    for (cause, count) in app.ledger.refusals().by_cause() {
        let _ = writeln!(out, "allocd_refusals_total{{cause=\"{cause}\"}} {count}");
    }
    out
}

/// How the disk is.
fn store_metrics(out: &mut String, health: &Health) {
    const NAME: &str = "allocd_store_read_only";
    let _ = writeln!(out, "# HELP {NAME} 1 if no commands are taken for this cause.");
    let _ = writeln!(out, "# TYPE {NAME} gauge");
    for cause in UnwritableCause::ALL {
        let value = u64::from(health.read_only.as_ref().is_some_and(|why| why.cause == cause));
        let _ = writeln!(out, "{NAME}{{cause=\"{}\"}} {value}", cause.name());
    }
    let (free, least) = (health.free_bytes, health.min_free_bytes);
    gauge(out, "allocd_store_free_bytes", "Bytes free on the ledger's file system.", free);
    gauge(out, "allocd_store_min_free_bytes", "Bytes that must be free for writes.", least);
    const ERRORS: &str = "allocd_store_background_errors_total";
    let _ = writeln!(out, "# HELP {ERRORS} What RocksDB's own threads could not do.");
    let _ = writeln!(out, "# TYPE {ERRORS} counter\n{ERRORS} {}", health.background_errors);
}

/// Requests by NATS that were not carried out.
fn requests_lost(out: &mut String, status: &ServiceStatus) {
    const NAME: &str = "allocd_nats_requests_not_taken_total";
    let _ = writeln!(out, "# HELP {NAME} Requests by NATS that were not carried out.");
    let _ = writeln!(out, "# TYPE {NAME} counter");
    let _ = writeln!(out, "{NAME}{{reason=\"no_inbox\"}} {}", status.no_inbox);
    for Flood { endpoint, turned_away, missed } in &status.floods {
        let _ = writeln!(out, "{NAME}{{reason=\"busy\",endpoint=\"{endpoint}\"}} {turned_away}");
        let _ = writeln!(out, "{NAME}{{reason=\"missed\",endpoint=\"{endpoint}\"}} {missed}");
    }
}

fn streams(app: &App, out: &mut String) {
    let open = app.streams.open();
    gauge(out, "allocd_event_streams", "Readers that follow events over HTTP.", open);
    let name = "allocd_event_streams_ended_total";
    let _ = writeln!(out, "# HELP {name} Streams of events that the server ended, by reason.");
    let _ = writeln!(out, "# TYPE {name} counter");
    for (why, told) in [(Ended::Slow, "slow"), (Ended::Crowded, "crowded")] {
        let _ = writeln!(out, "{name}{{reason=\"{told}\"}} {}", app.streams.ended(why));
    }
}

/// How long the writer took to decide: while it does, nobody else's command is decided.
fn decisions(app: &App, out: &mut String) {
    const NAME: &str = "allocd_decide_seconds";
    let times = app.ledger.decide_times();
    let _ = writeln!(out, "# HELP {NAME} How long decisions of commands took, without the disk.");
    let _ = writeln!(out, "# TYPE {NAME} histogram");
    for (end, count) in times.up_to() {
        let _ = writeln!(out, "{NAME}_bucket{{le=\"{}\"}} {count}", end.as_secs_f64());
    }
    let count = times.count();
    let _ = writeln!(out, "{NAME}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(out, "{NAME}_sum {}\n{NAME}_count {count}", times.sum().as_secs_f64());
    let _ = writeln!(out, "# HELP {NAME}_max How long the longest one took since the start.");
    let _ = writeln!(out, "# TYPE {NAME}_max gauge\n{NAME}_max {}", times.longest().as_secs_f64());
}

/// As of the last look, which is made each minute and by each request about orphans.
fn orphans(app: &App, out: &mut String) {
    let (counts, longest_open) = app.orphans.counts();
    let _ = writeln!(out, "# HELP allocd_orphans Holdings that were left behind, by kind.");
    let _ = writeln!(out, "# TYPE allocd_orphans gauge");
    for (kind, count) in counts {
        let _ = writeln!(out, "allocd_orphans{{kind=\"{}\"}} {count}", kind.name());
    }
    gauge(
        out,
        "allocd_longest_open_move_seconds",
        "How long the oldest move beyond the bound has been open.",
        longest_open,
    );
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
}
