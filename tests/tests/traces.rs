//! What a real Nova sent to a real Placement, sent to allocd: the same answers come back,
//! and the ledger tells the story. See `traces/README.md` for the recordings and
//! `traces/stories.json` for what is expected of the ledger afterwards.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};
use system_tests::books::{self, Holding};
use system_tests::http::Client;
use system_tests::server::{Server, verify_ledger};

/// One recorded call and its recorded answer.
#[derive(Deserialize)]
struct Call {
    by: String,
    method: String,
    path: String,
    microversion: String,
    request_id: Option<String>,
    request: Option<Value>,
    status: u16,
    response: Value,
}

/// What the ledger must tell after a trace.
#[derive(Deserialize)]
struct Story {
    story: String,
    moves: Vec<Move>,
    /// What each consumer still holds.
    held: BTreeMap<String, Holding>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Move {
    instance: String,
    migration: Option<String>,
    state: String,
    attempt: u64,
    inferred: bool,
}

/// Lists whose order means nothing, by the key they stand under; a list under no key is one too.
const UNORDERED: [&str; 6] = [
    "resource_providers",
    "traits",
    "resource_classes",
    "aggregates",
    "allocation_requests",
    "links",
];

macro_rules! traces {
    ($($name:ident = $file:literal)*) => {
        $(#[test]
        fn $name() {
            tell($file);
        })*

        /// With `--same-host-moves=max` the same calls get the same answers and leave the same
        /// story, but for what is given back meanwhile: a search by the request that opened a move,
        /// and usages while both sides are on one provider.
        mod with_max {
            $(#[test]
            fn $name() {
                super::tell_with_max($file);
            })*
        }

        /// Every recording is sent by a test, and has a story.
        #[test]
        fn none_is_forgotten() {
            let mut files: Vec<String> = fs::read_dir(folder()).unwrap()
                .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".jsonl")?.to_owned()))
                .collect();
            files.sort();
            let mut named = vec![$($file),*];
            named.sort_unstable();
            assert_eq!(files, named);
            assert_eq!(files, stories().into_keys().collect::<Vec<_>>());
        }
    };
}

traces! {
    audit_orphaned_after_confirm = "audit-orphaned-after-confirm"
    cold_migrate_confirm = "cold-migrate-confirm"
    evacuate = "evacuate"
    live_migrate = "live-migrate"
    live_migrate_rollback = "live-migrate-rollback"
    reshape = "reshape"
    resize_confirm = "resize-confirm"
    resize_reschedule = "resize-reschedule"
    resize_revert = "resize-revert"
    resize_revert_bandwidth_ports = "resize-revert-bandwidth-ports"
    resize_same_host_confirm = "resize-same-host-confirm"
    resize_same_host_full_refused = "resize-same-host-full-refused"
    resize_same_host_prep_fails = "resize-same-host-prep-fails"
    resize_same_host_revert = "resize-same-host-revert"
}

