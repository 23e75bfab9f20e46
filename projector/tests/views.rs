//! Invariant 7: a projection equals the one rebuilt from nothing at the same sequence, whatever
//! happened, and however often its follower was stopped, paused or started again.

mod common;

use common::{open, runtime, submit, traffic};
use ledger::Ledger;
use projector::candidates::{Group, Query, search};
use projector::usage::HeldByMoves;
use projector::{CandidateIndex, Lines, Projections, UsageView, ViewName, rebuild};
use proptest::prelude::*;
use std::sync::Arc;

/// Fails unless a live view, one rebuilt from nothing and one made from the state are the same.
fn same<P: Lines + Default>(ledger: &Ledger, live: &Arc<P>) {
    let state = ledger.view();
    let reader = ledger.reader();
    assert_eq!(live.sequence(), state.sequence());
    let rebuilt: P = rebuild(&*reader, state.sequence()).expect("the log folds");
    assert_eq!(live.lines(), rebuilt.lines(), "live against rebuilt");
    assert_eq!(live.digest(), rebuilt.digest());
    let seeded = P::from_state(&state, &*reader).expect("the view of a state");
    assert_eq!(seeded.lines(), rebuilt.lines(), "from the state against rebuilt");
}

fn all_same(ledger: &Ledger, projections: &Projections) {
    let sequence = ledger.view().sequence();
    runtime().block_on(async {
        same(ledger, &projections.usage(sequence).await.expect("usage"));
        same(ledger, &projections.consumers(sequence).await.expect("consumers"));
        same(ledger, &projections.moves(sequence).await.expect("moves"));
        let index = projections.candidates(sequence).await.expect("candidates");
        assert_eq!(index.state().sequence(), sequence);
        let fresh = CandidateIndex::from_state(&ledger.view());
        assert_eq!(index.lines(), fresh.lines());
        assert_eq!(found(&index), found(&fresh));
    });
}

/// What a few searches find, in the order they find it.
fn found(index: &CandidateIndex) -> Vec<String> {
    let mut told = Vec::new();
    for (class, amount) in [("VCPU", 1), ("VCPU", 4), ("DISK_GB", 3), ("MEMORY_MB", 2_048)] {
        let group = Group { resources: vec![(class.to_owned(), amount)], ..Group::default() };
        let query = Query { groups: vec![group], nested_allowed: true, ..Query::default() };
        let found = search(index, &query).expect("standard classes");
        for candidate in found.candidates() {
            told.push(format!(
                "{class} {amount}: {:?}",
                candidate.allocations().collect::<Vec<_>>()
            ));
        }
    }
    told
}

/// What the view says of providers against what the ledger's own state says.
fn held_as_in_state(ledger: &Ledger, view: &UsageView) {
    let state = ledger.view();
    let by_moves = HeldByMoves::of(&state);
    for (_, row) in state.providers() {
        let usage = view.provider(row.uuid).expect("every provider is in the view");
        assert_eq!(usage.generation, row.generation);
        let held: Vec<_> = usage.classes.iter().map(|usage| (usage.class, usage.held)).collect();
        let kept: Vec<_> = row.inventories.iter().map(|row| (row.class, row.held)).collect();
        assert_eq!(held, kept);
        assert!(usage.classes.iter().all(|usage| usage.held_by_moves <= usage.held));
        let of_state = usage.classes.iter().map(|usage| by_moves.amount(row.uuid, usage.class));
        let of_view = usage.classes.iter().map(|usage| usage.held_by_moves);
        assert!(of_state.eq(of_view), "what moves hold of {}", row.uuid);
    }
}

/// All projects' totals together are all that is held.
fn totals_add_up(ledger: &Ledger, view: &UsageView) {
    let state = ledger.view();
    let mut held = std::collections::BTreeMap::new();
    for (_, row) in state.providers() {
        for inventory in row.inventories.iter().filter(|inventory| inventory.held > 0) {
            *held.entry(Arc::clone(state.classes().name(inventory.class))).or_default() +=
                inventory.held;
        }
    }
    let mut totals: std::collections::BTreeMap<Arc<str>, u64> = std::collections::BTreeMap::new();
    let mut consumers = 0;
    for project in ["project-0", "project-1"] {
        for usage in view.project(project, None) {
            consumers += usage.consumer_count;
            for (class, amount) in usage.amounts {
                *totals.entry(class).or_default() += amount;
            }
        }
    }
    assert_eq!(totals, held);
    assert_eq!(consumers, state.consumer_count() as u64);
}

/// How many histories: `PROPTEST_CASES`, or few enough for every run.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(32)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn live_views_equal_rebuilt_ones(
        steps in prop::collection::vec(traffic::step(), 20..120),
        stop_at in prop::collection::vec(0..120usize, 0..4),
        pause_at in 0..120usize,
    ) {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = open(dir.path());
        common::must(&ledger, traffic::beginning());
        let mut projections = Projections::start(&ledger).expect("threads");
        for (at, step) in steps.iter().enumerate() {
            submit(&ledger, traffic::commands(step, &ledger.view()));
            if stop_at.contains(&at) {
                projections.stop();
                projections = Projections::start(&ledger).expect("threads");
            }
            if at == pause_at {
                projections.pause(ViewName::Usage);
                projections.pause(ViewName::Moves);
            }
            if at == pause_at + 10 {
                projections.resume(ViewName::Usage);
                projections.resume(ViewName::Moves);
            }
        }
        projections.resume(ViewName::Usage);
        projections.resume(ViewName::Moves);
        all_same(&ledger, &projections);
        let usage = projections.newest_usage().expect("usage");
        held_as_in_state(&ledger, &usage);
        totals_add_up(&ledger, &usage);
        projections.stop();
        ledger.close();
    }
}
