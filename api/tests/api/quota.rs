//! Limits of projects, and usages with and without what moves hold.

use crate::cloud::{claim, consumer, done, get, host, hosts};
use crate::server::{Answer, Server};
use serde_json::{Value, json};

fn put(server: &Server, who: u32, project: &str, vcpus: u32) -> Answer {
    let body = json!({
        "allocations": {host(1): {"resources": {"VCPU": vcpus}}},
        "project_id": project,
        "user_id": "u",
        "consumer_generation": null,
        "consumer_type": "INSTANCE",
    });
    let newest = ["OpenStack-API-Version: placement 1.39"];
    server.json("PUT", &format!("/allocations/{}", consumer(who)), &newest, &body)
}

fn limit(project: Option<&str>, limit: &Value) -> Value {
    json!({"set_quota": {"project_id": project, "limits": {"VCPU": limit}}})
}

#[test]
fn a_claim_over_the_limit_is_refused_with_its_cause_on_either_api() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 100}}));
    done(&server, &limit(Some("p"), &json!({"at_most": 5})));
    done(&server, &claim(1, 1, &json!({"VCPU": 3})));
    let (newest, over) =
        (["OpenStack-API-Version: placement 1.39"], claim(2, 1, &json!({"VCPU": 3})));
    let native = server.json("POST", "/ledger/v1/commands", &newest, &over);
    let plain = put(&server, 2, "p", 3);
    for refused in [native, plain] {
        assert_eq!(refused.status, 409, "{refused:?}");
        let error = refused.error();
        assert_eq!(error["cause"], "quota", "{error}");
        assert_eq!(error["code"], "placement.undefined_code", "{error}");
        let figures = ["limit", "held", "after"].map(|name| error[name].as_u64());
        assert_eq!(figures, [Some(5), Some(3), Some(6)], "{error}");
        assert!(
            error["detail"].to_string().contains("quota of project p for VCPU is 5"),
            "{error}"
        );
    }
    assert_eq!(put(&server, 2, "q", 3).status, 204);
    assert_eq!(put(&server, 3, "p", 2).status, 204);
    let malformed = json!({"set_quota": {"limits": {"VCPU": 5}}});
    assert_eq!(server.json("POST", "/ledger/v1/commands", &[], &malformed).status, 400);
}

#[test]
fn usages_tell_what_moves_hold_and_the_limits() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 100}}));
    done(&server, &limit(None, &json!({"at_most": 20})));
    put(&server, 1, "p", 3);
    put(&server, 2, "p", 4);
    put(&server, 3, "q", 5);
    let migration = json!({"move_to_migration": {"consumer": consumer(1), "migration": consumer(9), "kind": "resize"}});
    done(&server, &json!([migration, claim(1, 2, &json!({"VCPU": 6}))]));
    let told = get(&server, "/ledger/v1/usages?project=p");
    let vcpus = &told["classes"]["VCPU"];
    assert_eq!(
        *vcpus,
        json!({"held": 13, "held_by_moves": 3, "without_moves": 10, "limit": 20}),
        "{told}"
    );
    assert_eq!(told["consumers"], 3);
    // The migration has no type; nor has the claim, whose type was not said.
    let of_type = |name: &str| told["types"][name]["classes"]["VCPU"]["held"].as_u64();
    assert_eq!((of_type("INSTANCE"), of_type("unknown")), (Some(4), Some(9)), "{told}");
    assert_eq!(told["types"]["unknown"]["classes"]["VCPU"]["held_by_moves"], 3);
    let all = get(&server, "/ledger/v1/usages");
    assert_eq!(all["classes"]["VCPU"]["held"], 18, "{all}");
    assert_eq!(all["classes"]["VCPU"].get("limit"), None);
    let typed = get(&server, "/ledger/v1/usages?project=p&type=INSTANCE&user=u");
    assert_eq!(typed["classes"]["VCPU"]["held"], 4, "{typed}");
    let nobody = get(&server, "/ledger/v1/usages?project=nobody");
    let vcpus = &nobody["classes"]["VCPU"];
    assert_eq!((&vcpus["held"], &vcpus["limit"]), (&json!(0), &json!(20)), "{nobody}");
    done(&server, &json!({"confirm": {"consumer": consumer(1)}}));
    let after = get(&server, "/ledger/v1/usages?project=p");
    assert_eq!(after["classes"]["VCPU"]["held"], 10, "{after}");
    assert_eq!(after["classes"]["VCPU"]["held_by_moves"], 0);
    assert_eq!(server.send("GET", "/ledger/v1/usages?colour=red", &[], b"").status, 400);
}
