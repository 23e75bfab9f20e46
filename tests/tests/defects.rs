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

/// What a caller says about itself is in each event that it leads to, so it is bounded, over HTTP
/// and on NATS.
#[test]
fn callers_and_request_ids_are_bounded() {
    let nats = Nats::start();
    let mut server = Server::with(&["--nats", &nats.url()], &[]);
    let client = server.client();
    let host = topology::provider(&client, "host", &[("VCPU", 100)]);
    let body: serde_json::Map<String, Value> = (0..40)
        .map(|number| {
            let allocations = json!({&host: {"resources": {"VCPU": 1}}});
            let consumer = json!({
                "allocations": allocations, "project_id": "p", "user_id": "u",
                "consumer_type": "INSTANCE", "consumer_generation": null,
            });
            (topology::uuid(&format!("of many {number}")).to_string(), consumer)
        })
        .collect();
    let body = Value::from(body);
    let asker = Asker::new(&nats.url());
    asker.query("moves", &json!({})).ok();
    let before = client.read("/ledger/v1/moves")["sequence"].clone();
    let (long, id) = ("p".repeat(20_000), format!("req-{}", "1".repeat(300)));
    let keyed = client.with("idempotency-key", "k");
    for (name, value) in [
        ("x-project-id", &*long),
        ("x-auth-token", &*long),
        ("x-openstack-request-id", &*id),
        ("idempotency-key", &*"k".repeat(256)),
    ] {
        let answer = keyed.with(name, value).post("/allocations", &body).unwrap();
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
    }
    let native = claim("one", &host)["claim"].clone();
    let long = "p".repeat(60_000);
    for (name, value) in [
        ("X-Project-Id", &*long),
        ("Alloc-Actor", &*long),
        ("X-OpenStack-Request-ID", &*id),
        ("Idempotency-Key", &*"k".repeat(256)),
    ] {
        let reply = asker.command("claim", &[(name, value)], &native);
        assert_eq!(reply.error(), Some(400), "{name}");
    }
    assert_eq!(client.read("/ledger/v1/moves")["sequence"], before, "nothing is on record");
    // At the bound all of it is taken.
    let whole = keyed.with("x-project-id", &"p".repeat(255));
    whole.post("/allocations", &body).unwrap().expect(204);
    let key = [("Idempotency-Key", &*"k".repeat(255)), ("Alloc-Actor", &*"a".repeat(250))];
    asker.command("claim", &key, &native).ok();
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// A reshape may not leave a capacity that PUT of inventories would refuse.
#[test]
fn a_reshape_checks_capacities() {
    let mut server = Server::start();
    let client = server.client().with("x-roles", "admin,service");
    let host = topology::provider(&client, "host", &[("VCPU", 100)]);
    let reshape = |ratio: f64, reserved: u32| {
        let inventory = json!({"total": 100, "reserved": reserved, "allocation_ratio": ratio});
        let inventories = json!({"VCPU": inventory});
        json!({
            "inventories": {&host: {"resource_provider_generation": 1, "inventories": inventories}},
            "allocations": {},
        })
    };
    for (ratio, reserved) in [(-1e30, 0), (1e30, 200), (-1.0, 0)] {
        let answer = client.post("/reshaper", &reshape(ratio, reserved)).unwrap().expect(400);
        assert_eq!(answer.json()["errors"][0]["cause"], "inventory_capacity");
    }
    // All may be reserved, and a ratio may be great.
    client.post("/reshaper", &reshape(1.0, 100)).unwrap().expect(204);
    let found = || client.read("/allocation_candidates?resources=VCPU:1");
    assert_eq!(found()["allocation_requests"], json!([]));
    let generation =
        |it: &Client| it.read(&format!("/resource_providers/{host}"))["generation"].clone();
    let inventories = json!({
        "resource_provider_generation": generation(&client),
        "inventories": {"VCPU": {"total": 2_147_483_647, "allocation_ratio": 3.4e38}},
    });
    let path = format!("/resource_providers/{host}/inventories");
    client.put(&path, &inventories).unwrap().expect(200);
    assert_eq!(found()["allocation_requests"].as_array().map(Vec::len), Some(1));
    assert_eq!(count(&client, "view"), 0);
    assert!(server.terminate().success(), "a clean stop");
}
