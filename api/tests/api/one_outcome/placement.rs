//! The writes of Placement's API.

use serde_json::{Value, json};

use super::{Case, Request, all, holds, host};
use crate::cloud::{self, consumer};

fn put(path: &str, version: &'static str, body: Value) -> Request {
    Request { method: "PUT", path: path.to_owned(), version, body }
}

fn post(path: &str, version: &'static str, body: Value) -> Request {
    Request { method: "POST", path: path.to_owned(), version, body }
}

fn delete(path: &str, version: &'static str) -> Request {
    Request { method: "DELETE", path: path.to_owned(), version, body: Value::Null }
}

/// The path of a host, and what is below it.
fn of(n: u32, rest: &str) -> String {
    format!("/resource_providers/{}{rest}", cloud::host(n))
}

fn gone(n: u32) -> Value {
    json!({"delete_provider": {"uuid": cloud::host(n)}})
}

fn renamed(n: u32, name: &str) -> Value {
    json!({"update_provider": {"uuid": cloud::host(n), "name": name}})
}

fn under(n: u32, parent: u32) -> Value {
    json!({"update_provider": {"uuid": cloud::host(n), "name": format!("h{n}"), "parent": {"set": cloud::host(parent)}}})
}

fn created(uuid: &Value, name: &str) -> Value {
    json!({"create_provider": {"uuid": uuid, "name": name}})
}

fn custom_trait(name: &str) -> Value {
    json!({"create_trait": {"name": name}})
}

fn class(name: &str) -> Value {
    json!({"create_resource_class": {"name": name}})
}

fn traits(n: u32, names: &[&str]) -> Value {
    json!({"set_traits": {"provider": cloud::host(n), "traits": names}})
}

/// Inventories as commands take them.
fn inventory(n: u32, change: Value) -> Value {
    json!({"change_inventories": {"provider": cloud::host(n), "change": change}})
}

fn release(n: u32) -> Value {
    json!({"release": {"consumer": consumer(n)}})
}

/// What a consumer is to hold, in the form of 1.28 to 1.37.
fn holding(host: u32, class: &str, amount: u32, generation: Value) -> Value {
    json!({
        "allocations": {cloud::host(host): {"resources": {class: amount}}},
        "project_id": "p", "user_id": "u", "consumer_generation": generation,
    })
}

pub(super) fn cases() -> Vec<Case> {
    [providers(), inventories(), associations(), names(), allocations()]
        .into_iter()
        .flatten()
        .collect()
}

fn providers() -> Vec<Case> {
    let made = |name: &str| json!({"name": name});
    let location = |answer: &crate::server::Answer| -> Value {
        let path = answer.header("location").expect("a location");
        path.rsplit('/').next().into()
    };
    let case = |kind, status, version, body| {
        Case::new("create_provider", kind, status, post("/resource_providers", version, body))
    };
    let update = |kind, status, n, body| {
        Case::new("update_provider", kind, status, put(&of(n, ""), "1.39", body))
    };
    let remove =
        |kind, status, n| Case::new("delete_provider", kind, status, delete(&of(n, ""), "1.39"));
    vec![
        case("accepted", 200, "1.39", made("new 1")).after_answer(
            move |answer| json!([{"update_provider": {"uuid": location(answer), "name": "other 1"}}]),
        ),
        case("accepted", 201, "1.19", made("new 2"))
            .after_answer(move |answer| json!([{"delete_provider": {"uuid": location(answer)}}])),
        // Its parent goes into another tree.
        case(
            "accepted",
            200,
            "1.39",
            json!({"name": "new 3", "uuid": cloud::host(1003), "parent_provider_uuid": cloud::host(3)}),
        )
        .before(all(&[host(3), host(4)]))
        .after(json!([under(3, 4)])),
        case("conflict", 409, "1.39", made("h5")).before(host(5)).after(json!([renamed(5, "five")])),
        case(
            "not found",
            400,
            "1.39",
            json!({"name": "new 6", "parent_provider_uuid": cloud::host(6)}),
        )
        .after(host(6)),
        case("malformed", 400, "1.39", json!({"name": 1})),
        update("accepted", 200, 10, made("ten")).before(all(&[host(10), host(11)])).after(json!([
            renamed(10, "h10"),
            under(10, 11)
        ])),
        update("unchanged", 200, 12, made("h12"))
            .before(all(&[host(12), host(13)]))
            .after(json!([under(12, 13)])),
        update("not found", 404, 14, made("fourteen")).after(host(14)),
        update("conflict", 409, 15, made("h16"))
            .before(all(&[host(15), host(16)]))
            .after(json!([renamed(16, "sixteen")])),
        update("refused", 400, 17, json!({"name": "h17", "parent_provider_uuid": cloud::host(18)}))
            .before(host(17))
            .after(host(18)),
        update("malformed", 400, 19, json!({"name": 1})).after(host(19)),
        remove("accepted", 204, 20).before(json!([created(&cloud::host(20).into(), "h20")])).after(
            json!([created(&cloud::host(20).into(), "h20")]),
        ),
        remove("not found", 404, 21).after(host(21)),
        remove("refused", 409, 22)
            .before(all(&[host(22), holds(22, 22, 1)]))
            .after(json!([release(22)])),
    ]
}

