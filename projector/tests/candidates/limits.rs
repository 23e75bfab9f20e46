//! Limits, order and time.

use crate::world::{World, query, strings};
use ledger::amounts::Inventory;
use projector::candidates::{
    CandidateIndex, Generation, GroupPolicy, HostOrder, MAX_FOUND_BYTES, Query, Strategy, search,
    search_with,
};
use std::collections::BTreeMap;
use std::time::Instant;

fn trees(roots: usize, children: usize) -> World {
    let mut world = World::new();
    for root in 0..roots {
        let root = format!("r{root}");
        world.provider(&root, None);
        for child in 0..children {
            let child = format!("{root}-{child}");
            world.provider(&child, Some(&root));
            world.has(&child, &[("X", 1)]);
        }
    }
    world
}

fn units(groups: usize) -> projector::candidates::Query {
    let suffixes: Vec<String> = (1..=groups).map(|number| number.to_string()).collect();
    let groups: Vec<_> = suffixes.iter().map(|suffix| (suffix.as_str(), "X:1")).collect();
    query(&groups)
}

/// Case E1 (Launchpad 2126751): eight groups on eight devices of one unit.
#[test]
fn combinations_that_cannot_fit_are_not_built() {
    let mut world = trees(1, 8);
    let mut asked = units(8);
    asked.limit = Some(5);
    world.commit();
    let begun = Instant::now();
    let found = search(&world.index, &asked).expect("names exist");
    println!("8 groups on 8 devices took {:?}", begun.elapsed());
    // Complete: it did not run out of the steps that a search may take.
    assert_eq!((found.len(), found.complete), (5, true));
    // Eight choices lead to the first candidate, 36 looks at an option with those that are taken left
    // out; the next ones differ in the last few choices.
    assert!(found.steps < 200, "{} steps", found.steps);
    let asked_for = |most: usize| {
        let generation = Generation { most: Some(most), ..Default::default() };
        let whole = Query { limit: None, ..asked.clone() };
        search_with(&world.index, &whole, &HostOrder::default(), generation).expect("names exist")
    };
    // Steps grow with the candidates and not with the 8^8 combinations.
    for most in [1_000, 10_000] {
        let found = asked_for(most);
        assert_eq!((found.len(), found.complete), (most, false));
        assert!(found.steps < 40 * most as u64, "{} steps for {most}", found.steps);
    }
    asked.limit = None;
    assert_eq!(world.count(&asked), 40320);
    // With 16 of each there are 16^16 combinations, and the first that fits is far behind the
    // number of steps that a search may take.
    let mut world = trees(1, 16);
    let mut asked = units(16);
    asked.limit = Some(5);
    world.commit();
    let found = search(&world.index, &asked).expect("names exist");
    assert_eq!((found.len(), found.complete), (5, true));
}

/// Eight groups on eight devices that each serve many: sixteen million combinations, of which a
/// search without limit keeps no more than its memory allows, and says so.
#[test]
fn what_is_found_is_bounded_by_memory() {
    let mut world = World::new();
    world.provider("root", None);
    for child in 0..8 {
        let child = format!("c{child}");
        world.provider(&child, Some("root"));
        world.has(&child, &[("X", 100)]);
    }
    world.commit();
    let found = search(&world.index, &units(8)).expect("names exist");
    assert!(!found.complete && found.len() > 50_000, "{} found", found.len());
    // Of each candidate: up to eight providers with amounts, and eight that serve a group.
    let least = 8 * 4 + 8 * 4 + 4;
    assert!(found.len() * least < MAX_FOUND_BYTES, "{} found", found.len());
}

