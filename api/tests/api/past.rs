//! GETs answered from the past.

use crate::cloud::{claim, consumer, done, get, host, hosts};
use crate::server::{Answer, Server};
use serde_json::{Value, json};

const NEWEST: &str = "OpenStack-API-Version: placement 1.39";

fn at(server: &Server, point: impl std::fmt::Display, path: &str) -> Answer {
    server.send("GET", path, &[NEWEST, &format!("Ledger-At: {point}")], b"")
}

fn sequence(server: &Server) -> u64 {
    get(server, "/ledger/v1/traits?limit=1")["sequence"].as_u64().unwrap_or(0)
}

#[test]
fn every_kind_of_answer_can_be_had_from_the_past() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 4}}));
    done(&server, &claim(1, 1, &json!({"VCPU": 3})));
    let then = sequence(&server);
    let events = get(&server, &format!("/ledger/v1/events?after={}", then - 1));
    let time = events["events"][0]["header"]["recorded_at"].as_str().unwrap_or_default().to_owned();
    let paths = [
        format!("/allocations/{}", consumer(1)),
        format!("/resource_providers/{}/usages", host(1)),
        format!("/resource_providers/{}/inventories", host(2)),
        "/resource_providers".to_owned(),
        "/resource_classes".to_owned(),
        "/usages?project_id=p".to_owned(),
        "/allocation_candidates?resources=VCPU:2".to_owned(),
        "/ledger/v1/consumers".to_owned(),
        "/ledger/v1/providers".to_owned(),
        "/ledger/v1/usages?project=p".to_owned(),
        "/ledger/v1/fits?resources=VCPU:1".to_owned(),
        "/ledger/v1/explain/candidates?resources=VCPU:2".to_owned(),
    ];
    let was: Vec<Value> =
        paths.iter().map(|path| server.send("GET", path, &[NEWEST], b"").json()).collect();
    done(&server, &json!({"release": {"consumer": consumer(1)}}));
    done(&server, &claim(2, 2, &json!({"VCPU": 4})));
    done(&server, &json!({"create_resource_class": {"name": "CUSTOM_NEW"}}));
    let change = json!({"replace_all": {"VCPU": {"total": 9}}});
    done(&server, &json!({"change_inventories": {"provider": host(2), "change": change}}));
    hosts(&server, 3..=3, &json!({"VCPU": {"total": 4}}));
    for (path, was) in paths.iter().zip(&was) {
        let told = at(&server, then, path);
        assert_eq!((told.status, told.json()), (200, was.clone()), "{path}");
        assert_eq!(told.header("ledger-sequence"), Some(then.to_string().as_str()), "{path}");
        assert_eq!(at(&server, &time, path).json(), *was, "{path} at {time}");
        assert_ne!(server.send("GET", path, &[NEWEST], b"").json(), *was, "{path} now");
    }
}

#[test]
fn half_a_group_is_never_seen() {
    let server = Server::start();
    let before = sequence(&server);
    let host = |n: u32| json!({"create_provider": {"uuid": host(n), "name": format!("h{n}")}});
    done(&server, &json!([host(1), host(2)]));
    let count = |sequence: u64| {
        let told = at(&server, sequence, "/resource_providers").json();
        told["resource_providers"].as_array().map(Vec::len)
    };
    assert_eq!((count(before), count(before + 1), count(before + 2)), (Some(0), Some(0), Some(2)));
}

#[test]
fn what_is_no_point_of_the_past_is_refused() {
    let server = Server::start();
    let head = sequence(&server);
    for point in ["", "0", "-1", "soon", "2026-02-30T00:00:00Z", "99999999999999999999999"] {
        assert_eq!(at(&server, point, "/traits").status, 400, "{point}");
    }
    for point in [(head + 1).to_string(), "2999-01-01T00:00:00Z".to_owned()] {
        let told = at(&server, &point, "/traits");
        assert_eq!((told.status, &told.error()["cause"]), (404, &json!("beyond_end")), "{point}");
        assert_eq!(told.error()["head"], head);
    }
    let told = at(&server, "1999-01-01T00:00:00Z", "/traits");
    assert_eq!((told.status, &told.error()["cause"]), (404, &json!("before_start")));
    assert_eq!(at(&server, head, "/ledger/v1/events").status, 400);
    let body = json!({"name": "h1"});
    let at_head = format!("Ledger-At: {head}");
    let told = server.json("POST", "/resource_providers", &[NEWEST, &at_head], &body);
    assert_eq!(told.status, 400, "{told:?}");
    assert_eq!(sequence(&server), head);
}
