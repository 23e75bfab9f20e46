//! The resize that fails on its own, full host (Launchpad bug 1790204): the ledger's own commands
//! let it in without overselling, plain Placement calls refuse it as stock Placement does, and
//! `replay` says why, on a running server's folder and on a dead one's.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use system_tests::books::{self, Holding};
use system_tests::claims::Claimer;
use system_tests::http::Answer;
use system_tests::replay_tool::{Said, replay};
use system_tests::same_host::{BOOT, INSTANCE, LARGE, MIGRATION, RESIZE, SMALL, Scene, amounts};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::stop::StopOnDrop;
use system_tests::topology;

/// Verifications of a running server's folder while it is written to.
const VERIFICATIONS: usize = 8;

/// Launchpad bug 1790204, mended: accepted, and after the confirm exactly the destination is held.
#[test]
fn a_resize_on_its_own_full_host_is_accepted_and_confirmed() {
    let mut scene = Scene::start();
    scene.resize_natively();
    scene.command(RESIZE, &json!({"confirm": {"consumer": INSTANCE}}));
    scene.holds(&LARGE, &[]);
    assert_eq!(scene.usages(), amounts(&LARGE));
    assert_eq!(scene.move_state(), "confirmed");
    scene.was_never_oversold();
    scene.replay(&["explain", "--request-id", RESIZE]).tells(&[
        "MovedToMigration",
        "Claimed",
        "(overlap: max)",
        "DISK_GB on compute1: held 1028 -> 1028 GB of 1028 GB",
        "allocations add up to 2056, but a move that stays here counts its larger side only: 1028",
        "VCPU on compute1: held 1 -> 2 of 8",
        "Confirmed",
        "is confirmed",
    ]);
    assert!(scene.server.terminate().success(), "a clean stop");
    verify_ledger(&scene.server.data_dir());
}

/// The same, reverted: exactly the source is held again.
#[test]
fn a_resize_on_its_own_full_host_is_accepted_and_reverted() {
    let mut scene = Scene::start();
    scene.resize_natively();
    scene.command(RESIZE, &json!({"revert": {"consumer": INSTANCE}}));
    scene.holds(&SMALL, &[]);
    assert_eq!(scene.usages(), amounts(&SMALL));
    assert_eq!(scene.move_state(), "reverted");
    scene.was_never_oversold();
    assert!(scene.server.terminate().success(), "a clean stop");
    verify_ledger(&scene.server.data_dir());
}

/// By plain Placement calls it is refused as stock Placement refuses it, with what a program
/// needs to know beside the words; and `replay explain` says why, before and after a kill.
#[test]
fn explain_says_why_placement_refuses_it_on_a_running_and_on_a_dead_servers_folder() {
    let mut scene = Scene::start();
    let refused = scene.resize_by_placement().expect(409);
    refused_as_by_placement(&refused, &scene.host);
    scene.holds(&[], &SMALL);
    let running = explained(&scene);
    scene.server.kill();
    assert_eq!(explained(&scene), running, "a dead server's folder tells the same");
}

/// What explain says of the refusal, in words and in JSON, checked.
fn explained(scene: &Scene) -> [Said; 2] {
    let words = scene.replay(&["explain", "--request-id", RESIZE]);
    words.tells(&[
        "MovedToMigration",
        "Rejected",
        &format!("asked by admin (project admin, from 127.0.0.1), {RESIZE}"),
        "replace_allocations was refused: not enough capacity",
        &format!("about    the resize of instance {INSTANCE}"),
        "open: the source is held, no destination is",
        &format!("asked    for instance {INSTANCE}: compute1 DISK_GB 1028 GB, MEMORY_MB 2048 MB (2 GiB), VCPU 2"),
        &format!("DISK_GB on compute1 ({})", scene.host),
        "asked    1028 GB",
        "capacity 1028 GB = (total 1028 - reserved 0) x ratio 1.0",
        "held     1028 GB, free 0 GB",
        "short by 1028 GB",
        &format!("held by  migration {MIGRATION}: 1028 GB, source of the resize of instance {INSTANCE}"),
        "the max() rule (on one provider only the larger side of a move counts) it would have been let in",
        "DISK_GB on compute1: max(1028, 1028) = 1028 instead of 1028 + 1028 = 2056",
        "held 1028 instead of 2056, capacity 1028 GB: fits",
    ]);
    let json = scene.replay(&["explain", "--request-id", RESIZE, "--json"]);
    explained_in_figures(&json.json(), &scene.host);
    [words, json]
}

