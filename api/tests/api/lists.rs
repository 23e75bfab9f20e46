//! Bulk lists: whole sets over pages, each true at a sequence, stable under writes.

use crate::cloud::{answer, claim, consumer, done, each, get, host, hosts};
use crate::server::Server;
use serde_json::{Value, json};

const NEWEST: &str = "OpenStack-API-Version: placement 1.39";

/// All rows of a list, page by page; `between` runs after each page.
fn all(server: &Server, path: &str, list: &str, key: &str, between: impl Fn(usize)) -> Vec<Value> {
    let (mut rows, mut after) = (Vec::new(), String::new());
    for page in 0.. {
        let told = get(server, &format!("{path}{after}"));
        assert!(told["sequence"].as_u64() > Some(0), "{told}");
        rows.extend(told[list].as_array().cloned().unwrap_or_default());
        let Some(next) = told["next_after"].as_str() else { break };
        assert_eq!(rows.last().expect("a row")[key], next);
        after = format!("&after={next}");
        between(page);
    }
    rows
}

/// Case E7: one request returns all providers, with the event number it is true at.
#[test]
fn ten_thousand_providers_are_one_request() {
    let server = Server::start();
    hosts(&server, 1..=10_000, &json!({"VCPU": {"total": 8, "allocation_ratio": 2.0}}));
    let last =
        done(&server, &claim(1, 7, &json!({"VCPU": 3})))["events"][0]["header"]["sequence"].clone();
    let told = get(&server, "/ledger/v1/providers?limit=10000");
    let rows = told["providers"].as_array().cloned().unwrap_or_default();
    assert_eq!((rows.len(), &told["next_after"], &told["sequence"]), (10_000, &Value::Null, &last));
    let row = &rows[6];
    assert_eq!((&row["uuid"], &row["name"]), (&json!(host(7)), &json!("h7")));
    let vcpus = &row["inventories"]["VCPU"];
    assert_eq!(
        (&vcpus["total"], &vcpus["capacity"], &vcpus["held"], &vcpus["free"]),
        (&json!(8), &json!(16), &json!(3), &json!(13))
    );
}

#[test]
fn providers_are_paged_with_traits_and_aggregates() {
    let server = Server::start();
    hosts(&server, 1..=25, &json!({"VCPU": {"total": 8}}));
    let aggregate = "30000000-0000-4000-8000-000000000001";
    let generation =
        |n: u32| get(&server, &format!("/resource_providers/{}", host(n)))["generation"].clone();
    let body = json!({"resource_provider_generation": generation(3), "traits": ["HW_CPU_X86_AVX"]});
    let path = format!("/resource_providers/{}/traits", host(3));
    assert_eq!(server.json("PUT", &path, &[NEWEST], &body).status, 200);
    let body = json!({"resource_provider_generation": generation(3), "aggregates": [aggregate]});
    let path = format!("/resource_providers/{}/aggregates", host(3));
    assert_eq!(server.json("PUT", &path, &[NEWEST], &body).status, 200);
    let rows = all(&server, "/ledger/v1/providers?limit=10", "providers", "uuid", |_| {});
    let wanted: Vec<String> = (1..=25).map(host).collect();
    assert_eq!(each(&json!(rows), "uuid"), wanted);
    assert_eq!(
        (&rows[2]["traits"], &rows[2]["aggregates"]),
        (&json!(["HW_CPU_X86_AVX"]), &json!([aggregate]))
    );
    assert_eq!(rows[2]["root"], json!(host(3)));
    let accept = ["Accept: application/msgpack"];
    let packed = server.send("GET", "/ledger/v1/providers", &accept, b"");
    let told: Value = rmp_serde::from_slice(&packed.body).expect("MessagePack");
    assert_eq!(told["providers"], json!(rows));
    let traits = all(&server, "/ledger/v1/traits?limit=100", "traits", "name", |_| {});
    let avx =
        traits.iter().find(|row| row["name"] == "HW_CPU_X86_AVX").cloned().unwrap_or_default();
    assert_eq!((&avx["providers"], &avx["standard"]), (&json!(1), &json!(true)));
    assert!(traits.len() > 300, "{}", traits.len());
    assert_eq!(answer(&server, "/ledger/v1/providers?after=x").status, 400);
    assert_eq!(answer(&server, "/ledger/v1/traits?colour=red").status, 400);
}

