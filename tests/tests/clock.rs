//! Case I19: the system's clock jumps. That is told once, with its size; nothing is refused, and
//! recorded times never go back.
#![allow(clippy::unwrap_used, missing_docs)]

use serde_json::{Value, json};
use system_tests::clock::TestClock;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

const HOUR: i64 = 3_600;

fn clock(server: &Server) -> (u64, f64) {
    let told = server.client().get("/readyz").unwrap().expect(200).json()["clock"].clone();
    (told["jumps"].as_u64().unwrap(), told["last_jump_seconds"].as_f64().unwrap())
}

fn claims(server: &Server, host: &str, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let body = json!({"claim": {
            "consumer": topology::uuid(&format!("consumer {number}")),
            "project_id": "p", "user_id": "u", "options": [{host: {"VCPU": 1}}],
        }});
        server.client().post("/ledger/v1/commands", &body).unwrap().expect(200);
    }
}

#[test]
fn i19_a_jump_of_the_clock_is_told_once_and_refuses_nothing() {
    let test_clock = TestClock::new();
    let environment = test_clock.environment();
    let pairs: Vec<(&str, &str)> = environment.iter().map(|(k, v)| (&**k, &**v)).collect();
    let mut server = Server::with(&[], &pairs);
    let host = topology::provider(&server.client(), "host", &[("VCPU", 1_000)]);
    claims(&server, &host, 0..20);
    assert_eq!(clock(&server), (0, 0.0));
    test_clock.set(HOUR);
    claims(&server, &host, 20..60);
    let (jumps, size) = clock(&server);
    assert_eq!(jumps, 1, "told once");
    assert!((size - HOUR as f64).abs() < 1.0, "{size}");
    test_clock.set(0);
    claims(&server, &host, 60..100);
    let (jumps, size) = clock(&server);
    assert_eq!(jumps, 2, "told once");
    assert!((size + HOUR as f64).abs() < 1.0, "{size}");
    claims(&server, &host, 100..120);
    assert_eq!(clock(&server).0, 2, "and not again");
    let log = server.log_tail();
    assert_eq!(log.matches("clock jumped").count(), 2, "{log}");
    let events = server.client().read("/ledger/v1/events?limit=1000")["events"].clone();
    let times: Vec<&str> = events
        .as_array()
        .unwrap()
        .iter()
        .map(|event: &Value| event["header"]["recorded_at"].as_str().unwrap())
        .collect();
    assert!(times.is_sorted(), "a recorded time went back");
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}
