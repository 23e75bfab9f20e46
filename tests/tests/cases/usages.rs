//! Who uses how much (cases G1, G2, G5, G9).

use serde_json::{Value, json};
use system_tests::books::{self, Holding};
use system_tests::http::Answer;

use crate::cloud::{Cloud, consumer, holding, vcpu};

/// Write a consumer's holding as a client of this microversion does: a type from 1.38 on.
fn put(
    cloud: &Cloud,
    version: &str,
    who: &str,
    owner: (&str, Option<&str>),
    held: &Holding,
) -> Answer {
    let (project, consumer_type) = owner;
    let mut body = json!({
        "allocations": books::to_json(held), "project_id": project, "user_id": "user",
        "consumer_generation": books::read(&cloud.client, who).1,
    });
    if let Some(name) = consumer_type {
        body["consumer_type"] = name.into();
    }
    cloud.client.microversion(version).put(&format!("/allocations/{who}"), &body).unwrap()
}

fn usages(cloud: &Cloud, version: &str, query: &str) -> Value {
    cloud.client.microversion(version).read(&format!("/usages?{query}"))["usages"].clone()
}

/// Case G1 (story 2005473): servers, migrations and consumers of old clients are told apart.
#[test]
fn usages_are_told_by_consumer_type_and_in_sum() {
    let cloud = Cloud::new();
    let host = cloud.host("H1", &[("VCPU", 16), ("MEMORY_MB", 16_384)]);
    let both = |vcpu, memory| holding(&[(&host, "VCPU", vcpu), (&host, "MEMORY_MB", memory)]);
    put(&cloud, "1.39", &consumer("I1"), ("P", Some("INSTANCE")), &both(4, 4_096)).expect(204);
    put(&cloud, "1.39", &consumer("M1"), ("P", Some("MIGRATION")), &both(2, 2_048)).expect(204);
    put(&cloud, "1.36", &consumer("C1"), ("P", None), &vcpu(&host, 1)).expect(204);
    assert_eq!(
        usages(&cloud, "1.39", "project_id=P"),
        json!({
            "INSTANCE": {"VCPU": 4, "MEMORY_MB": 4_096, "consumer_count": 1},
            "MIGRATION": {"VCPU": 2, "MEMORY_MB": 2_048, "consumer_count": 1},
            "unknown": {"VCPU": 1, "consumer_count": 1},
        })
    );
    assert_eq!(usages(&cloud, "1.9", "project_id=P"), json!({"VCPU": 7, "MEMORY_MB": 6_144}));
    assert_eq!(
        usages(&cloud, "1.39", "project_id=P&consumer_type=all"),
        json!({"all": {"VCPU": 7, "MEMORY_MB": 6_144, "consumer_count": 3}})
    );
}

/// Case G2 (story 2009167): what an old client wrote, a new one reads.
#[test]
fn a_consumer_written_without_a_type_is_read_as_unknown() {
    let cloud = Cloud::new();
    let [host] = cloud.hosts();
    let c1 = consumer("C1");
    put(&cloud, "1.28", &c1, ("P", None), &vcpu(&host, 2)).expect(204);
    let read = cloud.client.microversion("1.38").read(&format!("/allocations/{c1}"));
    assert_eq!(read["consumer_type"], "unknown");
    assert_eq!(books::from_json(&read["allocations"]), vcpu(&host, 2));
    assert_eq!(
        usages(&cloud, "1.38", "project_id=P"),
        json!({"unknown": {"VCPU": 2, "consumer_count": 1}})
    );
}

/// Case G5 (bugs 1779717, 1781008): a write takes the consumer to its new project, and a refused
/// one leaves it where it is.
#[test]
fn a_consumer_changes_its_project_with_an_accepted_write_only() {
    let cloud = Cloud::new();
    let [host] = cloud.hosts();
    let i1 = consumer("I1");
    let sums =
        || ["P1", "P2"].map(|project| usages(&cloud, "1.9", &format!("project_id={project}")));
    let owner = || cloud.client.read(&format!("/allocations/{i1}"))["project_id"].clone();
    put(&cloud, "1.39", &i1, ("P1", Some("INSTANCE")), &vcpu(&host, 4)).expect(204);
    assert_eq!(sums(), [json!({"VCPU": 4}), json!({})]);
    put(&cloud, "1.39", &i1, ("P2", Some("INSTANCE")), &vcpu(&host, 4)).expect(204);
    assert_eq!((sums(), owner()), ([json!({}), json!({"VCPU": 4})], json!("P2")));
    let history = cloud.client.read(&format!("/ledger/v1/consumers/{i1}/history"));
    let changed = &history["events"][1]["body"]["consumers"][0];
    assert_eq!(
        (&changed["project_id"], &changed["owner_before"]["project_id"]),
        (&json!("P2"), &json!("P1")),
        "{history}"
    );
    let before = cloud.sequence();
    put(&cloud, "1.39", &i1, ("P1", Some("INSTANCE")), &vcpu(&host, 400)).expect(409);
    assert_eq!((sums(), owner()), ([json!({}), json!({"VCPU": 4})], json!("P2")));
    let later = cloud.client.read(&format!("/ledger/v1/events?after={before}"));
    let kinds: Vec<&Value> =
        later["events"].as_array().unwrap().iter().map(|event| &event["header"]["kind"]).collect();
    assert!(kinds.iter().all(|kind| *kind == "Rejected"), "{kinds:?}");
    cloud.verify();
}

/// Case G9 (prometheus-openstack-exporter 152): what is used and what there is are of one class.
#[test]
fn pinned_processors_are_used_of_pinned_ones() {
    let cloud = Cloud::new();
    let host = cloud.host("H1", &[("PCPU", 30)]);
    put(&cloud, "1.39", &consumer("I1"), ("P", Some("INSTANCE")), &holding(&[(&host, "PCPU", 30)]))
        .expect(204);
    let below = |rest: &str| cloud.client.read(&format!("/resource_providers/{host}/{rest}"));
    assert_eq!(below("usages")["usages"], json!({"PCPU": 30}));
    let row = &cloud.client.read("/ledger/v1/providers")["providers"][0];
    let classes: Vec<&String> = row["inventories"].as_object().unwrap().keys().collect();
    assert_eq!(classes, ["PCPU"]);
    let pinned = &row["inventories"]["PCPU"];
    assert_eq!(
        (&pinned["held"], &pinned["total"], &pinned["free"]),
        (&json!(30), &json!(30), &json!(0))
    );
    let metrics = cloud.client.get("/metrics").unwrap().expect(200).text();
    for figure in ["total", "used"] {
        let line = format!(
            "allocd_provider_{figure}{{provider=\"{host}\",name=\"H1\",class=\"PCPU\"}} 30\n"
        );
        assert!(metrics.contains(&line), "{line}");
    }
    assert!(!metrics.contains("class=\"VCPU\""));
}
