//! DESIGN's example through plain Placement calls: a host whose disk is full with one server, and a
//! resize of that server on the same host (Launchpad bug 1790204). The tool says why it fails.

mod common;

use common::*;
use ledger::Outcome;
use ledger::command::Via;

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
        &format!("instance {instance}: compute1 DISK_GB 1028 -> 0 GB"),
        &format!("migration {migration}: compute1 DISK_GB 0 -> 1028 GB, MEMORY_MB 0 -> 2048 MB (2 GiB), VCPU 0 -> 1"),
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
    let kind = ledger::command::MoveKind::Resize;
    let open = ledger::command::MoveToMigration { consumer: instance, migration, kind };
    book.submit("req-resize", vec![ledger::command::Command::MoveToMigration(open)]);
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
    // Too much even by the rule: the refusal says that it was applied.
    book.submit("req-more", vec![claim(consumer(3), vec![on(host, &[("VCPU", 7)])])]);
    let said = replay(book.path(), &["explain", "--request-id", "req-more"]);
    said.tells(&[
        "none of the options fits",
        "VCPU on compute1",
        "short by 1",
        "held by",
        "no move was in flight for it",
    ]);
}
