//! No request holds the others up: what is too large is refused before the writer sees it, what may
//! take the writer long has a budget, and long reads are made apart from other requests.

use serde_json::{Map, Value, json};

use crate::cloud::{self, consumer, hosts};
use crate::server::Server;

fn metric(server: &Server, name: &str) -> f64 {
    let answer = server.send("GET", "/metrics", &[], b"");
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

#[test]
fn fifty_thousand_consumers_never_reach_the_writer() {
    let server = Server::start();
    hosts(&server, 1..=1, &json!({"VCPU": {"total": 8}}));
    let of_all: Map<String, Value> = (0..50_000)
        .map(|n| {
            let one = json!({
                "allocations": {cloud::host(1): {"resources": {"VCPU": 1}}},
                "project_id": "p", "user_id": "u", "consumer_generation": null,
            });
            (consumer(n), one)
        })
        .collect();
    let decided = metric(&server, "allocd_decide_seconds_count");
    let headers = ["OpenStack-API-Version: placement 1.28"];
    let refused = server.json("POST", "/allocations", &headers, &of_all.into());
    assert_eq!(refused.status, 413, "{refused:?}");
    assert_eq!(metric(&server, "allocd_decide_seconds_count"), decided);
}

/// A list of claims, each of a thousand options of which only the last fits.
#[test]
fn a_list_has_a_budget_of_work() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 1000}}));
    let mut options = vec![json!({cloud::host(1): {"VCPU": 1001}}); 999];
    options.push(json!({cloud::host(2): {"VCPU": 1}}));
    let claim = |n: u32| json!({"claim": {"consumer": consumer(n), "project_id": "p", "user_id": "u", "options": options}});
    let list: Vec<Value> = (0..100).map(claim).collect();
    let refused = server.json("POST", "/ledger/v1/commands", &[], &list.into());
    assert_eq!(refused.status, 413, "{refused:?}");
    let error = refused.error();
    assert_eq!((&error["what"], &error["limit"]), (&json!("steps of the list"), &json!(10_000)));
    assert_eq!(server.json("POST", "/ledger/v1/commands", &[], &claim(0)).status, 200);
}

#[test]
fn long_reads_have_a_place_of_their_own() {
    let server = Server::start();
    hosts(&server, 1..=1, &json!({"VCPU": {"total": 8}}));
    for path in [
        "/resource_providers".to_owned(),
        format!("/resource_providers/{}/allocations", cloud::host(1)),
        "/traits".to_owned(),
        "/resource_classes".to_owned(),
        "/ledger/v1/events?kind=Claimed".to_owned(),
        "/ledger/v1/moves".to_owned(),
        "/ledger/v1/traits".to_owned(),
        "/ledger/v1/providers".to_owned(),
        "/ledger/v1/consumers".to_owned(),
        format!("/ledger/v1/providers/{}/history", cloud::host(1)),
        format!("/ledger/v1/consumers/{}/history", consumer(1)),
    ] {
        let before = metric(&server, "allocd_long_reads_total");
        let version = "OpenStack-API-Version: placement 1.39";
        assert_eq!(server.send("GET", &path, &[version], b"").status, 200, "{path}");
        assert_eq!(metric(&server, "allocd_long_reads_total"), before + 1.0, "{path}");
    }
}