/// More groups than devices: known before the first combination is tried.
#[test]
fn what_cannot_be_is_seen_at_once() {
    let mut world = trees(1, 19);
    world.commit();
    let found = search(&world.index, &units(20)).expect("names exist");
    assert_eq!((found.len(), found.complete), (0, true));
    let mut world = World::new();
    world.provider("root", None);
    for child in 0..19 {
        let child = format!("c{child}");
        world.provider(&child, Some("root"));
        world.has(&child, &[("X", 100)]);
    }
    let mut asked = units(20);
    asked.group_policy = GroupPolicy::Isolate;
    world.commit();
    let found = search(&world.index, &asked).expect("names exist");
    assert_eq!((found.len(), found.complete), (0, true));
}

/// A search whose combinations nobody could go through ends, and says that it was cut off.
#[test]
fn a_search_without_end_is_cut_off() {
    let mut world = World::new();
    world.provider("root", None);
    for child in 0..16 {
        let child = format!("c{child}");
        world.provider(&child, Some("root"));
        world.inventory(&child, "X", Some(Inventory { max_unit: 5, ..Inventory::of(5) }));
    }
    // Each provider holds one group of 3 and has 2 of its 5 units over: 16 groups fit and 17 do
    // not, though the room of all together would do.
    let suffixes: Vec<String> = (0..17).map(|number| format!("_{number}")).collect();
    let groups: Vec<_> = suffixes.iter().map(|suffix| (suffix.as_str(), "X:3")).collect();
    let begun = Instant::now();
    let found = world.search(&query(&groups));
    println!("cut off after {:?}", begun.elapsed());
    assert!(found.is_empty() && !found.complete);
}

/// Case D10 (Launchpad 2070257): a limited answer is spread over the roots.
#[test]
fn a_limited_answer_is_spread_over_roots() {
    let mut world = trees(3, 4);
    let mut asked = units(2);
    asked.group_policy = GroupPolicy::Isolate;
    let per_root = |world: &mut World, asked: &projector::candidates::Query| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (amounts, _) in world.plain(asked) {
            let (name, _) = amounts.keys().next().expect("something is taken").clone();
            *counts.entry(name[..2].to_string()).or_default() += 1;
        }
        counts.into_values().collect::<Vec<_>>()
    };
    assert_eq!(per_root(&mut world, &asked), [12, 12, 12]);
    for (limit, expected) in
        [(2, vec![1, 1]), (4, vec![2, 1, 1]), (35, vec![12, 12, 11]), (99, vec![12; 3])]
    {
        asked.limit = Some(limit);
        assert_eq!(per_root(&mut world, &asked), expected, "limit {limit}");
    }
}

/// Case E9 (nova-specs pre-filter-disabled-computes): conditions come before the limit.
#[test]
fn conditions_come_before_the_limit() {
    let mut world = World::new();
    for host in 0..3000 {
        let name = format!("host{host}");
        world.provider(&name, None);
        world.has(&name, &[("VCPU", 8)]);
        if host % 6 != 0 {
            world.traits(&name, &["COMPUTE_STATUS_DISABLED"]);
        }
    }
    let mut asked = query(&[("", "VCPU:1")]);
    asked.groups[0].forbidden = strings(&["COMPUTE_STATUS_DISABLED"]);
    asked.limit = Some(1000);
    assert_eq!(world.count(&asked), 500);
    world.provider("child", Some("host1"));
    assert_eq!(world.count(&asked), 500);
}

/// Case I29: the order is a function of the state, however the index came to be.
#[test]
fn the_same_state_gives_the_same_order() {
    let mut world = trees(5, 3);
    world.remove("r2-1");
    world.provider("r4-9", Some("r4"));
    world.has("r4-9", &[("X", 1)]);
    let mut asked = units(2);
    for limit in [None, Some(7)] {
        asked.limit = limit;
        let first = world.plain(&asked);
        let rebuilt = CandidateIndex::from_state(&world.state);
        let again = search(&rebuilt, &asked).expect("names exist");
        assert_eq!(world.spell(&again), first);
    }
}

