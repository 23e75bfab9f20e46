//! Where Placement itself is wrong: `docs/differences.md` lists these.

use serde_json::{Value, json};

use crate::cloud::{done, host};
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

/// Makes a provider with inventories, traits and aggregates.
fn provider(server: &Server, n: u32, parent: Option<u32>, inventories: Value, lent_in: &[&str]) {
    let mut commands = vec![
        json!({"create_provider": {"uuid": host(n), "name": format!("h{n}"), "parent": parent.map(host)}}),
        json!({"change_inventories": {"provider": host(n), "change": {"replace_all": inventories}}}),
    ];
    if let [aggregate, traits @ ..] = lent_in {
        let aggregates = json!({"provider": host(n), "aggregates": [aggregate]});
        commands.push(json!({"set_aggregates": aggregates}));
        commands.push(json!({"set_traits": {"provider": host(n), "traits": traits}}));
    }
    done(server, &commands.into());
}

const AGGREGATE: &str = "30000000-0000-4000-8000-000000000001";
const SHARES: &str = "MISC_SHARES_VIA_AGGREGATE";

/// What each candidate takes: the last digit of each provider with its amounts, in order.
fn candidates(server: &Server, query: &str) -> Vec<String> {
    let path = format!("/allocation_candidates?{query}");
    let answer = server.send("GET", &path, &[NEWEST], b"");
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    let told = answer.json();
    let requests = told["allocation_requests"].as_array().cloned().unwrap_or_default();
    let mut found: Vec<String> = requests
        .iter()
        .map(|request| {
            let taken = request["allocations"].as_object().cloned().unwrap_or_default();
            let parts: Vec<String> = taken
                .iter()
                .map(|(uuid, taken)| format!("{} {}", &uuid[uuid.len() - 1..], taken["resources"]))
                .collect();
            parts.join(", ")
        })
        .collect();
    found.sort_unstable();
    found
}

/// Placement answers 500 to both orders.
#[test]
fn a_nested_sharing_provider_lends_in_any_order_of_resources() {
    let server = Server::start();
    provider(&server, 1, None, json!({}), &[]);
    provider(&server, 2, Some(1), json!({"DISK_GB": {"total": 100}}), &[AGGREGATE, SHARES]);
    provider(&server, 3, None, json!({"VCPU": {"total": 8}}), &[AGGREGATE]);
    for resources in ["DISK_GB:3,VCPU:1", "VCPU:1,DISK_GB:3"] {
        assert_eq!(
            candidates(&server, &format!("resources={resources}")),
            [r#"2 {"DISK_GB":3}, 3 {"VCPU":1}"#]
        );
    }
}

/// Placement finds both by the second query, and none by the first.
#[test]
fn a_pool_is_found_from_each_host_that_it_lends_to() {
    let server = Server::start();
    for n in [1, 2] {
        provider(&server, n, None, json!({"VCPU": {"total": 8}}), &[AGGREGATE]);
    }
    provider(&server, 3, None, json!({"DISK_GB": {"total": 100}}), &[AGGREGATE, SHARES]);
    for query in [
        "resources=DISK_GB:1&resources1=VCPU:1",
        "resources1=DISK_GB:1&resources2=VCPU:1&group_policy=none",
    ] {
        assert_eq!(
            candidates(&server, query),
            [r#"1 {"VCPU":1}, 3 {"DISK_GB":1}"#, r#"2 {"VCPU":1}, 3 {"DISK_GB":1}"#],
            "{query}"
        );
    }
}

/// Placement offers candidates of four units to three groups of one, and of five to 1 + 2.
#[test]
fn groups_that_want_the_same_class_are_added_up_per_candidate() {
    let server = Server::start();
    provider(&server, 1, None, json!({}), &[]);
    for n in [2, 3] {
        provider(&server, n, Some(1), json!({"VCPU": {"total": 4}}), &[]);
    }
    let query = "resources=VCPU:1&resources1=VCPU:1&resources2=VCPU:1&group_policy=isolate";
    // The group without a number may share a provider with either of the others.
    let one_and_two = [r#"2 {"VCPU":1}, 3 {"VCPU":2}"#, r#"2 {"VCPU":2}, 3 {"VCPU":1}"#];
    let mut found = candidates(&server, query);
    found.dedup();
    assert_eq!(found, one_and_two);
    assert_eq!(
        candidates(&server, "resources=VCPU:1&resources1=VCPU:2"),
        [
            r#"2 {"VCPU":1}, 3 {"VCPU":2}"#,
            r#"2 {"VCPU":2}, 3 {"VCPU":1}"#,
            r#"2 {"VCPU":3}"#,
            r#"3 {"VCPU":3}"#
        ]
    );
}

#[test]
fn numbers_and_limits_that_are_none_are_bad_requests() {
    let server = with_host();
    let told = |query: &str| {
        let path = format!("/allocation_candidates?{query}");
        let told = server.send("GET", &path, &[NEWEST], b"");
        assert_eq!(told.status, 400, "{query}: {told:?}");
        told.error()["detail"].to_string()
    };
    assert!(told("resources=VCPU:1&limit=x&limit=1").contains("'x' does not match"));
    assert!(
        told("resources=VCPU:99999999999999999999").contains("expected positive integer amount")
    );
}

#[test]
fn a_mapping_that_is_no_list_is_a_bad_request() {
    let server = with_host();
    let mut body = allocation(1, Value::Null);
    body["mappings"] = json!({"_A": PROVIDER});
    let told = server.json("PUT", &format!("/allocations/{CONSUMER}"), &[NEWEST], &body);
    assert_eq!(told.status, 400, "{told:?}");
    assert!(told.error()["detail"].to_string().contains("is not of type 'array'"), "{told:?}");
}
