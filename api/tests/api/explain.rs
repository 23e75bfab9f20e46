//! Why there are no candidates, and what moves in flight have to do with it.

use crate::cloud::{answer, claim, consumer, done, each, get, host, hosts};
use crate::server::Server;
use serde_json::{Value, json};

const REQUEST_ID: &str = "X-OpenStack-Request-ID: req-7d3d7d0e-7a3a-4c6c-9f35-3d7b1a1f9a50";
const NEWEST: &str = "OpenStack-API-Version: placement 1.39";

/// Case F1 (Launchpad 1786519): five hosts, two full of disk, one without the trait, two short of
/// memory.
fn five_hosts() -> Server {
    let server = Server::start();
    let inventory = json!({
        "VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}, "DISK_GB": {"total": 100}
    });
    hosts(&server, 1..=5, &inventory);
    done(&server, &json!({"create_trait": {"name": "CUSTOM_FOO"}}));
    for n in [1, 2, 4, 5] {
        let path = format!("/resource_providers/{}/traits", host(n));
        let generation =
            get(&server, &format!("/resource_providers/{}", host(n)))["generation"].clone();
        let body = json!({"resource_provider_generation": generation, "traits": ["CUSTOM_FOO"]});
        assert_eq!(server.json("PUT", &path, &[NEWEST], &body).status, 200);
    }
    for n in [1, 2] {
        done(&server, &claim(n, n, &json!({"DISK_GB": 100})));
    }
    for n in [4, 5] {
        done(&server, &claim(n, n, &json!({"MEMORY_MB": 3584})));
    }
    server
}

const HOPELESS: &str = "resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10&required=CUSTOM_FOO";

#[test]
fn each_condition_and_the_near_misses_are_told() {
    let server = five_hosts();
    let told = get(&server, &format!("/ledger/v1/explain/candidates?{HOPELESS}"));
    assert_eq!(told["candidates"], 0);
    let group = &told["groups"][0];
    assert_eq!(
        each(&group["steps"], "text"),
        [
            "VCPU:1: 5 left",
            "MEMORY_MB:1024: 3 left",
            "DISK_GB:10: 1 left",
            "trait CUSTOM_FOO: 0 left"
        ]
    );
    assert_eq!(group["steps"][2]["left"], 1);
    let nearest = &group["near_misses"][0];
    assert_eq!((&nearest["name"], &nearest["text"]), (&json!("h3"), &json!("lacks CUSTOM_FOO")));
    assert_eq!(nearest["lacks"][0]["kind"], "condition", "{nearest}");
    assert!(told["sequence"].as_u64() > Some(0));
}

#[test]
fn placement_tells_it_only_when_asked() {
    let server = five_hosts();
    let path = format!("/allocation_candidates?{HOPELESS}");
    let plain = server.send("GET", &path, &[NEWEST], b"").json();
    assert_eq!(plain, json!({"allocation_requests": [], "provider_summaries": {}}));
    let with = |value: &str| server.send("GET", &path, &[NEWEST, value], b"");
    assert_eq!(with("Ledger-Explain: false").json(), plain);
    let mut told = with("Ledger-Explain: true").json();
    assert_eq!(told["ledger_explanation"]["groups"][0]["steps"][3]["left"], 0, "{told}");
    told.as_object_mut().expect("an object").remove("ledger_explanation");
    assert_eq!(told, plain);
    assert_eq!(with("Ledger-Explain: maybe").status, 400);
}

/// Case F3: plenty is free in sum, and nowhere enough.
#[test]
fn the_free_sum_stands_beside_the_largest_gap() {
    let server = Server::start();
    hosts(&server, 1..=340, &json!({"VCPU": {"total": 3}}));
    let told = get(&server, "/ledger/v1/explain/candidates?resources=VCPU:4");
    let class = &told["groups"][0]["classes"][0];
    assert_eq!(class["text"], "VCPU: needed 4, free 1020, largest gap 3, on 340 providers");
    assert_eq!((&class["free"], &class["with_largest_gap"]), (&json!(1020), &json!(340)));
}

