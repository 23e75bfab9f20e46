//! Inventories that change under what is held (cases H1, H3, H5, K8).

use serde_json::{Value, json};
use system_tests::books::{self, Holding};

use crate::cloud::{self, Cloud, consumer, holding, vcpu};

/// A provider's generation.
fn generation(cloud: &Cloud, provider: &str) -> u64 {
    let read = cloud.client.read(&format!("/resource_providers/{provider}"));
    read["generation"].as_u64().expect("a provider has a generation")
}

/// Replace one inventory by Placement's PUT.
fn set(cloud: &Cloud, provider: &str, class: &str, mut inventory: Value) {
    inventory["resource_provider_generation"] = generation(cloud, provider).into();
    let path = format!("/resource_providers/{provider}/inventories/{class}");
    cloud.client.put(&path, &inventory).unwrap().expect(200);
}

/// Case H1 (bug 2104040): on a host over its capacity, what does not make it worse passes.
#[test]
fn an_overcommitted_host_lets_through_what_does_not_make_it_worse() {
    let cloud = Cloud::new();
    let hosts: [String; 1] = cloud.hosts();
    let h1 = &hosts[0];
    let (a, b) = (consumer("A"), consumer("B"));
    for who in [&a, &b] {
        cloud.put(who, &vcpu(h1, 4), &Value::Null).expect(204);
    }
    set(&cloud, h1, "VCPU", json!({"total": 8, "reserved": 4}));
    assert_eq!(cloud.vcpus(&hosts), [8], "4 more than there is now");
    cloud.put(&a, &vcpu(h1, 4), &json!(1)).expect(204);
    cloud.put(&a, &vcpu(h1, 3), &json!(2)).expect(204);
    cloud.put(&a, &vcpu(h1, 5), &json!(3)).expect(409);
    cloud.put(&consumer("C"), &vcpu(h1, 1), &Value::Null).expect(409);
    assert_eq!(cloud.vcpus(&hosts), [7]);
    assert_eq!(cloud.holds(&consumer("C")), Holding::new());
    cloud.verify();
}

/// Case H3 (bug 1783130): a device's inventory moves to a child together with what is held of it,
/// in one event.
#[test]
fn a_reshape_is_one_event_and_old_generations_are_refused() {
    let cloud = Cloud::new();
    let root = cloud.provider("ROOT", None, &json!({"VCPU": {"total": 8}, "VGPU": {"total": 4}}));
    let child = cloud.provider("CH", Some(&root), &json!({}));
    let i1 = consumer("I1");
    cloud.put(&i1, &holding(&[(&root, "VCPU", 2), (&root, "VGPU", 1)]), &Value::Null).expect(204);
    let after = holding(&[(&root, "VCPU", 2), (&child, "VGPU", 1)]);
    let body = json!({
        "inventories": {
            &root: {"resource_provider_generation": generation(&cloud, &root),
                    "inventories": {"VCPU": {"total": 8}}},
            &child: {"resource_provider_generation": generation(&cloud, &child),
                     "inventories": {"VGPU": {"total": 4}}},
        },
        "allocations": {&i1: cloud::body(&after, &json!(1))},
    });
    // By Placement's policy the role admin is not enough.
    cloud.client.post("/reshaper", &body).unwrap().expect(403);
    let before = cloud.sequence();
    let service = cloud.client.with("x-roles", "admin,service");
    service.post("/reshaper", &body).unwrap().expect(204);
    assert_eq!(cloud.sequence(), before + 1, "one event");
    assert_eq!(cloud.used(&root), books::amounts(&json!({"VCPU": 2})));
    assert_eq!(cloud.used(&child), books::amounts(&json!({"VGPU": 1})));
    assert_eq!(cloud.holds(&i1), after);
    let refused = service.post("/reshaper", &body).unwrap().expect(409);
    assert_eq!(refused.json()["errors"][0]["code"], "placement.concurrent_update");
    assert_eq!(cloud.holds(&i1), after);
    cloud.verify();
}

/// Case H3, the variant: the root may end without any inventory.
#[test]
fn a_reshape_may_leave_a_provider_empty() {
    let cloud = Cloud::new();
    let root = cloud.provider("ROOT", None, &json!({"VGPU": {"total": 4}}));
    let child = cloud.provider("CH", Some(&root), &json!({}));
    let i1 = consumer("I1");
    cloud.put(&i1, &holding(&[(&root, "VGPU", 1)]), &Value::Null).expect(204);
    let after = holding(&[(&child, "VGPU", 1)]);
    let body = json!({
        "inventories": {
            &root: {"resource_provider_generation": generation(&cloud, &root), "inventories": {}},
            &child: {"resource_provider_generation": generation(&cloud, &child),
                     "inventories": {"VGPU": {"total": 4}}},
        },
        "allocations": {&i1: cloud::body(&after, &json!(1))},
    });
    let service = cloud.client.with("x-roles", "service");
    service.post("/reshaper", &body).unwrap().expect(204);
    let left = cloud.client.read(&format!("/resource_providers/{root}/inventories"));
    assert_eq!(left["inventories"], json!({}));
    assert_eq!((cloud.holds(&i1), cloud.used(&root).len()), (after, 0));
    cloud.verify();
}

