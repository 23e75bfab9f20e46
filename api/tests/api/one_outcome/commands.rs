//! The ledger's own commands.

use serde_json::{Value, json};

use super::{Case, all, command, holds, host};
use crate::cloud::{self, consumer};

fn named(command: &str, body: Value) -> Value {
    json!({command: body})
}

fn inventory(n: u32, change: Value) -> Value {
    json!({"change_inventories": {"provider": cloud::host(n), "change": change}})
}

fn more(n: u32) -> Value {
    inventory(n, json!({"update": ["VCPU", {"total": 100}]}))
}

fn release(n: u32) -> Value {
    json!({"release": {"consumer": consumer(n)}})
}

fn on(n: u32, amount: u32) -> Value {
    json!({cloud::host(n): {"VCPU": amount}})
}

/// A server on one host, moved to another: the source is with its migration consumer.
fn opened(n: u32) -> Value {
    all(&[
        host(n),
        host(n + 1),
        holds(n, n, 2),
        json!({"move_to_migration": {"consumer": consumer(n), "migration": consumer(n + 1), "kind": "resize"}}),
    ])
}

fn claimed(n: u32) -> Value {
    all(&[opened(n), holds(n, n + 1, 3)])
}

/// A case whose request is a command of that name.
fn case(name: &'static str, kind: &'static str, status: u16, body: Value) -> Case {
    Case::new(name, kind, status, command(named(name, body)))
}

pub(super) fn cases() -> Vec<Case> {
    [providers(), names(), holdings(), moves(), others()].into_iter().flatten().collect()
}

fn providers() -> Vec<Case> {
    let provider = |n: u32| json!({"uuid": cloud::host(n)});
    let gone = |n: u32| json!({"delete_provider": {"uuid": cloud::host(n)}});
    let update = |n: u32, name: &str| json!({"uuid": cloud::host(n), "name": name});
    let made =
        |n: u32| json!({"create_provider": {"uuid": cloud::host(n), "name": format!("h{n}")}});
    vec![
        case("create_provider", "accepted", 200, update(300, "h300")).after(json!([gone(300)])),
        case("create_provider", "conflict", 409, update(301, "h301"))
            .before(json!([made(301)]))
            .after(json!([gone(301)])),
        case("update_provider", "accepted", 200, update(302, "two"))
            .before(json!([made(302)]))
            .after(json!([gone(302)])),
        case("update_provider", "unchanged", 200, update(303, "h303"))
            .before(json!([made(303)]))
            .after(json!([gone(303)])),
        case("update_provider", "not found", 404, update(304, "h304")).after(json!([made(304)])),
        case("delete_provider", "accepted", 200, provider(305))
            .before(json!([made(305)]))
            .after(json!([made(305)])),
        case("delete_provider", "refused", 409, provider(306))
            .before(all(&[host(306), holds(306, 306, 1)]))
            .after(json!([release(306)])),
        case("release_all", "accepted", 200, json!({"provider": cloud::host(318)}))
            .before(all(&[host(318), holds(318, 318, 1)]))
            .after(all(&[holds(318, 318, 2)])),
        case("release_all", "unchanged", 200, json!({"provider": cloud::host(319)}))
            .before(host(319))
            .after(all(&[holds(319, 319, 2)])),
        case("release_all", "not found", 404, json!({"provider": cloud::host(320)}))
            .after(host(320)),
        case("change_inventories", "accepted", 200, json!({"provider": cloud::host(307), "change": "delete_all"}))
            .before(host(307))
            .after(json!([gone(307)])),
        case("change_inventories", "not found", 404, json!({"provider": cloud::host(308), "change": "delete_all"}))
            .after(host(308)),
        case("set_traits", "unchanged", 200, json!({"provider": cloud::host(309), "traits": []}))
            .before(host(309))
            .after(json!([gone(309)])),
        case("set_aggregates", "accepted", 200, json!({"provider": cloud::host(310), "aggregates": ["a"]}))
            .before(host(310))
            .after(json!([gone(310)])),
        case("add_inventory", "accepted", 200, json!({"provider": cloud::host(311), "class": "VCPU", "total": 1}))
            .before(host(311)),
        case("add_inventory", "not found", 404, json!({"provider": cloud::host(312), "class": "VCPU", "total": 1}))
            .after(host(312)),
        case("retire", "accepted", 200, json!({"which": {"providers": [cloud::host(313)]}}))
            .before(host(313))
            .after(host(313)),
        case("retire", "refused", 409, json!({"which": {"providers": [cloud::host(314)]}}))
            .before(all(&[host(314), holds(314, 314, 1)]))
            .after(json!([release(314)])),
        case("unretire", "unchanged", 200, json!({"provider": cloud::host(315)}))
            .before(host(315))
            .after(json!([gone(315)])),
        case("reshape", "accepted", 200, json!({
            "inventories": {cloud::host(316): {"generation": 1, "inventories": {"DISK_GB": {"total": 3}}}},
            "allocations": [],
        }))
        .before(host(316))
        .after(json!([gone(316)])),
        // Some of the list change nothing.
        Case::new("set_traits", "a list with unchanged commands", 200, command(json!([
            {"create_trait": {"name": "CUSTOM_L1"}},
            {"create_trait": {"name": "CUSTOM_L2"}},
            {"set_traits": {"provider": cloud::host(317), "traits": []}},
        ])))
        .before(all(&[host(317), json!({"create_trait": {"name": "CUSTOM_L1"}})]))
        .after(json!([gone(317)])),
    ]
}