/// Send a trace to an empty server, and compare answers and story.
fn tell(name: &str) {
    let story = stories().remove(name).unwrap_or_else(|| panic!("stories.json lacks {name}"));
    let mut server = Server::start();
    let differences: Vec<String> =
        calls(name).iter().filter_map(|(line, call)| send(&server, *line, call)).collect();
    assert!(
        differences.is_empty(),
        "{} answers differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    check(&server.client(), &story.story, &story.moves, &story.held);
    // The ledger tells the same after it was read back from disk.
    server.kill();
    server.restart();
    check(&server.client(), &story.story, &story.moves, &story.held);
}

fn tell_with_max(name: &str) {
    let story = stories().remove(name).unwrap_or_else(|| panic!("stories.json lacks {name}"));
    let mut server = Server::with(&["--same-host-moves=max"], &[]);
    for (line, call) in calls(name) {
        let Some(difference) = send(&server, line, &call) else { continue };
        let path = call.path.split('?').next().unwrap();
        let may_differ = path == "/allocation_candidates" || path.ends_with("/usages");
        let same_status = difference.contains(&format!("answered {}", call.status));
        assert!(may_differ && same_status, "{difference}");
    }
    check(&server.client(), &story.story, &story.moves, &story.held);
    assert!(server.terminate().success(), "a clean stop");
    verify_ledger(&server.data_dir());
}

/// Bug 1790204 as Nova met it: the host is full with the server, and Placement finds no candidate.
/// With max the same search finds the host, and the claim that Nova then sends is accepted.
#[test]
fn with_max_nova_gets_the_resize_that_was_refused() {
    let server = Server::with(&["--same-host-moves=max"], &[]);
    let calls = calls("resize-same-host-full-refused");
    let boot = calls.iter().find(|(_, call)| is_claim(call)).expect("a boot");
    let refused = calls
        .iter()
        .position(|(_, call)| {
            call.path.starts_with("/allocation_candidates")
                && call.response["allocation_requests"] == json!([])
        })
        .expect("a search in vain");
    for (line, call) in &calls[..refused] {
        send(&server, *line, call).is_none().then_some(()).expect("the same answer so far");
    }
    let search = &calls[refused].1;
    let client = server.client().request_id(search.request_id.as_ref().unwrap());
    let found = client.microversion(&search.microversion).read(&search.path);
    let requests = found["allocation_requests"].as_array().unwrap();
    assert_eq!(requests.len(), 1, "{found}");
    let mut body = boot.1.request.clone().unwrap();
    body["allocations"] = requests[0]["allocations"].clone();
    body["mappings"] = requests[0]["mappings"].clone();
    let claim = client.microversion(&boot.1.microversion).put(&boot.1.path, &body).unwrap();
    claim.expect(204);
    let host = body["allocations"].as_object().unwrap().keys().next().unwrap().clone();
    books::check_capacity(&server.client(), &host);
    assert_eq!(told(&server.client())[0].state, "claimed");
}

fn is_claim(call: &Call) -> bool {
    call.method == "PUT" && call.path.starts_with("/allocations/")
}

fn check(client: &Client, story: &str, moves: &[Move], held: &BTreeMap<String, Holding>) {
    for (consumer, holding) in held {
        assert_eq!(
            &books::read(client, consumer).0,
            holding,
            "what {consumer} holds in the end; {story}"
        );
    }
    assert_eq!(told(client), moves, "{story}");
}

/// The moves the ledger tells of: the last attempt of each, in their order.
fn told(client: &Client) -> Vec<Move> {
    let answer = client.read("/ledger/v1/moves");
    let mut moves: Vec<Move> = Vec::new();
    for value in answer["moves"].as_array().expect("moves are a list") {
        let next: Move =
            serde_json::from_value(value.clone()).expect("a move has the fields of Move");
        match moves
            .iter_mut()
            .find(|known| known.instance == next.instance && known.migration == next.migration)
        {
            Some(known) if known.attempt < next.attempt => *known = next,
            Some(_) => {}
            None => moves.push(next),
        }
    }
    moves
}

/// Send one recorded call; what differs from the recorded answer, if anything.
fn send(server: &Server, line: usize, call: &Call) -> Option<String> {
    let mut client = server.client().microversion(&call.microversion);
    if let Some(id) = &call.request_id {
        client = client.request_id(id);
    }
    if call.path.starts_with("/reshaper") {
        client = client.with("x-roles", "admin,service");
    }
    let body = call.request.as_ref().map(Value::to_string);
    let answer = client
        .send(&call.method, &call.path, body.as_deref().map(str::as_bytes))
        .expect("the server answers");
    let same_body =
        || call.status >= 400 || normal(&answer.json(), None) == normal(&call.response, None);
    if answer.status == call.status && same_body() {
        return None;
    }
    let Call { by, method, path, microversion, status, response, .. } = call;
    Some(format!(
        "line {line}: {by} {method} {path} ({microversion})\n  recorded {status} {}\n  answered {} {}",
        normal(response, None),
        answer.status,
        answer.text()
    ))
}

/// A body with its unordered lists sorted, and without the id that differs each time.
fn normal(value: &Value, key: Option<&str>) -> Value {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> =
                fields.iter().filter(|(name, _)| *name != "request_id").collect();
            sorted.sort_by_key(|(name, _)| *name);
            sorted
                .into_iter()
                .map(|(name, field)| (name.clone(), normal(field, Some(name))))
                .collect::<serde_json::Map<_, _>>()
                .into()
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| normal(item, None)).collect();
            if key.is_none_or(|key| UNORDERED.contains(&key)) {
                items.sort_by_cached_key(Value::to_string);
            }
            items.into()
        }
        other => other.clone(),
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("traces")
}

fn stories() -> BTreeMap<String, Story> {
    let text = fs::read_to_string(folder().join("stories.json")).unwrap();
    serde_json::from_str(&text).expect("stories.json has the form of Story")
}

/// The calls of a trace, with their line numbers.
fn calls(name: &str) -> Vec<(usize, Call)> {
    let text = fs::read_to_string(folder().join(name).with_extension("jsonl")).unwrap();
    (1..)
        .zip(text.lines())
        .map(|(number, line)| {
            (number, serde_json::from_str(line).expect("a trace's line is a call"))
        })
        .collect()
}
