//! Who holds what is in the way, and how it is freed at once (cases L2, L3, L4, L5 and F5).

use std::io::Write;

use serde_json::{Value, json};

use crate::cloud::{Cloud, claim, confirm, consumer, holding, release, to_migration, vcpu};

fn error(answer: &Value) -> &Value {
    &answer["errors"][0]
}

/// The holders that a refusal names, each with the move it is a side of.
fn first(error: &Value) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let first = error["held_by"]["first"].as_array().cloned().unwrap_or_default();
    first.iter().map(|one| (text(&one["consumer"]).unwrap(), text(&one["move"]))).collect()
}

fn counts(error: &Value) -> (u64, u64) {
    let of = |name: &str| error["held_by"][name].as_u64().unwrap();
    (of("consumers"), of("moves"))
}

fn release_all(host: &str, at_most: Option<u32>) -> Value {
    json!({"release_all": {"provider": host, "at_most": at_most, "reason": "the host burnt"}})
}

/// The one live move of an instance.
fn live_move(cloud: &Cloud, instance: &str) -> String {
    let answer = cloud.client.read(&format!("/ledger/v1/moves?consumer={instance}&live=true"));
    answer["moves"][0]["id"].as_str().unwrap_or_else(|| panic!("no move: {answer}")).to_owned()
}

/// Case L2 (bug 1829479): the provider of a broken host cannot be deleted, and it is told why:
/// Placement's words and code stay, the holders stand in fields of their own.
#[test]
fn a_provider_in_use_names_those_who_hold_it() {
    let cloud = Cloud::new();
    let [h1] = cloud.hosts();
    let [i1, i2, i3, m3] = ["I1", "I2", "I3", "M3"].map(consumer);
    for (who, amount) in [(&i1, 2), (&i2, 4), (&i3, 2)] {
        cloud.accept(&claim(who, &vcpu(&h1, amount)));
    }
    cloud.accept(&to_migration(&i3, &m3, "migration"));
    let path = format!("/resource_providers/{h1}");
    let answer = cloud.client.delete(&path).unwrap().expect(409).json();
    let told = error(&answer);
    assert_eq!(told["code"], "placement.resource_provider.inuse");
    assert!(told["detail"].as_str().unwrap().ends_with("Resource provider has allocations.  "));
    assert_eq!(counts(told), (3, 1), "{told}");
    let this = live_move(&cloud, &i3);
    let mut rest = [(i1, None), (i2, None)];
    rest.sort();
    assert_eq!(first(told)[0], (m3, Some(this.clone())), "what a move is about comes first");
    assert_eq!(first(told)[1..], rest);
    // The ledger's own API says it in words, and says it again to a repeat with the same key.
    let client = cloud.client.with("idempotency-key", "delete-h1");
    let delete = json!({"delete_provider": {"uuid": h1}});
    let refused = client.post("/ledger/v1/commands", &delete).unwrap().expect(409).json();
    let detail = error(&refused)["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("3 consumers hold it, 1 live move among them: "), "{detail}");
    assert!(detail.contains(&format!("(move {this})")), "{detail}");
    cloud.accept(&release(&consumer("I1"), false, "gone"));
    let again = client.post("/ledger/v1/commands", &delete).unwrap().expect(409).json();
    assert_eq!(error(&again)["held_by"], error(&refused)["held_by"]);
    assert_eq!(error(&again)["detail"], error(&refused)["detail"]);
    cloud.verify();
}

/// Case L3 (bug 1781430): all that is held of one provider goes, and nothing else.
#[test]
fn release_all_frees_one_provider_and_nothing_else() {
    let cloud = Cloud::new();
    let [h1, h2] = cloud.hosts();
    let sh1 = cloud.host("SH1", &[("DISK_GB", 100)]);
    let [i1, i2, i3] = ["I1", "I2", "I3"].map(consumer);
    cloud.accept(&claim(&i1, &holding(&[(&h1, "VCPU", 2), (&sh1, "DISK_GB", 10)])));
    cloud.accept(&claim(&i2, &vcpu(&h1, 4)));
    cloud.accept(&claim(&i3, &vcpu(&h2, 1)));
    let events = cloud.accept(&release_all(&h1, None));
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["header"]["group_first"], events[1]["header"]["group_first"]);
    assert_eq!(cloud.holds(&i1), holding(&[(&sh1, "DISK_GB", 10)]));
    assert!(cloud.holds(&i2).is_empty());
    assert_eq!(cloud.holds(&i3), vcpu(&h2, 1));
    assert!(cloud.used(&h1).is_empty());
    assert_eq!(cloud.history(&i2)[1].1.as_deref(), Some("the host burnt"));
    assert!(cloud.accept(&release_all(&h1, None)).is_empty(), "nothing is left to be freed");
    cloud.client.delete(&format!("/resource_providers/{h1}")).unwrap().expect(204);
    cloud.verify();
}

/// A group at a time, and how many are left; the rule that guards it is one of its own.
#[test]
fn release_all_goes_by_groups_and_by_its_own_rule() {
    let mut rules = tempfile::NamedTempFile::new().unwrap();
    writeln!(rules, "\"ledger:release_all\": \"role:firefighter\"").unwrap();
    let cloud = Cloud::with(&["--policy-file", rules.path().to_str().unwrap()]);
    let [h1] = cloud.hosts();
    for number in 0..5 {
        cloud.accept(&claim(&consumer(&format!("I{number}")), &vcpu(&h1, 1)));
    }
    cloud.send(&release_all(&h1, None)).expect(403);
    let client = cloud.client.with("x-roles", "admin,firefighter");
    let mut left = Vec::new();
    while left.last() != Some(&0) {
        let path = "/ledger/v1/commands";
        let answer = client.post(path, &release_all(&h1, Some(2))).unwrap().expect(200).json();
        left.push(answer["left"].as_u64().unwrap_or_else(|| panic!("{answer}")));
    }
    assert_eq!(left, [3, 1, 0]);
    cloud.verify();
}