fn names() -> Vec<Case> {
    let name = |name: &str| json!({"name": name});
    vec![
        case("create_trait", "accepted", 200, name("CUSTOM_N1")),
        case("create_trait", "unchanged", 200, name("CUSTOM_N2"))
            .before(json!([{"create_trait": name("CUSTOM_N2")}]))
            .after(json!([{"delete_trait": name("CUSTOM_N2")}])),
        case("delete_trait", "accepted", 200, name("CUSTOM_N3"))
            .before(json!([{"create_trait": name("CUSTOM_N3")}])),
        case("delete_trait", "not found", 404, name("CUSTOM_N4"))
            .after(json!([{"create_trait": name("CUSTOM_N4")}])),
        case("create_resource_class", "accepted", 200, name("CUSTOM_N5")),
        case("create_resource_class", "malformed", 400, json!({"name": 5})),
        case(
            "rename_resource_class",
            "accepted",
            200,
            json!({"name": "CUSTOM_N6", "new_name": "CUSTOM_N7"}),
        )
        .before(json!([{"create_resource_class": name("CUSTOM_N6")}])),
        case("delete_resource_class", "accepted", 200, name("CUSTOM_N8"))
            .before(json!([{"create_resource_class": name("CUSTOM_N8")}])),
    ]
}

fn holdings() -> Vec<Case> {
    let wanted = |n: u32, options: Value| json!({"consumer": consumer(n), "project_id": "p", "user_id": "u", "options": options});
    let searched = |n: u32, query: &str| json!({"consumer": consumer(n), "project_id": "p", "user_id": "u", "candidates": query});
    let replaced = |n: u32, amount: u32, generation: Value| {
        json!({"via": "put", "consumers": [{
            "consumer": consumer(n), "project_id": "p", "user_id": "u", "generation": {"is": generation},
            "allocations": on(n, amount),
        }]})
    };
    // Refusals that name more than fits into the record: many options, each passed over.
    let many: Value = (400..432).map(|n| on(n, 9)).collect();
    let hosts: Vec<Value> = (400..432).map(host).collect();
    vec![
        case("replace_allocations", "accepted", 200, replaced(330, 1, Value::Null))
            .before(host(330))
            .after(json!([release(330)])),
        case("replace_allocations", "conflict", 409, replaced(331, 1, json!(1)))
            .before(host(331))
            .after(json!([holds(331, 331, 1)])),
        case("claim", "accepted", 200, wanted(332, json!([on(332, 1)])))
            .before(host(332))
            .after(json!([release(332)])),
        case("claim", "refused", 409, wanted(333, json!([on(333, 9)])))
            .before(host(333))
            .after(json!([more(333)])),
        case("claim", "refused at length", 409, wanted(334, many))
            .before(all(&hosts))
            .after(json!([more(400)])),
        case("claim", "nothing found", 409, searched(335, "resources=CUSTOM_S335:1"))
            .before(all(&[host(335), json!({"create_resource_class": {"name": "CUSTOM_S335"}})]))
            .after(json!([inventory(335, json!({"create": ["CUSTOM_S335", {"total": 5}]}))])),
        case("claim", "a class that does not exist", 400, searched(336, "resources=CUSTOM_S336:1"))
            .before(host(336))
            .after(json!([
                {"create_resource_class": {"name": "CUSTOM_S336"}},
                inventory(336, json!({"create": ["CUSTOM_S336", {"total": 5}]})),
            ])),
        case("claim", "found", 200, searched(337, "resources=CUSTOM_S337:1"))
            .before(all(&[
                host(337),
                json!({"create_resource_class": {"name": "CUSTOM_S337"}}),
                inventory(337, json!({"create": ["CUSTOM_S337", {"total": 5}]})),
            ]))
            .after(json!([release(337)])),
        case("release", "accepted", 200, json!({"consumer": consumer(338)}))
            .before(all(&[host(338), holds(338, 338, 1)]))
            .after(json!([holds(338, 338, 1)])),
        case("release", "not found", 404, json!({"consumer": consumer(339)}))
            .before(host(339))
            .after(json!([holds(339, 339, 1)])),
        case("release_part", "accepted", 200, json!({"consumer": consumer(340), "provider": cloud::host(340), "class": "VCPU", "amount": 1}))
            .before(all(&[host(340), holds(340, 340, 2)])),
        case("release_part", "refused", 409, json!({"consumer": consumer(341), "provider": cloud::host(341), "class": "VCPU", "amount": 3}))
            .before(all(&[host(341), holds(341, 341, 2)]))
            .after(json!([release(341), holds(341, 341, 5)])),
        case("release_and_reserve", "accepted", 200, json!({"consumer": consumer(342), "provider": cloud::host(342)}))
            .before(all(&[host(342), holds(342, 342, 2)]))
            .after(json!([more(342)])),
    ]
}

