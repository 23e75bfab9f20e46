//! `at` and `history` on a running ledger and on a closed one.

#![allow(clippy::unwrap_used)]

mod common;

use common::*;
use ledger::command::{
    AddInventory, ChangeInventories, Command, InventoryChange, Limit, ReleasePart, SetQuota, Via,
};

fn busy() -> Book {
    let book = Book::new();
    book.host(provider(1), "compute1", &[("VCPU", 8), ("MEMORY_MB", 8192)]);
    book.submit(
        "req-1",
        vec![replace(Via::Put, vec![write(consumer(1), on(provider(1), &[("VCPU", 2)]))])],
    );
    book.inventories(provider(1), &[("VCPU", 16), ("MEMORY_MB", 8192)]);
    book.submit("req-2", vec![replace(Via::Delete, vec![write(consumer(1), Default::default())])]);
    book
}

#[test]
fn at_shows_the_state_then_and_the_same_digest_as_the_running_ledger() {
    let book = busy();
    let view = book.ledger.view();
    let said = replay(book.path(), &["at", "latest"]);
    assert_eq!(said.status, 0, "{said:?}");
    said.tells(&[&format!("State digest {}", view.digest()), "compute1", "VCPU", "16"]);
    // Genesis, provider, inventory, claim: the fourth.
    let said = replay(book.path(), &["at", "4", "--provider", &provider(1).to_string(), "--json"]);
    let state: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let vcpu = state["providers"][0]["inventories"].as_array().unwrap();
    let vcpu = vcpu.iter().find(|row| row["class"] == "VCPU").unwrap();
    assert_eq!(
        (vcpu["total"].as_u64(), vcpu["held"].as_u64(), vcpu["free"].as_i64()),
        (Some(8), Some(2), Some(6))
    );
    assert_eq!(state["providers"][0]["holders"][0]["uuid"], consumer(1).to_string());
    assert_eq!(state["durable"], true);
    book.ledger.close();
    let closed = replay(book.path(), &["at", "latest"]);
    closed.tells(&[&format!("State digest {}", view.digest())]);
}

#[test]
fn at_takes_a_time_and_says_what_is_out_of_range() {
    let book = busy();
    let head = book.ledger.view().sequence();
    let said = replay(book.path(), &["at", "2100-01-01T00:00:00Z"]);
    said.tells(&[
        &format!("Event {head} of {head}"),
        "2100-01-01T00:00:00.000000Z is still to come",
    ]);
    let json = replay(book.path(), &["at", "2100-01-01T00:00:00Z", "--json"]);
    let state: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(state["still_to_come"], "2100-01-01T00:00:00.000000Z");
    let latest = replay(book.path(), &["at", "latest"]);
    assert!(!latest.out.contains("still to come"), "{latest:?}");
    let early = replay(book.path(), &["at", "2020-01-01T00:00:00Z"]);
    assert_eq!(early.status, 2);
    assert!(early.err.contains("the ledger begins after"), "{early:?}");
    let beyond = replay(book.path(), &["at", "99"]);
    assert_eq!(beyond.status, 2);
    assert!(beyond.err.contains(&format!("events 1 to {head}")), "{beyond:?}");
    let nowhere = replay(&book.path().join("nowhere"), &["at", "latest"]);
    assert_eq!(nowhere.status, 2);
}

/// Each step of a generation can be asked for (nova 9c842d1aa6: "from 0 to 1" tells nothing).
#[test]
fn a_step_of_a_providers_generation_has_its_event_with_before_and_after() {
    let book = busy();
    let id = provider(1).to_string();
    let all = replay(book.path(), &["history", "--provider", &id]);
    let inventory = all.out.lines().rfind(|line| line.contains("InventoryChanged")).unwrap();
    let after = inventory.split("generation ").nth(1).unwrap().split(" -> ").nth(1).unwrap();
    let after: String = after.chars().take_while(char::is_ascii_digit).collect();
    let one = replay(book.path(), &["history", "--provider", &id, "--generation", &after]);
    assert_eq!(
        one.out.lines().filter(|line| line.contains(" | generation ")).count(),
        1,
        "{}",
        one.out
    );
    one.tells(&[
        &format!("History of provider compute1 ({id})"),
        "InventoryChanged",
        "VCPU [total 8 reserved 0 ratio 1.0] -> [total 16 reserved 0 ratio 1.0]",
        "by nova (project service, from 192.0.2.7)",
    ]);
}

