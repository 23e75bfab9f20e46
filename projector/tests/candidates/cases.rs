//! Cases that users of such systems have reported; each names its bug.

use crate::world::{Plain, SHARES, World, all_of, group, query, strings, uuid};
use ledger::amounts::Inventory;
use projector::candidates::{GroupPolicy, Query};
use std::collections::BTreeSet;

/// The providers that each candidate takes something of.
fn names(plain: &[Plain]) -> BTreeSet<BTreeSet<String>> {
    plain
        .iter()
        .map(|(amounts, _)| amounts.keys().map(|(name, _)| name.clone()).collect())
        .collect()
}

fn sets(expected: &[&[&str]]) -> BTreeSet<BTreeSet<String>> {
    expected.iter().map(|names| strings(names).into_iter().collect()).collect()
}

/// Case D1 (Launchpad 1724613, 1731072): a host's own disk and a shared one are both offered.
#[test]
fn local_and_shared_disk_are_both_offered() {
    let mut world = World::new();
    world.provider("cn", None);
    world.has("cn", &[("VCPU", 8), ("DISK_GB", 100)]);
    world.provider("sh", None);
    world.has("sh", &[("DISK_GB", 1000)]);
    world.traits("sh", &[SHARES]);
    world.aggregates("cn", &["a"]);
    world.aggregates("sh", &["a"]);
    let found = world.plain(&query(&[("", "VCPU:1,DISK_GB:10")]));
    assert_eq!(found.len(), 2);
    assert_eq!(names(&found), sets(&[&["cn"], &["cn", "sh"]]));
}

/// Launchpad 2115905: what goes once it is free is not offered any more, until that is withdrawn.
#[test]
fn what_is_being_retired_is_not_offered() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.provider(name, None);
        world.has(name, &[("VCPU", 8), ("DISK_GB", 100)]);
    }
    world.retire("a", true, &[]);
    world.retire("b", false, &["DISK_GB"]);
    assert_eq!(names(&world.plain(&query(&[("", "VCPU:1")]))), sets(&[&["b"]]));
    assert_eq!(world.count(&query(&[("", "DISK_GB:1")])), 0);
    // A class that it gets only now is not offered either.
    world.has("a", &[("MEMORY_MB", 512)]);
    assert_eq!(world.count(&query(&[("", "MEMORY_MB:1")])), 0);
    world.retire("a", false, &[]);
    world.retire("b", false, &[]);
    assert_eq!(world.count(&query(&[("", "VCPU:1,DISK_GB:1")])), 2);
}

/// Case D4 (Launchpad 1763907): sharing reaches only members of a common aggregate, also with `member_of`.
#[test]
fn member_of_does_not_connect_what_shares_no_aggregate() {
    let mut world = World::new();
    world.provider("cn", None);
    world.has("cn", &[("VCPU", 8)]);
    world.aggregates("cn", &["a1"]);
    for (name, aggregates) in [("s1", &["a1", "a2"][..]), ("s2", &["a2"][..])] {
        world.provider(name, None);
        world.has(name, &[("DISK_GB", 1000)]);
        world.traits(name, &[SHARES]);
        world.aggregates(name, aggregates);
    }
    let mut asked = query(&[("", "VCPU:1,DISK_GB:10")]);
    asked.groups[0].member_of = vec![strings(&["a1"])];
    assert_eq!(names(&world.plain(&asked)), sets(&[&["cn", "s1"]]));
}

/// Case D5 (Launchpad 1792503): a child's own aggregates count for it.
#[test]
fn aggregates_of_a_child_count_for_the_child() {
    let mut world = World::new();
    world.provider("root", None);
    world.has("root", &[("VCPU", 4)]);
    world.provider("child", Some("root"));
    world.has("child", &[("SRIOV_NET_VF", 8)]);
    world.aggregates("child", &["n"]);
    let member = |mut query: Query, group: usize| {
        query.groups[group].member_of = vec![strings(&["n"])];
        query
    };
    assert_eq!(world.count(&member(query(&[("", "SRIOV_NET_VF:1")]), 0)), 1);
    assert_eq!(world.count(&member(query(&[("", "VCPU:1,SRIOV_NET_VF:1")]), 0)), 0);
    assert_eq!(world.count(&member(query(&[("_A", "VCPU:1"), ("_B", "SRIOV_NET_VF:1")]), 1)), 1);
}

fn two_branches() -> World {
    let mut world = World::new();
    world.provider("root", None);
    for name in ["a", "b"] {
        world.provider(name, Some("root"));
        world.has(name, &[("SRIOV_NET_VF", 8)]);
    }
    world.traits("a", &["CUSTOM_FOO"]);
    world
}

/// Case D6 (Launchpad 1771707): the provider that gives the resource has to have the trait.
#[test]
fn a_trait_on_one_branch_does_not_let_the_other_through() {
    let mut world = two_branches();
    let mut asked = query(&[("", "SRIOV_NET_VF:1")]);
    asked.groups[0].required = vec![all_of(&["CUSTOM_FOO"])];
    assert_eq!(names(&world.plain(&asked)), sets(&[&["a"]]));
}

/// Case D7 (story 2006068): mappings name each group, also if one provider serves two.
#[test]
fn mappings_name_each_group() {
    let mut world = two_branches();
    let mut asked = query(&[("1", "SRIOV_NET_VF:1"), ("2", "SRIOV_NET_VF:1")]);
    let found = world.plain(&asked);
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|(_, mapping)| mapping.len() == 2));
    let both =
        found.iter().find(|(amounts, _)| amounts.len() == 1).expect("one provider serves both");
    assert_eq!(both.0.values().copied().collect::<Vec<_>>(), [2]);
    asked.group_policy = GroupPolicy::Isolate;
    assert_eq!(world.count(&asked), 2);
}

