//! A write that is sent again because its answer was lost (case C13).

use serde_json::{Value, json};
use system_tests::books::{self, Holding};

use crate::cloud::{Cloud, PROJECT, consumer, vcpu};

/// Case C13 through the ledger's own commands: one outcome for each id, also after a crash.
#[test]
fn a_command_sent_again_is_carried_out_once_and_answered_the_same() {
    let mut cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let c1 = consumer("C1");
    cloud.put(&c1, &vcpu(&hosts[0], 1), &Value::Null).expect(204);
    let write = replace(&c1, &vcpu(&hosts[0], 2), 1);
    let first = keyed(&cloud, &write).expect(200).json();
    assert_eq!(first["repeated"], false);
    let check = |cloud: &Cloud| {
        let again = keyed(cloud, &write).expect(200).json();
        assert_eq!(again["repeated"], true);
        assert_eq!(again["events"], first["events"]);
        assert_eq!(books::read(&cloud.client, &c1), (vcpu(&hosts[0], 2), Some(2)));
        assert_eq!(cloud.kinds(&c1), ["Claimed", "Reallocated"]);
        let other = keyed(cloud, &replace(&c1, &vcpu(&hosts[0], 3), 1)).expect(422).json();
        assert_eq!(other["errors"][0]["cause"], "command_id_reused", "{other}");
        assert_eq!(books::read(&cloud.client, &c1), (vcpu(&hosts[0], 2), Some(2)));
    };
    check(&cloud);
    cloud.server.kill();
    cloud.server.restart();
    cloud.client = cloud.server.client();
    check(&cloud);
    cloud.verify();
}

/// Case C13 through Placement's PUT: with a key a write that is sent again is answered as the
/// first time, also after a crash; with another body the key is refused.
#[test]
fn a_put_sent_again_with_its_key_is_carried_out_once() {
    let mut cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let c1 = consumer("C1");
    cloud.put(&c1, &vcpu(&hosts[0], 1), &Value::Null).expect(204);
    let put = |cloud: &Cloud, amount| {
        let client = cloud.client.with("idempotency-key", "key 1");
        let body = crate::cloud::body(&vcpu(&hosts[0], amount), &json!(1));
        client.put(&format!("/allocations/{c1}"), &body).unwrap()
    };
    let check = |cloud: &Cloud| {
        put(cloud, 2).expect(204);
        assert_eq!(put(cloud, 3).expect(422).json()["errors"][0]["cause"], "command_id_reused");
        assert_eq!(books::read(&cloud.client, &c1), (vcpu(&hosts[0], 2), Some(2)));
        assert_eq!(cloud.kinds(&c1), ["Claimed", "Reallocated"]);
    };
    put(&cloud, 2).expect(204);
    check(&cloud);
    cloud.server.kill();
    cloud.server.restart();
    cloud.client = cloud.server.client();
    check(&cloud);
    cloud.verify();
}

/// The same for a refusal: it stays one, though there is room by now.
#[test]
fn a_refused_command_sent_again_stays_refused() {
    let mut cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let c1 = consumer("C1");
    cloud.put(&c1, &vcpu(&hosts[0], 8), &Value::Null).expect(204);
    let write = crate::cloud::claim(&consumer("C2"), &vcpu(&hosts[0], 1));
    keyed(&cloud, &write).expect(409);
    cloud.client.delete(&format!("/allocations/{c1}")).unwrap().expect(204);
    let again = keyed(&cloud, &write).expect(409).json();
    assert_eq!(again["errors"][0]["repeated"], true, "{again}");
    cloud.server.kill();
    cloud.server.restart();
    cloud.client = cloud.server.client();
    keyed(&cloud, &write).expect(409);
    assert_eq!(cloud.holds(&consumer("C2")), Holding::new());
    cloud.send(&write).expect(200);
}

/// Without a key a second PUT is a conflict, as Placement answers it.
#[test]
fn a_put_sent_again_without_a_key_is_a_conflict() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let c1 = consumer("C1");
    cloud.put(&c1, &vcpu(&hosts[0], 1), &Value::Null).expect(204);
    cloud.put(&c1, &vcpu(&hosts[0], 2), &json!(1)).expect(204);
    let refused = cloud.put(&c1, &vcpu(&hosts[0], 2), &json!(1)).expect(409);
    assert!(refused.detail().contains("expected 2 but got 1"), "{}", refused.text());
}

fn keyed(cloud: &Cloud, command: &Value) -> system_tests::http::Answer {
    let client = cloud.client.with("idempotency-key", "key 1");
    client.post("/ledger/v1/commands", command).unwrap()
}

fn replace(consumer: &str, holding: &Holding, generation: u64) -> Value {
    json!({"replace_allocations": {"via": "command", "consumers": [{
        "consumer": consumer,
        "allocations": holding,
        "project_id": PROJECT,
        "user_id": "user",
        "consumer_type": "INSTANCE",
        "generation": {"is": generation},
    }]}})
}
