//! Invariant 9 where the program itself has a defect: a panic costs the request that met it, and
//! neither the process nor anybody else's. The environment variable `ALLOCD_TEST_PANIC` plants
//! panics by place and request id (`PLACE=REQUEST-ID,...`); builds without debug assertions do not
//! have it.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::Barrier;
use std::thread;

use serde_json::{Value, json};
use system_tests::asker::Asker;
use system_tests::http::{Answer, Client};
use system_tests::nats::Nats;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

/// Who claims in the moment of the panic.
const OTHERS: usize = 50;

fn request_id(name: &str) -> String {
    format!("req-{}", topology::uuid(&format!("request {name}")))
}

fn planted(places: &[&str]) -> String {
    let each = places.iter().map(|place| format!("{place}={}", request_id(place)));
    each.collect::<Vec<_>>().join(",")
}

fn claim(consumer: &str, host: &str) -> Value {
    json!({"claim": {
        "consumer": topology::uuid(consumer).to_string(), "project_id": "p", "user_id": "u",
        "consumer_type": "INSTANCE", "options": [{host: {"VCPU": 1}}],
    }})
}

fn held(client: &Client, host: &str) -> Value {
    client.read(&format!("/resource_providers/{host}/usages"))["usages"]["VCPU"].clone()
}

/// The id of a 500, which the log tells more beside.
fn internal(server: &Server, answer: &Answer) -> String {
    assert_eq!(answer.status, 500, "{}", answer.text());
    let error = &answer.json()["errors"][0];
    assert_eq!((&error["cause"], &error["status"]), (&json!("internal"), &json!(500)));
    let id = error["id"].as_str().unwrap().to_owned();
    assert!(server.log().contains(&id), "{id} is not in the log:\n{}", server.log());
    id
}