/// Case D15: groups that fit one by one may not fit together, in capacity or `max_unit`.
#[test]
fn amounts_of_all_groups_add_up() {
    let mut world = World::new();
    world.provider("x", None);
    world.has("x", &[("VCPU", 3)]);
    assert_eq!(world.count(&query(&[("1", "VCPU:2"), ("2", "VCPU:2")])), 0);
    assert_eq!(world.count(&query(&[("1", "VCPU:2"), ("2", "VCPU:1")])), 1);
    let mut world = World::new();
    world.provider("y", None);
    world.inventory("y", "VCPU", Some(Inventory { max_unit: 2, ..Inventory::of(8) }));
    assert_eq!(world.count(&query(&[("1", "VCPU:2"), ("2", "VCPU:2")])), 0);
    assert_eq!(world.count(&query(&[("1", "VCPU:1"), ("2", "VCPU:1")])), 1);
}

/// Case H5: capacity is a product of doubles, cut off (100 * 0.29 holds 28).
#[test]
fn capacity_is_cut_off_as_in_claims() {
    let offered = |total: u32, ratio: f64, amount: u32| {
        let mut world = World::new();
        world.provider("h", None);
        let inventory = Inventory { allocation_ratio: ratio, ..Inventory::of(total) };
        world.inventory("h", "VCPU", Some(inventory));
        world.count(&query(&[("", &format!("VCPU:{amount}"))])) == 1
    };
    assert!(offered(100, 0.29, 28) && !offered(100, 0.29, 29));
    assert!(offered(1000, 1.001, 1000) && !offered(1000, 1.001, 1001));
    assert!(offered(10, 1.1, 11) && !offered(10, 1.1, 12));
    assert!(offered(10, 0.7, 7) && !offered(10, 0.7, 8));
}

/// No bug number: candidates that are alike but for their anchor are told apart until merged.
#[test]
fn anchors_are_kept_apart_until_groups_are_merged() {
    let mut world = World::new();
    for name in ["h1", "h2"] {
        world.provider(name, None);
        world.has(name, &[("VCPU", 8)]);
        world.aggregates(name, &["a"]);
    }
    world.provider("pool", None);
    world.has("pool", &[("DISK_GB", 100)]);
    world.traits("pool", &[SHARES]);
    world.aggregates("pool", &["a"]);
    assert_eq!(world.count(&query(&[("", "DISK_GB:1"), ("1", "VCPU:1")])), 2);
    assert_eq!(world.count(&query(&[("1", "DISK_GB:1"), ("2", "VCPU:1")])), 2);
    assert_eq!(world.count(&query(&[("", "DISK_GB:1")])), 1);
}

/// No bug number: a sharing provider below a root lends to other trees.
#[test]
fn a_nested_sharing_provider_lends() {
    let mut world = World::new();
    world.provider("storage", None);
    world.provider("pool", Some("storage"));
    world.has("pool", &[("DISK_GB", 100)]);
    world.traits("pool", &[SHARES]);
    world.aggregates("pool", &["a"]);
    world.provider("h", None);
    world.has("h", &[("VCPU", 8)]);
    world.aggregates("h", &["a"]);
    let asked = query(&[("", "DISK_GB:3,VCPU:1")]);
    assert_eq!(names(&world.plain(&asked)), sets(&[&["h", "pool"]]));
    let found = world.search(&asked);
    let described: Vec<String> = found.summaries.iter().map(|&id| world.name(id)).collect();
    assert_eq!(described, ["storage", "pool", "h"]);
}

/// The nested performance query of Placement's own jobs, on one of its trees.
#[test]
fn groups_in_one_subtree() {
    let mut world = World::new();
    world.provider("node", None);
    world.has("node", &[("DISK_GB", 20480)]);
    for (name, fpgas) in [("numa0", 1), ("numa1", 2)] {
        world.provider(name, Some("node"));
        world.has(name, &[("VCPU", 4), ("MEMORY_MB", 2048)]);
        for fpga in 0..fpgas {
            let device = format!("{name}-fpga{fpga}");
            world.provider(&device, Some(name));
            world.has(&device, &[("FPGA", 1)]);
        }
    }
    world.traits("numa1", &["CUSTOM_FOO"]);
    let mut asked = query(&[("", "DISK_GB:10"), ("_C", "VCPU:1,MEMORY_MB:256"), ("_F", "FPGA:1")]);
    asked.groups[1].required = vec![all_of(&["CUSTOM_FOO"])];
    asked.same_subtree = vec![strings(&["_C", "_F"])];
    assert_eq!(world.count(&asked), 2);
    asked.same_subtree.clear();
    assert_eq!(world.count(&asked), 3);
    asked.groups.push(group("_N", ""));
    asked.groups[3].required = vec![all_of(&["CUSTOM_FOO"])];
    asked.same_subtree = vec![strings(&["_N", "_F"])];
    assert_eq!(world.count(&asked), 2);
    asked.groups[0].in_tree = Some(uuid("numa0").to_string());
    assert_eq!(world.count(&asked), 2);
    asked.groups[0].in_tree = Some(uuid("numa0").to_string().to_uppercase());
    assert_eq!(world.count(&asked), 0);
}
