//! `--same-host-moves=max`: an unmodified Nova, which knows nothing of moves, resizes a server on
//! its own full host. It is recognised by the request id that runs through all its calls of one
//! action (Launchpad bug 1790204). What anybody is shown meanwhile is in docs/moves.md.
#![allow(clippy::unwrap_used, missing_docs)]

use serde_json::{Value, json};
use system_tests::books;
use system_tests::http::Client;
use system_tests::same_host::{BOOT, INSTANCE, LARGE, MIGRATION, RESIZE, SMALL, Scene, amounts};
use system_tests::server::Server;
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
        let refused = scene.put_large(&client).expect(409);
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
    scene.put_large(&same).expect(204);
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
