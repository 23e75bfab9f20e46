//! Where Placement itself is wrong: `docs/differences.md` lists these.

use serde_json::{Value, json};

use crate::server::Server;

const PROVIDER: &str = "10000000-0000-4000-8000-000000000001";
const CONSUMER: &str = "20000000-0000-4000-8000-00000000000a";
const NEWEST: &str = "OpenStack-API-Version: placement latest";

fn with_host() -> Server {
    let server = Server::start();
    let made = server.json(
        "POST",
        "/resource_providers",
        &[NEWEST],
        &json!({"name": "h1", "uuid": PROVIDER}),
    );
    assert_eq!(made.status, 200, "{made:?}");
    let inventory = json!({"resource_class": "VCPU", "total": 4});
    let made = server.json("POST", &inventories(), &[NEWEST], &inventory);
    assert_eq!(made.status, 201, "{made:?}");
    server
}

fn inventories() -> String {
    format!("/resource_providers/{PROVIDER}/inventories")
}

fn allocation(vcpus: u32, generation: Value) -> Value {
    json!({
        "allocations": {PROVIDER: {"resources": {"VCPU": vcpus}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    })
}

#[test]
fn a_value_that_is_no_record_is_told_by_its_class() {
    let server = with_host();
    let body = json!({"resource_provider_generation": 1, "inventories": {"vcpu": 3}});
    let told = server.json("PUT", &inventories(), &[NEWEST], &body);
    assert_eq!(told.status, 400, "{told:?}");
    assert!(
        told.error()["detail"].to_string().contains("No such resource class vcpu."),
        "{told:?}"
    );
}

#[test]
fn an_inventory_posted_again_is_a_conflict_in_words() {
    let server = with_host();
    let told = server.json(
        "POST",
        &inventories(),
        &[NEWEST],
        &json!({"resource_class": "VCPU", "total": 5}),
    );
    assert_eq!(told.status, 409, "{told:?}");
    assert_eq!(told.error()["code"], "placement.concurrent_update");
    assert!(told.error()["detail"].to_string().contains("Update conflict: "), "{told:?}");
}

#[test]
fn a_refused_first_write_leaves_nothing_behind() {
    let server = with_host();
    let path = format!("/allocations/{CONSUMER}");
    let refused = server.json("PUT", &path, &[NEWEST], &allocation(5, Value::Null));
    assert_eq!(refused.status, 409, "{refused:?}");
    let error = refused.error();
    assert_eq!(
        (&error["cause"], &error["needed"], &error["free"]),
        (&json!("capacity"), &json!(5), &json!(4))
    );
    let mut empty = allocation(1, Value::Null);
    empty["allocations"] = json!({});
    assert_eq!(server.json("PUT", &path, &[NEWEST], &empty).status, 204);
    assert_eq!(server.json("PUT", &path, &[NEWEST], &allocation(1, Value::Null)).status, 204);
}

#[test]
fn consumers_in_a_post_are_uuids_in_any_case() {
    let server = with_host();
    let post = |key: &str, generation: Value| {
        server.json("POST", "/allocations", &[NEWEST], &json!({key: allocation(1, generation)}))
    };
    assert_eq!(post(&CONSUMER.to_uppercase(), Value::Null).status, 204);
    assert_eq!(post(CONSUMER, json!(1)).status, 204);
    let told = post(&"-".repeat(36), Value::Null);
    assert_eq!(told.status, 400, "{told:?}");
    assert!(told.error()["detail"].to_string().contains("Malformed consumer_uuid"), "{told:?}");
}