fn moves() -> Vec<Case> {
    let who = |n: u32| json!({"consumer": consumer(n)});
    let confirm = |n: u32| json!({"confirm": who(n)});
    vec![
        case("double_up", "accepted", 200, json!({"consumer": consumer(500), "kind": "live_migration", "options": [on(501, 2)]}))
            .before(all(&[host(500), host(501), holds(500, 500, 2)]))
            .after(json!([confirm(500)])),
        case("move_to_migration", "accepted", 200, json!({"consumer": consumer(510), "migration": consumer(511), "kind": "resize"}))
            .before(all(&[host(510), holds(510, 510, 2)]))
            .after(json!([{"revert": who(510)}])),
        case("move_to_migration", "not found", 404, json!({"consumer": consumer(512), "migration": consumer(513), "kind": "resize"}))
            .before(host(512))
            .after(json!([holds(512, 512, 2)])),
        case("resize", "accepted", 200, json!({"consumer": consumer(520), "migration": consumer(521), "kind": "resize", "options": [on(520, 3), on(521, 3)]}))
            .before(all(&[host(520), host(521), holds(520, 520, 2)]))
            .after(json!([confirm(520)])),
        case("reschedule", "accepted", 200, json!({"consumer": consumer(530), "reason": "r", "options": [on(530, 1)]}))
            .before(claimed(530))
            .after(json!([confirm(530)])),
        case("confirm", "accepted", 200, who(540)).before(claimed(540)),
        case("confirm", "unchanged", 200, who(542))
            .before(all(&[claimed(542), confirm(542)]))
            .after(json!([release(542)])),
        case("confirm", "refused", 409, who(544)).before(opened(544)).after(json!([holds(544, 545, 1)])),
        case("confirm", "not found", 404, who(546)).after(claimed(546)),
        case("revert", "accepted", 200, who(548)).before(claimed(548)),
        case("host_changed", "accepted", 200, json!({"consumer": consumer(550), "host": cloud::host(551)}))
            .before(claimed(550))
            .after(json!([confirm(550)])),
        case("fail", "accepted", 200, json!({"consumer": consumer(560), "reason": "r"})).before(claimed(560)),
    ]
}

fn others() -> Vec<Case> {
    vec![
        case(
            "set_quota",
            "accepted",
            200,
            json!({"project_id": "q", "limits": {"VCPU": {"at_most": 5}}}),
        )
        .after(json!([{"set_quota": {"project_id": "q", "limits": {"VCPU": null}}}])),
        case("set_quota", "unchanged", 200, json!({"project_id": "r", "limits": {"VCPU": null}}))
            .after(json!([{"set_quota": {"project_id": "r", "limits": {"VCPU": {"at_most": 5}}}}])),
        case("change_settings", "accepted", 200, json!({"same_host_moves": "max"}))
            .after(json!([{"change_settings": {"same_host_moves": "sum"}}])),
        case("skip_event", "accepted", 200, json!({"view": "usage", "sequence": 1, "reason": "r"})),
    ]
}
