//! Following a ledger: own writes are seen, nothing is skipped, admission never waits for a view.

mod common;

use common::{claim, consumer, holding, make_provider, must, open, provider, runtime, submit};
use ledger::Outcome;
use ledger::command::{Claim, Command, Confirm, MoveKind, MoveToMigration, Release, Revert};
use ledger::event::{Finding, MoveState};
use ledger::refusal::Cause;
use projector::moves::{Side, read_story};
use projector::{Lines, MovesView, Projections, ViewName, rebuild};
use std::sync::Arc;

/// C18: admission is decided by the ledger, never by a lagging view.
#[test]
fn admission_does_not_depend_on_a_view() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    let made = must(&ledger, make_provider(1, &[("VCPU", 4)]));
    let projections = Projections::start(&ledger).expect("threads");
    let runtime = runtime();
    let held =
        |view: &projector::UsageView| view.provider(provider(1)).map(|usage| usage.classes[0].held);
    let usage = runtime.block_on(projections.usage(made)).expect("usage");
    assert_eq!(held(&usage), Some(0));
    projections.pause(ViewName::Usage);
    let first = must(&ledger, vec![claim(1, holding(provider(1), &[("VCPU", 4)]))]);
    let second = submit(&ledger, vec![claim(2, holding(provider(1), &[("VCPU", 1)]))]);
    let Outcome::Refused { refusal, .. } = second.outcome else { panic!("oversold") };
    assert!(matches!(refusal.cause, Cause::Capacity | Cause::NoOptionFits), "{refusal:?}");
    assert_eq!(held(&projections.newest_usage().expect("usage")), Some(0), "the view stands still");
    let health = projections.health();
    assert!(health[0].paused && health[0].lag > 0, "{health:?}");
    projections.resume(ViewName::Usage);
    let usage = runtime.block_on(projections.usage(first)).expect("usage");
    assert_eq!(held(&usage), Some(4));
    projections.stop();
    ledger.close();
}

/// A client that was answered sees its own write, and a reader with a position beyond the
/// ledger's is told so.
#[test]
fn an_answered_write_is_seen() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("VCPU", 1_000)]));
    let projections = Projections::start(&ledger).expect("threads");
    let runtime = runtime();
    for number in 0..200 {
        must(&ledger, vec![claim(number, holding(provider(1), &[("VCPU", 1)]))]);
        let usage = runtime.block_on(projections.usage(ledger.view().sequence())).expect("usage");
        let totals = usage.project("project", Some("user"));
        assert_eq!(totals[0].consumer_count, u64::try_from(number).expect("small") + 1);
    }
    let behind = runtime.block_on(projections.consumers(1_000_000)).map(drop);
    let behind = behind.expect_err("not there");
    assert_eq!(behind.wanted, 1_000_000);
    projections.stop();
    ledger.close();
}

/// I7: sequences are given in the order of commits, so a reader that follows closely sees
/// every event once, however many write at once.
#[test]
fn fifty_writers_and_no_event_is_passed_over() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("VCPU", 100_000)]));
    let projections = Projections::start(&ledger).expect("threads");
    std::thread::scope(|scope| {
        for writer in 0..50u128 {
            let ledger = &ledger;
            scope.spawn(move || {
                for turn in 0..20u128 {
                    let number = writer * 1_000 + turn;
                    must(ledger, vec![claim(number, holding(provider(1), &[("VCPU", 1)]))]);
                    std::thread::sleep(std::time::Duration::from_micros(rand::random_range(
                        0..500,
                    )));
                }
            });
        }
    });
    let sequence = ledger.view().sequence();
    let runtime = runtime();
    let usage = runtime.block_on(projections.usage(sequence)).expect("usage");
    assert_eq!(usage.provider(provider(1)).expect("there").classes[0].held, 1_000);
    let consumers = runtime.block_on(projections.consumers(sequence)).expect("consumers");
    let mut listed = Vec::new();
    while let page = consumers.of_project("project", listed.last().copied(), 64)
        && !page.is_empty()
    {
        listed.extend(page);
    }
    assert_eq!(listed.len(), 1_000);
    assert!(listed.is_sorted());
    assert_eq!(consumers.count_of_type(Some("INSTANCE")), 1_000);
    projections.stop();
    ledger.close();
}