fn inventories() -> Vec<Case> {
    let record = |generation: Option<u32>, total: u32| match generation {
        Some(generation) => json!({"total": total, "resource_provider_generation": generation}),
        None => json!({"total": total}),
    };
    let set = |generation: u32, class: &str| json!({"resource_provider_generation": generation, "inventories": {class: {"total": 5}}});
    let create = |kind, status, n, class: &str| {
        let body = json!({"resource_class": class, "total": 5});
        Case::new("create_inventory", kind, status, post(&of(n, "/inventories"), "1.39", body))
    };
    let replace = |kind, status, n, body| {
        Case::new("replace_inventories", kind, status, put(&of(n, "/inventories"), "1.39", body))
    };
    let update = |kind, status, n, class: &str, body| {
        let path = of(n, &format!("/inventories/{class}"));
        Case::new("update_inventory", kind, status, put(&path, "1.39", body))
    };
    let remove = |kind, status, n| {
        Case::new("delete_inventory", kind, status, delete(&of(n, "/inventories/VCPU"), "1.39"))
    };
    let clear = |kind, status, n| {
        Case::new("delete_inventories", kind, status, delete(&of(n, "/inventories"), "1.39"))
    };
    vec![
        create("accepted", 201, 30, "DISK_GB").before(host(30)).after(json!([gone(30)])),
        create("conflict", 409, 31, "VCPU")
            .before(host(31))
            .after(json!([inventory(31, json!({"delete": "VCPU"}))])),
        create("not found", 404, 32, "VCPU")
            .after(json!([created(&cloud::host(32).into(), "h32")])),
        create("refused", 400, 33, "CUSTOM_R33")
            .before(host(33))
            .after(json!([class("CUSTOM_R33")])),
        create("malformed", 400, 34, "no class").after(host(34)),
        replace("accepted", 200, 35, set(1, "DISK_GB")).before(host(35)).after(json!([gone(35)])),
        replace("conflict", 409, 36, set(2, "DISK_GB"))
            .before(host(36))
            .after(json!([inventory(36, json!({"update": ["VCPU", {"total": 9}]}))])),
        replace("not found", 404, 37, set(0, "VCPU"))
            .after(json!([created(&cloud::host(37).into(), "h37")])),
        replace("refused", 409, 38, set(2, "DISK_GB"))
            .before(all(&[host(38), holds(38, 38, 1)]))
            .after(json!([release(38)])),
        replace("malformed", 400, 39, json!({"inventories": 1})).after(host(39)),
        update("accepted", 200, 40, "VCPU", record(Some(1), 7))
            .before(host(40))
            .after(json!([gone(40)])),
        update("conflict", 409, 41, "VCPU", record(Some(2), 7))
            .before(host(41))
            .after(json!([inventory(41, json!({"update": ["VCPU", {"total": 9}]}))])),
        update("not found", 404, 42, "VCPU", record(Some(1), 7)).after(host(42)),
        update("refused", 400, 43, "DISK_GB", record(Some(1), 7))
            .before(host(43))
            .after(json!([inventory(43, json!({"create": ["DISK_GB", {"total": 9}]}))])),
        update("malformed", 400, 44, "VCPU", record(None, 7)).after(host(44)),
        remove("accepted", 204, 45).before(host(45)).after(json!([
            inventory(45, json!({"create": ["VCPU", {"total": 9}]})),
            holds(45, 45, 1)
        ])),
        remove("not found", 404, 46).after(host(46)),
        remove("refused", 409, 47)
            .before(all(&[host(47), holds(47, 47, 1)]))
            .after(json!([release(47)])),
        clear("accepted", 204, 48).before(host(48)).after(json!([
            inventory(48, json!({"create": ["VCPU", {"total": 9}]})),
            holds(48, 48, 1)
        ])),
        clear("not found", 404, 49).after(host(49)),
        clear("refused", 409, 50)
            .before(all(&[host(50), holds(50, 50, 1)]))
            .after(json!([release(50)])),
    ]
}

