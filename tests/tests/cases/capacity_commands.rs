//! Commands that change what providers have and consumers hold (cases B16, B18, C10, C12, H7).

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};
use system_tests::books::Holding;

use crate::cloud::{Cloud, claim, consumer, holding, vcpu};

/// Readers that look for a node while it is handed back.
const READERS: usize = 8;
/// Nodes that are handed back while they look.
const ROUNDS: usize = 20;

fn release_part(consumer: &str, provider: &str, class: &str, amount: u64) -> Value {
    json!({"release_part": {
        "consumer": consumer,
        "provider": provider,
        "class": class,
        "amount": amount,
        "reason": "the port was deleted",
    }})
}

/// Case B16 (bug 1820588): the bandwidth of a port that was deleted behind Nova's back.
#[test]
fn a_part_of_a_holding_is_released_and_the_rest_is_untouched() {
    const BANDWIDTH: &str = "NET_BW_EGR_KILOBIT_PER_SEC";
    let cloud = Cloud::new();
    let [host]: [String; 1] = cloud.hosts();
    let nic = cloud.host("NIC1", &[(BANDWIDTH, 10_000)]);
    let i1 = consumer("I1");
    cloud.accept(&claim(&i1, &holding(&[(&host, "VCPU", 2), (&nic, BANDWIDTH, 4000)])));
    let refused = cloud.send(&release_part(&i1, &nic, BANDWIDTH, 5000)).expect(409);
    assert_eq!(refused.json()["errors"][0]["cause"], "holds_less", "{}", refused.text());
    cloud.accept(&release_part(&i1, &nic, BANDWIDTH, 4000));
    assert_eq!(cloud.holds(&i1), vcpu(&host, 2));
    assert!(cloud.used(&nic).is_empty());
    let history = cloud.history(&i1);
    assert_eq!(history[1].1.as_deref(), Some("the port was deleted"), "{history:?}");
    cloud.verify();
}

/// Case C10 (bug 1974070): between the release of a bare-metal node and its reserve nobody is
/// offered it.
#[test]
fn a_node_that_is_released_and_reserved_is_never_offered_in_between() {
    let cloud = Cloud::new();
    let node = cloud.host("N1", &[("VCPU", 1)]);
    let i1 = consumer("I1");
    let (ended, start) = (AtomicBool::new(false), Barrier::new(READERS + 1));
    cloud.accept(&claim(&i1, &vcpu(&node, 1)));
    let offered: usize = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS)
            .map(|_| {
                let (cloud, ended, start) = (&cloud, &ended, &start);
                scope.spawn(move || {
                    let client = cloud.server.client();
                    start.wait();
                    let mut offered = 0;
                    while !ended.load(Ordering::SeqCst) {
                        let answer = client.read("/allocation_candidates?resources=VCPU:1");
                        offered += answer["allocation_requests"].as_array().unwrap().len();
                    }
                    offered
                })
            })
            .collect();
        start.wait();
        for _ in 0..ROUNDS {
            let both = json!({"release_and_reserve": {"consumer": i1, "provider": node}});
            cloud.accept(&both);
            assert_eq!(cloud.holds(&i1), Holding::new());
            // Claimed again as one group with the end of its reserve: free at no moment.
            let free =
                json!({"add_inventory": {"provider": node, "class": "VCPU", "reserved": -1}});
            cloud.accept(&json!([free, claim(&i1, &vcpu(&node, 1))]));
        }
        ended.store(true, Ordering::SeqCst);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    assert_eq!(offered, 0, "the node was offered");
    cloud.verify();
}

