//! The ledger's own API, from outside.

use crate::server::{Answer, Server};
use serde_json::{Value, json};

const PROVIDER: &str = "10000000-0000-4000-8000-000000000001";
const CONSUMER: &str = "20000000-0000-4000-8000-000000000001";

fn host(vcpus: u32) -> Value {
    json!([
        {"create_provider": {"uuid": PROVIDER, "name": "h1"}},
        {"change_inventories": {"provider": PROVIDER, "change": {"replace_all": {"VCPU": {"total": vcpus}}}}},
    ])
}

fn claim(vcpus: u32) -> Value {
    json!({"claim": {
        "consumer": CONSUMER,
        "project_id": "p",
        "user_id": "u",
        "options": [{PROVIDER: {"VCPU": vcpus}}],
    }})
}

fn commands(server: &Server, headers: &[&str], body: &Value) -> Answer {
    server.json("POST", "/ledger/v1/commands", headers, body)
}

#[test]
fn a_list_is_one_group_and_a_refusal_says_what_was_lacking() {
    let server = Server::start();
    let done = commands(&server, &[], &host(4));
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.json()["events"].as_array().map(Vec::len), Some(2));
    // The second command of this list is refused: the first has no effect either.
    let list = json!([claim(1), {"create_trait": {"name": "nope"}}]);
    let refused = commands(&server, &[], &list);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.error()["index"], 1);
    let refused = commands(&server, &[], &claim(5));
    assert_eq!(refused.status, 409, "{refused:?}");
    let seen = server.send("GET", &format!("/allocations/{CONSUMER}"), &[], b"");
    assert_eq!(seen.json(), json!({"allocations": {}}));
}

#[test]
fn a_key_makes_repeating_safe() {
    let server = Server::start();
    commands(&server, &[], &host(4));
    let first = commands(&server, &["Idempotency-Key: k1"], &claim(1));
    assert_eq!((first.status, first.json()["repeated"].clone()), (200, json!(false)), "{first:?}");
    let again = commands(&server, &["Idempotency-Key: k1"], &claim(1));
    assert_eq!((again.status, again.json()["repeated"].clone()), (200, json!(true)), "{again:?}");
    assert_eq!(first.json()["events"], again.json()["events"]);
    let other = commands(&server, &["Idempotency-Key: k1"], &claim(2));
    assert_eq!(other.status, 422, "{other:?}");
    assert_eq!(other.error()["cause"], "command_id_reused");
}

#[test]
fn messagepack_goes_both_ways() {
    let server = Server::start();
    let body = rmp_serde::to_vec_named(&host(4)).expect("MessagePack");
    let headers = ["Content-Type: application/msgpack", "Accept: application/msgpack"];
    let done = server.send("POST", "/ledger/v1/commands", &headers, &body);
    assert_eq!(done.status, 200, "{done:?}");
    assert_eq!(done.header("content-type"), Some("application/msgpack"));
    let done: Value = rmp_serde::from_slice(&done.body).expect("MessagePack");
    assert_eq!(done["outcome"], "accepted");
    // A mistake is told in JSON.
    let told = server.send("POST", "/ledger/v1/commands", &headers, b"\xc1");
    assert_eq!(told.status, 400, "{told:?}");
    assert!(told.error()["detail"].to_string().contains("Malformed MessagePack"), "{told:?}");
}

#[test]
fn history_is_paged_and_carries_the_request_id() {
    let server = Server::start();
    commands(&server, &[], &host(4));
    let id = "req-1b5b2e3a-4c5d-4e6f-8a9b-0c1d2e3f4a5b";
    commands(&server, &[&format!("X-OpenStack-Request-ID: {id}")], &claim(1));
    commands(&server, &[], &json!({"release": {"consumer": CONSUMER}}));
    let history =
        server.send("GET", &format!("/ledger/v1/consumers/{CONSUMER}/history"), &[], b"").json();
    let kinds: Vec<&str> = history["events"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|event| event["header"]["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["Claimed", "Released"], "{history}");
    assert_eq!(history["events"][0]["header"]["request_id"], id);
    let page = server.send("GET", "/ledger/v1/events?limit=2", &[], b"").json();
    assert_eq!(page["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(page["next_after"], 2);
    let of_kind = server.send("GET", "/ledger/v1/events?kind=Claimed", &[], b"").json();
    assert_eq!(of_kind["events"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.send("GET", "/ledger/v1/events?colour=red", &[], b"").status, 400);
}

#[test]
fn a_move_has_a_story() {
    let server = Server::start();
    commands(&server, &[], &host(4));
    commands(&server, &[], &claim(1));
    let migration = "20000000-0000-4000-8000-000000000002";
    let open = json!({"move_to_migration": {"consumer": CONSUMER, "migration": migration, "kind": "resize"}});
    commands(&server, &[], &open);
    commands(&server, &[], &claim(2));
    let confirmed = commands(&server, &[], &json!({"confirm": {"consumer": CONSUMER}}));
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    let moves = server.send("GET", "/ledger/v1/moves", &[], b"").json();
    assert_eq!(moves["moves"][0]["state"], "confirmed", "{moves}");
    let id = moves["moves"][0]["id"].as_str().expect("an id");
    let story = server.send("GET", &format!("/ledger/v1/moves/{id}"), &[], b"").json();
    let kinds: Vec<&str> = story["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|step| step["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["MovedToMigration", "Claimed", "Confirmed"], "{story}");
    assert_eq!(server.send("GET", &format!("/ledger/v1/moves/{migration}"), &[], b"").status, 404);
}

#[test]
fn a_filter_that_does_not_exist_is_refused_everywhere() {
    let server = Server::start();
    let id = "10000000-0000-4000-8000-000000000001";
    for path in [
        format!("/ledger/v1/consumers/{id}/history?generation=1"),
        format!("/ledger/v1/providers/{id}/history?bogus=1"),
        "/ledger/v1/events?bogus=1".to_owned(),
    ] {
        let answer = server.send("GET", &path, &[], b"");
        assert_eq!(answer.status, 400, "{path}");
    }
    let fine =
        format!("/ledger/v1/providers/{id}/history?generation=1&after=0&limit=5&kind=Claimed");
    assert_eq!(server.send("GET", &fine, &[], b"").status, 200);
}
