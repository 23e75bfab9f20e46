//! Case I21: what lags says by how many events and seconds, and makes the server unready over a bound
//! that the operator set. Commands go on all the while.
#![allow(clippy::unwrap_used, missing_docs)]

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use system_tests::http::Answer;
use system_tests::nats::Nats;
use system_tests::server::Server;
use system_tests::topology;

const PATIENCE: Duration = Duration::from_secs(120);
const EVENTS: u64 = 10_000;

fn readyz(server: &Server) -> Answer {
    server.client().get("/readyz").unwrap()
}

#[track_caller]
fn until(server: &Server, what: &str, so: impl Fn(&Answer) -> bool) -> Answer {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = readyz(server);
        if so(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}: {}", answer.text());
        thread::sleep(Duration::from_millis(50));
    }
}

fn lag(answer: &Answer, who: &str) -> (u64, f64) {
    let all = answer.json()["lag"].as_array().unwrap().clone();
    let one = all.iter().find(|one| one["who"] == who).unwrap();
    (one["events"].as_u64().unwrap(), one["seconds"].as_f64().unwrap())
}

fn claims(server: &Server, host: &str, count: u64) {
    let all: Vec<Value> = (0..count)
        .map(|number| {
            json!({"claim": {
                "consumer": topology::uuid(&format!("consumer {number}")),
                "project_id": "p", "user_id": "u", "options": [{host: {"VCPU": 1}}],
            }})
        })
        .collect();
    for list in all.chunks(200) {
        server.client().post("/ledger/v1/commands", &json!(list)).unwrap().expect(200);
    }
}

#[test]
fn i21_lag_is_told_in_events_and_seconds_and_has_a_bound() {
    let mut nats = Nats::start();
    let arguments = ["--nats", &nats.url(), "--max-publish-lag", "5000"];
    let mut server = Server::with(&arguments, &[]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 1_000_000)]);
    let level = |answer: &Answer| {
        ["publisher", "buckets", "usage", "candidates"]
            .iter()
            .all(|who| lag(answer, who) == (0, 0.0))
    };
    until(&server, "all is level", |answer| answer.status == 200 && level(answer));
    nats.terminate();
    claims(&server, &host, EVENTS);
    let red = until(&server, "unready", |answer| lag(answer, "usage").0 == 0);
    assert_eq!(red.status, 503, "{}", red.text());
    assert!(red.json()["reason"].as_str().unwrap().contains("publisher lacks 10000 events"));
    for who in ["publisher", "buckets"] {
        let (events, seconds) = lag(&red, who);
        assert_eq!(events, EVENTS, "{who}");
        assert!(seconds > 0.0, "{who}");
    }
    let metrics = server.client().get("/metrics").unwrap().text();
    assert!(metrics.contains("allocd_lag_events{who=\"publisher\"} 10000\n"), "{metrics}");
    // It grows older, and commands are taken all the while.
    let before = lag(&red, "publisher").1;
    server
        .client()
        .delete(&format!("/allocations/{}", topology::uuid("consumer 7")))
        .unwrap()
        .expect(204);
    until(&server, "it ages", |answer| lag(answer, "publisher").1 > before + 0.1);
    nats.restart();
    until(&server, "all is level again", |answer| answer.status == 200 && level(answer));
    assert!(server.terminate().success(), "a clean stop");
}

/// Without a bound the broker's absence makes nobody unready.
#[test]
fn nats_away_makes_nobody_unready_unless_that_is_wanted() {
    let mut nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 1_000_000)]);
    nats.kill();
    claims(&server, &host, 1_000);
    let answer = until(&server, "the lag is told", |answer| lag(answer, "publisher").0 >= 1_000);
    assert_eq!((answer.status, &answer.json()["ready"]), (200, &json!(true)));
    assert!(server.terminate().success(), "a clean stop");
}
