//! The same state everywhere (case I29).

use std::collections::BTreeSet;

use serde_json::json;
use system_tests::load::{Outcome, Worker};
use system_tests::replay_tool::replay;
use system_tests::seed;

use crate::cloud::Cloud;

/// Processes that fold the same events.
const PROCESSES: usize = 20;

/// Times that the server starts and is asked for candidates.
const STARTS: usize = 4;

/// Writes of every kind before.
const WRITES: usize = 1_000;

/// Case I29 (khive 24, zksync-era 4755): hash maps have another order in each process; neither
/// the digest of a state nor the order of candidates depends on it.
#[test]
fn every_process_has_the_same_digest_and_the_same_order_of_candidates() {
    let mut cloud = Cloud::new();
    let inventories = json!({"VCPU": {"total": 100}, "MEMORY_MB": {"total": 100}});
    let hosts = cloud.fleet(50, &inventories);
    let random = seed::stream(seed::seed(31), 0);
    let mut worker = Worker::new(random, &hosts, &["VCPU", "MEMORY_MB"]);
    for _ in 0..WRITES {
        assert!(!matches!(worker.step(&cloud.client), Outcome::Unknown(_)));
    }
    let digests: BTreeSet<String> = (0..PROCESSES)
        .map(|_| replay(&cloud.server.data_dir(), &["at", "latest", "--json"]).json())
        .map(|state| state["state_digest"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(digests.len(), 1, "{digests:?}");
    let mut orders = BTreeSet::new();
    for _ in 0..STARTS {
        let paths = ["&limit=7", ""].map(|limit| {
            let path = format!("/allocation_candidates?resources=VCPU:2,MEMORY_MB:2{limit}");
            cloud.client.get(&path).unwrap().expect(200).text()
        });
        orders.insert(paths);
        cloud.server.restart();
        cloud.client = cloud.server.client();
    }
    assert_eq!(orders.len(), 1, "the order differs from process to process");
    cloud.verify();
}
