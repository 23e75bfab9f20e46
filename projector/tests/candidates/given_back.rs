//! Searches on behalf of a consumer in a move: what it holds is given back, and some hosts come
//! first, last or not at all.

use crate::world::{Plain, SHARES, World, query};
use ledger::state::{GivenBack, ProviderId};
use projector::candidates::{
    CandidateIndex, Generation, HostOrder, Query, search, search_giving_back, search_in_order,
};
use std::collections::BTreeSet;

use crate::world::uuid;

fn id(world: &World, name: &str) -> ProviderId {
    world.state.provider_id(uuid(name)).expect("it exists")
}

fn given(world: &World, name: &str, class: &str, amount: u64) -> GivenBack {
    let class = world.state.classes().id(class).expect("it exists");
    GivenBack { provider: id(world, name), class, amount }
}

/// Four hosts of 4 VCPU, the first two full.
fn hosts() -> World {
    let mut world = World::new();
    for name in ["h1", "h2", "h3", "h4"] {
        world.provider(name, None);
        world.has(name, &[("VCPU", 4), ("DISK_GB", 10)]);
    }
    world.hold("h1", "VCPU", 4);
    world.hold("h2", "VCPU", 4);
    world.commit();
    world
}

fn roots(world: &World, index: &CandidateIndex, query: &Query, order: &HostOrder) -> Vec<String> {
    let found = search_in_order(index, query, order).expect("all names exist");
    let first = |plain: &Plain| plain.0.keys().next().expect("it takes something").0.clone();
    world.spell(&found).iter().map(first).collect()
}

#[test]
fn what_is_given_back_is_free_for_that_search_only() {
    let world = hosts();
    let asked = query(&[("", "VCPU:3")]);
    let all = HostOrder::default();
    let index = world.index.giving_back(&[given(&world, "h1", "VCPU", 3)]);
    assert_eq!(roots(&world, &index, &asked, &all), ["h1", "h3", "h4"]);
    assert_eq!(roots(&world, &world.index, &asked, &all), ["h3", "h4"]);
    let more = query(&[("", "VCPU:4")]);
    assert_eq!(roots(&world, &index, &more, &all), ["h3", "h4"]);
    let class = world.state.classes().id("VCPU").unwrap();
    let row = *world.state.provider(uuid("h1")).unwrap().inventory(class).unwrap();
    assert_eq!(
        (index.held(id(&world, "h1"), &row), world.index.held(id(&world, "h1"), &row)),
        (1, 4)
    );
}

/// An index that is given back all that one consumer holds finds what one without it does.
#[test]
fn giving_back_equals_a_state_without_the_holder() {
    for (nested, shared) in [(false, false), (true, false), (true, true)] {
        let build = |held: bool| {
            let mut world = hosts();
            if nested {
                world.provider("numa", Some("h1"));
                world.has("numa", &[("VGPU", 2)]);
            }
            if shared {
                world.provider("pool", None);
                world.has("pool", &[("DISK_GB", 10)]);
                world.traits("pool", &[SHARES]);
                for name in ["pool", "h1", "h3"] {
                    world.aggregates(name, &["a"]);
                }
            }
            for (name, class, amount, exists) in [
                ("h3", "VCPU", 3, true),
                ("numa", "VGPU", 2, nested),
                ("pool", "DISK_GB", 8, shared),
            ] {
                if held && exists {
                    world.hold(name, class, amount);
                }
            }
            world.commit();
            world
        };
        let (with, without) = (build(true), build(false));
        let mut back = vec![given(&with, "h3", "VCPU", 3)];
        if nested {
            back.push(given(&with, "numa", "VGPU", 2));
        }
        if shared {
            back.push(given(&with, "pool", "DISK_GB", 8));
        }
        let index = with.index.giving_back(&back);
        for text in
            ["VCPU:2", "VCPU:4", "DISK_GB:9", "VCPU:1,DISK_GB:5", "VGPU:2", "VGPU:1,DISK_GB:3"]
        {
            let asked = query(&[("", text)]);
            let spelled = |world: &World, index| -> BTreeSet<Plain> {
                let found = search(index, &asked).expect("all names exist");
                world.spell(&found).into_iter().collect()
            };
            assert_eq!(spelled(&with, &index), spelled(&without, &without.index), "{text}");
        }
    }
}

