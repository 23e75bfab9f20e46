//! `resize` in one command, and commands that name a candidates query instead of options: the
//! choice and the claim are one atomic step, also when many choose at once.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;

use rand::Rng;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use system_tests::books::{self, Holding};
use system_tests::http::{Answer, Client};
use system_tests::seed;
use system_tests::server::{Server, verify_ledger};
use system_tests::topology;

fn consumer(name: &str) -> String {
    topology::uuid(&format!("consumer {name}")).to_string()
}

fn vcpu(host: &str, amount: u64) -> Holding {
    Holding::from([(host.to_owned(), [("VCPU".to_owned(), amount)].into())])
}

fn send(client: &Client, command: &Value) -> Answer {
    client.post("/ledger/v1/commands", command).unwrap()
}

fn claim(who: &str, fields: Value) -> Value {
    let mut claim = json!({"consumer": who, "project_id": "project", "user_id": "user"});
    claim.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "claim": claim })
}

fn resize(who: &str, migration: &str, fields: Value) -> Value {
    let mut resize = json!({"consumer": who, "migration": migration, "kind": "resize"});
    resize.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "resize": resize })
}

/// The bodies of an accepted command's events.
#[track_caller]
fn bodies(answer: Answer) -> Vec<Value> {
    let answer = answer.expect(200).json();
    answer["events"].as_array().unwrap().iter().map(|event| event["body"].clone()).collect()
}

/// Hosts of 8 VCPU, and a server that holds 2 of the first.
fn cloud<const N: usize>() -> (Server, Client, [String; N], String, String) {
    let server = Server::start();
    let client = server.client();
    let hosts = std::array::from_fn(|number| {
        topology::provider(&client, &format!("H{}", number + 1), &[("VCPU", 8)])
    });
    let who = consumer("I1");
    bodies(send(&client, &claim(&who, json!({"options": [vcpu(&hosts[0], 2)]}))));
    (server, client, hosts, who, consumer("M1"))
}

fn used<const N: usize>(client: &Client, hosts: &[String; N]) -> [u64; N] {
    hosts.each_ref().map(|host| books::usages(client, host).get("VCPU").copied().unwrap_or(0))
}

/// The whole story of a resize that fails on its own host and on the first alternate, with options
/// that the caller has; another client ends it by Placement's call.
#[test]
fn a_resize_goes_through_its_alternates_and_is_confirmed_by_anybody() {
    let (mut server, client, hosts, i1, m1) = cloud::<4>();
    let options: Vec<Holding> = hosts.iter().rev().map(|host| vcpu(host, 4)).collect();
    let events = bodies(send(&client, &resize(&i1, &m1, json!({ "options": options }))));
    assert_eq!(events.len(), 2);
    assert_eq!((&events[1]["host"], &events[1]["option"]), (&json!(hosts[0]), &json!(3)));
    let alternates = &events[1]["moves"][0]["alternates"];
    let named: Vec<&Value> = alternates.as_array().unwrap().iter().map(|it| &it["host"]).collect();
    assert_eq!(named, [&json!(hosts[3]), &json!(hosts[2])]);
    assert_eq!(used(&client, &hosts), [4, 0, 0, 0]);
    // The first alternate has become too small meanwhile.
    bodies(send(&client, &claim(&consumer("I2"), json!({"options": [vcpu(&hosts[3], 5)]}))));
    let next = json!({"reschedule": {"consumer": i1, "reason": "no NUMA cell"}});
    let events = bodies(send(&client, &next));
    assert_eq!(events[1]["host"], json!(hosts[2]));
    assert_eq!(events[1]["passed_over"][0]["cause"], "capacity");
    assert_eq!(used(&client, &hosts), [2, 0, 4, 5]);
    client.delete(&format!("/allocations/{m1}")).unwrap().expect(204);
    assert_eq!(used(&client, &hosts), [0, 0, 4, 5]);
    let moves = client.read("/ledger/v1/moves");
    assert_eq!(moves["moves"][0]["state"], "confirmed");
    assert!(server.terminate().success());
    verify_ledger(&server.data_dir());
}

