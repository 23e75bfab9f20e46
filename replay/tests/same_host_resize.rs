//! DESIGN's example through plain Placement calls: a host whose disk is full with one server, and a
//! resize of that server on the same host (Launchpad bug 1790204). The tool says why it fails.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use ledger::Outcome;
use ledger::command::{
    ChangeInventories, ChangeSettings, Command, InventoryChange, MoveKind, MoveToMigration,
    OverlapClasses, SameHostMoves, Via,
};
use ledger::search::Searched;

const SMALL: &[(&str, u32)] = &[("VCPU", 1), ("MEMORY_MB", 2048), ("DISK_GB", 1028)];
const LARGE: &[(&str, u32)] = &[("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 1028)];

/// Boot, open the move, the refused claim of the destination, and the way back.
fn refused_resize() -> Book {
    let book = Book::new();
    let (host, instance, migration) = (provider(1), consumer(1), consumer(2));
    book.host(host, "compute1", &[("VCPU", 8), ("MEMORY_MB", 8192), ("DISK_GB", 1028)]);
    book.submit("req-boot", vec![replace(Via::Put, vec![write(instance, on(host, SMALL))])]);
    let open = vec![write(instance, Default::default()), write(migration, on(host, SMALL))];
    book.submit("req-resize", vec![replace(Via::Post, open)]);
    let refused =
        book.submit("req-resize", vec![replace(Via::Put, vec![write(instance, on(host, LARGE))])]);
    assert!(matches!(refused.outcome, Outcome::Refused { .. }), "{refused:?}");
    let back = vec![write(migration, Default::default()), write(instance, on(host, SMALL))];
    book.submit("req-resize", vec![replace(Via::Post, back)]);
    book
}

#[test]
fn explain_says_what_was_lacking_who_held_it_and_that_max_would_have_let_it_in() {
    let book = refused_resize();
    let said = replay(book.path(), &["explain", "--request-id", "req-resize"]);
    assert_eq!(said.status, 0, "{said:?}");
    let (instance, migration) = (consumer(1).to_string(), consumer(2).to_string());
    said.tells(&[
        "MovedToMigration",
        "DISK_GB on compute1: held 1028 -> 1028 GB of 1028 GB",
        "Rejected",
        "by nova (project service, from 192.0.2.7), req-resize",
        "replace_allocations was refused: not enough capacity",
        &format!("about    the resize of instance {instance}"),
        &format!("asked    for instance {instance}: compute1 DISK_GB 1028 GB, MEMORY_MB 2048 MB (2 GiB), VCPU 2"),
        "DISK_GB on compute1",
        "asked    1028 GB",
        "capacity 1028 GB = (total 1028 - reserved 0) x ratio 1.0",
        "held     1028 GB, free 0 GB",
        "short by 1028 GB",
        &format!("held by  migration {migration}: 1028 GB, source of the resize of instance {instance}"),
        "the max() rule (on one provider only the larger side of a move counts) it would have been let in",
        "DISK_GB on compute1: max(1028, 1028) = 1028 instead of 1028 + 1028 = 2056",
        "Reverted",
        "reverted: the source stayed",
    ]);
}

#[test]
fn explain_as_json_has_the_same_figures() {
    let book = refused_resize();
    let said = replay(book.path(), &["explain", "--consumer", &consumer(1).to_string(), "--json"]);
    let parts: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let refused = parts.as_array().unwrap().iter().find(|part| part["kind"] == "Rejected").unwrap();
    let shortage = &refused["refusal"]["shortages"][0];
    assert_eq!(shortage["class"], "DISK_GB");
    assert_eq!(shortage["asked"], 1028);
    assert_eq!(shortage["short_by"], 1028);
    assert_eq!(shortage["account"]["total"], 1028);
    assert_eq!(shortage["account"]["reserved"], 0);
    assert_eq!(shortage["account"]["allocation_ratio"], 1.0);
    assert_eq!(shortage["holders"]["biggest"][0]["role"], "migration");
    assert_eq!(refused["refusal"]["max_rule"]["verdict"], "would_fit");
}

#[test]
fn history_of_the_move_reads_as_a_story() {
    let book = refused_resize();
    let said = replay(book.path(), &["history", "--consumer", &consumer(2).to_string()]);
    let (instance, migration) = (consumer(1).to_string(), consumer(2).to_string());
    said.tells(&[
        &format!("History of consumer {migration}"),
        "MovedToMigration",
        &format!("instance {instance}: compute1 VCPU 1 -> 0, MEMORY_MB 2048 -> 0 MB, DISK_GB 1028 -> 0 GB"),
        &format!("migration {migration}: compute1 VCPU 0 -> 1, MEMORY_MB 0 -> 2048 MB (2 GiB), DISK_GB 0 -> 1028 GB"),
        "resize ",
        "attempt 1 open (inferred)",
        "generation none -> 1",
        "by nova (project service, from 192.0.2.7)",
        "req-resize",
        "Reverted",
        "generation 1 -> none",
        "It holds nothing since event",
    ]);
}

#[test]
fn the_native_claim_fits_by_the_rule_and_explain_shows_its_arithmetic() {
    let book = Book::new();
    let (host, instance, migration) = (provider(1), consumer(1), consumer(2));
    book.host(host, "compute1", &[("VCPU", 8), ("MEMORY_MB", 8192), ("DISK_GB", 1028)]);
    book.submit("req-boot", vec![claim(instance, vec![on(host, SMALL)])]);
    let kind = MoveKind::Resize;
    let open = MoveToMigration { consumer: instance, migration, kind };
    book.submit("req-resize", vec![Command::MoveToMigration(open)]);
    let answer = book.submit("req-resize", vec![claim(instance, vec![on(host, LARGE)])]);
    assert!(matches!(answer.outcome, Outcome::Accepted { .. }), "{answer:?}");
    let said = replay(book.path(), &["explain", &answer.sequence.to_string()]);
    said.tells(&[
        "Claimed",
        "(overlap: max)",
        "DISK_GB on compute1: held 1028 -> 1028 GB of 1028 GB",
        "allocations add up to 2056, but a move that stays here counts its larger side only: 1028",
        "VCPU on compute1: held 1 -> 2 of 8",
        "claimed: source and destination are both held",
    ]);
}

#[test]
fn a_refusal_that_the_rule_could_not_prevent_says_so() {
    let book = Book::new();
    let (host, instance, migration) = (provider(1), consumer(1), consumer(2));
    book.host(host, "compute1", &[("VCPU", 8), ("MEMORY_MB", 8192), ("DISK_GB", 1028)]);
    book.submit("req-boot", vec![claim(instance, vec![on(host, SMALL)])]);
    let kind = MoveKind::Resize;
    let open = MoveToMigration { consumer: instance, migration, kind };
    book.submit("req-resize", vec![Command::MoveToMigration(open)]);
    // 9 of 8: the rule takes the source's 1 off, and it still does not fit.
    book.submit("req-resize-9", vec![claim(instance, vec![on(host, &[("VCPU", 9)])])]);
    replay(book.path(), &["explain", "--request-id", "req-resize-9"]).tells(&[
        "claim was refused: not enough capacity",
        "asked    9\n",
        "held     1, free 7 (8 for this command)",
        "short by 1",
        "held by  migration",
        "source of the resize of instance",
        "It was counted by the max() rule",
        "VCPU on compute1: max(1, 9) = 9 instead of 1 + 9 = 10",
        "capacity 8: short by 1",
    ]);
    // Somebody else's claim: the rule has nothing to do with it.
    book.submit("req-other", vec![claim(consumer(3), vec![on(host, &[("VCPU", 8)])])]);
    replay(book.path(), &["explain", "--request-id", "req-other"]).tells(&[
        "VCPU on compute1",
        "short by 1",
        "held by  migration",
        "no move was in flight for it",
    ]);
}

#[test]
fn options_passed_over_are_told_one_by_one() {
    let book = Book::new();
    for n in 1..=3 {
        book.host(provider(n), &format!("compute{n}"), &[("VCPU", 4 * n as u32)]);
    }
    let options = |vcpus| (1..=3).map(|n| on(provider(n), &[("VCPU", vcpus)])).collect();
    let taken = book.submit("req-taken", vec![claim(consumer(1), options(10))]);
    assert!(matches!(taken.outcome, Outcome::Accepted { .. }), "{taken:?}");
    replay(book.path(), &["explain", "--request-id", "req-taken"]).tells(&[
        "option 2 was taken",
        "option 0 passed over: VCPU on compute1: short by 6 (needed 10, free 4)",
        "option 1 passed over: VCPU on compute2: short by 2 (needed 10, free 8)",
        "VCPU on compute3: held 0 -> 10 of 12",
    ]);
    book.submit("req-none", vec![claim(consumer(2), options(11))]);
    replay(book.path(), &["explain", "--request-id", "req-none"]).tells(&[
        "none of the 3 options fits",
        "option 2 passed over: VCPU on compute3: short by 9",
        "VCPU on compute3",
        "held by  consumer",
        ": 10",
    ]);
}

/// Out of room and a constraint are told apart (CASES F5).
#[test]
fn a_constraint_is_no_lack_of_room() {
    let book = Book::new();
    book.host(provider(1), "compute1", &[("VCPU", 4)]);
    let inventory = ledger::amounts::Inventory { max_unit: 2, ..ledger::amounts::Inventory::of(4) };
    let change = ChangeInventories {
        provider: provider(1),
        generation: None,
        change: InventoryChange::Update("VCPU".into(), inventory),
        may_reserve_all: true,
    };
    book.submit("req-host", vec![Command::ChangeInventories(change)]);
    book.submit("req-3", vec![claim(consumer(1), vec![on(provider(1), &[("VCPU", 3)])])]);
    replay(book.path(), &["explain", "--request-id", "req-3"]).tells(&[
        "max_unit",
        "VCPU on compute1",
        "asked    3",
        "that is above max_unit 2",
    ]);
}

/// A full host, its server's move open, and the setting that shall hold for what follows.
fn opened(settings: ChangeSettings) -> Book {
    let book = Book::new();
    let (host, instance, migration) = (provider(1), consumer(1), consumer(2));
    book.host(host, "compute1", &[("VCPU", 8), ("MEMORY_MB", 8192), ("DISK_GB", 1028)]);
    book.submit("req-set", vec![Command::ChangeSettings(settings)]);
    book.submit("req-boot", vec![replace(Via::Put, vec![write(instance, on(host, SMALL))])]);
    let open = vec![write(instance, Default::default()), write(migration, on(host, SMALL))];
    book.submit("req-resize", vec![replace(Via::Post, open)]);
    book
}

fn refuse(book: &Book, request_id: &str, command: Command) {
    let refused = book.submit(request_id, vec![command]);
    assert!(matches!(refused.outcome, Outcome::Refused { .. }), "{refused:?}");
}

#[test]
fn a_foreign_request_id_is_why_the_rule_did_not_help() {
    let max = Some(SameHostMoves::Max);
    let book = opened(ChangeSettings { same_host_moves: max, ..Default::default() });
    let put = || replace(Via::Put, vec![write(consumer(1), on(provider(1), LARGE))]);
    refuse(&book, "req-other", put());
    let said = replay(book.path(), &["explain", "--request-id", "req-other"]);
    said.tells(&[
        "it would have been let in, but it was counted as a claim of another action",
        "its request id is req-other, and the move was opened by req-resize",
        "DISK_GB on compute1: max(1028, 1028) = 1028",
    ]);
    let json = replay(book.path(), &["explain", "--request-id", "req-other", "--json"]);
    let parts: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(parts[0]["refusal"]["max_rule"]["verdict"], "foreign_request_id");
    // In `sum` the id is not the only reason, and the advice says that it would not have helped.
    let book = opened(ChangeSettings::default());
    refuse(&book, "req-other", put());
    let said = replay(book.path(), &["explain", "--request-id", "req-other"]);
    said.tells(&["--same-host-moves=max", "That would not have helped here: its request id is"]);
}

#[test]
fn a_class_that_the_rule_does_not_cover_is_why_it_did_not_help() {
    let but_disk = OverlapClasses::AllBut(["DISK_GB".to_owned()].into());
    let book = opened(ChangeSettings { overlap_classes: Some(but_disk), ..Default::default() });
    refuse(&book, "req-native", claim(consumer(1), vec![on(provider(1), LARGE)]));
    let said = replay(book.path(), &["explain", "--request-id", "req-native"]);
    said.tells(&[
        "The setting overlap_classes leaves DISK_GB out of the max() rule",
        "DISK_GB on compute1: 1028 + 1028 = 2056; held 2056, capacity 1028 GB",
    ]);
    assert!(!said.out.contains("It was counted by"), "{}", said.out);
}

/// What was asked by a query is told as a query, and all options are counted.
#[test]
fn a_claim_by_query_says_what_was_asked() {
    let book = Book::new();
    book.host(provider(1), "compute1", &[("VCPU", 8)]);
    let by_query = |options: Vec<ledger::amounts::Holding>| {
        let Command::Claim(mut it) = claim(consumer(1), Vec::new()) else { panic!("no claim") };
        let complete = true;
        let as_of = book.ledger.view().sequence();
        it.candidates = Some("resources=VCPU:9".into());
        it.searched = Some(Searched {
            options,
            as_of,
            complete,
            steps: vec!["VCPU:9: 0 left".into()],
            problem: None,
        });
        Command::Claim(it)
    };
    refuse(&book, "req-nothing", by_query(Vec::new()));
    refuse(&book, "req-many", by_query(vec![on(provider(1), &[("VCPU", 9)]); 40]));
    let instance = consumer(1);
    let asked = format!("asked    for consumer {instance}: a candidate for resources=VCPU:9");
    let said = replay(book.path(), &["explain", "--request-id", "req-nothing"]);
    said.tells(&[&asked]);
    assert!(!said.out.contains(": nothing"), "{}", said.out);
    let said = replay(book.path(), &["explain", "--request-id", "req-many"]);
    said.tells(&["none of the 40 options fits", &asked, "found    first: compute1 VCPU 9"]);
}
