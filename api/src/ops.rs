//! For those who run the server: `/healthz`, `/readyz` and `/metrics`. They need no
//! authentication and tell of providers, never of consumers, projects or users.

use std::fmt::Write;

use http::request::Parts;
use http::{Method, StatusCode};
use projector::ViewHealth;
use projector::publisher::{Publisher, PublisherStatus};
use serde_json::{Value, json};

use crate::app::App;
use crate::http::reply::Reply;
use crate::provider_metrics;

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

/// 200 if commands are taken, else 503 with the reason. Reads may still be served. A view that
/// lags or has stopped, or NATS being away, is told but makes nobody unready: commands are not
/// decided by either.
fn ready(app: &App) -> Reply {
    let health = app.ledger.health();
    let ready = health.read_only.is_none();
    let body = json!({
        "ready": ready,
        "reason": health.read_only,
        "sequence": health.durable,
        "queued": health.queued,
        "views": app.projections.health().iter().map(view).collect::<Vec<_>>(),
        "publisher": app.publisher.as_ref().map(|publisher| nats(&publisher.status())),
    });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Reply::bytes(body.to_string()).status(status)
}

fn view(health: &ViewHealth) -> Value {
    json!({
        "view": health.view,
        "sequence": health.sequence,
        "lag": health.lag,
        "paused": health.paused,
        "stopped": health.stopped,
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
    gauge(&mut out, "allocd_ledger_commits", "Commits to disk since the start.", health.batches);
    let nanos = health.last_commit_nanos;
    gauge(
        &mut out,
        "allocd_ledger_last_commit_nanoseconds",
        "How long the last commit took.",
        nanos,
    );
    gauge(&mut out, "allocd_providers", "Resource providers.", view.provider_count() as u64);
    gauge(
        &mut out,
        "allocd_consumers",
        "Consumers that hold something.",
        view.consumer_count() as u64,
    );
    if let Some(status) = app.publisher.as_ref().map(Publisher::status) {
        let connected = u64::from(status.connected);
        gauge(&mut out, "allocd_nats_connected", "1 if a session with NATS stands.", connected);
        gauge(&mut out, "allocd_nats_lag", "Durable events that the stream lacks.", status.lag);
        gauge(&mut out, "allocd_nats_alarms", "Alarms of the publisher so far.", status.alarms);
    }
    let (recorded, left_out) = app.failed_searches.counts();
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
    let _ = writeln!(out, "# HELP allocd_refusals_total Refused commands by cause.");
    let _ = writeln!(out, "# TYPE allocd_refusals_total counter");
    for (cause, count) in app.ledger.refusals().by_cause() {
        let _ = writeln!(out, "allocd_refusals_total{{cause=\"{cause}\"}} {count}");
    }
    out
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