/// Case L4 (bug 1852610): a host on either side of a resize that waits for its confirmation is not
/// retired, and the move is named.
#[test]
fn a_provider_on_either_side_of_a_move_is_not_retired() {
    let cloud = Cloud::new();
    let [h1, h2] = cloud.hosts();
    let [i1, m1] = ["I1", "M1"].map(consumer);
    cloud.accept(&claim(&i1, &vcpu(&h1, 2)));
    cloud.accept(&to_migration(&i1, &m1, "resize"));
    cloud.accept(&claim(&i1, &vcpu(&h2, 4)));
    let this = live_move(&cloud, &i1);
    for (host, holder) in [(&h1, &m1), (&h2, &i1)] {
        let retire = json!({"retire": {"which": {"providers": [host]}}});
        let answer = cloud.send(&retire).expect(409).json();
        let told = error(&answer);
        assert_eq!(told["cause"], "cannot_retire");
        assert_eq!(counts(told), (1, 1), "{told}");
        assert_eq!(first(told), [(holder.clone(), Some(this.clone()))]);
        assert!(told["detail"].as_str().unwrap().contains(&format!("move {this}")), "{told}");
    }
    cloud.accept(&confirm(&i1));
    cloud.accept(&json!({"retire": {"which": {"providers": [h1]}}}));
    cloud.verify();
}

/// Case L5 (bug 1813252): an inventory in use names its users, by each of the calls that would take
/// it away; released and removed in one list it goes.
#[test]
fn an_inventory_in_use_names_its_users() {
    let cloud = Cloud::new();
    cloud.accept(&json!({"create_resource_class": {"name": "CUSTOM_RES"}}));
    let r1 = cloud.host("R1", &[("CUSTOM_RES", 2), ("VCPU", 4)]);
    let i1 = consumer("I1");
    cloud.accept(&claim(&i1, &holding(&[(&r1, "CUSTOM_RES", 1)])));
    let all = format!("/resource_providers/{r1}/inventories");
    let generation = cloud.client.read(&all)["resource_provider_generation"].clone();
    let none = json!({"resource_provider_generation": generation, "inventories": {}});
    let answers = [
        cloud.client.delete(&format!("{all}/CUSTOM_RES")).unwrap(),
        cloud.client.delete(&all).unwrap(),
        cloud.client.put(&all, &none).unwrap(),
    ];
    for answer in answers {
        let answer = answer.expect(409).json();
        let told = error(&answer);
        assert!(told["detail"].as_str().unwrap().contains("in use.  "), "{told}");
        assert_eq!((&told["classes"], counts(told)), (&json!(["CUSTOM_RES"]), (1, 0)), "{told}");
        assert_eq!(first(told), [(i1.clone(), None)]);
        assert_eq!(told["held_by"]["first"][0]["amount"], 1);
    }
    let remove =
        json!({"change_inventories": {"provider": r1, "change": {"delete": "CUSTOM_RES"}}});
    let detail = cloud.send(&remove).expect(409).detail();
    assert!(detail.contains(&format!("1 consumer holds CUSTOM_RES on {r1}: {i1} (1)")), "{detail}");
    let events = cloud.accept(&json!([release(&i1, false, "given back"), remove]));
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["header"]["group_first"], events[1]["header"]["group_first"]);
    cloud.verify();
}

/// Case F5: a claim for which there is no room says who has it, the largest first and moves marked,
/// to callers who may list a provider's allocations; to others how many.
#[test]
fn a_refused_claim_says_who_holds_the_room_to_those_who_may_see_it() {
    let mut rules = tempfile::NamedTempFile::new().unwrap();
    let rule = "placement:resource_providers:allocations:list";
    writeln!(rules, "\"{rule}\": \"role:auditor\"").unwrap();
    let cloud = Cloud::with(&["--policy-file", rules.path().to_str().unwrap()]);
    let [h1] = cloud.hosts();
    let [i1, i2, m2] = ["I1", "I2", "M2"].map(consumer);
    cloud.accept(&claim(&i1, &vcpu(&h1, 5)));
    cloud.accept(&claim(&i2, &vcpu(&h1, 3)));
    cloud.accept(&to_migration(&i2, &m2, "migration"));
    let auditor = cloud.client.with("x-roles", "admin,auditor");
    let path = format!("/allocations/{}", consumer("I3"));
    let body = crate::cloud::body(&vcpu(&h1, 1), &Value::Null);
    let answer = auditor.put(&path, &body).unwrap().expect(409).json();
    let told = error(&answer);
    assert_eq!(told["code"], "placement.undefined_code");
    assert!(told["detail"].as_str().unwrap().ends_with("would exceed the capacity.  "), "{told}");
    let this = live_move(&cloud, &i2);
    assert_eq!(first(told), [(i1, None), (m2, Some(this))], "{told}");
    assert_eq!(told["held_by"]["first"][0]["amount"], 5);
    assert_eq!(
        (&told["held_by"]["class"], &told["held_by"]["provider"]),
        (&json!("VCPU"), &json!(h1))
    );
    let answer = cloud.client.put(&path, &body).unwrap().expect(409).json();
    assert_eq!((counts(error(&answer)), first(error(&answer))), ((2, 1), Vec::new()), "{answer}");
    let answer = cloud.send(&claim(&consumer("I3"), &vcpu(&h1, 1))).expect(409);
    assert!(answer.detail().contains("2 consumers hold VCPU on "), "{}", answer.detail());
    assert!(first(error(&answer.json())).is_empty());
    cloud.verify();
}