/// Case C12: relative changes commute; a written inventory still needs the generation.
#[test]
fn additions_at_once_never_conflict() {
    const AT_ONCE: usize = 20;
    let cloud = Cloud::new();
    let r1 = cloud.host("R1", &[("VCPU", 10)]);
    let inventories = format!("/resource_providers/{r1}/inventories");
    let before = cloud.client.read(&inventories);
    let start = Barrier::new(AT_ONCE);
    let sequences: Vec<BTreeSet<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let add =
                        json!({"add_inventory": {"provider": r1, "class": "VCPU", "total": 1}});
                    let client = cloud.server.client();
                    start.wait();
                    let answer = client.post("/ledger/v1/commands", &add).unwrap().expect(200);
                    let events = answer.json()["events"].as_array().unwrap().clone();
                    events.iter().map(|it| it["header"]["sequence"].as_u64().unwrap()).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let events: BTreeSet<u64> = sequences.iter().flatten().copied().collect();
    assert_eq!(events.len(), AT_ONCE, "an event for each: {sequences:?}");
    let after = cloud.client.read(&inventories);
    assert_eq!(after["inventories"]["VCPU"]["total"], 30);
    let generation = |answer: &Value| answer["resource_provider_generation"].as_u64().unwrap();
    assert_eq!(generation(&after), generation(&before) + AT_ONCE as u64);
    // Who has the old generation is told so.
    cloud.client.put(&inventories, &before).unwrap().expect(409);
    cloud.verify();
}

/// Case H7 (bug 2115905): a device that the report lacks while it is in use.
#[test]
fn a_device_in_use_goes_by_itself_when_it_is_free() {
    let cloud = Cloud::new();
    let [pci1, pci2] = ["PCI1", "PCI2"].map(|name| cloud.host(name, &[("VGPU", 1)]));
    let i1 = consumer("I1");
    cloud.accept(&claim(&i1, &holding(&[(&pci1, "VGPU", 1)])));
    let report = json!([
        {"change_inventories": {"provider": pci2, "change": {"replace_all": {"VGPU": {"total": 2}}}}},
        {"retire": {"which": {"providers": [pci1]}, "when_free": true}},
    ]);
    assert_eq!(cloud.accept(&report).len(), 2);
    assert_eq!(offered(&cloud), BTreeSet::from([pci2.clone()]));
    let refused = cloud.put(&consumer("I2"), &holding(&[(&pci1, "VGPU", 1)]), &Value::Null);
    assert_eq!(refused.expect(409).json()["errors"][0]["cause"], "retiring");
    cloud.client.read(&format!("/resource_providers/{pci1}"));
    // A plain DELETE frees it as well as any command.
    cloud.client.delete(&format!("/allocations/{i1}")).unwrap().expect(204);
    cloud.client.get(&format!("/resource_providers/{pci1}")).unwrap().expect(404);
    assert_eq!(offered(&cloud), BTreeSet::from([pci2]));
    cloud.verify();
}

/// The providers that a search for one VGPU finds.
fn offered(cloud: &Cloud) -> BTreeSet<String> {
    let answer = cloud.client.read("/allocation_candidates?resources=VGPU:1");
    let found = answer["allocation_requests"].as_array().unwrap().clone();
    let places = found.iter().map(|one| one["allocations"].as_object().unwrap().clone());
    places.flat_map(|place| place.into_iter().map(|(provider, _)| provider)).collect()
}

/// Case B18 (bug 1811726): the providers of a service go all at once, or those in use are named.
#[test]
fn the_providers_of_a_service_go_all_at_once_or_not_at_all() {
    const NODES: usize = 300;
    let cloud = Cloud::new();
    let nodes: Vec<String> =
        (0..NODES).map(|node| cloud.host(&format!("S{node}"), &[("VCPU", 1)])).collect();
    for node in [7, 200] {
        cloud.accept(&claim(&consumer(&format!("I{node}")), &vcpu(&nodes[node], 1)));
    }
    let retire = json!({"retire": {"which": {"providers": nodes}}});
    let refused = cloud.send(&retire).expect(409).json()["errors"][0].clone();
    assert_eq!(refused["cause"], "cannot_retire", "{refused}");
    assert_eq!((refused["total"].as_u64(), refused["in_use"].as_u64()), (Some(300), Some(2)));
    let named: BTreeSet<&str> =
        refused["providers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(named, BTreeSet::from([&*nodes[7], &*nodes[200]]));
    for node in [7, 200] {
        cloud.client.delete(&format!("/allocations/{}", consumer(&format!("I{node}")))).unwrap();
    }
    let events = cloud.accept(&retire);
    assert_eq!(events.len(), NODES);
    let groups: BTreeSet<u64> =
        events.iter().map(|event| event["header"]["group_first"].as_u64().unwrap()).collect();
    assert_eq!(groups.len(), 1, "one group");
    let left = cloud.client.read("/resource_providers");
    assert_eq!(left["resource_providers"].as_array().map(Vec::len), Some(0));
    cloud.verify();
}