/// The example of the design: a host full with one server, resized on the spot. The pair counts
/// once, and it counts as the instance's.
#[test]
fn a_pair_that_overlaps_counts_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("DISK_GB", 1_028), ("VCPU", 8)]));
    let small = holding(provider(1), &[("DISK_GB", 1_028), ("VCPU", 2)]);
    let large = holding(provider(1), &[("DISK_GB", 1_028), ("VCPU", 3)]);
    must(&ledger, vec![claim(1, small)]);
    let opened = Command::MoveToMigration(MoveToMigration {
        consumer: consumer(1),
        migration: consumer(2),
        kind: MoveKind::Resize,
    });
    must(&ledger, vec![opened]);
    let both = must(&ledger, vec![claim(1, large)]);
    let projections = Projections::start(&ledger).expect("threads");
    let runtime = runtime();
    let usage = runtime.block_on(projections.usage(both)).expect("usage");
    let disk = usage.classes().number("DISK_GB").expect("a standard class");
    let row = usage.provider(provider(1)).expect("there");
    assert_eq!(row.class(disk).expect("there").held, 1_028);
    assert_eq!(row.class(disk).expect("there").held_by_moves, 0, "confirming frees nothing");
    let totals = usage.project("project", None);
    let sum: u64 =
        totals.iter().map(|usage| usage.amounts.get("DISK_GB").copied().unwrap_or(0)).sum();
    assert_eq!(sum, 1_028);
    let instances = totals.iter().find(|usage| usage.consumer_type.as_deref() == Some("INSTANCE"));
    assert_eq!(instances.expect("there").amounts[&Arc::from("DISK_GB")], 1_028);
    let moves = runtime.block_on(projections.moves(both)).expect("moves");
    let story = moves.live().next().expect("a live move");
    assert_eq!(story.this.state, MoveState::Claimed);
    let held: Vec<_> = story.held().map(|(side, who, _)| (side, who)).collect();
    assert_eq!(held, [(Side::Source, consumer(2)), (Side::Destination, consumer(1))]);
    assert_eq!(moves.on_provider(provider(1)).count(), 1);
    let done =
        must(&ledger, vec![Command::Confirm(Confirm { consumer: consumer(1), move_id: None })]);
    let moves = runtime.block_on(projections.moves(done)).expect("moves");
    assert_eq!(moves.live_count(), 0);
    let story = moves.of_consumer(consumer(2)).next().expect("its story");
    let kinds: Vec<_> = story.steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, ["MovedToMigration", "Claimed", "Confirmed"]);
    assert_eq!(story.this.state, MoveState::Confirmed);
    assert_eq!(moves.on_provider(provider(1)).count(), 0);
    projections.stop();
    ledger.close();
}

/// Whatever has moved meanwhile, the view keeps the steps of the latest thousand moves that ended;
/// the log has those of all.
#[test]
fn the_steps_of_moves_that_ended_long_ago_are_read_from_the_log() {
    const MOVES: u128 = 1_010;
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("VCPU", 8)]));
    must(&ledger, vec![claim(1, holding(provider(1), &[("VCPU", 2)]))]);
    let mut last = 0;
    for number in 0..MOVES {
        let opened = Command::MoveToMigration(MoveToMigration {
            consumer: consumer(1),
            migration: consumer(10 + number),
            kind: MoveKind::Migration,
        });
        let ended = Command::Revert(Revert { consumer: consumer(1), move_id: None, reason: None });
        must(&ledger, vec![opened]);
        last = must(&ledger, vec![ended]);
    }
    let read = |view: &MovesView| {
        let steps = view.ended().filter(|story| !story.steps.is_empty()).count();
        let first = view.ended().last().expect("the first move");
        (view.len(), steps, first.this.id, first.steps.len(), first.left_out)
    };
    let projections = Projections::start(&ledger).expect("threads");
    let moves = runtime().block_on(projections.moves(last)).expect("moves");
    let (count, with_steps, id, kept, left_out) = read(&moves);
    assert_eq!((count, with_steps, kept, left_out), (1_010, 1_000, 0, 2));
    let story = read_story(id, last, &*ledger.reader()).expect("the log").expect("its story");
    let kinds: Vec<_> = story.steps.iter().map(|step| step.kind).collect();
    assert_eq!(kinds, ["MovedToMigration", "Reverted"]);
    let folded: MovesView = rebuild(&*ledger.reader(), last).expect("the log");
    assert_eq!(folded.digest(), moves.digest(), "the view differs from one folded from the log");
    projections.stop();
    ledger.close();
}

/// A server that dies in the middle of its move leaves a story with a finding.
#[test]
fn a_story_tells_what_is_to_be_looked_at() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("VCPU", 8)]));
    must(&ledger, vec![claim(1, holding(provider(1), &[("VCPU", 2)]))]);
    let opened = Command::MoveToMigration(MoveToMigration {
        consumer: consumer(1),
        migration: consumer(2),
        kind: MoveKind::Migration,
    });
    must(&ledger, vec![opened]);
    let gone = Command::Release(Release {
        consumer: consumer(2),
        ended: false,
        reason: Some("audit".into()),
    });
    let last = must(&ledger, vec![gone]);
    let projections = Projections::start(&ledger).expect("threads");
    let moves = runtime().block_on(projections.moves(last)).expect("moves");
    let story = moves.of_consumer(consumer(1)).next().expect("its story");
    assert_eq!(story.this.state, MoveState::Abandoned);
    assert_eq!(story.findings().next(), Some((last, Finding::RunsWithoutAllocation)));
    assert_eq!(story.steps.last().expect("a step").reason.as_deref(), Some("audit"));
    projections.stop();
    ledger.close();
}

/// A claim for a type that nobody named is counted under no type.
#[test]
fn a_consumer_without_a_type_is_counted_as_such() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = open(dir.path());
    must(&ledger, make_provider(1, &[("VCPU", 8)]));
    let wanted = Claim {
        consumer: consumer(7),
        project_id: "p".into(),
        user_id: "u".into(),
        consumer_type: None,
        options: vec![holding(provider(1), &[("VCPU", 2)])],
        candidates: None,
        searched: None,
    };
    let last = must(&ledger, vec![Command::Claim(wanted)]);
    let projections = Projections::start(&ledger).expect("threads");
    let usage = runtime().block_on(projections.usage(last)).expect("usage");
    let totals = usage.project("p", None);
    assert_eq!(totals.len(), 1);
    assert_eq!(totals[0].consumer_type, None);
    assert_eq!((totals[0].consumer_count, totals[0].amounts["VCPU"]), (1, 2));
    assert!(usage.project("p", Some("nobody")).is_empty());
    assert!(usage.project("nobody", None).is_empty());
    projections.stop();
    ledger.close();
}
