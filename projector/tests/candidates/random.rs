//! Random topologies and queries: the engine and the oracle find the same.

use crate::oracle;
use crate::world::{SHARES, World, uuid};
use ledger::amounts::Inventory;
use projector::candidates::{
    CandidateIndex, Group, GroupPolicy, Query, RootTraits, TraitCondition, search,
};
use proptest::collection::vec;
use proptest::option::{of, weighted};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use std::collections::BTreeSet;

const CLASSES: [&str; 3] = ["VCPU", "DISK_GB", "X"];
const TRAITS: [&str; 4] = ["T1", "T2", "T3", SHARES];
const AGGREGATES: [&str; 3] = ["a1", "a2", "a3"];
const SUFFIXES: [&str; 4] = ["", "_A", "_B", "_C"];

/// A provider: which earlier one it hangs under (none: it is a root), what it has.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<prop::sample::Index>,
    inventories: Vec<(usize, Inventory, u32)>,
    traits: Vec<&'static str>,
    shares: bool,
    aggregates: Vec<&'static str>,
}

/// A change to a provider that exists.
#[derive(Clone, Debug)]
enum Change {
    Traits(Vec<&'static str>),
    Aggregates(Vec<&'static str>),
    Hold(usize, u32),
    Hang(Option<prop::sample::Index>),
    Remove,
}

fn inventory() -> impl Strategy<Value = Inventory> {
    let total = 2..12u32;
    let ratio = select(vec![1.0, 1.0, 1.0, 1.5, 0.7]);
    let reserved = select(vec![0, 0, 0, 1, 2]);
    let min_unit = select(vec![1, 1, 1, 1, 2]);
    let max_unit = select(vec![100, 100, 100, 2, 3, 4]);
    let step_size = select(vec![1, 1, 1, 1, 2]);
    (total, reserved, min_unit, max_unit, step_size, ratio).prop_map(
        |(total, reserved, min_unit, max_unit, step_size, allocation_ratio)| Inventory {
            total,
            reserved: reserved.min(total),
            min_unit,
            max_unit,
            step_size,
            allocation_ratio,
        },
    )
}

fn node() -> impl Strategy<Value = Node> {
    (
        weighted(0.8, any::<prop::sample::Index>()),
        vec((0..CLASSES.len(), inventory(), 0..3u32), 1..5),
        subsequence(&TRAITS[..3], 0..=3),
        prop::bool::weighted(0.2),
        subsequence(&AGGREGATES[..], 0..=2),
    )
        .prop_map(|(parent, inventories, traits, shares, aggregates)| Node {
            parent,
            inventories,
            traits,
            shares,
            aggregates,
        })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        subsequence(&TRAITS[..], 0..=3).prop_map(Change::Traits),
        subsequence(&AGGREGATES[..], 0..=2).prop_map(Change::Aggregates),
        (0..CLASSES.len(), 1..4u32).prop_map(|(class, amount)| Change::Hold(class, amount)),
        of(any::<prop::sample::Index>()).prop_map(Change::Hang),
        Just(Change::Remove),
    ]
}

fn strings(names: Vec<&'static str>) -> Vec<String> {
    names.into_iter().map(String::from).collect()
}

fn condition() -> impl Strategy<Value = TraitCondition> {
    prop_oneof![
        subsequence(&TRAITS[..], 1..=2).prop_map(|names| TraitCondition::AllOf(strings(names))),
        subsequence(&TRAITS[..], 1..=2).prop_map(|names| TraitCondition::AnyOf(strings(names))),
    ]
}

fn resources() -> impl Strategy<Value = Vec<(String, u64)>> {
    let classes = prop_oneof![
        3 => subsequence(&CLASSES[..], 1..=1),
        2 => subsequence(&CLASSES[..], 2..=3),
    ];
    (classes, vec(select(vec![1, 1, 1, 1, 1, 2, 2, 3]), 3))
        .prop_map(|(classes, amounts)| classes.into_iter().map(String::from).zip(amounts).collect())
}

fn grouping() -> impl Strategy<Value = Group> {
    (
        prop_oneof![12 => resources(), 1 => Just(Vec::new())],
        prop_oneof![6 => Just(Vec::new()), 1 => vec(condition(), 1..3)],
        prop_oneof![8 => Just(Vec::new()), 1 => subsequence(&TRAITS[..3], 1..=1)],
        prop_oneof![
            8 => Just(Vec::new()),
            1 => vec(subsequence(&AGGREGATES[..], 1..=2).prop_map(strings), 1..3)
        ],
        prop_oneof![8 => Just(Vec::new()), 1 => subsequence(&AGGREGATES[..], 1..=1)],
        weighted(0.06, 0..6usize),
    )
        .prop_map(|(resources, required, forbidden, member_of, outside, in_tree)| Group {
            suffix: String::new(),
            resources,
            required,
            forbidden: strings(forbidden),
            member_of,
            forbidden_aggregates: strings(outside),
            in_tree: in_tree.map(|number| uuid(&format!("p{number}")).to_string()),
        })
}

fn querying() -> impl Strategy<Value = Query> {
    // The group without suffix has the most rules: it is in most queries.
    let suffixes = (weighted(0.7, Just("")), subsequence(&SUFFIXES[1..], 0..=2))
        .prop_map(|(first, mut others)| {
            others.extend(first);
            if others.is_empty() { vec![""] } else { others }
        })
        .prop_shuffle();
    let roots = prop_oneof![
        8 => Just(RootTraits::default()),
        1 => (subsequence(&TRAITS[..], 0..=1), subsequence(&TRAITS[..], 0..=1)).prop_map(
            |(required, forbidden)| RootTraits {
                required: strings(required),
                forbidden: strings(forbidden),
            }
        ),
    ];
    let subtrees = prop_oneof![
        4 => Just(Vec::new()),
        1 => vec(subsequence(&SUFFIXES[1..], 2..=3).prop_map(strings), 1..2),
    ];
    let policy =
        select(vec![GroupPolicy::None, GroupPolicy::None, GroupPolicy::None, GroupPolicy::Isolate]);
    (suffixes, vec(grouping(), 3), policy, subtrees, roots, prop::bool::weighted(0.8)).prop_map(
        |(suffixes, mut groups, group_policy, same_subtree, root_required, nested_allowed)| {
            groups.truncate(suffixes.len());
            for (group, suffix) in groups.iter_mut().zip(&suffixes) {
                group.suffix = suffix.to_string();
            }
            // The API lets only groups through that exist, and resources somewhere.
            let known = |list: Vec<String>| -> Vec<String> {
                list.into_iter().filter(|suffix| suffixes.contains(&suffix.as_str())).collect()
            };
            let same_subtree =
                same_subtree.into_iter().map(known).filter(|list| !list.is_empty()).collect();
            if groups.iter().all(|group| group.resources.is_empty()) {
                groups[0].resources = vec![("VCPU".into(), 1)];
            }
            Query { groups, group_policy, same_subtree, root_required, limit: None, nested_allowed }
        },
    )
}

fn build(nodes: &[Node], nested: bool, sharing: bool) -> World {
    let mut world = World::new();
    for (number, node) in nodes.iter().enumerate() {
        let name = format!("p{number}");
        let parent =
            node.parent.filter(|_| nested && number > 0).map(|at| format!("p{}", at.index(number)));
        world.provider(&name, parent.as_deref());
        for (class, inventory, held) in &node.inventories {
            let class = CLASSES[*class];
            world.inventory(&name, class, Some(*inventory));
            if *held > 0 {
                world.hold(&name, class, *held);
            }
        }
        let mut traits = node.traits.clone();
        if node.shares && sharing {
            traits.push(SHARES);
        }
        world.traits(&name, &traits);
        world.aggregates(&name, &node.aggregates);
    }
    world
}

/// Changes one provider, if the change is one that the ledger would accept.
fn alter(world: &mut World, number: usize, change: &Change, providers: usize) {
    let name = format!("p{number}");
    let Some(id) = world.state.provider_id(uuid(&name)) else {
        return;
    };
    match change {
        Change::Traits(names) => world.traits(&name, names),
        Change::Aggregates(names) => world.aggregates(&name, names),
        Change::Hold(class, amount) => {
            let class_id = world.state.classes().id(CLASSES[*class]).expect("it exists");
            let row = world.state.provider_row(id).expect("it exists");
            if row.inventory(class_id).is_some() {
                world.hold(&name, CLASSES[*class], *amount);
            }
        }
        Change::Hang(parent) => {
            let parent = parent.map(|at| format!("p{}", at.index(providers)));
            let target = parent.as_ref().map(|parent| world.state.provider_id(uuid(parent)));
            let loops =
                |to: &Option<u32>| to.is_none_or(|to| world.state.subtree(id).contains(&to));
            if !target.as_ref().is_some_and(loops) {
                world.hang(&name, parent.as_deref());
            }
        }
        Change::Remove => {
            if world.state.children(id).next().is_none() && !world.state.is_held(id) {
                world.remove(&name);
                // Its number is used again, at times in the same batch.
                if number.is_multiple_of(2) {
                    world.provider(&format!("q{number}"), None);
                    world.has(&format!("q{number}"), &[("VCPU", 2), ("X", 5)]);
                }
            }
        }
    }
}

fn agree(world: &mut World, query: &Query) -> Result<(), TestCaseError> {
    let expected = oracle::answer(&world.state, query).expect("all names exist");
    let found = world.search(query);
    prop_assert!(found.complete);
    let plain = world.spell(&found);
    let distinct: BTreeSet<_> = plain.iter().cloned().collect();
    prop_assert_eq!(distinct.len(), plain.len(), "a candidate comes twice");
    prop_assert_eq!(&distinct, &expected.candidates);
    let summaries: BTreeSet<String> = found.summaries.iter().map(|&id| world.name(id)).collect();
    prop_assert_eq!(summaries.len(), found.summaries.len());
    prop_assert_eq!(summaries, expected.summaries);
    for limit in [1, 3, 1000] {
        let limited = Query { limit: Some(limit), ..query.clone() };
        let found = world.search(&limited);
        let some: BTreeSet<_> = world.spell(&found).into_iter().collect();
        prop_assert_eq!(some.len(), distinct.len().min(limit));
        prop_assert!(some.is_subset(&distinct));
    }
    Ok(())
}

/// More cases than by default, unless `PROPTEST_CASES` says how many.
fn config() -> ProptestConfig {
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { None } else { Some(2000) };
    let default = ProptestConfig::default();
    ProptestConfig { cases: cases.unwrap_or(default.cases), failure_persistence: None, ..default }
}

proptest! {
    #![proptest_config(config())]

    /// On a topology as it was made, and after each of several batches of changes.
    #[test]
    fn engine_and_oracle_agree(
        nodes in vec(node(), 2..10),
        nested in prop::bool::weighted(0.8),
        sharing in prop::bool::weighted(0.7),
        batches in vec(vec((any::<prop::sample::Index>(), change()), 1..4), 0..4),
        queries in vec(querying(), 1..4),
    ) {
        let mut world = build(&nodes, nested, sharing);
        for query in &queries {
            agree(&mut world, query)?;
        }
        for batch in &batches {
            for (at, change) in batch {
                alter(&mut world, at.index(nodes.len()), change, nodes.len());
            }
            for query in &queries {
                agree(&mut world, query)?;
                let rebuilt = CandidateIndex::from_state(&world.state);
                prop_assert_eq!(world.index.facts(), rebuilt.facts());
                let again = search(&rebuilt, query).expect("all names exist");
                let followed = world.search(query);
                prop_assert_eq!(world.spell(&again), world.spell(&followed));
            }
        }
    }
}
