//! How many more of a request fit.

use crate::cloud::{answer, claim, done, get, host, hosts};
use crate::server::Server;
use serde_json::{Value, json};

fn fits(server: &Server, query: &str) -> Value {
    get(server, &format!("/ledger/v1/fits?{query}"))
}

#[test]
fn single_hosts_are_counted_exactly() {
    let server = Server::start();
    let inventory = json!({"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096}});
    hosts(&server, 1..=3, &inventory);
    done(&server, &claim(1, 1, &json!({"VCPU": 3})));
    let told = fits(&server, "resources=VCPU:2,MEMORY_MB:1024");
    // h1 has room for 2 (5 VCPUs), the others for 4 each.
    assert_eq!(
        (&told["fits"], &told["exact"], &told["at_most"]),
        (&json!(10), &json!(true), &json!(10))
    );
    let places = told["places"].as_array().cloned().unwrap_or_default();
    let counts: Vec<_> = places.iter().map(|place| (&place["name"], &place["count"])).collect();
    assert_eq!(
        counts,
        [(&json!("h1"), &json!(2)), (&json!("h2"), &json!(4)), (&json!("h3"), &json!(4))]
    );
    let wanted = json!({host(1): {"resources": {"VCPU": 2, "MEMORY_MB": 1024}}});
    assert_eq!(places[0]["allocations"], wanted);
    // The limit is one of the places told, not of the count.
    let told = fits(&server, "resources=VCPU:2,MEMORY_MB:1024&limit=1");
    assert_eq!((&told["fits"], &told["places_left_out"]), (&json!(10), &json!(2)));
    assert_eq!(fits(&server, "resources=VCPU:9")["fits"], 0);
    assert_eq!(answer(&server, "/ledger/v1/fits?resources=NOPE:1").status, 400);
}

/// So many claims as it says are granted, and not one more.
#[test]
fn what_it_says_can_be_claimed() {
    let server = Server::start();
    hosts(&server, 1..=2, &json!({"VCPU": {"total": 5, "max_unit": 2}}));
    let told = fits(&server, "resources=VCPU:2");
    assert_eq!((&told["fits"], &told["exact"]), (&json!(4), &json!(true)));
    for (who, on) in [(1, 1), (2, 1), (3, 2), (4, 2)] {
        done(&server, &claim(who, on, &json!({"VCPU": 2})));
    }
    assert_eq!(fits(&server, "resources=VCPU:2")["fits"], 0);
    assert_eq!(fits(&server, "resources=VCPU:1")["fits"], 2);
}

#[test]
fn two_cells_of_a_host_share_its_disk() {
    let server = Server::start();
    hosts(&server, 1..=1, &json!({"DISK_GB": {"total": 100}}));
    for n in [11, 12] {
        let cell = json!({"create_provider": {"uuid": host(n), "name": format!("cell{n}"), "parent": host(1)}});
        done(&server, &cell);
        let change = json!({"replace_all": {"VCPU": {"total": 5}}});
        done(&server, &json!({"change_inventories": {"provider": host(n), "change": change}}));
    }
    // Two in each cell; disk would do for ten.
    let told = fits(&server, "resources=VCPU:2,DISK_GB:10");
    assert_eq!((&told["fits"], &told["exact"]), (&json!(4), &json!(true)), "{told}");
    assert_eq!(told["places"][1]["name"], "h1");
    // Disk runs out after three.
    let told = fits(&server, "resources=VCPU:2,DISK_GB:30");
    assert_eq!((&told["fits"], &told["exact"]), (&json!(3), &json!(true)), "{told}");
    // Three groups of one VCPU each on any cell: ten VCPUs do for three requests.
    let groups = "resources1=VCPU:1&resources2=VCPU:1&resources3=VCPU:1&group_policy=none";
    let told = fits(&server, groups);
    assert!(told["fits"].as_u64() <= told["at_most"].as_u64(), "{told}");
    assert_eq!(told["at_most"], 3);
}