/// Case K1: the right set, stable under writes.
#[test]
fn consumers_are_paged_while_others_come_and_go() {
    let server = Server::start();
    hosts(&server, 1..=1, &json!({"VCPU": {"total": 100_000}}));
    let claims: Vec<Value> = (1..=2_500).map(|n| claim(2 * n, 1, &json!({"VCPU": 1}))).collect();
    for chunk in claims.chunks(250) {
        done(&server, &chunk.into());
    }
    // Between pages odd ones come, and every tenth goes that was there.
    let between = |page: usize| {
        let n = 100 * u32::try_from(page).unwrap_or(0) + 1;
        done(&server, &claim(n, 1, &json!({"VCPU": 1})));
        done(&server, &json!({"release": {"consumer": consumer(5_000 - 20 * (n / 100))}}));
    };
    let path = "/ledger/v1/consumers?limit=400";
    let rows = all(&server, path, "consumers", "uuid", between);
    let seen = each(&json!(rows), "uuid");
    assert!(seen.is_sorted_by(|a, b| a < b), "each once and in order");
    let stayed = (1..=2_500).map(|n| 2 * n).filter(|n| n % 20 != 0 || *n <= 4_800);
    for n in stayed {
        assert!(seen.binary_search(&consumer(n)).is_ok(), "{n} is missing");
    }
    // One sees its own write at once.
    done(&server, &claim(9_001, 1, &json!({"VCPU": 1})));
    let path = format!("/ledger/v1/consumers?after={}", consumer(9_000));
    assert_eq!(each(&get(&server, &path)["consumers"], "uuid"), [consumer(9_001)]);
}

#[test]
fn consumers_are_filtered() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 8}, "DISK_GB": {"total": 100}}));
    done(&server, &claim(1, 1, &json!({"VCPU": 1})));
    let open = json!({"move_to_migration": {
        "consumer": consumer(1), "migration": consumer(2), "kind": "resize",
    }});
    done(&server, &open);
    done(&server, &claim(1, 2, &json!({"VCPU": 1})));
    done(&server, &claim(3, 1, &json!({"DISK_GB": 5})));
    let body = json!({
        "allocations": {host(2): {"resources": {"DISK_GB": 1}}},
        "project_id": "q", "user_id": "u", "consumer_generation": null, "consumer_type": "VOLUME",
    });
    let path = format!("/allocations/{}", consumer(4));
    assert_eq!(server.json("PUT", &path, &[NEWEST], &body).status, 204);
    let with = |filters: &str| {
        let told = get(&server, &format!("/ledger/v1/consumers?{filters}"));
        let digits = each(&told["consumers"], "uuid");
        digits.iter().map(|uuid| uuid[uuid.len() - 1..].to_owned()).collect::<String>()
    };
    assert_eq!(with(""), "1234");
    assert_eq!((with("project=q"), with("project=nobody")), ("4".into(), String::new()));
    assert_eq!((with("type=VOLUME"), with("type=MIGRATION")), ("4".into(), "2".into()));
    assert_eq!((with("type=INSTANCE"), with("type=unknown")), ("1".into(), "3".into()));
    assert_eq!(
        (with(&format!("provider={}", host(1))), with("class=DISK_GB")),
        ("23".into(), "34".into())
    );
    assert_eq!(with(&format!("provider={}&class=VCPU", host(1))), "2");
    assert_eq!((with("open_moves=true"), with("open_moves=false")), ("12".into(), "34".into()));
    assert_eq!((with("older_than=0"), with("older_than=1h")), ("1234".into(), String::new()));
    assert_eq!(with("type=MIGRATION&open_moves=true&limit=1"), "2");
    let row = &get(&server, "/ledger/v1/consumers?type=MIGRATION")["consumers"][0];
    assert_eq!((&row["role"], &row["consumer_type"]), (&json!("MIGRATION"), &Value::Null));
    assert_eq!(row["allocations"], json!({host(1): {"VCPU": 1}}));
    assert_eq!(row["live_moves"].as_array().map(Vec::len), Some(1));
    for filters in
        ["older_than=x", "open_moves=maybe", "provider=x", "limit=x", "after=x", "colour=red"]
    {
        let told = answer(&server, &format!("/ledger/v1/consumers?{filters}"));
        assert_eq!(told.status, 400, "{filters}: {told:?}");
    }
}

/// Case K3 (Launchpad 1942740): a consumer without holdings is no error.
#[test]
fn a_consumer_that_holds_nothing_is_told_of() {
    let server = Server::start();
    hosts(&server, 1..=1, &json!({"VCPU": {"total": 8}}));
    let path = format!("/ledger/v1/consumers/{}", consumer(1));
    assert_eq!(get(&server, &path)["state"], "unknown");
    done(&server, &claim(1, 1, &json!({"VCPU": 1})));
    let row = get(&server, &path);
    assert_eq!(
        (&row["state"], &row["allocations"]),
        (&json!("holds"), &json!({host(1): {"VCPU": 1}}))
    );
    let held_at = row["sequence"].clone();
    let last = done(&server, &json!({"release": {"consumer": consumer(1)}}))["sequence"].clone();
    // A refusal afterwards does not hide it.
    let refused =
        server.json("POST", "/ledger/v1/commands", &[], &claim(1, 1, &json!({"VCPU": 9})));
    assert_eq!(refused.status, 409, "{refused:?}");
    let told = get(&server, &path);
    assert_eq!((&told["state"], &told["until"]["sequence"]), (&json!("released"), &last));
    assert_eq!(told["text"], format!("holds nothing; held something until event {last}"));
    let past = server.send("GET", &path, &[&format!("Ledger-At: {held_at}")], b"").json();
    assert_eq!(past["state"], "holds");
    assert_eq!(answer(&server, "/ledger/v1/consumers/x").status, 400);
}
