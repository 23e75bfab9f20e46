//! `--same-host-moves=max`: an unmodified Nova, which knows nothing of moves, resizes a server on
//! its own full host. It is recognised by the request id that runs through all its calls of one
//! action (Launchpad bug 1790204). What anybody is shown meanwhile is in docs/moves.md.
#![allow(clippy::unwrap_used, missing_docs)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use system_tests::books::{self, Holding};
use system_tests::http::{Answer, Client};
use system_tests::same_host::{BOOT, INSTANCE, LARGE, MIGRATION, RESIZE, SMALL, Scene, amounts};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

const MAX: [&str; 1] = ["--same-host-moves=max"];

/// Case A1's figures: POST, then GET, then PUT with one request id.
#[test]
fn a_resize_to_the_own_full_host_works_by_plain_calls() {
    for confirmed in [true, false] {
        let scene = Scene::with(&MAX);
        scene.resize_by_placement().expect(204);
        scene.holds(&LARGE, &SMALL);
        assert_eq!(scene.usages(), amounts(&LARGE), "the larger side counts, not the sum");
        books::check_capacity(&scene.server.client(), &scene.host);
        assert_eq!(scene.move_state(), "claimed");
        let client = scene.server.client();
        if confirmed {
            client.delete(&format!("/allocations/{MIGRATION}")).unwrap().expect(204);
            scene.holds(&LARGE, &[]);
            assert_eq!((scene.usages(), scene.move_state()), (amounts(&LARGE), "confirmed".into()));
        } else {
            scene.revert_by_placement().expect(204);
            scene.holds(&SMALL, &[]);
            assert_eq!((scene.usages(), scene.move_state()), (amounts(&SMALL), "reverted".into()));
        }
        scene.was_never_oversold();
    }
}

/// Any other request id gets Placement's arithmetic: none, a foreign one, one of a closed move.
#[test]
fn another_request_id_counts_both_sides() {
    for other in [None, Some(BOOT), Some("req-f0000000-0000-4000-8000-000000000000")] {
        let scene = Scene::with(&MAX);
        scene.open_by_placement();
        let mut client = scene.server.client();
        if let Some(id) = other {
            client = client.request_id(id);
        }
        assert!(candidates(&client, "").is_empty());
        let refused = scene.put(&client, &LARGE).expect(409);
        assert!(refused.detail().contains("would exceed the capacity"), "{}", refused.text());
        assert_eq!(scene.usages(), amounts(&SMALL));
    }
    // Reverted: its request id is a closed one.
    let scene = Scene::with(&MAX);
    scene.resize_by_placement().expect(204);
    scene.revert_by_placement().expect(204);
    assert!(candidates(&scene.server.client().request_id(RESIZE), "").is_empty());
}

/// The search with the request id of the opening is given back what the source holds, and the
/// summary shows less used by as much. The own host comes last.
#[test]
fn the_search_of_the_same_action_finds_the_own_host_last() {
    let scene = Scene::with(&MAX);
    scene.open_by_placement();
    let client = scene.server.client();
    let same = client.request_id(RESIZE);
    assert_eq!(candidates(&same, ""), std::slice::from_ref(&scene.host));
    let used = |client: &Client| {
        let found = client.read(&format!("/allocation_candidates?{}", query("VCPU:2,MEMORY_MB:1")));
        let summary = &found["provider_summaries"][&scene.host]["resources"];
        ["VCPU", "DISK_GB"].map(|class| summary[class]["used"].as_u64().unwrap())
    };
    assert_eq!((used(&same), used(&client)), ([0, 0], [1, 1028]));
    // A search alone grants nothing.
    assert_eq!(scene.usages(), amounts(&SMALL));
    let other = topology::provider(&client, "compute2", &system_tests::same_host::STOCK);
    for limit in ["", "&limit=2"] {
        assert_eq!(candidates(&same, limit), [other.clone(), scene.host.clone()]);
    }
    assert_eq!(candidates(&same, "&limit=1"), std::slice::from_ref(&other));
    assert_eq!(candidates(&client, ""), [other]);
    // Claimed, it is not given back any more.
    scene.put(&same, &LARGE).expect(204);
    assert!(!candidates(&same, "").contains(&scene.host));
}