/// Case H12 (story 2006947): `max_unit` was left at 1.
#[test]
fn a_limit_of_one_allocation_is_named() {
    let server = Server::start();
    hosts(&server, 1..=1, &json!({"FPGA": {"total": 8, "max_unit": 1}}));
    let told = get(&server, "/ledger/v1/explain/candidates?resources=FPGA:2");
    let group = &told["groups"][0];
    assert_eq!(group["near_misses"][0]["text"], "FPGA: max_unit 1 < 2");
    let text = group["classes"][0]["text"].to_string();
    assert!(text.contains("max_unit < 2 on 1 provider"), "{text}");
}

#[test]
fn moves_in_flight_are_named_with_what_they_hold() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 4}}));
    done(&server, &claim(1, 1, &json!({"VCPU": 3})));
    let open = json!({"move_to_migration": {
        "consumer": consumer(1), "migration": consumer(2), "kind": "resize",
    }});
    done(&server, &open);
    done(&server, &claim(1, 2, &json!({"VCPU": 2})));
    let told = get(&server, "/ledger/v1/explain/candidates?resources=VCPU:4");
    let class = &told["groups"][0]["classes"][0];
    assert_eq!(class["held_by_moves"], 3, "{told}");
    let in_flight = &told["in_flight"];
    assert_eq!((&in_flight["live"], &class["moves"][0]), (&json!(1), &in_flight["moves"][0]["id"]));
    assert_eq!(in_flight["moves"][0]["source"], json!({host(1): {"VCPU": 3}}));
    let misses = told["groups"][0]["near_misses"].as_array().cloned().unwrap_or_default();
    let on = |n: u32| misses.iter().find(|miss| miss["provider"] == host(n)).cloned();
    let (source, destination) = (on(1).unwrap_or_default(), on(2).unwrap_or_default());
    assert_eq!(source["held_by_moves"], json!({"VCPU": 3}), "{told}");
    assert_eq!(
        (&destination["held_by_moves"], &destination["moves"]),
        (&json!({}), &class["moves"])
    );
}

#[test]
fn a_bad_query_is_refused_as_placement_does() {
    let server = five_hosts();
    for query in ["", "resources=NOPE:1", "resources=VCPU:1&required=NOPE", "resources=VCPU:x"] {
        let told = answer(&server, &format!("/ledger/v1/explain/candidates?{query}"));
        assert_eq!(told.status, 400, "{query}: {told:?}");
    }
    // The form of an older microversion, if the client names one.
    let path = "/ledger/v1/explain/candidates?resources=VCPU:1&in_tree=10000000-0000-4000-8000-000000000001";
    let old = |version: &str| server.send("GET", path, &[version], b"").status;
    assert_eq!((old("OpenStack-API-Version: placement 1.30"), old(NEWEST)), (400, 200));
    let packed = server.send("GET", path, &["Accept: application/msgpack"], b"");
    let told: Value = rmp_serde::from_slice(&packed.body).expect("MessagePack");
    assert_eq!(told["candidates"], 1);
}

/// Launchpad 1786519: Placement keeps nothing of a search that found nothing.
#[test]
fn a_search_that_finds_nothing_is_recorded_once_a_minute() {
    let server = five_hosts();
    let searched_at = get(&server, "/ledger/v1/events")["sequence"].clone();
    for _ in 0..3 {
        let path = format!("/allocation_candidates?{HOPELESS}");
        assert_eq!(server.send("GET", &path, &[NEWEST, REQUEST_ID], b"").status, 200);
    }
    // Nobody waits for the record. Another event is recorded after all there will be.
    done(&server, &json!({"create_trait": {"name": "CUSTOM_LATER"}}));
    let found = get(&server, "/ledger/v1/events?kind=SearchFailed");
    let events = found["events"].as_array().expect("events");
    assert_eq!(events.len(), 1, "{found}");
    let id = REQUEST_ID.trim_start_matches("X-OpenStack-Request-ID: ");
    assert_eq!(events[0]["header"]["request_id"], id);
    let body = &events[0]["body"];
    assert_eq!(body["query"], json!(HOPELESS));
    assert_eq!(body["searched_at"], searched_at);
    let left = |step: &Value| (step["condition"].clone(), step["left"].clone());
    let steps: Vec<_> =
        body["groups"][0]["steps"].as_array().expect("steps").iter().map(left).collect();
    let wanted = [("VCPU:1", 5), ("MEMORY_MB:1024", 3), ("DISK_GB:10", 1), ("trait CUSTOM_FOO", 0)];
    assert_eq!(steps, wanted.map(|(condition, left)| (json!(condition), json!(left))));
}
