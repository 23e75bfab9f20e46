//! Invariants 3, 4 and 5 over random interleavings of every command: moves by the ledger's
//! commands and by plain Placement calls, with the request id of the move or another; chains of
//! moves; double-ups that grow; ports attached meanwhile; sources and destinations that shrink,
//! inventories and units that change; reshapes; classes that are renamed; nested trees that are
//! hung elsewhere; a provider that two hosts share; a limit of the project.

mod checks;
mod commands;
mod rules;
mod steps;
mod world;

use crate::command::Command;
use checks::keeps_the_invariants;
use commands::command;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rules::{Largest, Subtracted};
use std::collections::BTreeSet;
use steps::{REQUESTS, Step, Wish, steps};
use world::{World, migration, provider};

/// How many interleavings are tried; `ALLOCD_TEST_INTERLEAVINGS` asks for more.
fn cases() -> u32 {
    let asked = std::env::var("ALLOCD_TEST_INTERLEAVINGS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn held_never_goes_above_capacity_and_ends_never_raise_it(steps in steps()) {
        keeps_the_invariants::<Largest>(&steps)?;
    }
}

/// The same interleavings find out a rule that subtracts what was remembered as overlap: once one
/// side shrinks it counts too little, and an end raises it.
#[test]
fn a_rule_that_subtracts_a_remembered_overlap_would_be_found_out() {
    let config = Config { cases: 4_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let found = runner.run(&steps(), |steps| keeps_the_invariants::<Subtracted>(&steps));
    let told = found.expect_err("the interleavings do not tell the rules apart").to_string();
    assert!(told.contains("raises what is held") || told.contains("held of provider"), "{told}");
}

/// The names of all commands, as the enum itself spells them where it is read.
fn all_commands() -> BTreeSet<String> {
    let unknown = serde_json::from_str::<Command>(r#"{"": null}"#).expect_err("no such command");
    let text = unknown.to_string();
    let (_, expected) = text.split_once("expected one of").expect("it lists those it knows");
    let mut names: BTreeSet<String> =
        expected.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    // Nobody sends it, so it is in no list of what can be read.
    names.insert("note_failed_search".to_owned());
    names
}

/// Whoever adds a command adds a [`Step`] for it (see there), or this fails: each command is
/// generated, and some of each are accepted.
#[test]
fn every_command_is_among_the_interleavings() {
    let config = Config { cases: 1_000, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let accepted = std::cell::RefCell::new(BTreeSet::new());
    runner
        .run(&steps(), |steps| {
            let mut world = World::new();
            for (step, request) in &steps {
                let command = command(step, &world.state);
                if world.decide(&command, REQUESTS[*request]).is_some() {
                    accepted.borrow_mut().insert(command.name().to_owned());
                }
            }
            Ok(())
        })
        .expect("nothing is checked here");
    let missing: Vec<String> = all_commands().difference(&accepted.borrow()).cloned().collect();
    assert!(missing.is_empty(), "the interleavings never have these commands: {missing:?}");
}

/// The example of Launchpad bug 1790204 when the source shrinks before the end: that it lets go is
/// never refused, and takes nothing from the destination.
#[test]
fn a_source_that_shrinks_first_leaves_the_destination_whole() {
    let mut world = World::new();
    let four = || Wish { who: 0, host: 0, vcpus: 4, disk: 0, vgpus: 0, custom: 0 };
    let mut held_after = |step: Step| {
        let command = command(&step, &world.state);
        assert!(world.decide(&command, Some("req-a")).is_some(), "{step:?}");
        world.state.provider(provider(0)).unwrap().inventories[0].held
    };
    held_after(Step::SameHost(true));
    held_after(Step::Inventory(0, 4));
    assert_eq!(held_after(Step::Put(0, four())), 4);
    assert_eq!(held_after(Step::PostOver(0, 0)), 4);
    assert_eq!(held_after(Step::Put(0, four())), 4, "of both sides the larger counts");
    assert_eq!(held_after(Step::Shrink(migration(0, 0), 2)), 4);
    assert_eq!(held_after(Step::Delete(migration(0, 0))), 4);
}
