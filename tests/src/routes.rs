//! Every route with a request that would be right, as the stuff that malformed ones are made of.

use serde_json::{Value, json};

/// A route: path, methods, and bodies that the writing ones accept.
pub struct Route {
    /// The path, with a provider and a consumer that exist.
    pub path: String,
    /// Writing methods with a right body for each.
    pub writes: Vec<(&'static str, Value)>,
}

/// All routes of Placement's API and the ledger's own, around one provider and one consumer.
pub fn all(provider: &str, consumer: &str) -> Vec<Route> {
    let mut routes = placement(provider, consumer);
    routes.extend(ledger(provider, consumer));
    routes
}

fn placement(provider: &str, consumer: &str) -> Vec<Route> {
    let below = |rest: &str| format!("/resource_providers/{provider}{rest}");
    let record = json!({"total": 10, "reserved": 0, "min_unit": 1, "max_unit": 10, "step_size": 1, "allocation_ratio": 1.0});
    let mut numbered = record.clone();
    numbered["resource_provider_generation"] = json!(1);
    let mut named = numbered.clone();
    named["resource_class"] = json!("DISK_GB");
    let allocation = json!({
        "allocations": {provider: {"resources": {"VCPU": 1}}},
        "mappings": {"": [provider]},
        "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE", "consumer_generation": null,
    });
    let inventories = json!({"resource_provider_generation": 1, "inventories": {"VCPU": record}});
    vec![
        reading("/".to_owned()),
        writing("/resource_classes".to_owned(), "POST", json!({"name": "CUSTOM_X"})),
        reading("/resource_classes/VCPU".to_owned()),
        writing(
            "/resource_providers".to_owned(),
            "POST",
            json!({"name": "n", "uuid": consumer, "parent_provider_uuid": provider}),
        ),
        writing(below(""), "PUT", json!({"name": "n", "parent_provider_uuid": provider})),
        Route {
            path: below("/inventories"),
            writes: vec![("PUT", inventories.clone()), ("POST", named)],
        },
        writing(below("/inventories/VCPU"), "PUT", numbered),
        reading(below("/usages")),
        reading(below("/allocations")),
        writing(
            below("/aggregates"),
            "PUT",
            json!({"aggregates": [provider], "resource_provider_generation": 1}),
        ),
        writing(
            below("/traits"),
            "PUT",
            json!({"traits": ["HW_CPU_X86_VMX"], "resource_provider_generation": 1}),
        ),
        writing("/allocations".to_owned(), "POST", json!({consumer: allocation.clone()})),
        writing(format!("/allocations/{consumer}"), "PUT", allocation.clone()),
        reading("/allocation_candidates?resources=VCPU:1".to_owned()),
        reading("/traits".to_owned()),
        reading("/traits/HW_CPU_X86_VMX".to_owned()),
        reading("/usages?project_id=p".to_owned()),
        writing(
            "/reshaper".to_owned(),
            "POST",
            json!({"inventories": {provider: inventories}, "allocations": {consumer: allocation}}),
        ),
    ]
}

fn ledger(provider: &str, consumer: &str) -> Vec<Route> {
    let commands = "/ledger/v1/commands".to_owned();
    let claim = json!({"claim": {
        "consumer": consumer, "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE",
        "options": [{provider: {"VCPU": 1}}],
    }});
    let list = json!([{"create_provider": {"uuid": consumer, "name": "n", "parent": provider}}, {"create_trait": {"name": "CUSTOM_X"}}]);
    let moved = json!({"move_to_migration": {"consumer": consumer, "migration": provider, "kind": "resize"}});
    let part = json!({"release_part": {"consumer": consumer, "provider": provider, "class": "VCPU", "amount": 1, "reason": "r"}});
    let reserved = json!({"release_and_reserve": {"consumer": consumer, "provider": provider, "reserved": {"VCPU": 1}}});
    let more = json!({"add_inventory": {"provider": provider, "class": "VCPU", "total": 1, "reserved": 1}});
    let retire = json!([
        {"retire": {"which": {"providers": [provider]}, "reason": "r"}},
        {"unretire": {"provider": provider, "classes": ["VCPU"]}},
    ]);
    let freed = json!({"release_all": {"provider": provider, "at_most": 1, "reason": "r"}});
    let quota = json!({"set_quota": {"project_id": "p", "limits": {"VCPU": {"at_most": 5}}}});
    let right = [claim, list, moved, part, reserved, more, retire, freed, quota];
    vec![
        Route { path: commands, writes: right.map(|command| ("POST", command)).to_vec() },
        reading("/ledger/v1/usages?project=p".to_owned()),
        reading("/ledger/v1/events".to_owned()),
        reading("/ledger/v1/moves".to_owned()),
        reading(format!("/ledger/v1/moves/{consumer}")),
        reading(format!("/ledger/v1/consumers/{consumer}/history")),
        reading(format!("/ledger/v1/providers/{provider}/history")),
        reading("/ledger/v1/explain".to_owned()),
        reading("/ledger/v1/orphans".to_owned()),
        writing(
            "/ledger/v1/living".to_owned(),
            "POST",
            json!({"as_of": "2026-01-01T00:00:00Z", "provider": provider, "first": consumer, "living": [consumer]}),
        ),
        reading("/healthz".to_owned()),
        reading("/readyz".to_owned()),
        reading("/metrics".to_owned()),
        reading("/openapi.json".to_owned()),
    ]
}

fn reading(path: String) -> Route {
    Route { path, writes: Vec::new() }
}

fn writing(path: String, method: &'static str, body: Value) -> Route {
    Route { path, writes: vec![(method, body)] }
}
