//! Explanations in the words an operator reads.

use crate::world::{World, all_of, query, strings, uuid};
use ledger::amounts::Inventory;
use projector::candidates::NameError;
use projector::candidates::explain::{Explanation, Subject, explain};

fn steps(explanation: &Explanation, group: usize) -> Vec<String> {
    let steps = explanation.groups[group].steps.iter();
    steps.map(|step| format!("{} {}", step.condition, step.left)).collect()
}

fn misses(explanation: &Explanation, group: usize) -> Vec<String> {
    let spell = |miss: &projector::candidates::explain::NearMiss| {
        let lacks: Vec<String> = miss.lacks.iter().map(ToString::to_string).collect();
        format!("{} {}", miss.name, lacks.join("; "))
    };
    explanation.groups[group].near_misses.iter().map(spell).collect()
}

fn five_hosts() -> World {
    let mut world = World::new();
    for host in ["h1", "h2", "h3", "h4", "h5"] {
        world.provider(host, None);
        world.has(host, &[("VCPU", 8), ("MEMORY_MB", 4096), ("DISK_GB", 100)]);
        if host != "h3" {
            world.traits(host, &["CUSTOM_FOO"]);
        }
    }
    for host in ["h1", "h2"] {
        world.hold(host, "DISK_GB", 100);
    }
    for host in ["h4", "h5"] {
        world.hold(host, "MEMORY_MB", 3584);
    }
    world.commit();
    world
}

/// Case F1 (Launchpad 1786519): an empty answer without a reason.
#[test]
fn each_condition_says_what_it_leaves() {
    let mut world = five_hosts();
    let mut asked = query(&[("", "VCPU:1,MEMORY_MB:1024,DISK_GB:10")]);
    asked.groups[0].required = vec![all_of(&["CUSTOM_FOO"])];
    let told = explain(&world.index, &asked).expect("names exist");
    assert_eq!((told.candidates, told.groups[0].considered), (0, 5));
    assert_eq!(
        steps(&told, 0),
        ["VCPU:1 5", "MEMORY_MB:1024 3", "DISK_GB:10 1", "trait CUSTOM_FOO 0"]
    );
    assert_eq!(
        misses(&told, 0),
        [
            "h3 lacks CUSTOM_FOO",
            "h1 DISK_GB: needs 10, 0 free",
            "h2 DISK_GB: needs 10, 0 free",
            "h4 MEMORY_MB: needs 1024, 512 free",
            "h5 MEMORY_MB: needs 1024, 512 free",
        ]
    );
    // The same with a tree somewhere: hosts are counted, not providers.
    world.provider("h5-numa", Some("h5"));
    world.commit();
    let told = explain(&world.index, &asked).expect("names exist");
    assert_eq!(told.groups[0].counted, Subject::Hosts);
    assert_eq!(
        steps(&told, 0),
        ["VCPU:1 5", "MEMORY_MB:1024 3", "DISK_GB:10 1", "trait CUSTOM_FOO 0"]
    );
    assert_eq!(misses(&told, 0)[0], "h3 lacks CUSTOM_FOO");
}

/// Who asks for one tree is told about that tree only: no host beside it is a near miss.
#[test]
fn a_tree_is_asked_first_and_nothing_outside_it_is_told() {
    let mut world = five_hosts();
    world.provider("h1-numa", Some("h1"));
    world.has("h1-numa", &[("VCPU", 4)]);
    world.commit();
    let tree = uuid("h1").to_string();
    for suffix in ["", "1"] {
        let mut asked = query(&[(suffix, "VCPU:6,DISK_GB:10")]);
        asked.groups[0].in_tree = Some(tree.clone());
        let told = explain(&world.index, &asked).expect("names exist");
        let left = if suffix.is_empty() { [1, 1, 0] } else { [2, 1, 0] };
        let wanted = [format!("in the tree of {tree} {}", left[0]), format!("VCPU:6 {}", left[1])];
        assert_eq!(steps(&told, 0)[..2], wanted);
        assert_eq!(steps(&told, 0)[2], format!("DISK_GB:10 {}", left[2]));
        let near = misses(&told, 0);
        assert!(near.iter().all(|miss| miss.starts_with("h1")), "{near:?}");
        assert_eq!(near[0], "h1 DISK_GB: needs 10, 0 free");
    }
    let mut asked = query(&[("", "VCPU:6,DISK_GB:10")]);
    asked.root_required.forbidden = strings(&["CUSTOM_FOO"]);
    asked.groups[0].required = vec![all_of(&["T1"])];
    let told = explain(&world.index, &asked).expect("names exist");
    assert_eq!(steps(&told, 0)[0], "root without trait CUSTOM_FOO 1");
    assert_eq!(misses(&told, 0), ["h3 lacks T1"]);
}

