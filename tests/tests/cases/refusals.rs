//! Refusals that a program can read (case F5).

use serde_json::{Value, json};

use crate::cloud::{Cloud, consumer, vcpu};

/// Case F5: a limit of one amount, a lack of room and a stale generation are told apart by fields,
/// beside Placement's own code and words.
#[test]
fn the_cause_of_a_conflict_stands_in_fields() {
    let cloud = Cloud::new();
    let h1 = cloud.provider("H1", None, &json!({"VCPU": {"total": 4, "max_unit": 2}}));
    let conflict = |who: &str, amount, generation: Value| {
        let refused = cloud.put(&consumer(who), &vcpu(&h1, amount), &generation).expect(409);
        refused.json()["errors"][0].clone()
    };
    let told = conflict("C1", 3, Value::Null);
    assert_eq!(told["code"], "placement.undefined_code");
    assert!(told["detail"].as_str().unwrap().contains("would violate inventory constraints"));
    assert_eq!((&told["cause"], &told["max_unit"]), (&json!("constraint"), &json!(2)), "{told}");
    assert_eq!(
        (&told["class"], &told["provider"], &told["needed"]),
        (&json!("VCPU"), &json!(h1), &json!(3))
    );
    for who in ["C1", "C2"] {
        cloud.put(&consumer(who), &vcpu(&h1, 2), &Value::Null).expect(204);
    }
    let told = conflict("C3", 1, Value::Null);
    assert_eq!(told["code"], "placement.undefined_code");
    assert!(told["detail"].as_str().unwrap().contains("would exceed the capacity"));
    assert_eq!(
        (&told["cause"], &told["needed"], &told["free"]),
        (&json!("capacity"), &json!(1), &json!(0)),
        "{told}"
    );
    assert_eq!((&told["class"], &told["provider"]), (&json!("VCPU"), &json!(h1)));
    let told = conflict("C1", 1, json!(7));
    assert_eq!(told["code"], "placement.concurrent_update");
    assert_eq!(
        (&told["cause"], &told["expected"], &told["got"]),
        (&json!("consumer_generation"), &json!(1), &json!(7)),
        "{told}"
    );
    let stale = json!({"resource_provider_generation": 0, "inventories": {"VCPU": {"total": 8}}});
    let path = format!("/resource_providers/{h1}/inventories");
    let told = cloud.client.put(&path, &stale).unwrap().expect(409).json()["errors"][0].clone();
    assert_eq!(told["code"], "placement.concurrent_update");
    assert_eq!(
        (&told["cause"], &told["expected"], &told["got"]),
        (&json!("provider_generation"), &json!(3), &json!(0)),
        "{told}"
    );
}