fn associations() -> Vec<Case> {
    let aggregates = |kind, status, n, version, body| {
        Case::new("replace_aggregates", kind, status, put(&of(n, "/aggregates"), version, body))
    };
    let groups = |generation: u32| json!({"aggregates": [cloud::host(9)], "resource_provider_generation": generation});
    let set = |kind, status, n, generation: u32, names: Value| {
        let body = json!({"traits": names, "resource_provider_generation": generation});
        let request = put(&of(n, "/traits"), "1.39", body);
        Case::new("replace_provider_traits", kind, status, request)
    };
    let clear = |kind, status, n| {
        Case::new("delete_provider_traits", kind, status, delete(&of(n, "/traits"), "1.39"))
    };
    let many: Vec<String> = (0..200).map(|n| format!("CUSTOM_UNKNOWN_{n:03}")).collect();
    let made: Vec<Value> = many.iter().map(|name| custom_trait(name)).collect();
    vec![
        aggregates("accepted", 200, 60, "1.19", groups(1))
            .before(host(60))
            .after(json!([gone(60)])),
        aggregates("accepted", 200, 61, "1.1", json!([cloud::host(9)]))
            .before(host(61))
            .after(json!([gone(61)])),
        aggregates("unchanged", 200, 62, "1.1", json!([]))
            .before(host(62))
            .after(json!([gone(62)])),
        aggregates("conflict", 409, 63, "1.19", groups(2))
            .before(host(63))
            .after(json!([inventory(63, json!({"update": ["VCPU", {"total": 9}]}))])),
        aggregates("not found", 404, 64, "1.19", groups(1)).after(host(64)),
        aggregates("malformed", 400, 65, "1.19", json!({"aggregates": 1})).after(host(65)),
        set("accepted", 200, 66, 1, json!(["CUSTOM_T66", "CUSTOM_A66"]))
            .before(all(&[host(66), custom_trait("CUSTOM_T66"), custom_trait("CUSTOM_A66")]))
            .after(json!([
                traits(66, &[]),
                {"delete_trait": {"name": "CUSTOM_T66"}},
                {"delete_trait": {"name": "CUSTOM_A66"}},
                custom_trait("CUSTOM_A66"),
            ])),
        set("unchanged", 200, 67, 2, json!(["CUSTOM_T67"]))
            .before(all(&[host(67), custom_trait("CUSTOM_T67"), traits(67, &["CUSTOM_T67"])]))
            .after(json!([traits(67, &[]), {"delete_trait": {"name": "CUSTOM_T67"}}])),
        set("conflict", 409, 68, 2, json!([]))
            .before(host(68))
            .after(json!([inventory(68, json!({"update": ["VCPU", {"total": 9}]}))])),
        set("refused", 400, 69, 1, json!(["CUSTOM_T69"]))
            .before(host(69))
            .after(json!([custom_trait("CUSTOM_T69")])),
        // More than fits into the record of a refusal.
        set("refused at length", 400, 70, 1, json!(many)).before(host(70)).after(made.into()),
        set("not found", 404, 71, 1, json!([])).after(host(71)),
        set("malformed", 400, 72, 1, json!(1)).after(host(72)),
        clear("accepted", 204, 73)
            .before(all(&[host(73), custom_trait("CUSTOM_T73"), traits(73, &["CUSTOM_T73"])]))
            .after(json!([gone(73)])),
        clear("unchanged", 204, 74).before(host(74)).after(json!([gone(74)])),
        clear("not found", 404, 75).after(host(75)),
    ]
}