/// On a provider that is overcommitted a consumer may keep what it has, and no more.
#[test]
fn an_overcommitted_host_takes_what_was_there_anyway() {
    let mut world = hosts();
    world.has("h1", &[("VCPU", 2)]);
    world.commit();
    let index = world.index.giving_back(&[given(&world, "h1", "VCPU", 3)]);
    let all = HostOrder::default();
    let finds = |vcpus: u32| {
        let asked = query(&[("", &format!("VCPU:{vcpus}"))]);
        roots(&world, &index, &asked, &all).contains(&"h1".to_owned())
    };
    assert_eq!([finds(2), finds(3), finds(4)], [true, true, false]);
}

#[test]
fn hosts_come_first_last_or_not_at_all_in_flat_and_nested_clouds() {
    for nested in [false, true] {
        let mut world = hosts();
        if nested {
            world.provider("numa", Some("h4"));
            world.has("numa", &[("VGPU", 2)]);
        }
        world.commit();
        let order = |first: &[&str], last: &[&str], ignored: &[&str]| {
            let ids =
                |names: &[&str]| names.iter().map(|name| id(&world, name)).collect::<Vec<_>>();
            HostOrder::new(ids(first), ids(last), ids(ignored))
        };
        let asked = |limit| Query { limit, ..query(&[("", "DISK_GB:1")]) };
        let found = |order: &HostOrder, limit| roots(&world, &world.index, &asked(limit), order);
        for limit in [None, Some(100)] {
            let told = found(&order(&["h3"], &["h1"], &["h2"]), limit);
            assert_eq!(told, ["h3", "h4", "h1"], "nested: {nested}");
            assert_eq!(found(&order(&["h1"], &["h1"], &[]), limit)[0], "h1");
        }
        assert_eq!(found(&order(&["h4"], &["h1", "h2"], &[]), Some(2)), ["h4", "h3"]);
        assert!(found(&order(&["h1"], &[], &["h1", "h2", "h3", "h4"]), Some(2)).is_empty());
    }
}

/// A host that comes last does so after every candidate of the others, in a limited answer too.
#[test]
fn the_last_host_comes_after_all_candidates_of_the_others() {
    let mut world = World::new();
    for name in ["r1", "r2"] {
        world.provider(name, None);
        for child in ["a", "b", "c"] {
            let child = format!("{name}{child}");
            world.provider(&child, Some(name));
            world.has(&child, &[("X", 1)]);
        }
    }
    world.commit();
    let order = HostOrder::new([], [id(&world, "r1")], []);
    for limit in [None, Some(5)] {
        let asked = Query { limit, ..query(&[("_A", "X:1")]) };
        let told = roots(&world, &world.index, &asked, &order);
        assert!(told[..3].iter().all(|name| name.starts_with("r2")), "{told:?}");
        assert!(told[3..].iter().all(|name| name.starts_with("r1")), "{told:?}");
    }
}

/// Hosts that fit only through what a shared storage is given back come last in a limited answer,
/// whichever host the move is on.
#[test]
fn hosts_that_fit_only_through_a_lender_come_last() {
    let mut world = World::new();
    for (name, own) in [("h1", 0), ("h2", 0), ("h3", 10), ("h4", 10)] {
        world.provider(name, None);
        match own {
            0 => world.has(name, &[("VCPU", 4)]),
            _ => world.has(name, &[("VCPU", 4), ("DISK_GB", own)]),
        }
        world.aggregates(name, &["a"]);
    }
    world.provider("pool", None);
    world.has("pool", &[("DISK_GB", 10)]);
    world.traits("pool", &[SHARES]);
    world.aggregates("pool", &["a"]);
    world.hold("pool", "DISK_GB", 10);
    world.commit();
    let back = world.index.giving_back(&[given(&world, "pool", "DISK_GB", 8)]);
    let hosts = |limit| {
        let asked = Query { limit, ..query(&[("", "VCPU:1,DISK_GB:5")]) };
        let order = HostOrder::default();
        let generation = Generation::default();
        let found = search_giving_back(&world.index, &back, &asked, &order, generation);
        let hosts = world.spell(&found.expect("all names exist")).into_iter().map(|plain| {
            let mut providers = plain.0.keys().map(|(name, _)| name.clone());
            providers.find(|name| name != "pool").expect("it has a host")
        });
        hosts.collect::<Vec<_>>()
    };
    assert_eq!(hosts(Some(2)), ["h3", "h4"]);
    assert_eq!(hosts(Some(1)), ["h3"]);
    let all: BTreeSet<String> = hosts(Some(100)).into_iter().collect();
    assert_eq!(all.len(), 4);
    assert_eq!(hosts(None).into_iter().collect::<BTreeSet<_>>(), all);
}