fn count(client: &Client, place: &str) -> u64 {
    let text = client.get("/metrics").unwrap().expect(200).text();
    let name = format!("allocd_internal_errors_total{{where=\"{place}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
}

/// A panic in a command, while fifty others claim: all of these are done, none is lost; the one is
/// refused with an id of the log; its key gets the same refusal for ever, after a restart too.
#[test]
fn a_panic_in_a_command_is_that_command_s_alone() {
    let places = ["decide", "apply", "encode"];
    let mut server = Server::with(&[], &[("ALLOCD_TEST_PANIC", &planted(&places))]);
    let client = server.client();
    let host = topology::provider(&client, "host", &[("VCPU", 1_000)]);
    for (round, place) in places.into_iter().enumerate() {
        let bad = client.request_id(&request_id(place)).with("idempotency-key", place);
        let barrier = Barrier::new(OTHERS + 1);
        let (answer, others) = thread::scope(|scope| {
            let others: Vec<_> = (0..OTHERS)
                .map(|number| {
                    let (barrier, host) = (&barrier, &host);
                    let client = server.client();
                    scope.spawn(move || {
                        barrier.wait();
                        let body = claim(&format!("{round} {number}"), host);
                        client.post("/ledger/v1/commands", &body).unwrap().status
                    })
                })
                .collect();
            barrier.wait();
            let answer = bad.post("/ledger/v1/commands", &claim("bad", &host)).unwrap();
            (answer, others.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>())
        });
        assert_eq!(others, [200; OTHERS], "{place}: {}", server.log_tail());
        let id = internal(&server, &answer);
        assert_eq!(held(&client, &host), (round + 1) * OTHERS);
        // Without the planted request id it could be done now; but a refused key stays refused.
        for again in 0..2 {
            let keyed = server.client().with("idempotency-key", place);
            let repeat = keyed.post("/ledger/v1/commands", &claim("bad", &host)).unwrap();
            assert_eq!(repeat.status, 500);
            let error = &repeat.json()["errors"][0];
            assert_eq!((&error["id"], &error["repeated"]), (&json!(id), &json!(true)), "{again}");
            if again == 0 {
                server.restart();
            }
        }
    }
    // Placement's own writes have Placement's error body.
    let consumer = topology::uuid("placement");
    let body = json!({
        "allocations": {&host: {"resources": {"VCPU": 1}}}, "project_id": "p", "user_id": "u",
        "consumer_type": "INSTANCE", "consumer_generation": null,
    });
    let bad = client.request_id(&request_id("apply"));
    let answer = bad.put(&format!("/allocations/{consumer}"), &body).unwrap();
    internal(&server, &answer);
    assert_eq!(answer.json()["errors"][0]["title"], "Internal Server Error");
    client.put(&format!("/allocations/{consumer}"), &body).unwrap().expect(204);
    assert!(server.running());
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// On the way to the disk the outcome is unknown; asked again with its key a command is done once.
#[test]
fn a_panic_of_the_committer_leaves_the_outcome_to_the_log() {
    let places = ["append", "publish", "answer"];
    let mut server = Server::with(&[], &[("ALLOCD_TEST_PANIC", &planted(&places))]);
    let client = server.client();
    let host = topology::provider(&client, "host", &[("VCPU", 100)]);
    for (number, place) in (1..).zip(places) {
        let keyed = client.with("idempotency-key", place);
        let bad = keyed.request_id(&request_id(place));
        let answer = bad.post("/ledger/v1/commands", &claim(place, &host)).unwrap().expect(503);
        assert_eq!(answer.json()["errors"][0]["code"], "outcome_unknown");
        let answer = loop {
            let answer = keyed.post("/ledger/v1/commands", &claim(place, &host)).unwrap();
            if answer.status != 503 {
                break answer.expect(200).json();
            }
            thread::yield_now();
        };
        assert_eq!(answer["repeated"], place != "append", "{place}");
        assert_eq!(held(&client, &host), number);
    }
    assert!(count(&client, "commit") == 2 && count(&client, "answer") == 1);
    assert!(server.running());
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// A handler that panics answers 500 with the id of the request; after some there is an alarm, and
/// the server is ready all the same.
#[test]
fn a_panic_in_a_handler_is_a_500_with_the_id_of_the_request() {
    let mut server = Server::with(&[], &[("ALLOCD_TEST_PANIC", &planted(&["handler"]))]);
    let client = server.client();
    let ready = |client: &Client| client.get("/readyz").unwrap().expect(200).json();
    assert_eq!(ready(&client)["internal_errors"], json!({"count": 0, "alarm": null}));
    let bad = client.request_id(&request_id("handler"));
    for path in ["/resource_providers", "/usages?project_id=p", "/ledger/v1/moves"] {
        let answer = bad.get(path).unwrap();
        let id = internal(&server, &answer);
        assert_eq!(answer.header("x-openstack-request-id"), Some(&*id));
        client.get(path).unwrap().expect(200);
    }
    assert_eq!(count(&client, "http"), 3);
    let told = ready(&client);
    assert_eq!((&told["ready"], &told["internal_errors"]["count"]), (&json!(true), &json!(3)));
    assert!(told["internal_errors"]["alarm"].as_str().unwrap().contains("defect"));
    assert!(server.terminate().success(), "a clean stop");
}

/// The same on NATS: the asker gets the error, and the service goes on.
#[test]
fn a_panic_on_nats_is_a_service_error() {
    let nats = Nats::start();
    let planted = planted(&["handler", "apply"]);
    let mut server = Server::with(&["--nats", &nats.url()], &[("ALLOCD_TEST_PANIC", &planted)]);
    let client = server.client();
    let host = topology::provider(&client, "host", &[("VCPU", 100)]);
    let asker = Asker::new(&nats.url());
    let body = claim("bad", &host)["claim"].clone();
    for place in ["handler", "apply"] {
        let id = request_id(place);
        let headers = [("X-OpenStack-Request-ID", &*id), ("Idempotency-Key", place)];
        let reply = asker.command("claim", &headers, &body);
        assert_eq!(reply.error(), Some(500));
        let error = &reply.json()["errors"][0];
        assert_eq!(error["cause"], "internal");
        assert!(server.log().contains(error["id"].as_str().unwrap()));
    }
    let reply = asker.ask(
        "alloc.v1.query.moves",
        &[("X-OpenStack-Request-ID", &request_id("handler"))],
        b"{}",
    );
    assert_eq!(reply.error(), Some(500));
    asker.query("moves", &json!({})).ok();
    asker.command("claim", &[], &body).ok();
    assert_eq!((held(&client, &host), count(&client, "nats")), (json!(1), 2));
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}
