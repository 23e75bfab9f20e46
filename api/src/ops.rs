//! For those who run the server: `/healthz`, `/readyz` and `/metrics`. They need no
//! authentication and tell nothing that a client's data would show in.

use std::fmt::Write;

use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::json;

use crate::app::App;
use crate::http::reply::Reply;

/// The answer if the request is for one of these.
#[must_use]
pub fn answer(app: &App, parts: &Parts) -> Option<Reply> {
    let path = parts.uri.path();
    // Whatever else can be asked for starts differently, so that most requests end here.
    if parts.method != Method::GET || !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return None;
    }
    Some(match path {
        "/healthz" => text("ok\n".to_owned()),
        "/readyz" => ready(app),
        _ => text(metrics(app)),
    })
}

fn text(body: String) -> Reply {
    Reply { content_type: "text/plain; version=0.0.4; charset=utf-8", ..Reply::bytes(body) }
}

/// 200 if commands are taken, else 503 with the reason. Reads may still be served.
fn ready(app: &App) -> Reply {
    let health = app.ledger.health();
    let ready = health.read_only.is_none();
    let body = json!({
        "ready": ready,
        "reason": health.read_only,
        "sequence": health.durable,
        "queued": health.queued,
    });
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Reply::bytes(body.to_string()).status(status)
}

fn metrics(app: &App) -> String {
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
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP allocd_refusals_total Refused commands by cause.");
    let _ = writeln!(out, "# TYPE allocd_refusals_total counter");
    for (cause, count) in app.ledger.refusals().by_cause() {
        let _ = writeln!(out, "allocd_refusals_total{{cause=\"{cause}\"}} {count}");
    }
    out
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}");
}