/// What each view shows while both records are there: docs/moves.md has the same figures.
#[test]
fn no_view_shows_more_used_than_there_is() {
    let scene = Scene::with(&MAX);
    scene.resize_by_placement().expect(204);
    let client = scene.server.client();
    let of_project = client.microversion("1.9").read("/usages?project_id=project");
    assert_eq!(books::amounts(&of_project["usages"]), amounts(&LARGE));
    let by_type = client.read("/usages?project_id=project");
    assert_eq!(
        by_type["usages"],
        json!({
            "INSTANCE": {"consumer_count": 1, "VCPU": 2, "MEMORY_MB": 2048, "DISK_GB": 1028},
            "MIGRATION": {"consumer_count": 1},
        })
    );
    let shown = client.read(&format!("/resource_providers/{}/allocations", scene.host));
    let of = |consumer: &str| books::amounts(&shown["allocations"][consumer]["resources"]);
    assert_eq!((of(INSTANCE), of(MIGRATION)), (amounts(&LARGE), amounts(&SMALL)));
    scene.holds(&LARGE, &SMALL);
    let listed = client.read("/ledger/v1/providers");
    let disk = &listed["providers"][0]["inventories"]["DISK_GB"];
    assert_eq!((&disk["held"], &disk["free"]), (&json!(1028), &json!(0)));
    let candidates = client.read(&format!("/allocation_candidates?{}", query("VCPU:1")));
    let summary = &candidates["provider_summaries"][&scene.host]["resources"]["DISK_GB"];
    assert_eq!((&summary["used"], &summary["capacity"]), (&json!(1028), &json!(1028)));
}

/// A resize to a smaller flavor: the migration counts for what it holds beyond the instance.
#[test]
fn what_only_the_source_holds_counts_for_the_migration() {
    let scene = Scene::with(&MAX);
    scene.resize_by_placement().expect(204);
    let client = scene.server.client();
    client.delete(&format!("/allocations/{MIGRATION}")).unwrap().expect(204);
    // Back from 2 VCPU to 1.
    let same = client.request_id("req-d0000000-0000-4000-8000-000000000000");
    scene.hand_over(&same, &LARGE).expect(204);
    scene.put(&same, &SMALL).expect(204);
    let usages = client.read("/usages?project_id=project");
    assert_eq!(
        usages["usages"],
        json!({
            "INSTANCE": {"consumer_count": 1, "VCPU": 1, "MEMORY_MB": 2048, "DISK_GB": 1028},
            "MIGRATION": {"consumer_count": 1, "VCPU": 1},
        })
    );
    assert_eq!(scene.usages(), amounts(&LARGE));
}

/// Many unmodified Novas at once on hosts that are full: boot, resize, confirm or revert by plain
/// calls, each action with a request id of its own. Nobody ever sees more used than there is.
#[test]
fn many_plain_resizes_at_once_never_oversell() {
    const CLIENTS: u64 = 12;
    const ROUNDS: u64 = 6;
    let seed = seed::seed(11);
    let mut server = Server::with(&MAX, &[]);
    let client = server.client();
    let hosts: Vec<String> = (0..3)
        .map(|number| topology::provider(&client, &format!("host{number}"), &[("VCPU", 8)]))
        .collect();
    let done = AtomicBool::new(false);
    let resized = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                hosts.iter().for_each(|host| books::check_capacity(&server.client(), host));
            }
        });
        let novas: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let server = &server;
                scope.spawn(move || {
                    let mut random = seed::stream(seed, number + 1);
                    (0..ROUNDS).map(|round| nova(server, number, round, &mut random)).sum::<u64>()
                })
            })
            .collect();
        let resized = novas.into_iter().map(|nova| nova.join().unwrap()).sum::<u64>();
        done.store(true, Ordering::Relaxed);
        watch.join().unwrap();
        resized
    });
    println!("{resized} resizes");
    assert!(resized > 0, "nothing was ever resized: this test saw nothing");
    for host in &hosts {
        assert!(books::usages(&client, host).is_empty(), "all are gone");
    }
    assert!(server.terminate().success());
    verify_ledger(&server.data_dir());
}

