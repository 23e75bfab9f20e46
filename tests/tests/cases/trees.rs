//! Providers below providers (case D12).

use serde_json::{Value, json};
use system_tests::http::Answer;

use crate::cloud::Cloud;

fn set_parent(cloud: &Cloud, (provider, name): (&str, &str), parent: &str) -> Answer {
    let body = json!({"name": name, "parent_provider_uuid": parent});
    cloud.client.put(&format!("/resource_providers/{provider}"), &body).unwrap()
}

fn root(cloud: &Cloud, provider: &str) -> Value {
    cloud.client.read(&format!("/resource_providers/{provider}"))["root_provider_uuid"].clone()
}

/// Case D12 (bugs 1779635, 1779818): no provider is its own ancestor, and a subtree that moves
/// has its new root in every provider.
#[test]
fn loops_are_refused_and_a_whole_subtree_gets_its_new_root() {
    let cloud = Cloud::new();
    let none = json!({});
    let r = cloud.provider("R", None, &none);
    let a = cloud.provider("a", Some(&r), &none);
    let b = cloud.provider("b", Some(&a), &none);
    let sequence = cloud.sequence();
    for parent in [&r, &a, &b] {
        set_parent(&cloud, (&r, "R"), parent).expect(400);
    }
    set_parent(&cloud, (&a, "a"), &b).expect(400);
    assert_eq!(cloud.sequence(), sequence, "nothing changed");
    let n = cloud.provider("N", None, &none);
    set_parent(&cloud, (&r, "R"), &n).expect(200);
    for provider in [&r, &a, &b, &n] {
        assert_eq!(root(&cloud, provider), json!(n));
    }
    let tree = cloud.client.read(&format!("/resource_providers?in_tree={b}"));
    assert_eq!(tree["resource_providers"].as_array().map(Vec::len), Some(4));
    cloud.verify();
}