#[test]
fn history_is_paged_and_says_so() {
    let book = busy();
    let id = consumer(1).to_string();
    let first = replay(book.path(), &["history", "--consumer", &id, "--limit", "1"]);
    first.tells(&["Claimed", "VCPU 0 -> 2", "There is more: go on with --after 4"]);
    let rest = replay(book.path(), &["history", "--consumer", &id, "--after", "4"]);
    rest.tells(&[
        "Released",
        "VCPU 2 -> 0",
        "generation 1 -> none",
        "It holds nothing since event",
    ]);
    let json = replay(book.path(), &["history", "--consumer", &id, "--json"]);
    for line in json.out.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(entry["by"]["actor"]["user"], "nova");
    }
    let unknown = replay(book.path(), &["history", "--consumer", &consumer(9).to_string()]);
    assert_eq!(unknown.status, 0);
    unknown.tells(&["Nothing on record"]);
}

#[test]
fn what_the_server_has_not_acknowledged_is_shown_as_not_yet_durable() {
    let book = busy();
    let head = book.ledger.view().sequence();
    let file = book.path().join("acknowledged");
    book.ledger.close();
    std::fs::remove_file(file).unwrap();
    replay(book.path(), &["at", "latest"]).tells(&["Not yet durable"]);
    replay(book.path(), &["history", "--consumer", &consumer(1).to_string()])
        .tells(&[&format!("{head}* "), "* not yet durable"]);
}

/// Wishes, limits, parts and relative changes read by themselves, and so do refusals for them.
#[test]
fn wishes_limits_and_parts_are_told_in_words() {
    let book = Book::new();
    let (host, who) = (provider(1), consumer(1));
    book.host(host, "compute1", &[("VCPU", 8), ("DISK_GB", 20)]);
    let limits = [("VCPU".to_owned(), Some(Limit::AtMost(4)))].into();
    let quota = SetQuota { project_id: Some("project-1".into()), limits };
    book.submit("req-quota", vec![Command::SetQuota(quota)]);
    let both = on(host, &[("VCPU", 2), ("DISK_GB", 9)]);
    book.submit("req-claim", vec![claim(who, vec![both])]);
    book.submit("req-over", vec![claim(consumer(2), vec![on(host, &[("VCPU", 3)])])]);
    let add = AddInventory { provider: host, class: "VCPU".into(), total: 2, reserved: 1 };
    book.submit("req-add", vec![Command::AddInventory(add)]);
    let change = ChangeInventories {
        provider: host,
        generation: None,
        change: InventoryChange::DeleteWhenFree("DISK_GB".into()),
        may_reserve_all: true,
    };
    book.submit("req-wish", vec![Command::ChangeInventories(change)]);
    book.submit("req-closed", vec![claim(consumer(2), vec![on(host, &[("DISK_GB", 1)])])]);
    let at = replay(book.path(), &["at", "latest"]);
    at.tells(&["compute1", "goes once it is free: DISK_GB"]);
    let part = ReleasePart {
        consumer: who,
        provider: host,
        class: "DISK_GB".into(),
        amount: 9,
        reason: Some("volume gone".into()),
    };
    book.submit("req-part", vec![Command::ReleasePart(part)]);
    let history = replay(book.path(), &["history", "--provider", &host.to_string()]);
    history.tells(&[
        "total 8 reserved 0",
        "-> [total 10 reserved 1",
        "goes once it is free: nothing -> DISK_GB",
        "it goes once it is free",
        "reason: volume gone",
        "DISK_GB [total 20 reserved 0 ratio 1.0] -> none",
    ]);
    let told = replay(book.path(), &["history", "--request-id", "req-quota"]);
    told.tells(&["limits of project project-1: VCPU none -> 4"]);
    let told = replay(book.path(), &["explain", "--request-id", "req-over"]);
    told.tells(&["the quota of project project-1: VCPU 4, it holds 2 and would hold 5"]);
    let told = replay(book.path(), &["explain", "--request-id", "req-closed"]);
    told.tells(&["it goes once it is free, and no more of it can be claimed"]);
    assert_eq!(replay(book.path(), &["verify"]).status, 0);
}