/// One server's life: booted where there is room, resized where the search says, and deleted. How
/// many resizes of it were claimed.
fn nova(server: &Server, number: u64, round: u64, random: &mut StdRng) -> u64 {
    let name = format!("{number} {round}");
    let (who, migration) =
        (topology::uuid(&format!("i {name}")), topology::uuid(&format!("m {name}")));
    let (who, migration) = (who.to_string(), migration.to_string());
    let boot = server.client().request_id(&format!("req-boot-{number}-{round}"));
    let Some(small) = choose(&boot, 1) else { return 0 };
    if write(&boot, &who, &small).status != 204 {
        return 0;
    }
    let resize = server.client().request_id(&format!("req-resize-{number}-{round}"));
    let pair = |from: &str, to: &str, holding: &Holding| {
        let generation = |consumer: &str| json!(books::read(&resize, consumer).1);
        json!({
            from: body(&Holding::new(), &generation(from)), to: body(holding, &generation(to)),
        })
    };
    resize.post("/allocations", &pair(&who, &migration, &small)).unwrap().expect(204);
    let wanted = random.random_range(1..=3);
    let claimed = choose(&resize, wanted)
        .is_some_and(|destination| write(&resize, &who, &destination).status == 204);
    if claimed && random.random_bool(0.6) {
        resize.delete(&format!("/allocations/{migration}")).unwrap().expect(204);
    } else {
        resize.post("/allocations", &pair(&migration, &who, &small)).unwrap().expect(204);
    }
    resize.delete(&format!("/allocations/{who}")).unwrap().expect(204);
    u64::from(claimed)
}

/// The last candidate: the own host, if that is one.
fn choose(client: &Client, vcpus: u64) -> Option<Holding> {
    let found = client.read(&format!("/allocation_candidates?resources=VCPU:{vcpus}"));
    let requests = found["allocation_requests"].as_array().unwrap();
    requests.last().map(|request| books::from_json(&request["allocations"]))
}

fn write(client: &Client, consumer: &str, holding: &Holding) -> Answer {
    client.put(&format!("/allocations/{consumer}"), &body(holding, &Value::Null)).unwrap()
}

fn body(holding: &Holding, generation: &Value) -> Value {
    json!({
        "allocations": books::to_json(holding), "project_id": "project", "user_id": "user",
        "consumer_type": "INSTANCE", "consumer_generation": generation,
    })
}

/// The setting is an event: a replay needs no configuration, and a start that changes nothing
/// writes none.
#[test]
fn the_setting_is_on_record_and_a_restart_without_it_sets_it_back() {
    let server = Server::with(&MAX, &[]);
    let settings = |server: &Server| -> Vec<String> {
        let page = server.client().read("/ledger/v1/events?kind=SettingsChanged");
        let events = page["events"].as_array().unwrap().clone();
        let of = |event: &Value| event["body"]["same_host_moves"].as_str().unwrap().to_owned();
        events.iter().map(of).collect()
    };
    assert_eq!(settings(&server), ["max"]);
    let mut server = server;
    server.restart();
    assert_eq!(settings(&server), ["max"]);
    let by_environment = Server::with(&[], &[("ALLOCD_SAME_HOST_MOVES", "max")]);
    assert_eq!(settings(&by_environment), ["max"]);
    assert!(settings(&Server::start()).is_empty());
}

/// The roots of the candidates for the larger flavor, in their order.
fn candidates(client: &Client, more: &str) -> Vec<String> {
    let query = query("VCPU:2,MEMORY_MB:2048,DISK_GB:1028");
    let found = client.read(&format!("/allocation_candidates?{query}{more}"));
    let requests = found["allocation_requests"].as_array().unwrap();
    let provider = |request: &Value| {
        request["allocations"].as_object().unwrap().keys().next().unwrap().to_owned()
    };
    requests.iter().map(provider).collect()
}

fn query(resources: &str) -> String {
    format!("resources={resources}")
}