/// By a query: on the own full host what the source holds is given back to the search.
#[test]
fn a_query_finds_the_own_full_host() {
    let (_server, client, hosts, i1, m1) = cloud::<2>();
    bodies(send(&client, &claim(&consumer("I2"), json!({"options": [vcpu(&hosts[0], 6)]}))));
    bodies(send(&client, &claim(&consumer("I3"), json!({"options": [vcpu(&hosts[1], 7)]}))));
    // No room but the own: 8 of 8 are held, and 2 of them by the server itself.
    let query = json!({"candidates": "resources=VCPU:2"});
    let events = bodies(send(&client, &resize(&i1, &m1, query.clone())));
    assert_eq!(events[1]["host"], json!(hosts[0]));
    assert_eq!(used(&client, &hosts), [8, 7]);
    bodies(send(&client, &json!({"revert": {"consumer": i1}})));
    // A migration may not stay.
    let mut cold = resize(&i1, &m1, query);
    cold["resize"]["kind"] = "migration".into();
    let refused = send(&client, &cold).expect(409);
    let told = &refused.json()["errors"][0];
    assert_eq!(told["cause"], "no_candidate", "{told}");
    let steps: Vec<&str> =
        told["steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert_eq!(steps, ["hosts that are ignored: 1", "VCPU:2: 0 left"]);
    assert_eq!(used(&client, &hosts), [8, 7]);
    // The refusal is on record under the consumer.
    let history = client.read(&format!("/ledger/v1/consumers/{i1}/history?limit=1000"));
    let last = history["events"].as_array().unwrap().last().unwrap();
    assert_eq!(last["header"]["kind"], "Rejected");
    assert_eq!(last["body"]["cause"]["no_candidate"]["query"], "resources=VCPU:2");
}

/// A destination that failed is not found again.
#[test]
fn a_reschedule_by_a_query_leaves_the_failed_host_out() {
    let (_server, client, hosts, i1, m1) = cloud::<3>();
    bodies(send(&client, &resize(&i1, &m1, json!({"candidates": "resources=VCPU:4"}))));
    assert_eq!(used(&client, &hosts), [4, 0, 0]);
    let next = |reason: &str| {
        let fields = json!({"consumer": i1, "reason": reason, "candidates": "resources=VCPU:4"});
        send(&client, &json!({ "reschedule": fields }))
    };
    let host = |events: Vec<Value>| events[1]["host"].as_str().unwrap().to_owned();
    let first = host(bodies(next("NUMA")));
    let second = host(bodies(next("PCI")));
    assert_ne!(first, hosts[0]);
    assert_ne!(first, second);
    assert_eq!(used(&client, &hosts).iter().sum::<u64>(), if second == hosts[0] { 4 } else { 6 });
}

/// The same command id: one outcome, though the second time the search would find another host.
#[test]
fn a_repeated_query_gets_the_first_outcome() {
    let (_server, client, hosts, _, _) = cloud::<2>();
    let who = consumer("I9");
    let wanted = claim(&who, json!({"candidates": "resources=VCPU:3"}));
    let named = client.with("idempotency-key", "once");
    let first = send(&named, &wanted).expect(200).json();
    assert_eq!(first["repeated"], false);
    let before = used(&client, &hosts);
    let again = send(&named, &wanted).expect(200).json();
    assert_eq!((&again["repeated"], &again["events"]), (&json!(true), &first["events"]));
    assert_eq!(used(&client, &hosts), before);
    // Refused once it stays refused, also when there is room by then.
    let named = client.with("idempotency-key", "never");
    let much = claim(&consumer("I10"), json!({"candidates": "resources=VCPU:8"}));
    let full = used(&client, &hosts).iter().all(|held| *held > 0);
    if !full {
        bodies(send(&client, &claim(&consumer("I11"), json!({"options": [vcpu(&hosts[1], 1)]}))));
    }
    send(&named, &much).expect(409);
    for name in ["I1", "I9", "I11"] {
        client.delete(&format!("/allocations/{}", consumer(name))).unwrap();
    }
    let again = send(&named, &much).expect(409).json();
    assert_eq!(again["errors"][0]["repeated"], true, "{again}");
    send(&client, &much).expect(200);
    // A query that cannot be understood is told, and changes nothing.
    for bad in ["", "resources=VCPU", "resources=NOPE:1", "resourcez=VCPU:1"] {
        send(&client, &claim(&consumer("I12"), json!({ "candidates": bad }))).expect(400);
    }
    let both = json!({"candidates": "resources=VCPU:1", "options": [vcpu(&hosts[0], 1)]});
    send(&client, &claim(&consumer("I12"), both)).expect(400);
}

/// 50 servers, two on each host of 4, all grow from 1 to 2 at once: each finds its own host, and
/// every host is full in the end.
#[test]
fn fifty_resizes_at_once_into_the_last_room_are_all_served() {
    const CLIENTS: usize = 50;
    let mut server = Server::start();
    let client = server.client();
    let hosts: Vec<String> = (0..CLIENTS / 2)
        .map(|number| topology::provider(&client, &format!("host{number}"), &[("VCPU", 4)]))
        .collect();
    for number in 0..CLIENTS {
        let option = json!({"options": [vcpu(&hosts[number / 2], 1)]});
        bodies(send(&client, &claim(&consumer(&number.to_string()), option)));
    }
    let answers = all_at_once(&server, CLIENTS, |client, number| {
        let (who, migration) = (consumer(&number.to_string()), consumer(&format!("m{number}")));
        send(client, &resize(&who, &migration, json!({"candidates": "resources=VCPU:2"})))
    });
    for (number, answer) in answers.into_iter().enumerate() {
        let events = bodies(answer);
        assert_eq!(events[1]["host"], json!(hosts[number / 2]));
    }
    for host in &hosts {
        assert_eq!(books::usages(&client, host)["VCPU"], 4);
    }
    assert!(server.terminate().success());
    verify_ledger(&server.data_dir());
}

/// 50 clients claim, resize, confirm, revert and let go at random in a cloud that is nearly full.
/// Nobody is refused while a host with room exists, and nothing is oversold: both are read off the
/// events, one after the other.
#[test]
fn nobody_is_refused_while_there_is_room_and_nothing_is_oversold() {
    const CLIENTS: usize = 50;
    const STEPS: u64 = 12;
    let seed = seed::seed(7);
    let mut server = Server::start();
    let client = server.client();
    for number in 0..10 {
        topology::provider(&client, &format!("host{number}"), &[("VCPU", 6)]);
    }
    // All claim first, which is more than there is.
    let mut statuses = all_at_once(&server, CLIENTS, |client, number| {
        let wanted = json!({"candidates": "resources=VCPU:2"});
        vec![send(&keyed(client, number, 0), &claim(&consumer(&number.to_string()), wanted)).status]
    });
    statuses.extend(all_at_once(&server, CLIENTS, |client, number| {
        let mut random = seed::stream(seed, number as u64 + 1);
        let who = consumer(&number.to_string());
        let steps = (1..=STEPS).map(|step| {
            let client = keyed(client, number, step);
            act(&client, &who, step, &mut random)
        });
        steps.collect::<Vec<u16>>()
    }));
    let count = |status| statuses.iter().flatten().filter(|it| **it == status).count();
    println!("{} accepted, {} refused", count(200), count(409));
    let refused = check_events(&client, 6);
    assert!(refused > 0, "the cloud was never full: this test saw nothing");
    println!("{refused} refusals for want of room, each of them true");
    assert!(server.terminate().success());
    verify_ledger(&server.data_dir());
}

/// Every other client names its commands, so that each of its refusals is on record.
fn keyed(client: &Client, number: usize, step: u64) -> Client {
    match number % 2 {
        0 => client.with("idempotency-key", &format!("{number}-{step}")),
        _ => client.clone(),
    }
}

fn act(client: &Client, who: &str, step: u64, random: &mut StdRng) -> u16 {
    let amount = random.random_range(1..=3);
    let query = json!({"candidates": format!("resources=VCPU:{amount}")});
    let command = match random.random_range(0..8) {
        0..=2 => claim(who, query),
        3 | 4 => resize(who, &consumer(&format!("{who} {step}")), query),
        5 => json!({"confirm": {"consumer": who}}),
        6 => json!({"revert": {"consumer": who}}),
        _ => json!({"release": {"consumer": who}}),
    };
    // Overtaken too often nothing is decided, and the same is asked again.
    loop {
        let status = send(client, &command).status;
        if status != 503 {
            return status;
        }
    }
}

/// Goes through all events: what each host holds stays within `capacity`, and a refusal for want of
/// room comes only when no host has it. How many such refusals there were.
fn check_events(client: &Client, capacity: u64) -> u64 {
    let mut held: BTreeMap<String, u64> = BTreeMap::new();
    let mut on: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let mut refused = 0;
    let mut after = 0;
    loop {
        let page = client.read(&format!("/ledger/v1/events?after={after}&limit=1000"));
        let events = page["events"].as_array().unwrap();
        let Some(last) = events.last() else { return refused };
        after = last["header"]["sequence"].as_u64().unwrap();
        for event in events {
            let (kind, body) = (event["header"]["kind"].as_str().unwrap(), &event["body"]);
            if kind == "ProviderCreated" {
                held.insert(body["provider"].as_str().unwrap().to_owned(), 0);
            }
            take_in(body, &mut held, &mut on);
            assert!(held.values().all(|held| *held <= capacity), "oversold by {event}");
            if kind == "Rejected" && is_want_of_room(&body["cause"]) {
                check_refusal(event, capacity, &held, &on);
                refused += 1;
            }
        }
    }
}

fn take_in(
    body: &Value,
    held: &mut BTreeMap<String, u64>,
    on: &mut BTreeMap<String, BTreeMap<String, u64>>,
) {
    for provider in body["providers"].as_array().into_iter().flatten() {
        for amount in provider["held"].as_array().into_iter().flatten() {
            let provider = provider["provider"].as_str().unwrap().to_owned();
            held.insert(provider, amount["after"].as_u64().unwrap());
        }
    }
    for change in body["consumers"].as_array().into_iter().flatten() {
        let holding = change["holdings"].as_array().unwrap().iter().map(|holding| {
            let after = holding["amounts"][0]["after"].as_u64().unwrap();
            (holding["provider"].as_str().unwrap().to_owned(), after)
        });
        on.insert(change["consumer"].as_str().unwrap().to_owned(), holding.collect());
    }
}

fn is_want_of_room(cause: &Value) -> bool {
    cause == "no_option_fits" || cause == "capacity" || cause["no_candidate"].is_object()
}

fn check_refusal(
    event: &Value,
    capacity: u64,
    held: &BTreeMap<String, u64>,
    on: &BTreeMap<String, BTreeMap<String, u64>>,
) {
    let asked = &event["body"]["asked"][0];
    let query = event["body"]["cause"]["no_candidate"]["query"].as_str();
    let needed = match query {
        Some(query) => query.rsplit_once(':').unwrap().1.parse().unwrap(),
        None => {
            let holding = asked["holding"].as_object().unwrap().values().next().unwrap();
            holding["VCPU"].as_u64().unwrap()
        }
    };
    let nothing = BTreeMap::new();
    let own = match event["body"]["command"] == "resize" {
        true => on.get(asked["consumer"].as_str().unwrap()).unwrap_or(&nothing),
        false => &nothing,
    };
    for (host, held) in held {
        let free = capacity - held + own.get(host).copied().unwrap_or(0);
        assert!(free < needed, "{needed} refused while {host} has {free}: {event}");
    }
}

/// Let `count` clients, each on a connection of its own, begin at the same time.
fn all_at_once<T: Send>(
    server: &Server,
    count: usize,
    act: impl Fn(&Client, usize) -> T + Sync,
) -> Vec<T> {
    let barrier = Barrier::new(count);
    thread::scope(|scope| {
        let (act, barrier) = (&act, &barrier);
        let threads: Vec<_> = (0..count)
            .map(|number| {
                scope.spawn(move || {
                    let client = server.client();
                    client.get("/").unwrap();
                    barrier.wait();
                    act(&client, number)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