/// The roots of an answer's candidates, and how many each has, in the order of their first one.
fn per_root(world: &World, query: &Query, generation: Generation) -> Vec<usize> {
    let found = search_with(&world.index, query, &HostOrder::default(), generation);
    let mut counts: Vec<(u32, usize)> = Vec::new();
    for candidate in found.expect("names exist").candidates() {
        let (provider, _) = candidate.parts()[0];
        let root = world.state.provider_row(provider).expect("a row").root;
        match counts.iter_mut().find(|(known, _)| *known == root) {
            Some((_, count)) => *count += 1,
            None => counts.push((root, 1)),
        }
    }
    counts.into_iter().map(|(_, count)| count).collect()
}

/// Case D10 (Launchpad 2070257), with what Placement 16.0.0 answers.
#[test]
fn a_cap_is_of_the_first_hosts_or_spread_over_all() {
    let mut world = trees(3, 4);
    world.commit();
    let mut asked = units(2);
    asked.group_policy = GroupPolicy::Isolate;
    let capped = |strategy| Generation { most: Some(4), strategy, seed: None };
    assert_eq!(per_root(&world, &asked, Generation::default()), [12, 12, 12]);
    assert_eq!(per_root(&world, &asked, capped(Strategy::DepthFirst)), [4]);
    assert_eq!(per_root(&world, &asked, capped(Strategy::BreadthFirst)), [2, 1, 1]);
    // A query's own limit is spread over hosts, as long as it is the one that cuts.
    asked.limit = Some(4);
    assert_eq!(per_root(&world, &asked, capped(Strategy::DepthFirst)), [2, 1, 1]);
    asked.limit = Some(5);
    assert_eq!(per_root(&world, &asked, capped(Strategy::DepthFirst)), [4]);
    assert_eq!(per_root(&world, &asked, capped(Strategy::BreadthFirst)), [2, 1, 1]);
}

/// By chance means another order, of the same candidates.
#[test]
fn a_seed_changes_the_order_and_nothing_else() {
    let mut world = trees(3, 4);
    world.commit();
    let mut asked = units(2);
    asked.group_policy = GroupPolicy::Isolate;
    let all = |seed| {
        let generation = Generation { seed, ..Default::default() };
        let found = search_with(&world.index, &asked, &HostOrder::default(), generation);
        let found = found.expect("names exist");
        assert!(found.complete);
        found.candidates().map(|candidate| candidate.parts().to_vec()).collect::<Vec<_>>()
    };
    let sorted = |seed| {
        let mut all = all(seed);
        all.sort_unstable();
        all
    };
    assert_eq!(all(Some(7)), all(Some(7)), "the same seed, the same order");
    let firsts: BTreeMap<_, _> = (0..40).map(|seed| (all(Some(seed))[0].clone(), seed)).collect();
    assert!(firsts.len() > 6, "{} of 36 candidates came first", firsts.len());
    for seed in 0..5 {
        assert_eq!(sorted(Some(seed)), sorted(None));
    }
}

/// What comes first and last stays there, whatever is drawn between.
#[test]
fn a_seed_leaves_first_and_last_hosts_where_they_are() {
    let mut world = World::new();
    for number in 0..8 {
        let name = format!("h{number}");
        world.provider(&name, None);
        world.has(&name, &[("VCPU", 8)]);
    }
    world.commit();
    let id = |name: &str| world.state.provider_id(crate::world::uuid(name)).expect("a provider");
    let order = HostOrder::new([id("h6")], [id("h1"), id("h2")], [id("h3")]);
    let asked = query(&[("", "VCPU:1")]);
    let mut seconds = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let generation = Generation { seed: Some(seed), ..Default::default() };
        let found = search_with(&world.index, &asked, &order, generation).expect("names exist");
        let hosts: Vec<_> = found.candidates().map(|candidate| candidate.parts()[0].0).collect();
        assert_eq!((hosts.len(), hosts[0]), (7, id("h6")));
        assert_eq!(hosts[5..], [id("h1"), id("h2")]);
        seconds.insert(hosts[1]);
    }
    assert_eq!(seconds.len(), 4, "each of the others comes next at times");
}