fn explained_in_figures(told: &Value, host: &str) {
    let parts = told.as_array().unwrap();
    let kinds: Vec<&str> = parts.iter().map(|part| part["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["MovedToMigration", "Rejected"]);
    assert_eq!(parts[1]["request_id"], RESIZE);
    let refusal = &parts[1]["refusal"];
    assert_eq!(refusal["cause"], "capacity");
    assert_eq!(refusal["asked"][0]["consumer"], INSTANCE);
    assert_eq!(refusal["asked"][0]["holding"][host], json!(amounts(&LARGE)));
    let shortages = refusal["shortages"].as_array().unwrap();
    assert_eq!(shortages.len(), 1, "only the disk is short");
    let short = &shortages[0];
    assert_eq!((&short["provider"], &short["class"]), (&json!(host), &json!("DISK_GB")));
    for (field, figure) in [("asked", 1_028), ("needed", 1_028), ("free", 0), ("short_by", 1_028)] {
        assert_eq!(short[field], figure, "{field}");
    }
    let account = &short["account"];
    assert_eq!((&account["total"], &account["reserved"]), (&json!(1_028), &json!(0)));
    assert_eq!((&account["allocation_ratio"], &account["held"]), (&json!(1.0), &json!(1_028)));
    let holders = short["holders"]["biggest"].as_array().unwrap();
    assert_eq!(holders.len(), 1);
    assert_eq!(holders[0]["consumer"], MIGRATION);
    assert_eq!((&holders[0]["role"], &holders[0]["amount"]), (&json!("migration"), &json!(1_028)));
    assert_eq!(refusal["max_rule"]["verdict"], "would_fit");
    assert_eq!(refusal["max_rule"]["source_holder"], MIGRATION);
}

/// Placement's words, which clients match on, and the fields for programs.
fn refused_as_by_placement(refused: &Answer, host: &str) {
    let detail = refused.detail();
    for words in [
        "Unable to allocate inventory",
        &format!("Unable to create allocation for 'DISK_GB' on resource provider '{host}'"),
        "The requested amount would exceed the capacity",
    ] {
        assert!(detail.contains(words), "{words:?} is not in {detail:?}");
    }
    let error = &refused.json()["errors"][0];
    assert_eq!((&error["status"], &error["title"]), (&json!(409), &json!("Conflict")));
    assert_eq!(error["code"], "placement.undefined_code");
    assert_eq!((&error["cause"], &error["class"]), (&json!("capacity"), &json!("DISK_GB")));
    assert_eq!(error["provider"], host);
    assert_eq!((&error["needed"], &error["free"]), (&json!(1_028), &json!(0)));
}

/// What explain promises of the rule holds: as one of the ledger's own commands the very claim
/// that was refused is let in, and the move, opened by a plain call, goes on to its end.
#[test]
fn the_refused_claim_is_let_in_as_the_ledgers_own_command() {
    let mut scene = Scene::start();
    scene.resize_by_placement().expect(409);
    scene.claim(RESIZE, &LARGE);
    scene.holds(&LARGE, &SMALL);
    assert_eq!(scene.usages(), amounts(&LARGE));
    assert_eq!(scene.move_state(), "claimed");
    scene.command(RESIZE, &json!({"confirm": {"consumer": INSTANCE}}));
    scene.holds(&LARGE, &[]);
    assert_eq!(scene.move_state(), "confirmed");
    scene.was_never_oversold();
    assert!(scene.server.terminate().success(), "a clean stop");
    verify_ledger(&scene.server.data_dir());
}

/// `replay history` and `at` tell a running server's past, each moment by its own figures.
#[test]
fn history_and_at_tell_a_running_servers_past() {
    let mut scene = Scene::start();
    scene.resize_by_placement().expect(409);
    let told = scene.replay(&["history", "--consumer", INSTANCE]);
    told.tells(&[
        &format!("History of consumer {INSTANCE}"),
        "Claimed",
        "VCPU 0 -> 1, MEMORY_MB 0 -> 2048 MB (2 GiB), DISK_GB 0 -> 1028 GB",
        "generation none -> 1",
        BOOT,
        "MovedToMigration",
        &format!("migration {MIGRATION}: compute1 VCPU 0 -> 1"),
        "attempt 1 open (inferred)",
        "generation 1 -> none",
        RESIZE,
        "Rejected",
        "DISK_GB on compute1: short by 1028 GB (needed 1028, free 0)",
        "It holds nothing since event",
    ]);
    let lines = scene.replay(&["history", "--consumer", INSTANCE, "--json"]).out;
    let events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3);
    let at = |event: &Value| {
        let sequence = event["sequence"].to_string();
        let then = scene.replay(&["at", &sequence, "--json"]).json();
        held_then(&then, &scene.host)
    };
    let small = scene.on_host(&SMALL);
    assert_eq!(at(&events[0]), [(INSTANCE.to_owned(), small.clone())]);
    assert_eq!(at(&events[1]), [(MIGRATION.to_owned(), small.clone())]);
    assert_eq!(at(&events[2]), [(MIGRATION.to_owned(), small)]);
    assert!(scene.server.terminate().success(), "it was not disturbed");
}

/// Who held what at a moment, and that the provider's held agrees with it.
fn held_then(then: &Value, host: &str) -> Vec<(String, Holding)> {
    let consumers: Vec<(String, Holding)> = then["consumers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|consumer| {
            let allocations: Holding =
                serde_json::from_value(consumer["allocations"].clone()).unwrap();
            (consumer["uuid"].as_str().unwrap().to_owned(), allocations)
        })
        .collect();
    let sum = books::sums(consumers.iter().map(|(_, holding)| holding));
    for inventory in then["providers"][0]["inventories"].as_array().unwrap() {
        let class = inventory["class"].as_str().unwrap();
        assert_eq!(inventory["held"].as_u64(), sum[host].get(class).copied(), "{class}");
    }
    consumers
}