/// Case H5: a capacity is a product of doubles, cut off; candidates, summaries, claims, usages and
/// `replay` have the same whole number.
#[test]
fn a_capacity_is_the_same_whole_number_everywhere() {
    for (total, ratio, capacity) in
        [(100, 0.29, 28), (1_000, 1.001, 1_000), (10, 1.1, 11), (10, 0.7, 7)]
    {
        let cloud = Cloud::new();
        let inventory = json!({"VCPU": {"total": total, "allocation_ratio": ratio}});
        let hosts = [cloud.provider("H1", None, &inventory)];
        let h1 = &hosts[0];
        let found = |amount: u64| {
            cloud.client.read(&format!("/allocation_candidates?resources=VCPU:{amount}"))
        };
        let candidates =
            |answer: &Value| answer["allocation_requests"].as_array().map_or(0, Vec::len);
        assert_eq!(candidates(&found(capacity + 1)), 0, "{total} x {ratio}");
        let answer = found(capacity);
        assert_eq!(candidates(&answer), 1, "{total} x {ratio}");
        let told = &answer["provider_summaries"][h1]["resources"]["VCPU"];
        assert_eq!(*told, json!({"capacity": capacity, "used": 0}), "{total} x {ratio}");
        cloud.put(&consumer("C1"), &vcpu(h1, capacity + 1), &Value::Null).expect(409);
        cloud.put(&consumer("C1"), &vcpu(h1, capacity), &Value::Null).expect(204);
        assert_eq!(cloud.vcpus(&hosts), [capacity]);
        let row = &cloud.client.read("/ledger/v1/providers")["providers"][0]["inventories"]["VCPU"];
        assert_eq!((&row["capacity"], &row["free"]), (&json!(capacity), &json!(0)));
        assert_eq!(cloud.replayed(cloud.sequence(), &hosts), [capacity]);
        cloud.verify();
    }
}

/// Case K8 (bug 1789654): a step of a generation tells the event with inventory before and after.
#[test]
fn a_step_of_a_generation_is_one_event_with_before_and_after() {
    let cloud = Cloud::new();
    let h1 = cloud.provider("H1", None, &json!({"VCPU": {"total": 4}}));
    let i1 = consumer("I1");
    cloud.put(&i1, &vcpu(&h1, 1), &Value::Null).expect(204);
    cloud.put(&i1, &vcpu(&h1, 2), &json!(1)).expect(204);
    cloud.put(&i1, &vcpu(&h1, 3), &json!(2)).expect(204);
    assert_eq!(generation(&cloud, &h1), 4);
    let request = "req-e0000000-0000-4000-8000-000000000001";
    let body = json!({"resource_provider_generation": 4, "total": 6, "reserved": 1});
    let path = format!("/resource_providers/{h1}/inventories/VCPU");
    cloud.client.request_id(request).put(&path, &body).unwrap().expect(200);
    cloud.put(&i1, &vcpu(&h1, 4), &json!(3)).expect(204);
    let step = |query: &str| {
        let answer = cloud.client.read(&format!("/ledger/v1/providers/{h1}/history?{query}"));
        answer["events"].as_array().unwrap().clone()
    };
    let events = step("generation=5");
    assert_eq!(events.len(), 1, "{events:?}");
    let (header, told) = (&events[0]["header"], &events[0]["body"]);
    assert_eq!(
        (&header["kind"], &header["request_id"]),
        (&json!("InventoryChanged"), &json!(request))
    );
    assert_eq!((&told["generation"], &told["changes"][0]["class"]), (&json!(5), &json!("VCPU")));
    let (before, after) = (&told["changes"][0]["before"], &told["changes"][0]["after"]);
    assert_eq!((&before["total"], &before["reserved"]), (&json!(4), &json!(0)));
    assert_eq!((&after["total"], &after["reserved"]), (&json!(6), &json!(1)));
    // Each other step is one event too, and what never was is none.
    let kinds = [0, 1, 2, 3, 4, 6].map(|to| {
        let events = step(&format!("generation={to}"));
        assert_eq!(events.len(), 1, "generation {to}: {events:?}");
        events[0]["header"]["kind"].as_str().unwrap().to_owned()
    });
    assert_eq!(
        kinds,
        [
            "ProviderCreated",
            "InventoryChanged",
            "Claimed",
            "Reallocated",
            "Reallocated",
            "Reallocated"
        ]
    );
    assert_eq!(step("generation=7"), Vec::<Value>::new());
    // A page that goes on knows where the one before ended.
    let after = &step("generation=4")[0]["header"]["sequence"];
    assert_eq!(step(&format!("generation=5&after={after}")).len(), 1);
    assert_eq!(step(&format!("generation=4&after={after}")).len(), 0);
    let bad = cloud.client.get(&format!("/ledger/v1/providers/{h1}/history?generation=x"));
    bad.unwrap().expect(400);
}
