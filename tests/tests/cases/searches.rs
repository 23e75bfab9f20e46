//! Large searches (cases E1, E3, E5).

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Value, json};

use crate::cloud::{Cloud, consumer, vcpu};

/// The most log lines that one search may leave.
const LINES: usize = 50;

/// Hosts of the cloud that is listed as a whole.
const HOSTS: u32 = 10_000;

/// Cases E1 and E3 (bugs 2126751, 2126438): eight groups on eight devices of one unit are found,
/// and with all logging of the server on, a search does not log each step it takes.
#[test]
fn a_search_of_many_combinations_logs_a_few_lines() {
    let cloud = Cloud::with(&["--log", "debug"]);
    cloud.accept(&json!({"create_resource_class": {"name": "CUSTOM_X"}}));
    let root = cloud.provider("root", None, &json!({}));
    for number in 1..=8 {
        let name = format!("device{number}");
        cloud.provider(&name, Some(&root), &json!({"CUSTOM_X": {"total": 1}}));
    }
    let groups: String = (1..=8).map(|number| format!("resources{number}=CUSTOM_X:1&")).collect();
    let lines = || cloud.server.log().lines().count();
    let before = lines();
    assert!(before > 0, "the server logs");
    let found =
        cloud.client.read(&format!("/allocation_candidates?{groups}group_policy=none&limit=5"));
    let logged = lines() - before;
    assert_eq!(found["allocation_requests"].as_array().map(Vec::len), Some(5));
    for request in found["allocation_requests"].as_array().unwrap() {
        assert_eq!(request["allocations"].as_object().map(serde_json::Map::len), Some(8));
    }
    println!("{logged} lines");
    assert!(logged < LINES, "{logged} lines of log for one search");
}

/// Case E5: all of ten thousand hosts, each once, with its own figures.
#[test]
fn all_of_ten_thousand_hosts_are_candidates() {
    let cloud = Cloud::new();
    let inventories = json!({
        "VCPU": {"total": 8, "allocation_ratio": 2.0}, "MEMORY_MB": {"total": 4_096, "reserved": 96},
    });
    let hosts = cloud.fleet(HOSTS, &inventories);
    // Each hundredth host has a consumer: one of 16 is full.
    let mut used: BTreeMap<&str, u64> = BTreeMap::new();
    for (number, host) in hosts.iter().step_by(100).enumerate() {
        let amount = 1 + number as u64 % 16;
        cloud.put(&consumer(&format!("C{number}")), &vcpu(host, amount), &Value::Null).expect(204);
        used.insert(host, amount);
    }
    let begun = Instant::now();
    let found = cloud.client.read("/allocation_candidates?resources=VCPU:1,MEMORY_MB:512");
    println!("{HOSTS} hosts took {:?}", begun.elapsed());
    let expected: Vec<&str> = hosts
        .iter()
        .map(String::as_str)
        .filter(|host| used.get(host).is_none_or(|used| *used < 16))
        .collect();
    let mut offered: Vec<&str> = Vec::new();
    for request in found["allocation_requests"].as_array().unwrap() {
        let allocations = request["allocations"].as_object().unwrap();
        let (host, taken) = allocations.iter().next().expect("something is taken");
        assert_eq!(allocations.len(), 1);
        assert_eq!(taken["resources"], json!({"VCPU": 1, "MEMORY_MB": 512}));
        assert_eq!(request["mappings"], json!({"": [host]}));
        offered.push(host);
    }
    offered.sort_unstable();
    assert_eq!(offered, expected, "each host with room, once");
    let summaries = found["provider_summaries"].as_object().unwrap();
    assert_eq!(summaries.len(), expected.len());
    for host in expected {
        assert_eq!(
            summaries[host]["resources"],
            json!({
                "VCPU": {"capacity": 16, "used": used.get(host).copied().unwrap_or(0)},
                "MEMORY_MB": {"capacity": 4_000, "used": 0},
            }),
            "{host}"
        );
    }
}

/// Case F1: who searches one tree reads why that tree does not do, and nothing about others.
#[test]
fn a_search_in_one_tree_is_explained_by_that_tree() {
    let cloud = Cloud::new();
    let [h1, _, _] = cloud.hosts();
    let query = format!("/ledger/v1/explain/candidates?resources=VCPU:9&in_tree={h1}");
    let told = cloud.client.read(&query)["groups"][0].clone();
    let texts: Vec<&str> =
        told["steps"].as_array().unwrap().iter().filter_map(|step| step["text"].as_str()).collect();
    assert_eq!(texts, [format!("in the tree of {h1}: 1 left").as_str(), "VCPU:9: 0 left"]);
    let near = told["near_misses"].as_array().unwrap();
    assert_eq!((near.len(), near[0]["provider"].as_str()), (1, Some(h1.as_str())), "{told}");
}