/// `replay verify` and `at` on a folder that its server is writing to: always sound, and the
/// server goes on.
#[test]
fn a_running_servers_folder_verifies_while_it_is_written_to() {
    let mut server = Server::start();
    let provider = topology::provider(&server.client(), "compute1", &[("VCPU", 1_000_000)]);
    let mut claimer = Claimer::new(
        server.client(),
        seed::stream(seed::seed(14), 0),
        std::slice::from_ref(&provider),
    );
    let stop = AtomicBool::new(false);
    let claims = AtomicU64::new(0);
    let heads = thread::scope(|scope| {
        let claiming = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                claimer.claim();
                claims.fetch_add(1, Ordering::Relaxed);
            }
        });
        let heads: Vec<u64> = {
            let _stop = StopOnDrop(&stop);
            (0..VERIFICATIONS)
                .map(|_| {
                    // Something was written since the last time.
                    let before = claims.load(Ordering::Relaxed);
                    while claims.load(Ordering::Relaxed) == before && !claiming.is_finished() {
                        thread::sleep(Duration::from_millis(1));
                    }
                    verified(&server, &provider)
                })
                .collect()
        };
        claiming.join().unwrap();
        heads
    });
    let claims = claims.into_inner();
    println!("{claims} claims, verified at {heads:?}");
    assert!(heads.windows(2).all(|pair| pair[0] < pair[1]), "nothing was written meanwhile");
    assert_eq!(books::usages(&server.client(), &provider)["VCPU"], claims);
    assert!(server.terminate().success(), "a clean stop");
    assert_eq!(replay(&server.data_dir(), &["verify", "--json"]).json()["consumers"], claims);
}

/// Verify a running server's folder; where it ended. Its state there is told by `at` as well.
fn verified(server: &Server, provider: &str) -> u64 {
    let report = replay(&server.data_dir(), &["verify", "--json"]).json();
    assert_eq!(report["findings"], json!([]));
    assert_eq!((&report["events"], &report["folded_to"]), (&report["head"], &report["head"]));
    let head = report["head"].as_u64().unwrap();
    let point = head.to_string();
    let then = replay(&server.data_dir(), &["at", &point, "--provider", provider, "--json"]).json();
    assert_eq!(then["state_digest"], report["state_digest"]);
    assert_eq!(then["providers"][0]["inventories"][0]["held"], report["consumers"]);
    head
}