/// Case F3: plenty is free in sum, but nowhere enough.
#[test]
fn the_free_sum_stands_beside_the_largest_gap() {
    let mut world = World::new();
    for host in 0..340 {
        let host = format!("h{host}");
        world.provider(&host, None);
        world.has(&host, &[("VCPU", 8)]);
        world.hold(&host, "VCPU", 5);
    }
    world.commit();
    let told = explain(&world.index, &query(&[("", "VCPU:4")])).expect("names exist");
    let class = &told.groups[0].classes[0];
    assert_eq!((class.free, class.largest_gap, class.with_largest_gap), (1020, 3, 340));
    assert_eq!((class.too_full, class.fitting, class.held), (340, 0, 1700));
    assert_eq!(told.groups[0].near_misses.len(), 16);
}

/// Case H12 (story 2006947): `max_unit` left at 1 made every larger request fail though there
/// was room.
#[test]
fn limits_of_one_allocation_are_named() {
    let mut world = World::new();
    world.provider("fpga", None);
    world.inventory("fpga", "FPGA", Some(Inventory { max_unit: 1, ..Inventory::of(8) }));
    world.commit();
    let told = explain(&world.index, &query(&[("", "FPGA:2")])).expect("names exist");
    assert_eq!(misses(&told, 0), ["fpga FPGA: max_unit 1 < 2"]);
    assert_eq!(told.groups[0].classes[0].above_max_unit, 1);
}

#[test]
fn every_kind_of_condition_is_told() {
    let mut world = five_hosts();
    world.aggregates("h1", &["a"]);
    world.aggregates("h3", &["b"]);
    world.commit();
    let mut asked = query(&[("1", "VCPU:1")]);
    asked.groups[0].forbidden = strings(&["CUSTOM_FOO"]);
    asked.groups[0].member_of = vec![strings(&["a", "b"])];
    asked.groups[0].forbidden_aggregates = strings(&["b"]);
    asked.root_required.required = strings(&["CUSTOM_FOO"]);
    let told = explain(&world.index, &asked).expect("names exist");
    assert_eq!(
        steps(&told, 0),
        [
            "root with trait CUSTOM_FOO 4",
            "VCPU:1 4",
            "without trait CUSTOM_FOO 0",
            "in aggregate a or b 0",
            "outside aggregate b 0"
        ]
    );
    // h3, whose root lacks the trait, would otherwise be the closest.
    assert_eq!(misses(&told, 0)[0], "h1 has forbidden CUSTOM_FOO");
    asked.root_required.required.clear();
    let told = explain(&world.index, &asked).expect("names exist");
    assert_eq!(misses(&told, 0)[0], "h3 is in forbidden aggregate b");
    asked.groups[0].forbidden = strings(&["NO"]);
    let error = explain(&world.index, &asked).expect_err("a trait is unknown");
    assert_eq!(error, NameError::UnknownTraits(strings(&["NO"])));
}

/// Each group can be served, but not all at once.
#[test]
fn groups_that_fit_alone_but_not_together() {
    let mut world = World::new();
    world.provider("h", None);
    world.has("h", &[("VCPU", 3)]);
    world.commit();
    let asked = query(&[("1", "VCPU:2"), ("2", "VCPU:2")]);
    let told = explain(&world.index, &asked).expect("names exist");
    assert_eq!((told.candidates, told.hosts_for_all_groups), (0, 1));
    assert_eq!((told.groups[0].steps[0].left, told.groups[1].steps[0].left), (1, 1));
}