fn names() -> Vec<Case> {
    let ensured = |kind, status, name: &str| {
        let request = put(&format!("/traits/{name}"), "1.39", Value::Null);
        Case::new("ensure_trait", kind, status, request)
    };
    let trait_gone = |kind, status, name: &str| {
        Case::new("delete_trait", kind, status, delete(&format!("/traits/{name}"), "1.39"))
    };
    let create = |kind, status, name: &str| {
        let request = post("/resource_classes", "1.39", json!({"name": name}));
        Case::new("create_class", kind, status, request)
    };
    let ensure = |kind, status, name: &str| {
        let request = put(&format!("/resource_classes/{name}"), "1.39", Value::Null);
        Case::new("put_class", kind, status, request)
    };
    let rename = |kind, status, name: &str, new: &str| {
        let request = put(&format!("/resource_classes/{name}"), "1.6", json!({"name": new}));
        Case::new("put_class", kind, status, request)
    };
    let class_gone = |kind, status, name: &str| {
        Case::new(
            "delete_class",
            kind,
            status,
            delete(&format!("/resource_classes/{name}"), "1.39"),
        )
    };
    let no_trait = |name: &str| json!({"delete_trait": {"name": name}});
    let no_class = |name: &str| json!({"delete_resource_class": {"name": name}});
    vec![
        ensured("accepted", 201, "CUSTOM_E1"),
        ensured("accepted", 201, "CUSTOM_E2").after(json!([no_trait("CUSTOM_E2")])),
        ensured("unchanged", 204, "CUSTOM_E3")
            .before(json!([custom_trait("CUSTOM_E3")]))
            .after(json!([no_trait("CUSTOM_E3")])),
        ensured("malformed", 400, "CUSTOM_e4"),
        trait_gone("accepted", 204, "CUSTOM_G1").before(json!([custom_trait("CUSTOM_G1")])),
        trait_gone("not found", 404, "CUSTOM_G2").after(json!([custom_trait("CUSTOM_G2")])),
        trait_gone("refused", 409, "CUSTOM_G3")
            .before(all(&[host(80), custom_trait("CUSTOM_G3"), traits(80, &["CUSTOM_G3"])]))
            .after(json!([traits(80, &[])])),
        create("accepted", 201, "CUSTOM_C1").after(json!([no_class("CUSTOM_C1")])),
        create("conflict", 409, "CUSTOM_C2")
            .before(json!([class("CUSTOM_C2")]))
            .after(json!([no_class("CUSTOM_C2")])),
        create("malformed", 400, "no class"),
        ensure("accepted", 201, "CUSTOM_P1"),
        ensure("unchanged", 204, "CUSTOM_P2")
            .before(json!([class("CUSTOM_P2")]))
            .after(json!([no_class("CUSTOM_P2")])),
        ensure("malformed", 400, "VCPu"),
        rename("accepted", 200, "CUSTOM_P3", "CUSTOM_P4").before(json!([class("CUSTOM_P3")])),
        rename("not found", 404, "CUSTOM_P5", "CUSTOM_P6").after(json!([class("CUSTOM_P5")])),
        rename("conflict", 409, "CUSTOM_P7", "CUSTOM_P8")
            .before(json!([class("CUSTOM_P7"), class("CUSTOM_P8")]))
            .after(json!([no_class("CUSTOM_P8")])),
        class_gone("accepted", 204, "CUSTOM_D1").before(json!([class("CUSTOM_D1")])),
        class_gone("not found", 404, "CUSTOM_D2").after(json!([class("CUSTOM_D2")])),
        class_gone("refused", 409, "CUSTOM_D3")
            .before(all(&[
                host(81),
                class("CUSTOM_D3"),
                inventory(81, json!({"create": ["CUSTOM_D3", {"total": 1}]})),
            ]))
            .after(json!([inventory(81, json!({"delete": "CUSTOM_D3"}))])),
    ]
}

fn allocations() -> Vec<Case> {
    let set = |kind, status, n: u32, body| {
        let path = format!("/allocations/{}", consumer(n));
        Case::new("replace_allocations", kind, status, put(&path, "1.28", body))
    };
    let many = |kind, status, body| {
        Case::new("manage_allocations", kind, status, post("/allocations", "1.28", body))
    };
    let remove = |kind, status, n: u32| {
        let path = format!("/allocations/{}", consumer(n));
        Case::new("delete_allocations", kind, status, delete(&path, "1.28"))
    };
    let reshape =
        |kind, status, body| Case::new("reshape", kind, status, post("/reshaper", "1.30", body));
    let null = Value::Null;
    let one = |n: u32, body: Value| json!({consumer(n): body});
    // Forty hosts that have no inventory of what is asked.
    let bare: Value =
        (200..240).map(|n| created(&cloud::host(n).into(), &format!("h{n}"))).collect();
    let of_bare: Value = (200..240)
        .map(|n| (cloud::host(n), json!({"resources": {"VCPU": 1}})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let wide = json!({"allocations": of_bare, "project_id": "p", "user_id": "u", "consumer_generation": null});
    let filled: Value =
        (200..240).map(|n| inventory(n, json!({"create": ["VCPU", {"total": 1}]}))).collect();
    let reshaped = |n: u32, generation: u32| {
        json!({
            "inventories": {cloud::host(n): {"inventories": {"DISK_GB": {"total": 5}}, "resource_provider_generation": generation}},
            "allocations": {},
        })
    };
    vec![
        set("accepted", 204, 100, holding(100, "VCPU", 1, null.clone())).before(host(100)),
        set("accepted", 204, 101, holding(101, "VCPU", 1, null.clone()))
            .before(host(101))
            .after(json!([release(101), gone(101)])),
        set("unchanged", 204, 102, json!({"allocations": {}, "project_id": "p", "user_id": "u", "consumer_generation": null}))
            .after(all(&[host(102), holds(102, 102, 1)])),
        set("refused", 409, 103, holding(103, "VCPU", 9, null.clone()))
            .before(host(103))
            .after(json!([inventory(103, json!({"update": ["VCPU", {"total": 10}]}))])),
        set("refused at length", 409, 104, wide.clone()).before(bare).after(filled),
        set("conflict", 409, 105, holding(105, "VCPU", 1, json!(1)))
            .before(host(105))
            .after(json!([holds(105, 105, 1)])),
        set("not found", 400, 106, holding(106, "VCPU", 1, null.clone())).after(host(106)),
        set("malformed", 400, 107, json!({"allocations": 1})),
        many("accepted", 204, one(110, holding(110, "VCPU", 1, null.clone())))
            .before(host(110))
            .after(json!([release(110), gone(110)])),
        many("refused", 409, one(111, holding(111, "VCPU", 9, null.clone())))
            .before(host(111))
            .after(json!([inventory(111, json!({"update": ["VCPU", {"total": 10}]}))])),
        many("conflict", 409, one(112, holding(112, "VCPU", 1, json!(1))))
            .before(host(112))
            .after(json!([holds(112, 112, 1)])),
        many("not found", 400, one(113, holding(113, "VCPU", 1, null.clone()))).after(host(113)),
        many("malformed", 400, json!({})),
        remove("accepted", 204, 120)
            .before(all(&[host(120), holds(120, 120, 1)])),
        remove("accepted", 204, 121)
            .before(all(&[host(121), holds(121, 121, 1)]))
            .after(json!([holds(121, 121, 1)])),
        remove("not found", 404, 122).before(host(122)).after(json!([holds(122, 122, 1)])),
        reshape("accepted", 204, reshaped(130, 1)).before(host(130)).after(json!([gone(130)])),
        reshape("conflict", 409, reshaped(131, 2))
            .before(host(131))
            .after(json!([inventory(131, json!({"update": ["VCPU", {"total": 9}]}))])),
        reshape("not found", 400, reshaped(132, 1)).after(host(132)),
        reshape("refused", 409, reshaped(133, 2))
            .before(all(&[host(133), holds(133, 133, 1)]))
            .after(json!([release(133)])),
        reshape("malformed", 400, json!({"inventories": {}})),
    ]
}
